package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

type createRequest struct {
	TemplateID      string            `json:"templateID"`
	Timeout         *int              `json:"timeout"`
	Metadata        map[string]string `json:"metadata"`
	EnvVars         map[string]string `json:"envVars"`
	AutoPause       bool              `json:"autoPause"`
	AutoPauseMemory *bool             `json:"autoPauseMemory"`
	AutoResume      struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	Internet     *bool           `json:"allow_internet_access"`
	Network      json.RawMessage `json:"network"`
	MCP          json.RawMessage `json:"mcp"`
	IAM          json.RawMessage `json:"iam"`
	VolumeMounts json.RawMessage `json:"volumeMounts"`
}

// noMemory refuses what would end the processes and keep the files.
const noMemory = "A pause keeps the processes here; one that keeps only the files is not offered. End the sandbox instead: its files stay in the folder."

// refused names what was asked for and cannot be had on a person's computer.
// Nobody is asked about it.
func (c *createRequest) refused() string {
	switch {
	case c.Internet != nil && !*c.Internet || given(c.Network):
		return "Network rules are not offered: what a command may reach is the person's decision."
	case c.AutoPauseMemory != nil && !*c.AutoPauseMemory:
		return noMemory
	case c.AutoResume.Enabled && !c.AutoPause:
		return "A sandbox can resume by itself only when it is paused at the end of its time."
	case given(c.MCP):
		return "An MCP gateway is not offered."
	case given(c.IAM):
		return "Workload identities are not offered."
	case given(c.VolumeMounts):
		return "Volumes are not offered: the sandbox works in a folder of a person's computer, which is kept anyway. Leave the volume mounts out."
	case len(c.Metadata) > 64:
		return "The metadata has more than 64 entries."
	case !offered(c.TemplateID):
		return noTemplate(c.TemplateID)
	}
	return ""
}

func given(m json.RawMessage) bool {
	switch string(m) {
	case "", "null", "{}", "[]":
		return false
	}
	return true
}

// ttl checks a time-to-live in seconds.
func ttl(w http.ResponseWriter, seconds *int, otherwise time.Duration) (time.Duration, bool) {
	if seconds == nil {
		return otherwise, true
	}
	if *seconds < 0 || *seconds > int(maxTTL/time.Second) {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("The timeout must be 0 to %d seconds.", int(maxTTL/time.Second)))
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// create asks the person for a session, and waits for the answer.
func (f *Face) create(w http.ResponseWriter, r *http.Request, key store.Key) {
	c := &call{arrived: time.Now()}
	req := createRequest{TemplateID: baseTemplate}
	if !readJSON(w, r, &req) {
		return
	}
	if sentence := req.refused(); sentence != "" {
		writeError(w, http.StatusBadRequest, sentence)
		return
	}
	life, ok := ttl(w, req.Timeout, defaultTTL)
	if !ok {
		return
	}
	if life == 0 {
		life = defaultTTL
	}
	wish := strings.Join([]string{key.ID, req.Metadata["machine"], req.Metadata["folder"], req.Metadata["title"]}, "\x00")
	if err := f.declined.lately(wish); err != nil {
		httpError(w, err)
		return
	}
	agent := req.Metadata["agent"]
	if agent == "" {
		agent = strings.ToValidUTF8(r.UserAgent(), "")
	}
	b, err := f.o.Backend.Open(r.Context(), wire.SessionOpen{
		PrincipalID: key.ID, PrincipalName: key.Name,
		Agent: agent, Title: req.Metadata["title"], Folder: req.Metadata["folder"],
		TTLSeconds: int(life / time.Second), Env: req.EnvVars, WaitMS: f.wait(c),
	}, store.Sandbox{User: key.User, Machine: req.Metadata["machine"], Principal: key.ID, Template: req.TemplateID, Metadata: req.Metadata,
		EndPauses: req.AutoPause, AutoResume: req.AutoResume.Enabled})
	if err != nil {
		f.declined.note(wish, err)
		httpError(w, err)
		return
	}
	if r.Context().Err() != nil {
		// The program left just after the person had agreed: nobody knows of the
		// sandbox, and nobody would end it.
		if err := f.o.Backend.End(context.WithoutCancel(r.Context()), b, "Its program has gone."); err != nil {
			f.o.Log.Warn("A sandbox that nobody knows of could not be ended", "err", err)
		}
		return
	}
	f.endMoved()
	writeJSON(w, http.StatusCreated, f.sandboxJSON(b))
}

// quietFor is how long a person who has declined is left alone: programs try
// again by themselves, a second or two later.
const quietFor = 5 * time.Second

// denials are the last answers to who asked for a session and was declined.
type denials struct {
	mu  sync.Mutex
	all map[string]denial // by who asked for what; guarded by mu
}

type denial struct {
	err  error
	when time.Time
}

// lately is the answer to the same wish of a moment ago, nil if there is none.
func (d *denials) lately(wish string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one, ok := d.all[wish]; ok && time.Since(one.when) < quietFor {
		return one.err
	}
	return nil
}

// note keeps err if it says that the person declined.
func (d *denials) note(wish string, err error) {
	if wire.CodeOf(err) != wire.CodeDenied {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]denial{}
	}
	for w, one := range d.all {
		if time.Since(one.when) >= quietFor {
			delete(d.all, w)
		}
	}
	d.all[wish] = denial{err, time.Now()}
}
