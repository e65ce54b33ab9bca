package web

import (
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
)

const programEnded = "The program asked too long ago, or was answered already. Start again in the program: it asks anew."

type programData struct {
	P     oauth.Pending
	May   []string // what it asks for, in words
	Here  bool     // the answer goes to a program on the person's computer
	App   string   // to one there that the browser starts by this scheme
	Place string   // the host that it goes to otherwise
	Name  string   // what the person wants to call it, as typed before
	Left  int      // minutes
}

// scopeWords says what a program asks for.
var scopeWords = map[string]string{
	oauth.ScopeRead:  "See your computers, and list, read and search files in the folders that are chosen for it there",
	oauth.ScopeUse:   "Run commands and change files there",
	oauth.ScopeInput: "See the screen, and use mouse and keyboard there",
}

// programOf gives a program's request that waits, or answers.
func (f *Face) programOf(w http.ResponseWriter, r *http.Request, id string) (oauth.Pending, bool) {
	var p oauth.Pending
	err := store.ErrNotFound
	if requestID(id) {
		p, err = f.o.OAuth.Pending(r.Context(), id)
	}
	if err == nil && (!p.Program || !p.Until.After(f.o.Now())) {
		err = store.ErrNotFound
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.sorry(w, r, http.StatusGone, "This request has ended", programEnded)
	case err != nil:
		f.failed(w, r, err)
	}
	return p, err == nil
}

// showProgram asks the person whether a program may use their computers.
func (f *Face) showProgram(w http.ResponseWriter, r *http.Request, _ *store.User) {
	if p, ok := f.programOf(w, r, r.URL.Query().Get("request")); ok {
		f.drawProgram(w, r, http.StatusOK, "", "", p)
	}
}

func (f *Face) drawProgram(w http.ResponseWriter, r *http.Request, status int, problem, name string, p oauth.Pending) {
	d := programData{P: p, Name: name, Here: loopback(p.Redirect), App: oauth.AppScheme(p.Redirect), Left: max(1, int(p.Until.Sub(f.o.Now()).Round(time.Minute)/time.Minute))}
	if u, err := url.Parse(p.Redirect); err == nil && !d.Here && d.App == "" {
		d.Place = u.Host
	}
	for _, s := range p.Scopes {
		d.May = append(d.May, scopeWords[s])
	}
	f.show(w, r, status, "program", view{Title: "Let this program use your computers?", Error: problem, leads: origin(p.Redirect), Data: d})
}

// answerProgram lets a program in, or not.
func (f *Face) answerProgram(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.programOf(w, r, r.PostFormValue("request"))
	if !ok {
		return
	}
	yes, name := r.PostFormValue("answer") == "yes", strings.TrimSpace(r.PostFormValue("name"))
	if yes && name != "" {
		if err := store.CheckName(name); err != nil {
			f.drawProgram(w, r, http.StatusUnprocessableEntity, sentence(err), name, p)
			return
		}
	}
	var to string
	var err error
	if yes {
		to, err = f.o.OAuth.ApproveProgram(r.Context(), p.ID, u.ID, name)
	} else {
		to, err = f.o.OAuth.Deny(r.Context(), p.ID)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.sorry(w, r, http.StatusGone, "This request has ended", programEnded)
		return
	case errors.Is(err, store.ErrCalledTaken):
		f.drawProgram(w, r, http.StatusUnprocessableEntity, sentence(err), name, p)
		return
	case err != nil:
		f.failed(w, r, err)
		return
	case oauth.AppScheme(p.Redirect) != "" && strings.HasPrefix(to, p.Redirect+"?"):
		// Browsers follow a link to a program, and not always a form; and nobody is
		// sent to a program that they said no to.
		f.log.Info("Program answered", "user", u.ID, "program", p.Client, "connected", yes)
		n := note{Lines: []string{"The program waits for your answer. Your browser may ask whether to open what " + oauth.AppScheme(p.Redirect) + ": links belong to."}, To: template.URL(to), Word: "Back to the program"}
		title := "One more step"
		if !yes {
			title, n = "Nothing was connected", note{Lines: []string{"You can close this page. The program hears of it when you go back to it."}, To: n.To, Word: n.Word}
		}
		f.show(w, r, http.StatusOK, "note", view{Title: title, Data: n})
		return
	case origin(to) == "" || origin(to) != origin(p.Redirect):
		f.failed(w, r, errors.New("the answer would have gone to another place"))
		return
	}
	f.log.Info("Program answered", "user", u.ID, "program", p.Client, "connected", yes)
	if strings.HasPrefix(to, "http://[") {
		// As for a computer: a form may not lead there, a link may.
		f.show(w, r, http.StatusOK, "note", view{Title: "One more step", Data: note{Lines: []string{"Go back to the program, which waits for the answer."}, To: template.URL(to), Word: "Back to the program"}})
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// origin is where an address leads, if an answer may go there: https, or a
// program on the person's own computer. It is fit for a content policy.
func origin(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.User != nil || u.Hostname() == "" || strings.ContainsFunc(u.Host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-:[]", r))
	}) {
		return ""
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return u.Scheme + "://" + u.Host
	}
	return ""
}
