// Package web is step 1 for people: the hub's pages. Here the owner sets the
// hub up, people log in, connect computers, make keys for programs, and end
// what they do not want any more. Every page is plain HTML and works without
// scripts; only passkeys and the copy buttons need one.
//
// Everything a page shows may come from a stranger: templates escape it, and
// visible.go writes out what cannot be seen. Every request is checked again
// for who asks and for their role, whatever the page before it showed.
package web

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-webauthn/webauthn/webauthn"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
)

// OAuth is what the pairing pages ask of the sign-in face.
type OAuth interface {
	// Pending gives a request that waits for a person. store.ErrNotFound when
	// there is none, or not any more.
	Pending(ctx context.Context, id string) (oauth.Pending, error)
	// PendingDevice gives the request of a code that a person typed. from is
	// where they typed it. store.ErrNotFound when the code is wrong,
	// oauth.ErrTooMany when too many were.
	PendingDevice(ctx context.Context, userCode string, from netip.Addr) (oauth.Pending, error)
	// Approve lets the request's computer in for a user. redirect is where
	// their browser goes next, "" for a typed code. store.ErrTaken when the
	// computer is somebody else's.
	Approve(ctx context.Context, id, user string) (redirect string, err error)
	// ApproveProgram lets the request's program in for a user, who calls it so.
	// store.ErrCalledTaken when another of their programs has the name.
	ApproveProgram(ctx context.Context, id, user, called string) (redirect string, err error)
	// Deny refuses it.
	Deny(ctx context.Context, id string) (redirect string, err error)
}

// Hub is what the pages ask of the hub itself. What they change, they change
// in the data.
type Hub interface {
	// Capabilities are what may be asked of a computer, as it said when it
	// connected; nil when it is not connected.
	Capabilities(machine string) []string
	// Browse tells what a user's computer that speaks AutoGPT's wire offers at a
	// place. The error's code is wire.CodeOffline, CodePending (its person is
	// being asked), CodeDenied, CodePathNotFound (it cannot use the folder),
	// CodeSessionNotOpen (it does not know the place, or not any more),
	// CodeOverloaded (it did not answer in time) or CodeInternal; its message is
	// what the computer says, or "".
	Browse(ctx context.Context, user, machine string, at Place) (Folders, error)
	// UseFolder sets the folder of a place as the one that programs get there,
	// and returns its path. The errors are those of Browse, or the store's.
	UseFolder(ctx context.Context, user, machine string, at Place) (string, error)
	// Recheck looks at every connection again, and ends those whose token,
	// sign-in, key or person is gone.
	Recheck()
}

// Options build a Face. Store, OAuth, Hub and PublicURL are needed.
type Options struct {
	Store *store.Store
	OAuth OAuth
	Hub   Hub
	// PublicURL is where people reach the pages. Passkeys belong to its name;
	// cookies are for https only when it is.
	PublicURL string
	// Name is what the hub is called on its pages; "" is the address's name.
	Name string
	Log  *slog.Logger
	// Now is time.Now when nil.
	Now func() time.Time
}

// Face is the pages. It is safe for concurrent use, and has nothing to close.
type Face struct {
	o        Options
	log      *slog.Logger
	base     *url.URL           // PublicURL without a path
	passkeys *webauthn.WebAuthn // nil where browsers have none
	sessions *scs.SessionManager
	cross    *http.CrossOriginProtection
	pages    pages
	handler  http.Handler

	cookiePrefix string // of every cookie's name
	deviceKey    []byte // signs device cookies

	logins, names, devices, ceremonies, invites *limit.Limiter
}

