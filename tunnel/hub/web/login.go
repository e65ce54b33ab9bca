package web

import (
	"errors"
	"net/http"

	"localpc/tunnel/hub/store"
)

// Sentences of the log-in. The first is the same whatever was wrong, so that
// it tells nobody which names there are.
const (
	wrongLogin  = "That name and password do not belong together. Check both, and whether Caps Lock is on."
	wrongKey    = "That passkey is not known here. Use another one, or your password."
	tooMany     = "There were too many tries. Wait ten minutes, then try again."
	loginFailed = "The hub is busy with other log-ins. Try again in a moment."
)

type loginData struct {
	Name  string // as typed before
	Next  string
	Again bool // somebody is logged in and has to show that it is them
}

func (f *Face) showLogin(w http.ResponseWriter, r *http.Request) {
	next := ownPage(r.FormValue("next"))
	again := r.FormValue("again") != "" && who(r) != nil
	if who(r) != nil && !again {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	if who(r) == nil {
		if done, err := f.o.Store.SetUp(r.Context()); err != nil {
			f.failed(w, r, err)
			return
		} else if !done {
			http.Redirect(w, r, "/setup", http.StatusSeeOther)
			return
		}
	}
	d := loginData{Next: next, Again: again}
	if again {
		d.Name = who(r).Name
	}
	f.show(w, r, http.StatusOK, "login", view{Title: "Log in", Data: d})
}

func (f *Face) logIn(w http.ResponseWriter, r *http.Request) {
	d := loginData{Name: r.PostFormValue("name"), Next: ownPage(r.PostFormValue("next"))}
	refuse := func(status int, sentence string) {
		if len(d.Name) > 300 {
			d.Name = ""
		}
		f.show(w, r, status, "login", view{Title: "Log in", Error: sentence, Data: d})
	}
	address := network(r)
	count, key := f.guesses(r, d.Name)
	passkey := r.PostFormValue("credential")
	if !f.logins.Take(address) || passkey == "" && !count.Take(key) {
		f.log.Warn("Log-in refused", "address", address, "reason", "too many tries")
		refuse(http.StatusTooManyRequests, tooMany)
		return
	}
	var u store.User
	var err error
	if passkey != "" {
		u, err = f.passkeyLogin(r, passkey)
	} else {
		u, err = f.o.Store.LogIn(r.Context(), d.Name, r.PostFormValue("password"))
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.log.Warn("Log-in refused", "address", address, "passkey", passkey != "")
		if passkey != "" {
			refuse(http.StatusUnauthorized, wrongKey)
		} else {
			refuse(http.StatusUnauthorized, wrongLogin)
		}
		return
	case err != nil && r.Context().Err() == nil:
		f.log.Error("Log-in failed", "err", err)
		refuse(http.StatusServiceUnavailable, loginFailed)
		return
	case err != nil:
		return
	}
	f.logins.Give(address)
	if passkey == "" {
		count.Give(key)
	}
	if err := f.enter(r, u); err != nil {
		f.failed(w, r, err)
		return
	}
	f.knowDevice(w, r, u)
	f.log.Info("Logged in", "user", u.ID, "address", address, "passkey", passkey != "")
	http.Redirect(w, r, d.Next, http.StatusSeeOther)
}

func (f *Face) logOut(w http.ResponseWriter, r *http.Request) {
	if err := f.sessions.Destroy(r.Context()); err != nil {
		f.failed(w, r, err)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
