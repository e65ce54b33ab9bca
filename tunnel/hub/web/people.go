package web

import (
	"errors"
	"net/http"
	"time"

	"localpc/tunnel/hub/store"
)

type peopleData struct {
	People []store.User
	Name   string // as typed before
	Link   string // just made: shown this once
	For    string // whose it is
	Now    time.Time
}

func (f *Face) showPeople(w http.ResponseWriter, r *http.Request, _ *store.User) {
	f.listPeople(w, r, http.StatusOK, "", peopleData{})
}

func (f *Face) listPeople(w http.ResponseWriter, r *http.Request, status int, problem string, d peopleData) {
	var err error
	if d.People, err = f.o.Store.Users(r.Context()); err != nil {
		f.failed(w, r, err)
		return
	}
	d.Now = f.o.Now()
	f.show(w, r, status, "people", view{Title: "People", Nav: "people", Error: problem, Data: d})
}

func (f *Face) addPerson(w http.ResponseWriter, r *http.Request, u *store.User) {
	name := r.PostFormValue("name")
	err := store.CheckUserName(name)
	var added store.User
	var invite string
	if err == nil {
		added, invite, err = f.o.Store.AddUser(r.Context(), name)
		if err != nil && !errors.Is(err, store.ErrNameTaken) {
			f.failed(w, r, err)
			return
		}
	}
	if err != nil {
		f.listPeople(w, r, http.StatusUnprocessableEntity, sentence(err), peopleData{Name: name})
		return
	}
	f.log.Info("Person invited", "user", added.ID, "by", u.ID)
	f.listPeople(w, r, http.StatusOK, "", peopleData{Link: f.link("/join", invite), For: added.Name})
}

// personOf finds a person, or answers.
func (f *Face) personOf(w http.ResponseWriter, r *http.Request) (store.User, bool) {
	p, err := f.o.Store.User(r.Context(), r.PathValue("id"))
	if errors.Is(err, store.ErrNotFound) {
		f.nothing(w, r)
		return store.User{}, false
	}
	if err != nil {
		f.failed(w, r, err)
		return store.User{}, false
	}
	return p, true
}

func (f *Face) showRemovePerson(w http.ResponseWriter, r *http.Request, _ *store.User) {
	p, ok := f.personOf(w, r)
	if !ok {
		return
	}
	if p.Role == store.RoleOwner {
		f.sorry(w, r, http.StatusConflict, "The owner stays", "A hub has one owner, who cannot be removed.")
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "Remove " + Visible(p.Name) + "?", Nav: "people", Data: confirm{
		Lines:  []string{"They are logged out, and their computers and programs are disconnected now. This cannot be undone."},
		Action: r.URL.Path, Yes: "Remove", To: "/people", Word: "Keep them"}})
}

func (f *Face) removePerson(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.personOf(w, r)
	if !ok {
		return
	}
	err := f.o.Store.RemoveUser(r.Context(), p.ID)
	f.o.Hub.Recheck()
	switch {
	case errors.Is(err, store.ErrOwner):
		f.sorry(w, r, http.StatusConflict, "The owner stays", "A hub has one owner, who cannot be removed.")
		return
	case err != nil && !errors.Is(err, store.ErrNotFound):
		f.failed(w, r, err)
		return
	}
	f.log.Info("Person removed", "user", p.ID, "by", u.ID)
	f.done(w, r, "/people", Visible(p.Name)+" is removed.")
}

func (f *Face) showResetPerson(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.personOf(w, r)
	if !ok {
		return
	}
	if p.ID == u.ID {
		f.sorry(w, r, http.StatusConflict, "That is you", "Change how you log in yourself on the page Account.")
		return
	}
	title, line := "Reset how "+Visible(p.Name)+" logs in?", "Their password and passkeys end now, and they are logged out everywhere. You get a link to give them, with which they choose anew. Their computers stay connected."
	if !p.Claimed {
		title, line = "Make a new link for "+Visible(p.Name)+"?", "The link that you made before ends."
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: title, Nav: "people", Data: confirm{
		Lines: []string{line}, Action: r.URL.Path, Yes: "Make the link", To: "/people", Word: "Leave it"}})
}

func (f *Face) resetPerson(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.personOf(w, r)
	if !ok {
		return
	}
	if p.ID == u.ID {
		f.sorry(w, r, http.StatusConflict, "That is you", "Change how you log in yourself on the page Account.")
		return
	}
	invite, err := f.o.Store.ResetUser(r.Context(), p.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Person reset", "user", p.ID, "by", u.ID)
	path := "/reset"
	if !p.Claimed {
		path = "/join"
	}
	f.listPeople(w, r, http.StatusOK, "", peopleData{Link: f.link(path, invite), For: p.Name})
}
