package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"localpc/tunnel/hub/store"
)

const brokenHub = "The hub could not do that; its log says why."

var errPasskey = errors.New("the passkey was not made; try again")

// preparePasskeys sets passkeys up where browsers have them: under a name,
// over https or on this computer itself.
func (f *Face) preparePasskeys() error {
	host := f.base.Hostname()
	if _, err := netip.ParseAddr(host); err == nil || f.base.Scheme != "https" && host != "localhost" {
		return nil
	}
	var err error
	f.passkeys, err = webauthn.New(&webauthn.Config{
		RPID:          host,
		RPDisplayName: f.o.Name,
		RPOrigins:     []string{f.base.String()},
	})
	if err != nil {
		return fmt.Errorf("passkeys: %w", err)
	}
	return nil
}

// canPasskeys tells whether a passkey works at the address that the browser
// has come to.
func (f *Face) canPasskeys(r *http.Request) bool {
	return f.passkeys != nil && strings.EqualFold(r.Host, f.base.Host)
}

// person is a user as go-webauthn wants them.
type person struct {
	store.User
	keys []webauthn.Credential
}

func (p person) WebAuthnID() []byte                         { return p.Handle }
func (p person) WebAuthnName() string                       { return p.Name }
func (p person) WebAuthnDisplayName() string                { return p.Name }
func (p person) WebAuthnCredentials() []webauthn.Credential { return p.keys }

func (f *Face) person(r *http.Request, u store.User) (person, error) {
	list, err := f.o.Store.Passkeys(r.Context(), u.ID)
	if err != nil {
		return person{}, err
	}
	p := person{User: u}
	for _, k := range list {
		var c webauthn.Credential
		if err := json.Unmarshal(k.Data, &c); err != nil {
			return person{}, fmt.Errorf("passkey %s: %w", k.ID, err)
		}
		p.keys = append(p.keys, c)
	}
	return p, nil
}

// ceremony is a passkey that a browser has been asked for.
type ceremony struct {
	Login bool                 `json:"login"`
	Data  webauthn.SessionData `json:"data"`
}

// passkeyOptions begins to make a passkey or to log in with one, and tells
// the page's script what to ask the browser for.
func (f *Face) passkeyOptions(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, sentence string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": sentence})
	}
	if !f.canPasskeys(r) {
		refuse(http.StatusConflict, "Passkeys do not work at this address. Open "+f.base.String()+" instead.")
		return
	}
	if !f.ceremonies.Take(network(r)) {
		refuse(http.StatusTooManyRequests, tooMany)
		return
	}
	kind := r.PostFormValue("kind")
	c := ceremony{Login: kind == "login"}
	var options any
	var data *webauthn.SessionData
	var err error
	if c.Login {
		options, data, err = f.passkeys.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	} else {
		u, sentence, status := f.passkeyFor(r, kind)
		if status != 0 {
			refuse(status, sentence)
			return
		}
		var p person
		if p, err = f.person(r, u); err == nil {
			options, data, err = f.passkeys.BeginRegistration(p,
				webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
					RequireResidentKey: protocol.ResidentKeyRequired(),
					ResidentKey:        protocol.ResidentKeyRequirementRequired,
					UserVerification:   protocol.VerificationRequired,
				}),
				webauthn.WithExclusions(webauthn.Credentials(p.keys).CredentialDescriptors()),
				webauthn.WithConveyancePreference(protocol.PreferNoAttestation))
		}
	}
	if err == nil {
		c.Data = *data
		var b []byte
		if b, err = json.Marshal(c); err == nil {
			f.sessions.Put(r.Context(), keyCeremony, string(b))
		}
	}
	if err != nil {
		f.log.Error("Passkey could not be begun", "err", err)
		refuse(http.StatusInternalServerError, brokenHub)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(options)
}

