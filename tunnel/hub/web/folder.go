package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// A computer that speaks AutoGPT's wire works in a folder that is chosen here.
// It tells what it has one folder at a time, and names each by a reference of
// its own, good for a few minutes. Those go round through the page's addresses
// and its form; the hub keeps none. So nobody can name a folder here that the
// computer has not listed to them, and going back is the browser's own.

// Place is where somebody looks among a computer's folders, in references of
// that computer. The zero value is the beginning.
type Place struct{ Look, Folder, Page string }

// Folder is one that a computer offers.
type Folder struct{ Ref, Name, Path string }

// Folders are what a computer tells of a place.
type Folders struct {
	Look string
	Here *Folder // nil at the beginning
	List []Folder
	Next string // the page that follows, or ""
	Cut  bool   // there are more than it tells
}

// lookFor is how long a computer may take to tell what a page shows.
const lookFor = 20 * time.Second

// deepest is how many folders the page remembers the way through.
const deepest = 64

// way is a place, and how somebody came to it.
type way struct {
	look, page string
	in         []string // the folders that were opened, the last is the place
}

func wayOf(v url.Values) way {
	in := v["in"]
	in = in[max(0, len(in)-deepest):]
	p := way{look: v.Get("look"), page: v.Get("page"), in: in}
	if p.look == "" || len(in) == 0 {
		return way{}
	}
	return p
}

func (p way) place() Place {
	if len(p.in) == 0 {
		return Place{}
	}
	return Place{Look: p.look, Folder: p.in[len(p.in)-1], Page: p.page}
}

// address is where the page shows it.
func (p way) address(base string) string {
	if len(p.in) == 0 {
		return base
	}
	v := url.Values{"look": {p.look}, "in": p.in}
	if p.page != "" {
		v.Set("page", p.page)
	}
	return base + "?" + v.Encode()
}

// step is a folder on the way, or one to open.
type step struct{ Name, Path, To string }

