package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

const (
	maxControlBody = 1 << 20
	bodyTimeout    = 30 * time.Second
	defaultTTL     = time.Hour
	maxTTL         = 24 * time.Hour // a computer keeps no session for longer
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
		mux.HandleFunc("POST "+v+"/sandboxes/{id}/pause", f.keyed(f.pause))
		mux.HandleFunc("POST "+v+"/sandboxes/{id}/resume", f.keyed(f.resume))
		mux.HandleFunc("GET "+v+"/sandboxes/{id}/metrics", f.keyed(f.metrics))
	}
	mux.HandleFunc("GET /templates/aliases/{alias}", f.keyed(f.templateAlias))
	mux.HandleFunc("GET /templates/{id}", f.keyed(f.template))
	mux.HandleFunc("/", f.keyed(notOffered))
	return mux
}

// notOffered says of a call what of it makes no sense on a person's computer.
func notOffered(w http.ResponseWriter, r *http.Request, _ store.Key) {
	what := "This is not offered"
	for _, part := range strings.Split(r.URL.Path, "/") {
		if named, ok := map[string]string{
			"fork": "Forks are not offered", "snapshots": "Snapshots are not offered", "network": "Network rules are not offered",
			"templates": "Building, listing and removing templates is not offered", "volumes": "Volumes are not offered", "secrets": "Stored secrets are not offered",
		}[part]; ok {
			what = named
		}
	}
	writeError(w, http.StatusNotImplemented, what+": the sandbox is a folder of a person's own computer.")
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
			writeError(w, http.StatusBadRequest, notExpected(err))
			return false
		}
		return true
	}
	return false
}

// notExpected says what is wrong with the JSON of a request.
func notExpected(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("The request is not the JSON that is expected here: %s cannot be a %s.", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("The request is not the JSON that is expected here: it cannot be a %s.", kind.Value)
	}
	return "The request is not whole JSON."
}

// own gives a sandbox that was opened with this key and has not ended.
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
		writeJSON(w, http.StatusOK, f.detailJSON(b, f.sizeOf(r.Context(), b)))
	}
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

func (f *Face) detailJSON(b store.Sandbox, of size) map[string]any {
	state, onTimeout := "running", "kill"
	if b.Paused {
		state = "paused"
	}
	if b.EndPauses {
		onTimeout = "pause"
	}
	return map[string]any{
		"sandboxID":   b.ID,
		"templateID":  b.Template,
		"clientID":    b.Machine,
		"envdVersion": envdVersion,
		"startedAt":   b.Started.UTC().Format(time.RFC3339Nano),
		"endAt":       b.EndsAt.UTC().Format(time.RFC3339Nano),
		"state":       state,
		"metadata":    b.Metadata,
		"lifecycle":   map[string]any{"onTimeout": onTimeout, "autoResume": b.AutoResume},
		// 0 where the computer has not told: the SDKs need numbers.
		"cpuCount":   of.cpus,
		"memoryMB":   of.memory >> 20,
		"diskSizeMB": of.disk >> 20,
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
