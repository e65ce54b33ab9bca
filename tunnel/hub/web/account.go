package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"localpc/tunnel/hub/store"
)

type browserRow struct {
	store.Browser
	Name string
	Here bool
}

type signInRow struct {
	store.SignIn
	Title string
}

type accountData struct {
	Keys     []store.Passkey
	Browsers []browserRow
	SignIns  []signInRow
	Guess    string // a name for the next passkey
	Min      int
	Now      time.Time
}

func (f *Face) showAccount(w http.ResponseWriter, r *http.Request, u *store.User) {
	f.account(w, r, u, http.StatusOK, "")
}

func (f *Face) account(w http.ResponseWriter, r *http.Request, u *store.User, status int, problem string) {
	ctx := r.Context()
	d := accountData{Now: f.o.Now(), Min: store.MinPassword, Guess: agentName(r.UserAgent())}
	var err error
	if d.Keys, err = f.o.Store.Passkeys(ctx, u.ID); err != nil {
		f.failed(w, r, err)
		return
	}
	list, err := f.o.Store.Browsers(ctx, u.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	for _, b := range list {
		d.Browsers = append(d.Browsers, browserRow{Browser: b, Name: agentName(b.Agent), Here: b.ID == here(r)})
	}
	signIns, err := f.o.Store.SignIns(ctx, u.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	for _, s := range signIns {
		if s.Resource != "" {
			continue // a program's: the page Keys has it
		}
		row := signInRow{SignIn: s, Title: s.Name}
		if row.Title == "" {
			row.Title = s.Client
		}
		d.SignIns = append(d.SignIns, row)
	}
	f.show(w, r, status, "account", view{Title: "Account", Nav: "account", Error: problem, Data: d})
}

// here is the id of the browser that a request came from.
func here(r *http.Request) string {
	id, _ := r.Context().Value(foundKey{}).(*string)
	if id == nil {
		return ""
	}
	return *id
}

// setPassword takes a first or a new password. Elsewhere the person is logged
// out: who knew the old one is so too.
func (f *Face) setPassword(w http.ResponseWriter, r *http.Request, u *store.User) {
	if u.Password {
		count, key := f.guesses(r, u.Name)
		if !count.Take(key) {
			f.account(w, r, u, http.StatusTooManyRequests, tooMany)
			return
		}
		_, err := f.o.Store.LogIn(r.Context(), u.Name, r.PostFormValue("old"))
		if errors.Is(err, store.ErrNotFound) {
			f.account(w, r, u, http.StatusUnprocessableEntity, "The password you have now is not that one. Nothing was changed.")
			return
		}
		if err != nil {
			f.failed(w, r, err)
			return
		}
		count.Give(key)
	}
	password := r.PostFormValue("password")
	if err := store.CheckPassword(u.Name, password); err != nil {
		f.account(w, r, u, http.StatusUnprocessableEntity, sentence(err))
		return
	}
	err := f.o.Store.SetPassword(r.Context(), u.ID, here(r), password)
	if errors.Is(err, store.ErrNotFound) {
		f.toLogin(w, r) // logged out meanwhile
		return
	}
	if err = errors.Join(err, f.o.Store.EndBrowsers(r.Context(), u.ID, here(r), "")); err != nil {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Password changed", "user", u.ID)
	f.done(w, r, "/account", "The password is changed. Elsewhere you are logged out.")
}

func (f *Face) removePassword(w http.ResponseWriter, r *http.Request, u *store.User) {
	err := f.o.Store.RemovePassword(r.Context(), u.ID)
	switch {
	case errors.Is(err, store.ErrLastWay):
		f.account(w, r, u, http.StatusUnprocessableEntity, "The password is your only way to log in. Add a passkey first.")
	case err != nil:
		f.failed(w, r, err)
	default:
		f.log.Info("Password removed", "user", u.ID)
		f.done(w, r, "/account", "The password is gone. You log in with a passkey.")
	}
}

func (f *Face) addPasskey(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, err := f.newPasskey(r, *u, r.PostFormValue("credential"))
	if errors.Is(err, errPasskey) {
		f.account(w, r, u, http.StatusUnprocessableEntity, sentence(err))
		return
	}
	if err != nil {
		f.failed(w, r, err)
		return
	}
	p.Name = strings.TrimSpace(r.PostFormValue("label"))
	if p.Name == "" || !utf8.ValidString(p.Name) || utf8.RuneCountInString(p.Name) > 60 {
		p.Name = agentName(r.UserAgent())
	}
	p.Browser = here(r)
	err = f.o.Store.AddPasskey(r.Context(), p)
	if errors.Is(err, store.ErrNotFound) {
		f.toLogin(w, r) // logged out meanwhile
		return
	}
	if err != nil {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Passkey added", "user", u.ID, "passkey", p.ID)
	f.done(w, r, "/account", "The passkey is added.")
}

// passkeyOf finds a person's passkey, or answers.
func (f *Face) passkeyOf(w http.ResponseWriter, r *http.Request, u *store.User) (store.Passkey, bool) {
	list, err := f.o.Store.Passkeys(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return store.Passkey{}, false
	}
	i := slices.IndexFunc(list, func(p store.Passkey) bool { return p.ID == r.PathValue("id") })
	if i < 0 {
		f.nothing(w, r)
		return store.Passkey{}, false
	}
	return list[i], true
}

func (f *Face) showRemovePasskey(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.passkeyOf(w, r, u)
	if !ok {
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "Remove the passkey " + Visible(p.Name) + "?", Nav: "account", Data: confirm{
		Lines:  []string{"It opens this hub no more. Your device may still offer it; you can delete it there too."},
		Action: r.URL.Path, Yes: "Remove", To: "/account", Word: "Keep it"}})
}

func (f *Face) removePasskey(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.passkeyOf(w, r, u)
	if !ok {
		return
	}
	err := f.o.Store.RemovePasskey(r.Context(), u.ID, p.ID)
	switch {
	case errors.Is(err, store.ErrLastWay):
		f.account(w, r, u, http.StatusUnprocessableEntity, "This passkey is your only way to log in. Add another one or a password first.")
	case err != nil && !errors.Is(err, store.ErrNotFound):
		f.failed(w, r, err)
	default:
		f.log.Info("Passkey removed", "user", u.ID, "passkey", p.ID)
		f.done(w, r, "/account", "The passkey is removed.")
	}
}

// endBrowsers logs the person out in one other browser, or in all others.
func (f *Face) endBrowsers(w http.ResponseWriter, r *http.Request, u *store.User) {
	if err := f.o.Store.EndBrowsers(r.Context(), u.ID, here(r), r.PostFormValue("browser")); err != nil {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Logged out elsewhere", "user", u.ID)
	f.done(w, r, "/account", "Done: you are logged out there.")
}

// signInOf finds a person's sign-in, or answers.
func (f *Face) signInOf(w http.ResponseWriter, r *http.Request, u *store.User) (store.SignIn, bool) {
	list, err := f.o.Store.SignIns(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return store.SignIn{}, false
	}
	i := slices.IndexFunc(list, func(s store.SignIn) bool { return s.ID == r.PathValue("id") })
	if i < 0 {
		f.nothing(w, r)
		return store.SignIn{}, false
	}
	return list[i], true
}

func (f *Face) showEndSignIn(w http.ResponseWriter, r *http.Request, u *store.User) {
	s, ok := f.signInOf(w, r, u)
	if !ok {
		return
	}
	name := s.Name
	if name == "" {
		name = s.Client
	}
	if s.Resource != "" {
		f.show(w, r, http.StatusOK, "confirm", view{Title: "Disconnect " + Visible(s.Called) + "?", Nav: "keys", Data: confirm{
			Lines:  []string{"The program is shut out now, and what it runs on your computers ends. To come back, it has to ask you again."},
			Action: r.URL.Path, Yes: "Disconnect", To: "/keys", Word: "Keep it"}})
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "End the sign-in of " + Visible(name) + "?", Nav: "account", Data: confirm{
		Lines:  []string{"Its connection ends now, with what runs over it. To connect again, somebody has to sign in anew from that computer."},
		Action: r.URL.Path, Yes: "End it", To: "/account", Word: "Keep it"}})
}

func (f *Face) endSignIn(w http.ResponseWriter, r *http.Request, u *store.User) {
	s, ok := f.signInOf(w, r, u)
	if !ok {
		return
	}
	err := f.o.Store.RevokeSignIn(r.Context(), s.ID, "its person ended it")
	f.o.Hub.Recheck()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Sign-in ended by its person", "user", u.ID, "signIn", s.ID)
	if s.Resource != "" {
		f.done(w, r, "/keys", "The program is disconnected.")
		return
	}
	f.done(w, r, "/account", "The sign-in has ended.")
}
