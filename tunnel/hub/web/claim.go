package web

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"localpc/tunnel/hub/store"
)

// claimData is the page on which a person chooses how to log in: the owner at
// the set-up, a member who was invited, or somebody who was reset.
type claimData struct {
	Path  string // where the form goes
	Kind  string
	Token string // a good one; "" asks for it
	Name  string
	Until time.Time
	Min   int // characters of a password
	user  store.User
}

var claimTitles = map[string]string{
	store.InviteSetup: "Set up this hub",
	store.InviteJoin:  "Join this hub",
	store.InviteReset: "Choose how you log in",
}

const setupPath = "/setup"

// What to do about a link that is not good.
const (
	lateSetup  = "That code does not set this hub up. Take the newest one: the hub prints it each time it starts."
	lateInvite = "It is used already, or older than a day. Ask the owner of the hub for a new one."
)

func (f *Face) showClaim(w http.ResponseWriter, r *http.Request) {
	if f.closed(w, r) {
		return
	}
	token := strings.TrimSpace(r.URL.Query().Get("token"))
	if token == "" && r.URL.Path == setupPath {
		f.show(w, r, http.StatusOK, "claim", view{Title: claimTitles[store.InviteSetup], Data: claimData{Path: setupPath}})
		return
	}
	d, ok := f.invited(w, r, token)
	if !ok {
		return
	}
	if d.Kind == store.InviteSetup {
		d.Name = ""
	}
	f.show(w, r, http.StatusOK, "claim", view{Title: claimTitles[d.Kind], Data: d})
}

// closed answers where a hub is set up that is so already.
func (f *Face) closed(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != setupPath {
		return false
	}
	done, err := f.o.Store.SetUp(r.Context())
	if err != nil {
		f.failed(w, r, err)
		return true
	}
	if done {
		n := note{Lines: []string{"It has its owner, and nobody can set it up again. Log in, or ask the owner to invite you."}, To: "/login", Word: "Log in"}
		f.show(w, r, http.StatusGone, "note", view{Title: "This hub is set up", Data: n})
	}
	return done
}

// invited looks a link's token up, or answers.
func (f *Face) invited(w http.ResponseWriter, r *http.Request, token string) (claimData, bool) {
	address := network(r)
	if !f.invites.Take(address) {
		f.sorry(w, r, http.StatusTooManyRequests, "Too many tries", tooMany)
		return claimData{}, false
	}
	i, err := f.o.Store.FindInvite(r.Context(), token)
	switch {
	case err == nil:
		f.invites.Give(address)
		return claimData{Path: r.URL.Path, Kind: i.Kind, Token: token, Name: i.User.Name, Until: i.Expires, Min: store.MinPassword, user: i.User}, true
	case !errors.Is(err, store.ErrNotFound):
		f.failed(w, r, err)
	default:
		f.late(w, r)
	}
	return claimData{}, false
}

// late answers to a link that is not good.
func (f *Face) late(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != setupPath:
		f.sorry(w, r, http.StatusGone, "This link is not good any more", lateInvite)
	case !f.closed(w, r):
		f.show(w, r, http.StatusForbidden, "claim", view{Title: claimTitles[store.InviteSetup], Error: lateSetup, Data: claimData{Path: setupPath}})
	}
}

func (f *Face) claim(w http.ResponseWriter, r *http.Request) {
	if f.closed(w, r) {
		return
	}
	d, ok := f.invited(w, r, strings.TrimSpace(r.PostFormValue("token")))
	if !ok {
		return
	}
	if d.Kind == store.InviteSetup {
		d.Name = r.PostFormValue("name")
	}
	c := store.Claim{Name: d.Name, Password: r.PostFormValue("password")}
	refuse := func(problem string) {
		f.show(w, r, http.StatusUnprocessableEntity, "claim", view{Title: claimTitles[d.Kind], Error: problem, Data: d})
	}
	err := store.CheckUserName(d.Name)
	if credential := r.PostFormValue("credential"); err == nil && credential != "" {
		if c.Passkey, err = f.newPasskey(r, d.user, credential); err == nil {
			c.Passkey.Name = agentName(r.UserAgent())
		}
	} else if err == nil {
		err = store.CheckPassword(d.Name, c.Password)
	}
	if err != nil {
		refuse(sentence(err))
		return
	}
	u, err := f.o.Store.Claim(r.Context(), d.Token, c)
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.late(w, r)
		return
	case errors.Is(err, store.ErrNameTaken):
		refuse(sentence(err))
		return
	case err != nil:
		f.failed(w, r, err)
		return
	}
	if err := f.enter(r, u); err != nil {
		f.failed(w, r, err)
		return
	}
	f.knowDevice(w, r, u)
	f.log.Info("Person chose how to log in", "user", u.ID, "kind", d.Kind, "passkey", c.Passkey != nil)
	flash := "Welcome. Next, connect a computer."
	if d.Kind == store.InviteReset {
		flash = "From now on you log in with what you have just chosen."
	}
	f.done(w, r, "/", flash)
}

// sentence makes what an error says one, with a capital and a full stop.
func sentence(err error) string {
	s := err.Error()
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
