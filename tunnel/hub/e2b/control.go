package e2b

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	maxControlBody = 1 << 20
	bodyTimeout    = 30 * time.Second
	defaultTTL     = time.Hour
	maxTTL         = 30 * 24 * time.Hour
	maxPage        = 100
)

// Control serves the control API.
func (f *Face) Control() http.Handler {
	mux := http.NewServeMux()
	for _, v := range []string{"", "/v2"} { // older and newer SDKs
		mux.HandleFunc("POST "+v+"/sandboxes", f.keyed(f.create))
		mux.HandleFunc("GET "+v+"/sandboxes", f.keyed(f.list))
		mux.HandleFunc("GET "+v+"/sandboxes/{id}", f.keyed(f.info))
		mux.HandleFunc("DELETE "+v+"/sandboxes/{id}", f.keyed(f.kill))
		mux.HandleFunc("POST "+v+"/sandboxes/{id}/connect", f.keyed(f.connect))
		mux.HandleFunc("POST "+v+"/sandboxes/{id}/timeout", f.keyed(f.setTimeout))
	}
	mux.HandleFunc("/", f.keyed(func(w http.ResponseWriter, _ *http.Request, _ store.Key) {
		writeError(w, http.StatusNotImplemented, "This is not offered for sandboxes that are a person's own computer.")
	}))
	return mux
}

func (f *Face) keyed(next func(http.ResponseWriter, *http.Request, store.Key)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := Authenticate(f.o.Store, r)
		switch {
		case errors.Is(err, store.ErrNotFound):
			writeError(w, http.StatusUnauthorized, "A key is needed that this hub knows. Make one with: localpc-hub key add NAME")
		case err != nil:
			f.o.Log.Error("Key could not be checked", "err", err)
			httpError(w, err)
		default:
			next(w, r, key)
		}
	}
}

// readJSON reads a bounded body; an empty one is an empty object.
func readJSON(w http.ResponseWriter, r *http.Request, v any) bool {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControlBody))
	_ = rc.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The request has more than %d bytes.", tooLarge.Limit))
	case err != nil:
		writeError(w, http.StatusBadRequest, "The request could not be read.")
	case len(body) == 0:
		return true
	default:
		if err := json.Unmarshal(body, v); err != nil {
			writeError(w, http.StatusBadRequest, "The request is not the JSON that is expected here: "+err.Error()+".")
			return false
		}
		return true
	}
	return false
}

type createRequest struct {
	TemplateID   string            `json:"templateID"`
	Timeout      *int              `json:"timeout"`
	Metadata     map[string]string `json:"metadata"`
	EnvVars      map[string]string `json:"envVars"`
	AutoPause    bool              `json:"autoPause"`
	Internet     *bool             `json:"allow_internet_access"`
	Network      json.RawMessage   `json:"network"`
	MCP          json.RawMessage   `json:"mcp"`
	IAM          json.RawMessage   `json:"iam"`
	VolumeMounts json.RawMessage   `json:"volumeMounts"`
}

