// Package oauth is step 1, the hub's sign-in server: a computer asks, its
// person says yes in the hub's pages, and from then on the computer proves
// itself with short access tokens that it renews. Our own client signs in with
// a code and PKCE through the browser, or, without a screen, with a code that
// the person types; AutoGPT's program does so in AutoGPT's shape. All of it
// stands on one store of tokens and one rule for their reuse.
package oauth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// Options build a Face. Store and Issuer are needed.
type Options struct {
	Store *store.Store
	// Issuer is the hub's public address, such as https://hub.example. The
	// pages lie below it.
	Issuer string
	// Resource is what programs' tokens are for: the address of the face for MCP
	// clients. "": programs can't sign in here.
	Resource string
	// Reach tells which addresses the descriptions of programs may be read
	// from; nil: those of the internet.
	Reach func(netip.Addr) bool
	Log   *slog.Logger
	// Revoked is told of each sign-in that ended, before the answer goes out;
	// it ends the tunnels that stand on it.
	Revoked func(signIn, reason string)
	// SignedIn and Reused are told that a sign-in was given its first tokens,
	// and that a token came a second time. nil tells nobody.
	SignedIn, Reused func()
	// User tells whose log-in, web session or personal key, a request to
	// /api/oauth/authorize carries. nil refuses every one.
	User func(*http.Request) (user string, ok bool)
	// AccessTTL is 1 h, RefreshTTL 30 days, CodeTTL (from the approval to the
	// exchange) 10 min and DeviceTTL (how long a request waits for a person)
	// 10 min when 0.
	AccessTTL, RefreshTTL, CodeTTL, DeviceTTL time.Duration
	// DevicePoll is how often a device may ask for its tokens; 5 s when 0.
	DevicePoll time.Duration
	// Now is the clock of everything that ends. It should go on evenly when the
	// computer's clock is set, as the store's own does, which is used when nil.
	Now func() time.Time
}

// Face serves the sign-in. Its methods are safe for concurrent use.
type Face struct {
	o        Options
	store    *store.Store
	log      *slog.Logger
	key      *signingKey
	handler  http.Handler
	asks     *limit.Limiter // requests that wait for a person
	failures *limit.Limiter // wrong tokens and codes of programs
	typed    *limit.Limiter // codes that a person typed
	typedAll *limit.Limiter // the same, of everybody
	signUps  *limit.Limiter // of programs
	fetches  *limit.Limiter // of descriptions of programs
	fetcher  *http.Client

	cancel context.CancelFunc
	done   chan struct{} // the sweep has ended

	mu     sync.Mutex
	newest time.Time // guarded by mu
}

// New makes the face. It ends with ctx or Close; Close must be called.
func New(ctx context.Context, o Options) (*Face, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q cannot be the address of a sign-in server: it must look like https://hub.example", o.Issuer)
	}
	o.Issuer = strings.TrimRight(o.Issuer, "/")
	if o.Log == nil {
		o.Log = slog.Default()
	}
	for d, usual := range map[*time.Duration]time.Duration{
		&o.AccessTTL: time.Hour, &o.RefreshTTL: 30 * 24 * time.Hour, &o.CodeTTL: 10 * time.Minute, &o.DeviceTTL: 10 * time.Minute, &o.DevicePoll: 5 * time.Second,
	} {
		if *d == 0 {
			*d = usual
		}
	}
	key, err := newSigningKey(o.Store.Secret())
	if err != nil {
		return nil, err
	}
	f := &Face{o: o, store: o.Store, log: o.Log, key: key, done: make(chan struct{})}
	f.asks, f.failures = limit.New(20, 6*time.Second, f.now), limit.New(60, time.Second, f.now)
	f.typed, f.typedAll = limit.New(10, 6*time.Second, f.now), limit.New(60, time.Second, f.now)
	f.signUps, f.fetches = limit.New(20, 30*time.Second, f.now), limit.New(20, 6*time.Second, f.now)
	if o.Reach == nil {
		o.Reach = public
	}
	f.fetcher = newFetcher(o.Reach)
	f.handler = f.routes()
	ctx, f.cancel = context.WithCancel(ctx)
	go f.sweep(ctx)
	return f, nil
}