type folderData struct {
	Name, Base string // the computer's, and the page's address
	Set        string // the folder that programs get now

	State string // why nothing is listed: offline, pending, denied, slow, failed
	Said  string // and what the computer says of it
	Again string // where to look again
	Anew  bool   // the list had ended, and is begun anew

	Steps       []step // the way here, the last is the folder itself
	Path, Here  string // of it, and its address; "" at the beginning
	List        []step
	Next, First string
	Cut         bool
	Look        string   // for the form
	In          []string // for the form
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

func (f *Face) showFolder(w http.ResponseWriter, r *http.Request, u *store.User) {
	if m, ok := f.companionOf(w, r, u); ok {
		f.folderPage(w, r, m, http.StatusOK, wayOf(r.URL.Query()), "", false)
	}
}

// folderPage lists what the computer offers at a place. When it does not know
// the place any more, it lists the one above, or begins anew.
func (f *Face) folderPage(w http.ResponseWriter, r *http.Request, m store.Machine, status int, at way, problem string, anew bool) {
	set, err := f.o.Store.Folder(r.Context(), m.User, m.ID)
	if err != nil {
		f.failed(w, r, err)
		return
	}
	name, base := Visible(m.Name), "/machines/"+url.PathEscape(m.ID)+"/folder"
	d := folderData{Name: name, Base: base, Set: set}
	ctx, cancel := context.WithTimeout(r.Context(), lookFor)
	defer cancel()
	var got Folders
	for {
		got, err = f.o.Hub.Browse(ctx, m.User, m.ID, at.place())
		code := wire.CodeOf(err)
		if len(at.in) == 0 || code != wire.CodeSessionNotOpen && code != wire.CodePathNotFound {
			break
		}
		if code == wire.CodePathNotFound && problem == "" {
			problem = "That folder cannot be opened now." + says(err)
		}
		anew = code == wire.CodeSessionNotOpen || len(at.in) == 1
		if at.in, at.page = at.in[:len(at.in)-1], ""; anew {
			at = way{}
		}
	}
	d.Anew, d.Again = anew && problem == "", at.address(base)
	if err != nil {
		d.State, d.Said = stateOf(err), says(err)
	} else {
		d.fill(at, got)
	}
	f.show(w, r, status, "folder", view{Title: "Choose a folder for " + name, Nav: "machines", Error: problem, Data: d})
}

// fill puts in what the computer told of a place.
func (d *folderData) fill(at way, got Folders) {
	d.Cut = got.Cut
	here := way{look: got.Look}
	if got.Here != nil && len(at.in) > 0 {
		here.in = at.in
		d.Path, d.Look, d.In, d.Here = got.Here.Path, got.Look, at.in, here.address(d.Base)
		d.Steps = steps(d.Base, here, got.Here.Path)
		if at.page != "" {
			d.First = d.Here
		}
		if got.Next != "" {
			d.Next = way{look: got.Look, in: at.in, page: got.Next}.address(d.Base)
		}
	}
	// What is hidden by its name comes after the rest of a page.
	list := slices.Clone(got.List)
	slices.SortStableFunc(list, func(a, b Folder) int {
		x, y := strings.HasPrefix(a.Name, "."), strings.HasPrefix(b.Name, ".")
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for _, e := range list {
		s := step{Name: e.Name, To: way{look: got.Look, in: append(slices.Clone(here.in), e.Ref)}.address(d.Base)}
		if got.Here == nil {
			s.Path = e.Path
		}
		d.List = append(d.List, s)
	}
}

// steps names the folders on the way to path: each is the last name of what is
// left, and the first is all the rest.
func steps(base string, at way, path string) []step {
	out := make([]step, len(at.in))
	for i := len(at.in) - 1; i >= 0; i-- {
		up := way{look: at.look, in: at.in[:i+1]}
		cut := strings.LastIndexAny(path, `/\`)
		if i == 0 || cut < 0 || cut == len(path)-1 {
			if path == "" {
				path = "/"
			}
			out[i] = step{Name: path, To: up.address(base)}
			return out[i:]
		}
		out[i] = step{Name: path[cut+1:], To: up.address(base)}
		path = path[:cut]
	}
	return out
}

// stateOf is the word for why a computer lists nothing.
func stateOf(err error) string {
	switch wire.CodeOf(err) {
	case wire.CodeOffline:
		return "offline"
	case wire.CodePending:
		return "pending"
	case wire.CodeDenied:
		return "denied"
	case wire.CodeOverloaded:
		return "slow"
	}
	return "failed"
}

// says is what the computer says of an error, as a sentence to put behind
// another; "" when it says nothing.
func says(err error) string {
	var e *wire.Error
	if !errors.As(err, &e) || e.Message == "" {
		return ""
	}
	const most = 300
	said := e.Message
	if utf8.RuneCountInString(said) > most {
		said = string([]rune(said)[:most]) + "…"
	}
	return " It says: “" + Visible(said) + "”"
}

// setFolder keeps the folder that somebody chose, as the computer names it, or
// forgets the one that was set.
func (f *Face) setFolder(w http.ResponseWriter, r *http.Request, u *store.User) {
	m, ok := f.companionOf(w, r, u)
	if !ok {
		return
	}
	if err := r.ParseForm(); err != nil {
		f.sorry(w, r, http.StatusBadRequest, "That could not be read", "The hub could not read what your browser sent. Go back and try again.")
		return
	}
	if r.PostForm.Get("forget") != "" {
		if err := f.o.Store.SetFolder(r.Context(), u.ID, m.ID, ""); err != nil {
			f.failed(w, r, err)
			return
		}
		f.log.Info("Folder for programs forgotten", "user", u.ID, "machine", m.ID)
		f.done(w, r, "/", "No new program can work on "+Visible(m.Name)+".")
		return
	}
	at := wayOf(r.PostForm)
	if len(at.in) == 0 {
		f.folderPage(w, r, m, http.StatusConflict, at, "Open a folder first.", false)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookFor)
	defer cancel()
	folder, err := f.o.Hub.UseFolder(ctx, u.ID, m.ID, at.place())
	switch wire.CodeOf(err) {
	case "":
		if err != nil {
			f.failed(w, r, err)
			return
		}
		f.log.Info("Folder for programs set", "user", u.ID, "machine", m.ID)
		f.done(w, r, "/", "Programs that start on "+Visible(m.Name)+" work in "+Visible(folder)+" from now on.")
	case wire.CodeSessionNotOpen:
		f.folderPage(w, r, m, http.StatusConflict, way{}, "", true)
	default:
		f.folderPage(w, r, m, http.StatusConflict, at, "The folder was not set."+says(err), false)
	}
}