// refused names what was asked for and cannot be had on a person's computer.
func (c *createRequest) refused() string {
	switch {
	case c.Internet != nil && !*c.Internet || given(c.Network):
		return "Network rules are not offered: what a command may reach is the person's decision."
	case c.AutoPause:
		return "Pausing at the end of the time is not offered; the sandbox ends then."
	case given(c.MCP):
		return "An MCP gateway is not offered."
	case given(c.IAM):
		return "Workload identities are not offered."
	case given(c.VolumeMounts):
		return "Volumes are not offered; the sandbox works in a folder of the computer."
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
	var req createRequest
	if !readJSON(w, r, &req) {
		return
	}
	if sentence := req.refused(); sentence != "" {
		writeError(w, http.StatusBadRequest, sentence)
		return
	}
	if len(req.Metadata) > 64 {
		writeError(w, http.StatusBadRequest, "The metadata has more than 64 entries.")
		return
	}
	life, ok := ttl(w, req.Timeout, defaultTTL)
	if !ok {
		return
	}
	if life == 0 {
		life = defaultTTL
	}
	if req.TemplateID == "" {
		req.TemplateID = "base"
	}
	agent := req.Metadata["agent"]
	if agent == "" {
		agent = strings.ToValidUTF8(r.UserAgent(), "")
	}
	b, err := f.o.Backend.Open(r.Context(), wire.SessionOpen{
		PrincipalID: key.ID, PrincipalName: key.Name,
		Agent: agent, Title: req.Metadata["title"], Folder: req.Metadata["folder"],
		TTLSeconds: int(life / time.Second), Env: req.EnvVars, WaitMS: f.wait(c),
	}, store.Sandbox{User: key.User, Machine: req.Metadata["machine"], Principal: key.ID, Template: req.TemplateID, Metadata: req.Metadata})
	if err != nil {
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
	writeJSON(w, http.StatusCreated, f.sandboxJSON(b))
}

// own gives a running sandbox that was opened with this key.
func (f *Face) own(w http.ResponseWriter, r *http.Request, key store.Key) (store.Sandbox, bool) {
	b, err := f.o.Store.Sandbox(r.Context(), r.PathValue("id"))
	if err == nil && (b.User != key.User || b.Principal != key.ID || b.Ended) {
		err = store.ErrNotFound
	}
	if err != nil {
		f.notFound(w, r, err)
		return store.Sandbox{}, false
	}
	return b, true
}

func (f *Face) notFound(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, store.ErrNotFound) {
		httpError(w, err)
		return
	}
	writeError(w, http.StatusNotFound, fmt.Sprintf("There is no running sandbox %q.", r.PathValue("id")))
}

// connect finds a running sandbox; its time is only ever made longer.
func (f *Face) connect(w http.ResponseWriter, r *http.Request, key store.Key) {
	var req struct {
		Timeout *int `json:"timeout"`
	}
	if !readJSON(w, r, &req) {
		return
	}
	life, ok := ttl(w, req.Timeout, 0)
	if !ok {
		return
	}
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	if time.Now().Add(life).After(b.EndsAt) {
		if err := f.o.Backend.SetTTL(r.Context(), b, life); err != nil {
			f.sessionError(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, f.sandboxJSON(b))
}

func (f *Face) sessionError(w http.ResponseWriter, r *http.Request, err error) {
	if wire.CodeOf(err) == wire.CodeSessionNotOpen {
		err = store.ErrNotFound
		f.notFound(w, r, err)
		return
	}
	httpError(w, err)
}

func (f *Face) setTimeout(w http.ResponseWriter, r *http.Request, key store.Key) {
	var req struct {
		Timeout *int `json:"timeout"`
	}
	if !readJSON(w, r, &req) {
		return
	}
	if req.Timeout == nil {
		writeError(w, http.StatusBadRequest, "The timeout is missing.")
		return
	}
	life, ok := ttl(w, req.Timeout, 0)
	if !ok {
		return
	}
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	var err error
	if life == 0 {
		err = f.o.Backend.End(r.Context(), b, "its program ended it")
	} else {
		err = f.o.Backend.SetTTL(r.Context(), b, life)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.notFound(w, r, err)
	case err != nil:
		f.sessionError(w, r, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *Face) kill(w http.ResponseWriter, r *http.Request, key store.Key) {
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	if err := f.o.Backend.End(r.Context(), b, "its program ended it"); err != nil {
		f.notFound(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *Face) info(w http.ResponseWriter, r *http.Request, key store.Key) {
	if b, ok := f.own(w, r, key); ok {
		writeJSON(w, http.StatusOK, f.detailJSON(b))
	}
}

func (f *Face) list(w http.ResponseWriter, r *http.Request, key store.Key) {
	q, wanted, sentence := listQuery(r.URL.Query())
	if sentence != "" {
		writeError(w, http.StatusBadRequest, sentence)
		return
	}
	out := []map[string]any{}
	if wanted {
		q.Principal = key.ID
		limit := q.Limit
		q.Limit++ // to learn whether there is a next page
		list, err := f.o.Store.Sandboxes(r.Context(), q)
		if err != nil {
			f.o.Log.Error("Sandboxes could not be listed", "err", err)
			httpError(w, err)
			return
		}
		if len(list) > limit {
			list = list[:limit]
			last := list[limit-1]
			token := fmt.Sprintf("%d.%s", last.Started.UnixMilli(), last.ID)
			w.Header().Set("X-Next-Token", base64.RawURLEncoding.EncodeToString([]byte(token)))
		}
		for _, b := range list {
			out = append(out, f.detailJSON(b))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

// listQuery reads the query of list. wanted is false when no running sandbox
// can match.
func listQuery(v url.Values) (q store.Query, wanted bool, sentence string) {
	q = store.Query{Limit: maxPage, Template: v.Get("template"), Oldest: v.Get("order") == "asc"}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxPage {
			return q, false, fmt.Sprintf("The limit must be 1 to %d.", maxPage)
		}
		q.Limit = n
	}
	if s := v.Get("startedAfter"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return q, false, "startedAfter is not a time."
		}
		q.Since = t
	}
	if s := v.Get("nextToken"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		ms, id, ok := strings.Cut(string(raw), ".")
		at, err2 := strconv.ParseInt(ms, 10, 64)
		if err != nil || err2 != nil || !ok {
			return q, false, "nextToken is not one that this hub gave."
		}
		q.AfterStart, q.AfterID = time.UnixMilli(at), id
	}
	if s := v.Get("metadata"); s != "" {
		// A query string in a query string, and its parts are escaped once more.
		pairs, err := url.ParseQuery(s)
		if err != nil {
			return q, false, "The metadata to look for cannot be read."
		}
		q.Metadata = map[string]string{}
		for k, values := range pairs {
			key, err := url.PathUnescape(k)
			value, err2 := url.PathUnescape(values[0])
			if err != nil || err2 != nil {
				return q, false, "The metadata to look for cannot be read."
			}
			q.Metadata[key] = value
		}
	}
	states := strings.Split(strings.Join(v["state"], ","), ",")
	for _, s := range states {
		wanted = wanted || s == "" || s == "running"
	}
	return q, wanted, ""
}

func (f *Face) sandboxJSON(b store.Sandbox) map[string]any {
	return map[string]any{
		"sandboxID":       b.ID,
		"templateID":      b.Template,
		"clientID":        b.Machine,
		"envdVersion":     envdVersion,
		"envdAccessToken": f.accessToken(b.ID),
	}
}

func (f *Face) detailJSON(b store.Sandbox) map[string]any {
	return map[string]any{
		"sandboxID":   b.ID,
		"templateID":  b.Template,
		"clientID":    b.Machine,
		"envdVersion": envdVersion,
		"startedAt":   b.Started.UTC().Format(time.RFC3339Nano),
		"endAt":       b.EndsAt.UTC().Format(time.RFC3339Nano),
		"state":       "running",
		"metadata":    b.Metadata,
		// The computer's own are not told; the SDKs need numbers.
		"cpuCount":   0,
		"memoryMB":   0,
		"diskSizeMB": 0,
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
