package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

type machine struct {
	store.Machine
	System       string
	Capabilities []string
	Folder       string // for programs, of a companion's computer
}

type machinesData struct {
	Machines []machine
	Hub      string
	Now      time.Time
}

func (f *Face) showMachines(w http.ResponseWriter, r *http.Request, u *store.User) {
	list, err := f.o.Store.Machines(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	d := machinesData{Hub: f.base.String(), Now: f.o.Now()}
	for _, m := range list {
		v := machine{Machine: m, System: system(m.Platform, m.Arch)}
		if m.Online && m.Paired {
			for _, c := range f.o.Hub.Capabilities(m.ID) {
				if c == "session" { // how everything is asked for, not a thing of its own
					continue
				}
				v.Capabilities = append(v.Capabilities, capability(c))
			}
		}
		if m.Companion() {
			if v.Folder, err = f.o.Store.Folder(r.Context(), u.ID, m.ID); err != nil {
				f.failed(w, r, err)
				return
			}
		}
		d.Machines = append(d.Machines, v)
	}
	f.show(w, r, http.StatusOK, "machines", view{Title: "Machines", Nav: "machines", Data: d})
}

// system names an operating system as people do.
func system(platform, arch string) string {
	names := map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows", "freebsd": "FreeBSD", "openbsd": "OpenBSD"}
	if n, ok := names[platform]; ok {
		platform = n
	}
	arches := map[string]string{"amd64": "x86_64", "386": "x86"} // as computers tell it when they pair
	if n, ok := arches[arch]; ok {
		arch = n
	}
	return strings.Trim(platform+", "+arch, ", ")
}

// capability says in words what may be asked for.
func capability(name string) string {
	words := map[string]string{"files": "Files", "shell": "Commands", "computer": "Screen, mouse and keyboard", "hardware": "Devices", "llm": "Local model"}
	if w, ok := words[name]; ok {
		return w
	}
	return name
}

// machineOf finds a person's computer, or answers.
func (f *Face) machineOf(w http.ResponseWriter, r *http.Request, u *store.User) (store.Machine, bool) {
	list, err := f.o.Store.Machines(r.Context(), u.ID)
	if err != nil {
		f.failed(w, r, err)
		return store.Machine{}, false
	}
	i := slices.IndexFunc(list, func(m store.Machine) bool { return m.ID == r.PathValue("id") })
	if i < 0 {
		f.nothing(w, r)
		return store.Machine{}, false
	}
	return list[i], true
}

func (f *Face) showDisconnect(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.machineOf(w, r, u)
	if !ok {
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "Disconnect " + Visible(m.Name) + "?", Nav: "machines", Data: confirm{
		Lines:  []string{"What runs there for a program ends now, and no program reaches it any more.", "To use it again, somebody has to connect it anew from that computer."},
		Action: r.URL.Path, Yes: "Disconnect", To: "/", Word: "Keep it"}})
}

func (f *Face) disconnect(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.machineOf(w, r, u)
	if !ok {
		return
	}
	err := f.o.Store.RevokeMachine(r.Context(), u.ID, m.ID)
	f.o.Hub.Recheck()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		f.failed(w, r, err)
		return
	}
	f.log.Info("Machine disconnected by its person", "user", u.ID, "machine", m.ID)
	f.done(w, r, "/", Visible(m.Name)+" is disconnected.")
}

func (f *Face) showForget(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.machineOf(w, r, u)
	if !ok {
		return
	}
	f.show(w, r, http.StatusOK, "confirm", view{Title: "Remove " + Visible(m.Name) + " from the list?", Nav: "machines", Data: confirm{
		Lines:  []string{"It is disconnected already. The hub also forgets up to where that computer's record had come, by which it would notice a cut.", "It comes back when somebody connects it anew from there."},
		Action: r.URL.Path, Yes: "Remove", To: "/", Word: "Keep it"}})
}

// forget takes a disconnected computer off the list.
func (f *Face) forget(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.machineOf(w, r, u)
	if !ok {
		return
	}
	err := f.o.Store.ForgetMachine(r.Context(), u.ID, m.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.sorry(w, r, http.StatusConflict, "It is connected again", "That computer can connect to the hub. Disconnect it first.")
	case err != nil:
		f.failed(w, r, err)
	default:
		f.log.Info("Machine removed by its person", "user", u.ID, "machine", m.ID)
		f.done(w, r, "/", Visible(m.Name)+" is removed from the list.")
	}
}
