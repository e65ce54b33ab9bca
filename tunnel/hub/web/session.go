package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

const (
	idleFor   = 30 * 24 * time.Hour
	atMostFor = 90 * 24 * time.Hour
	// strangerFor is how long a browser is remembered that is not logged in:
	// while a passkey is asked for.
	strangerFor = 15 * time.Minute
	// freshFor is how long after a log-in the ways to log in may be changed.
	freshFor = 30 * time.Minute
)

// What is kept of a browser, all of it text.
const (
	keyUser     = "user"
	keyAt       = "at"       // when the person logged in, RFC 3339
	keyAgent    = "agent"    // what the browser calls itself
	keyAddress  = "address"  // where it was last
	keyCeremony = "ceremony" // a passkey that is being asked for
	keyTyped    = "typed"    // the request whose code was typed here
	keyFlash    = "flash"    // what the next page says first
)

func (f *Face) prepareSessions() {
	// Not scs.New: it would start a store in memory, with a goroutine that
	// nothing ends.
	f.sessions = &scs.SessionManager{
		IdleTimeout: idleFor, Lifetime: atMostFor,
		Store: browsers{f.o.Store}, HashTokenInStore: true, Codec: codec{},
		ErrorFunc: f.failed,
		Cookie:    scs.SessionCookie{Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Persist: true},
	}
	if f.base.Scheme == "https" {
		f.cookiePrefix, f.sessions.Cookie.Secure = "__Host-", true
	}
	f.sessions.Cookie.Name = f.cookiePrefix + "localpc_hub"
}

// codec writes what is kept as JSON: only text is put in.
type codec struct{}

type kept struct {
	Deadline time.Time         `json:"deadline"`
	Values   map[string]string `json:"values"`
}

func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	k := kept{Deadline: deadline, Values: map[string]string{}}
	for name, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, errors.New("session: " + name + " is not text")
		}
		k.Values[name] = s
	}
	return json.Marshal(k)
}

func (codec) Decode(data []byte) (time.Time, map[string]any, error) {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return time.Time{}, nil, err
	}
	values := map[string]any{}
	for name, v := range k.Values {
		values[name] = v
	}
	return k.Deadline, values, nil
}

// browsers keeps sessions in the hub's data. Their ids are hashes of cookies.
type browsers struct{ store *store.Store }

// found notes which browser a request came with: one that is logged out while
// its request is under way must not come back with the answer.
type foundKey struct{}

func (b browsers) FindCtx(ctx context.Context, id string) ([]byte, bool, error) {
	row, err := b.store.Browser(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if found, ok := ctx.Value(foundKey{}).(*string); ok && err == nil {
		*found = id
	}
	return row.Data, err == nil, err
}

func (b browsers) CommitCtx(ctx context.Context, id string, data []byte, expiry time.Time) error {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return err
	}
	row := store.Browser{ID: id, User: k.Values[keyUser], Data: data, Agent: k.Values[keyAgent], Address: k.Values[keyAddress], Expires: expiry}
	if soon := time.Now().Add(strangerFor); row.User == "" && soon.Before(expiry) {
		row.Expires = soon
	}
	if found, ok := ctx.Value(foundKey{}).(*string); ok && *found == id {
		return b.store.KeepBrowser(ctx, row)
	}
	return b.store.AddBrowser(ctx, row)
}

func (b browsers) DeleteCtx(ctx context.Context, id string) error { return b.store.EndBrowser(ctx, id) }

// The three below satisfy scs.Store, which calls the ones above instead.
func (b browsers) Find(id string) ([]byte, bool, error) { return b.FindCtx(context.Background(), id) }
func (b browsers) Commit(id string, data []byte, expiry time.Time) error {
	return b.CommitCtx(context.Background(), id, data, expiry)
}
func (b browsers) Delete(id string) error { return b.DeleteCtx(context.Background(), id) }

type userKey struct{}

// withSession loads the browser's session, and the person of it anew: who was
// removed, or has another role now, is so from this request on.
func (f *Face) withSession(next http.Handler) http.Handler {
	inner := f.sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		id := f.sessions.GetString(ctx, keyUser)
		if id == "" {
			next.ServeHTTP(w, r)
			return
		}
		u, err := f.o.Store.User(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if err := f.sessions.Destroy(ctx); err != nil {
				f.failed(w, r, err)
				return
			}
		case err != nil:
			f.failed(w, r, err)
			return
		default:
			if address := limit.From(r).String(); f.sessions.GetString(ctx, keyAddress) != address {
				f.sessions.Put(ctx, keyAddress, address)
			}
			r = r.WithContext(context.WithValue(ctx, userKey{}, &u))
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), foundKey{}, new(string))))
	})
}