// New makes the pages.
func New(o Options) (*Face, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a public address: it must look like https://hub.example", o.PublicURL)
	}
	f := &Face{o: o, log: o.Log, base: &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}}
	if f.o.Name == "" {
		f.o.Name = f.base.Hostname()
	}
	if f.pages, err = parsePages(); err != nil {
		return nil, err
	}
	if err := f.preparePasskeys(); err != nil {
		return nil, err
	}
	f.cross = http.NewCrossOriginProtection()
	if err := f.cross.AddTrustedOrigin(f.base.String()); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	f.prepareSessions()
	if f.deviceKey, err = hkdf.Key(sha256.New, o.Store.Secret(), nil, "localpc hub device cookie key", 32); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	many := func(n int) *limit.Limiter { return limit.New(n, 10*time.Minute/time.Duration(n), o.Now) }
	f.logins = many(10)     // failures of a network
	f.names = many(30)      // failures for a name
	f.devices = many(10)    // failures of a browser for the name that it knows
	f.ceremonies = many(60) // passkeys begun from a network
	f.invites = many(30)    // wrong links from a network
	f.handler = f.routes()
	return f, nil
}

// Handler serves every page. What it does not know is a page that says so.
func (f *Face) Handler() http.Handler { return f.handler }

// SetupURL is the link that makes the owner, for the log of the first start:
// a new one each time, and the earlier ones end. It is false when the hub is
// set up, or when the data could not be read.
func (f *Face) SetupURL(ctx context.Context) (string, bool) {
	token, err := f.o.Store.SetupToken(ctx)
	if err != nil {
		f.log.Error("Set-up link could not be made", "err", err)
	}
	if token == "" {
		return "", false
	}
	return f.link(setupPath, token), true
}

// link is the address of an invite: /setup, /join or /reset. The last two are
// one page; who comes with the token decides what it says.
func (f *Face) link(path, token string) string {
	return f.base.String() + path + "?token=" + url.QueryEscape(token)
}

func (f *Face) routes() http.Handler {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /login", f.showLogin)
	inner.HandleFunc("POST /login", f.logIn)
	inner.HandleFunc("POST /logout", f.logOut)
	inner.HandleFunc("POST /passkey/options", f.passkeyOptions)
	for _, path := range []string{setupPath, "/join", "/reset"} {
		inner.HandleFunc("GET "+path, f.showClaim)
		inner.HandleFunc("POST "+path, f.claim)
	}
	inner.HandleFunc("GET /{$}", f.member(f.showMachines))
	inner.HandleFunc("GET /machines/{id}/folder", f.member(f.showFolder))
	inner.HandleFunc("POST /machines/{id}/folder", f.member(f.setFolder))
	inner.HandleFunc("GET /machines/{id}/disconnect", f.member(f.showDisconnect))
	inner.HandleFunc("POST /machines/{id}/disconnect", f.member(f.disconnect))
	inner.HandleFunc("GET /machines/{id}/remove", f.member(f.showForget))
	inner.HandleFunc("POST /machines/{id}/remove", f.member(f.forget))
	inner.HandleFunc("GET /pair", f.member(f.showPair))
	inner.HandleFunc("POST /pair", f.member(f.typedCode))
	inner.HandleFunc("POST /pair/answer", f.member(f.answer))
	inner.HandleFunc("GET /connect", f.member(f.showProgram))
	inner.HandleFunc("POST /connect/answer", f.member(f.answerProgram))
	inner.HandleFunc("GET /keys", f.member(f.showKeys))
	inner.HandleFunc("POST /keys", f.member(f.makeKey))
	inner.HandleFunc("GET /keys/{id}/revoke", f.member(f.showRevokeKey))
	inner.HandleFunc("POST /keys/{id}/revoke", f.member(f.revokeKey))
	inner.HandleFunc("GET /account", f.member(f.showAccount))
	inner.HandleFunc("POST /account/password", f.fresh(f.setPassword))
	inner.HandleFunc("POST /account/password/remove", f.fresh(f.removePassword))
	inner.HandleFunc("POST /account/passkeys", f.fresh(f.addPasskey))
	inner.HandleFunc("GET /account/passkeys/{id}/remove", f.member(f.showRemovePasskey))
	inner.HandleFunc("POST /account/passkeys/{id}/remove", f.fresh(f.removePasskey))
	inner.HandleFunc("POST /account/browsers/end", f.member(f.endBrowsers))
	inner.HandleFunc("GET /account/signins/{id}/end", f.member(f.showEndSignIn))
	inner.HandleFunc("POST /account/signins/{id}/end", f.member(f.endSignIn))
	inner.HandleFunc("GET /people", f.owner(f.showPeople))
	inner.HandleFunc("POST /people", f.owner(f.addPerson))
	inner.HandleFunc("GET /people/{id}/remove", f.owner(f.showRemovePerson))
	inner.HandleFunc("POST /people/{id}/remove", f.owner(f.removePerson))
	inner.HandleFunc("GET /people/{id}/reset", f.owner(f.showResetPerson))
	inner.HandleFunc("POST /people/{id}/reset", f.owner(f.resetPerson))
	inner.HandleFunc("/", f.nothing)

	f.cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.sorry(w, r, http.StatusForbidden, "Another site sent you here", "The request came from another site, so it was not carried out. Go to the page you want and try again from there.")
	}))
	withSession := whole(f.withSession(f.cross.Handler(inner)))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /web/{file}", f.serveFile)
	mux.Handle("/", withSession)
	return f.headers(mux)
}

