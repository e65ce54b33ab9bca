package web

import (
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
)

// Sentences of the pairing pages, by what was wrong.
const (
	wrongCode = "No computer shows that code. Compare it with its screen, letter by letter. If it is the same, its ten minutes are over, or it was used already: start again on the computer."
	ended     = "The computer asked too long ago, or was answered already. Start again on the computer: it asks anew."
	taken     = "That computer belongs to another person of this hub. They have to disconnect it first, on their page Machines."
)

type pairData struct {
	Code string // as typed before
	Hub  string // the address that a computer is given
	P    oauth.Pending
	Left int // minutes
}

// showPair is the page of a request, or the one that asks for a code.
func (f *Face) showPair(w http.ResponseWriter, r *http.Request, _ *store.User) {
	id := r.URL.Query().Get("request")
	if id == "" {
		f.askCode(w, r, http.StatusOK, "", "")
		return
	}
	p, ok := f.pending(w, r, id)
	if !ok {
		return
	}
	f.showPending(w, r, http.StatusOK, p, "")
}

func (f *Face) askCode(w http.ResponseWriter, r *http.Request, status int, code, problem string) {
	f.show(w, r, status, "code", view{Title: "Connect a computer", Nav: "machines", Error: problem, Data: pairData{Code: code, Hub: f.base.String()}})
}

func (f *Face) showPending(w http.ResponseWriter, r *http.Request, status int, p oauth.Pending, problem string) {
	left := int(p.Until.Sub(f.o.Now()).Round(time.Minute) / time.Minute)
	f.show(w, r, status, "pair", view{Title: "Connect this computer?", Error: problem, loopback: !p.Device, Data: pairData{P: p, Left: max(left, 1)}})
}

// pending gives a request that this browser may answer, or answers itself. A
// request that was begun with a typed code is answered only where the code
// was typed: a link to it leads nowhere.
func (f *Face) pending(w http.ResponseWriter, r *http.Request, id string) (oauth.Pending, bool) {
	var p oauth.Pending
	err := store.ErrNotFound
	if requestID(id) {
		p, err = f.o.OAuth.Pending(r.Context(), id)
	}
	if err == nil && (p.Program || p.Device && f.sessions.GetString(r.Context(), keyTyped) != p.ID || !p.Until.After(f.o.Now())) {
		err = store.ErrNotFound
	}
	if err == nil {
		return p, true
	}
	if errors.Is(err, store.ErrNotFound) {
		f.sorry(w, r, http.StatusGone, "This request has ended", ended)
	} else {
		f.failed(w, r, err)
	}
	return oauth.Pending{}, false
}

func (f *Face) typedCode(w http.ResponseWriter, r *http.Request, _ *store.User) {
	code := strings.TrimSpace(r.PostFormValue("code"))
	if code == "" || len(code) > 64 {
		f.askCode(w, r, http.StatusUnprocessableEntity, "", "Type the code that the computer shows.")
		return
	}
	p, err := f.o.OAuth.PendingDevice(r.Context(), code, limit.From(r))
	switch {
	case errors.Is(err, oauth.ErrTooMany):
		f.askCode(w, r, http.StatusTooManyRequests, "", "There were too many wrong codes from here. Wait a minute, then try again.")
	case errors.Is(err, store.ErrNotFound):
		f.askCode(w, r, http.StatusUnprocessableEntity, code, wrongCode)
	case err != nil:
		f.failed(w, r, err)
	default:
		f.sessions.Put(r.Context(), keyTyped, p.ID)
		http.Redirect(w, r, "/pair?request="+url.QueryEscape(p.ID), http.StatusSeeOther)
	}
}

// answer lets a computer in, or not.
func (f *Face) answer(w http.ResponseWriter, r *http.Request, u *store.User) {
	p, ok := f.pending(w, r, r.PostFormValue("request"))
	if !ok {
		return
	}
	yes := r.PostFormValue("answer") == "yes"
	if yes && p.Device && r.PostFormValue("started") != "yes" {
		f.showPending(w, r, http.StatusUnprocessableEntity, p, "Tick that you started this on that computer. If you did not, say No: somebody else is trying to connect theirs to your account.")
		return
	}
	var to string
	var err error
	if yes {
		to, err = f.o.OAuth.Approve(r.Context(), p.ID, u.ID)
	} else {
		to, err = f.o.OAuth.Deny(r.Context(), p.ID)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.sorry(w, r, http.StatusGone, "This request has ended", ended)
		return
	case errors.Is(err, store.ErrTaken):
		f.sorry(w, r, http.StatusConflict, "This computer is somebody else's", taken)
		return
	case err != nil:
		f.failed(w, r, err)
		return
	}
	f.sessions.Remove(r.Context(), keyTyped)
	f.log.Info("Computer answered", "user", u.ID, "machine", p.Machine, "connected", yes)
	if to != "" {
		if !loopback(to) {
			f.failed(w, r, errors.New("the answer would have left this computer"))
			return
		}
		if strings.HasPrefix(to, "http://[") {
			// A content policy cannot name an IPv6 address, so the form may not
			// lead there; a link may.
			f.show(w, r, http.StatusOK, "note", view{Title: "One more step", Data: note{Lines: []string{"Go back to the program, which waits for the answer."}, To: template.URL(to), Word: "Back to the program"}})
			return
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	n := note{Kind: "ok", To: "/", Word: "See your machines",
		Lines: []string{"It may take a few seconds to show up. Nothing on it is allowed yet: it asks its person about each thing.", "You can close this page."}}
	title := Visible(p.MachineName) + " is connected"
	if !yes {
		title, n.Kind, n.Lines = "Nothing was connected", "", []string{"The computer is told that you said no. You can close this page."}
	}
	f.show(w, r, http.StatusOK, "note", view{Title: title, Data: n})
}

// loopback tells whether to is a program on the person's own computer: the
// only place outside of the hub that a page ever leads to.
func loopback(to string) bool {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Port() == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
