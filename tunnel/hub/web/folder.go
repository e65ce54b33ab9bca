package web

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

type folderData struct {
	Action string
	Folder string
}

// companionOf finds a person's computer that speaks AutoGPT's wire, or answers.
func (f *Face) companionOf(w http.ResponseWriter, r *http.Request, u *store.User) (store.Machine, bool) {
	m, ok := f.machineOf(w, r, u)
	if ok && !m.Companion() {
		f.nothing(w, r)
		return m, false
	}
	return m, ok
}

func (f *Face) folderPage(w http.ResponseWriter, r *http.Request, m store.Machine, status int, folder, problem string) {
	f.show(w, r, status, "folder", view{Title: "Folder for programs on " + visible(m.Name), Nav: "machines", Error: problem,
		Data: folderData{Action: r.URL.Path, Folder: folder}})
}

func (f *Face) showFolder(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.companionOf(w, r, u)
	if !ok {
		return
	}
	folder, err := f.o.Store.Folder(r.Context(), u.ID, m.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	f.folderPage(w, r, m, http.StatusOK, folder, "")
}

func (f *Face) setFolder(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.companionOf(w, r, u)
	if !ok {
		return
	}
	folder := strings.TrimSpace(r.PostFormValue("folder"))
	if len(folder) > wire.MaxPath || !utf8.ValidString(folder) || strings.ContainsFunc(folder, unicode.IsControl) {
		f.folderPage(w, r, m, http.StatusUnprocessableEntity, "", "The folder’s name is too long, or has characters that cannot be seen.")
		return
	}
	err := f.o.Hub.SetFolder(r.Context(), u.ID, m.ID, folder)
	var said *wire.Error
	switch {
	case errors.As(err, &said):
		f.folderPage(w, r, m, http.StatusUnprocessableEntity, folder, said.Message)
	case errors.Is(err, store.ErrNotFound):
		f.nothing(w, r)
	case err != nil:
		f.failed(w, r, err)
	case folder == "":
		f.log.Info("Folder for programs forgotten", "user", u.ID, "machine", m.ID)
		f.done(w, r, "/", "No new program can work on "+visible(m.Name)+".")
	default:
		f.log.Info("Folder for programs set", "user", u.ID, "machine", m.ID)
		f.done(w, r, "/", "Programs on "+visible(m.Name)+" work in "+visible(folder)+" from now on.")
	}
}