// headers go with every answer; a page that has scripts or leads elsewhere
// widens its policy itself.
func (f *Face) headers(next http.Handler) http.Handler {
	only := f.onlyHTTPS()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(false, false, ""))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// Not no-referrer: browsers then send no Origin with a form either.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), usb=(), serial=()")
		h.Set("Cache-Control", "no-store")
		if only {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// onlyHTTPS tells whether browsers shall come to the hub's name over https alone
// (RFC 6797). That counts for every port of the name, so a hub at a port of its
// own, beside other things, does not ask for it.
func (f *Face) onlyHTTPS() bool {
	host, port := f.base.Hostname(), f.base.Port()
	_, err := netip.ParseAddr(host)
	return f.base.Scheme == "https" && (port == "" || port == "443") && err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

// maxForm bounds what is sent with a form, in bytes; sending bounds how long
// that may take.
const (
	maxForm = 64 << 10
	sending = 30 * time.Second
)

// whole reads all of a form before anybody asks whose it is. Otherwise a
// browser that holds back the rest could still do what it likes long after it
// was logged out.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			reader := http.NewResponseController(w)
			_ = reader.SetReadDeadline(time.Now().Add(sending))
			err := r.ParseForm()
			if err == nil {
				err = r.ParseMultipartForm(maxForm)
			}
			if err != nil && !errors.Is(err, http.ErrNotMultipart) {
				http.Error(w, "What was sent did not arrive whole, or is too long. Go back and try again.", http.StatusBadRequest)
				return
			}
			_ = reader.SetReadDeadline(time.Time{})
		}
		next.ServeHTTP(w, r)
	})
}

// policy is a page's content policy. Browsers hold a form to form-action after
// redirects too, so the page that approves has to name the loopback address
// on which the program waits, or the origin that the answer leads to.
func policy(scripts, loopback bool, leads string) string {
	p := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if loopback {
		p += " http://127.0.0.1:* http://localhost:*"
	}
	if leads != "" && !strings.Contains(leads, "[") {
		p += " " + leads
	}
	if scripts {
		p += "; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'"
	}
	return p
}

// network is what tries are counted by.
func network(r *http.Request) string { return limit.Network(limit.From(r)) }

// nothing is at every address that is no page.
func (f *Face) nothing(w http.ResponseWriter, r *http.Request) {
	f.sorry(w, r, http.StatusNotFound, "There is nothing here", "The address may have been typed wrong, or what was here is gone.")
}

// failed answers when the hub itself is at fault, or when the person's
// request has ended.
func (f *Face) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		return
	}
	f.log.Error("Page failed", "path", r.Pattern, "err", err)
	f.sorry(w, r, http.StatusInternalServerError, "Something went wrong", "The hub could not do that; its log says why. Try again in a moment.")
}
