package web

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"localpc/tunnel/hub/store"
)

type keysData struct {
	Keys []store.Key
	// Programs are those that signed in.
	Programs []store.SignIn
	Now      time.Time
	Name     string     // as typed before
	New      *store.Key // just made: its secret is shown this once
	Lines    []string   // to copy for the E2B SDK
	MCP      string     // where MCP clients come to
}

func (f *Face) showKeys(w http.ResponseWriter, r *http.Request, u *store.User) {
	f.listKeys(w, r, u, http.StatusOK, "", keysData{})
}

func (f *Face) listKeys(w http.ResponseWriter, r *http.Request, u *store.User, status int, problem string, d keysData) {
	var err error
	if d.Keys, err = f.o.Store.Keys(r.Context(), u.ID); err != nil {
		f.failed(w, r, err)
		return
	}
	signIns, err := f.o.Store.SignIns(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	d.Programs = slices.DeleteFunc(signIns, func(s store.SignIn) bool { return s.Resource == "" })
	d.Now = f.o.Now()
	f.show(w, r, status, "keys", view{Title: "Keys", Nav: "keys", Error: problem, Data: d})
}

func (f *Face) makeKey(w http.ResponseWriter, r *http.Request, u *store.User) {
	d := keysData{Name: r.PostFormValue("name")}
	if err := store.CheckName(d.Name); err != nil {
		f.listKeys(w, r, u, http.StatusUnprocessableEntity, sentence(err), d)
		return
	}
	k, err := f.o.Store.AddKey(r.Context(), u.ID, d.Name)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Key made", "user", u.ID, "key", k.ID)
	base := f.base.String()
	f.listKeys(w, r, u, http.StatusOK, "", keysData{New: &k, MCP: base + "/mcp",
		Lines: []string{"E2B_API_KEY=" + k.Secret, "E2B_API_URL=" + base + "/api", "E2B_SANDBOX_URL=" + base + "/sbx"}})
}

// keyOf finds a person's key, or answers.
func (f *Face) keyOf(w http.ResponseWriter, r *http.Request, u *store.User) (store.Key, bool) {
	list, err := f.o.Store.Keys(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return store.Key{}, false
	}
	i := slices.IndexFunc(list, func(k store.Key) bool { return k.ID == r.PathValue("id") })
	if i < 0 {
		f.nothing(w, r)
		return store.Key{}, false
	}
	return list[i], true
}

func (f *Face) showRevokeKey(w http.ResponseWriter, r *http.Request, u *store.User) {
	k, ok := f.keyOf(w, r, u)
	if !ok {
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "Revoke the key of " + Visible(k.Name) + "?", Nav: "keys", Data: confirm{
		Lines:  []string{"The program is shut out now, and what it runs on your computers ends. This cannot be undone: it would need a new key."},
		Action: r.URL.Path, Yes: "Revoke", To: "/keys", Word: "Keep it"}})
}

func (f *Face) revokeKey(w http.ResponseWriter, r *http.Request, u *store.User) {
	k, ok := f.keyOf(w, r, u)
	if !ok {
		return
	}
	err := f.o.Store.RevokeKey(r.Context(), u.ID, k.ID)
	f.o.Hub.Recheck()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Key revoked by its person", "user", u.ID, "key", k.ID)
	f.done(w, r, "/keys", "The key of "+Visible(k.Name)+" is revoked.")
}