// passkeyFor is whom a new passkey is for: who is logged in, or who holds an
// invite. A status other than 0 refuses.
func (f *Face) passkeyFor(r *http.Request, kind string) (store.User, string, int) {
	switch kind {
	case "account":
		u := who(r)
		if u == nil || !f.isFresh(r) {
			return store.User{}, "Log in again first: this changes who can log in, and it is a while since you did.", http.StatusForbidden
		}
		return *u, "", 0
	case "invite":
		i, err := f.o.Store.FindInvite(r.Context(), r.PostFormValue("token"))
		if errors.Is(err, store.ErrNotFound) {
			var done bool
			if done, err = f.o.Store.SetUp(r.Context()); err == nil && !done {
				return store.User{}, lateSetup, http.StatusGone
			} else if err == nil {
				return store.User{}, "This link is not good any more. " + lateInvite, http.StatusGone
			}
		}
		if err != nil {
			f.log.Error("Passkey could not be begun", "err", err)
			return store.User{}, brokenHub, http.StatusInternalServerError
		}
		if i.Kind == store.InviteSetup {
			i.User.Name = strings.TrimSpace(r.PostFormValue("name"))
			if err := store.CheckUserName(i.User.Name); err != nil {
				return store.User{}, sentence(err), http.StatusUnprocessableEntity
			}
		}
		return i.User, "", 0
	}
	return store.User{}, "There is nothing here.", http.StatusNotFound
}

// begun takes the ceremony out of the session: each is good for one answer.
func (f *Face) begun(r *http.Request, login bool) (webauthn.SessionData, bool) {
	var c ceremony
	text := f.sessions.PopString(r.Context(), keyCeremony)
	if text == "" || json.Unmarshal([]byte(text), &c) != nil || c.Login != login || !f.canPasskeys(r) {
		return webauthn.SessionData{}, false
	}
	return c.Data, true
}

// newPasskey checks what the browser made for u.
func (f *Face) newPasskey(r *http.Request, u store.User, answer string) (*store.Passkey, error) {
	data, ok := f.begun(r, false)
	if !ok {
		return nil, errPasskey
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		f.log.Warn("Passkey refused", "err", err)
		return nil, errPasskey
	}
	p, err := f.person(r, u)
	if err != nil {
		return nil, err
	}
	c, err := f.passkeys.CreateCredential(p, data, parsed)
	if err != nil {
		f.log.Warn("Passkey refused", "err", err)
		return nil, errPasskey
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return &store.Passkey{User: u.ID, Credential: c.ID, Data: b}, nil
}

// passkeyLogin gives the person of a passkey. store.ErrNotFound when it is
// not good.
func (f *Face) passkeyLogin(r *http.Request, answer string) (store.User, error) {
	data, ok := f.begun(r, true)
	if !ok {
		return store.User{}, store.ErrNotFound
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return store.User{}, store.ErrNotFound
	}
	var found person
	_, c, err := f.passkeys.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		u, err := f.o.Store.UserByHandle(r.Context(), handle)
		if err != nil {
			return nil, err
		}
		found, err = f.person(r, u)
		return found, err
	}, data, parsed)
	if err != nil {
		f.log.Warn("Passkey refused", "err", err)
		return store.User{}, store.ErrNotFound
	}
	// A counter that went back: somebody has a copy of it.
	if c.Authenticator.CloneWarning {
		f.log.Warn("Passkey refused", "user", found.ID, "reason", "its counter went back")
		return store.User{}, store.ErrNotFound
	}
	b, err := json.Marshal(c)
	if err != nil {
		return store.User{}, err
	}
	return found.User, f.o.Store.UsedPasskey(r.Context(), c.ID, b)
}

// agentName says in a few words what browser it is.
func agentName(agent string) string {
	browser := ""
	for _, b := range []struct{ sign, name string }{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	} {
		if strings.Contains(agent, b.sign) {
			browser = b.name
			break
		}
	}
	system := ""
	for _, s := range []struct{ sign, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"},
	} {
		if strings.Contains(agent, s.sign) {
			system = s.name
			break
		}
	}
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "A browser"
}