// who is the person who is logged in, or nil.
func who(r *http.Request) *store.User {
	u, _ := r.Context().Value(userKey{}).(*store.User)
	return u
}

// User gives the person whose browser sent a request, for another face of the
// hub. It is false for a request that another site's page sent.
func (f *Face) User(r *http.Request) (string, bool) {
	cookie, err := r.Cookie(f.sessions.Cookie.Name)
	if err != nil || f.cross.Check(r) != nil {
		return "", false
	}
	ctx, err := f.sessions.Load(r.Context(), cookie.Value)
	if err != nil {
		return "", false
	}
	id := f.sessions.GetString(ctx, keyUser)
	if id == "" {
		return "", false
	}
	u, err := f.o.Store.User(r.Context(), id)
	return u.ID, err == nil
}

// enter logs a person in: under a new cookie, so that one which somebody set
// before is worth nothing.
func (f *Face) enter(r *http.Request, u store.User) error {
	ctx := r.Context()
	if err := f.sessions.RenewToken(ctx); err != nil {
		return err
	}
	for _, key := range []string{keyCeremony, keyTyped, keyFlash} {
		f.sessions.Remove(ctx, key)
	}
	agent := r.UserAgent()
	if len(agent) > 300 {
		agent = strings.ToValidUTF8(agent[:300], "")
	}
	f.sessions.Put(ctx, keyUser, u.ID)
	f.sessions.Put(ctx, keyAt, f.o.Now().UTC().Format(time.RFC3339))
	f.sessions.Put(ctx, keyAgent, agent)
	f.sessions.Put(ctx, keyAddress, limit.From(r).String())
	return nil
}

type handler func(http.ResponseWriter, *http.Request, *store.User)

// member serves a page to who is logged in, and leads others to the log-in.
func (f *Face) member(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		u := who(r)
		if u == nil {
			f.toLogin(w, r)
			return
		}
		h(w, r, u)
	}
}

// owner serves a page to the owner only. To others it is not there.
func (f *Face) owner(h handler) http.HandlerFunc {
	return f.member(func(w http.ResponseWriter, r *http.Request, u *store.User) {
		if u.Role != store.RoleOwner {
			f.nothing(w, r)
			return
		}
		if r.Method != http.MethodGet && !f.isFresh(r) {
			f.again(w, r)
			return
		}
		h(w, r, u)
	})
}

// fresh does what changes how people log in, for who has logged in lately: a
// browser left open is not enough.
func (f *Face) fresh(h handler) http.HandlerFunc {
	return f.member(func(w http.ResponseWriter, r *http.Request, u *store.User) {
		if !f.isFresh(r) {
			f.again(w, r)
			return
		}
		h(w, r, u)
	})
}

func (f *Face) isFresh(r *http.Request) bool {
	at, err := time.Parse(time.RFC3339, f.sessions.GetString(r.Context(), keyAt))
	age := f.o.Now().Sub(at)
	return err == nil && age >= -time.Minute && age < freshFor
}

func (f *Face) again(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/login?again=1&next="+url.QueryEscape(back(r)), http.StatusSeeOther)
}

func (f *Face) toLogin(w http.ResponseWriter, r *http.Request) {
	if done, err := f.o.Store.SetUp(r.Context()); err != nil {
		f.failed(w, r, err)
		return
	} else if !done {
		http.Redirect(w, r, "/setup", http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, "/login?next="+url.QueryEscape(back(r)), http.StatusSeeOther)
}

// back is the page to come back to after the log-in: for what was sent by a
// form, the page with that form.
func back(r *http.Request) string {
	next := r.URL.Path
	if r.URL.RawQuery != "" {
		next += "?" + r.URL.RawQuery
	}
	if r.Method != http.MethodGet {
		next = "/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0]
	}
	return ownPage(next)
}

// ownPage lets only the pages through to which a log-in may lead; anything
// else is "/".
func ownPage(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return "/"
	}
	switch u.Path {
	case "/keys", "/account", "/people":
		return u.Path
	case "/connect":
		if id := u.Query().Get("request"); requestID(id) {
			return "/connect?request=" + url.QueryEscape(id)
		}
	case "/pair":
		if id := u.Query().Get("request"); requestID(id) {
			return "/pair?request=" + url.QueryEscape(id)
		}
		return u.Path
	}
	return "/"
}

// requestID tells whether s looks like the id of a request.
func requestID(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