// Handler serves /oauth/… and /.well-known/….
func (f *Face) Handler() http.Handler { return f.handler }

// Close ends the face's own work, and waits.
func (f *Face) Close() error {
	f.cancel()
	<-f.done
	return nil
}

// sweep forgets what has expired once a minute, so that it stays dead whatever
// the clock says after a restart.
func (f *Face) sweep(ctx context.Context) {
	defer close(f.done)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		ended, err := f.store.SweepSignIns(ctx, f.now())
		if err != nil && ctx.Err() == nil {
			f.log.Error("Expired sign-ins could not be removed", "err", err)
		}
		for _, id := range ended {
			f.revoked(id, "it was not used for too long")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// now never goes back: what has expired stays so when the clock is set.
func (f *Face) now() time.Time {
	clock := f.o.Now
	if clock == nil {
		clock = f.store.Steady
	}
	t := clock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.After(f.newest) {
		f.newest = t
	}
	return f.newest
}

// told is a moment of now's clock as others know it: so long from the present.
func (f *Face) told(t time.Time) time.Time {
	if f.o.Now != nil {
		return t
	}
	return time.Now().Add(t.Sub(f.now()))
}

func (f *Face) revoked(signIn, reason string) {
	f.log.Info("Sign-in ended", "signIn", signIn, "reason", reason)
	if f.o.Revoked != nil {
		f.o.Revoked(signIn, reason)
	}
}

// MaxToken bounds a token that is looked at, in bytes; ours have 72 at most.
const MaxToken = 128

// Access gives what a bearer token stands for. Expires holds when the
// computer's clock is set: take time.Until of it. store.ErrNotFound when the
// token is unknown, expired, retired or revoked.
func (f *Face) Access(ctx context.Context, bearer string) (store.Access, error) {
	if len(bearer) > MaxToken || !strings.HasPrefix(bearer, own.access) && !strings.HasPrefix(bearer, autogpt.access) {
		return store.Access{}, store.ErrNotFound
	}
	a, err := f.store.FindAccess(ctx, f.now(), bearer)
	if err != nil {
		return store.Access{}, err
	}
	a.Expires = f.told(a.Expires)
	return a, nil
}

// pair makes the next tokens of a client, without a refresh token where ours
// did not ask for one.
func (f *Face) pair(c *client, scopes []string) store.Pair {
	p := store.Pair{Access: c.access + random(32), AccessFor: f.o.AccessTTL, RefreshFor: f.o.RefreshTTL}
	if c != own || slices.Contains(scopes, oidc.ScopeOfflineAccess) {
		p.Refresh = c.refresh + random(32)
	}
	return p
}

// signedIn tells of the sign-ins that a new one took the place of.
func (f *Face) signedIn(i store.Issued) {
	f.log.Info("Signed in", "signIn", i.SignIn, "user", i.User, "client", i.Client, "machine", i.Machine)
	if f.o.SignedIn != nil {
		f.o.SignedIn()
	}
	for _, id := range i.Ended {
		f.revoked(id, "this computer signed in again")
	}
}

// reused ends the tunnels of a sign-in whose token or code came twice.
func (f *Face) reused(signIn, reason string) {
	f.log.Warn("A token came a second time", "signIn", signIn)
	if f.o.Reused != nil {
		f.o.Reused()
	}
	f.revoked(signIn, reason)
}

// revoke ends the sign-in of a client's token. An unknown token is no error.
func (f *Face) revoke(ctx context.Context, client, token string) error {
	id, err := f.store.SignInOf(ctx, client, token)
	if err == nil {
		err = f.store.RevokeSignIn(ctx, id, "signed out")
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		f.revoked(id, "signed out")
	}
	return err
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
