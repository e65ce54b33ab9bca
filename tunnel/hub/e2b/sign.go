package e2b

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"localpc/tunnel/hub/store"
)

const (
	// signedPerSecond and signedBurst bound how often one address may come with a
	// signature: each is compared with that of every sandbox.
	signedPerSecond = 50
	signedBurst     = 200
	// maxCallers is how many addresses are remembered at once.
	maxCallers = 4096
)

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// operations are what a signature allows, by method.
var operations = map[string]string{http.MethodGet: "read", http.MethodHead: "read", http.MethodPost: "write"}

// signed finds the sandbox whose token made the signature of an address:
// v1_ and the SHA-256 of path, operation, user, token and expiry. The SDKs lose
// the sandbox's id when they make such an address, so each that has not ended
// is tried. Whatever is wrong, it is store.ErrNotFound.
func (f *Face) signed(r *http.Request, id string) (store.Sandbox, error) {
	q := r.URL.Query()
	text := q.Get("path") + ":" + operations[r.Method] + ":" + q.Get("username") + ":"
	end := ""
	if q.Has("signature_expiration") {
		end = q.Get("signature_expiration")
		at, err := strconv.ParseInt(end, 10, 64)
		if err != nil || time.Now().Unix() >= at {
			return store.Sandbox{}, store.ErrNotFound
		}
		end = ":" + end
	}
	running, err := f.o.Store.Running(r.Context())
	if err != nil {
		return store.Sandbox{}, err
	}
	for _, b := range running {
		if id != "" && b.ID != id {
			continue
		}
		sum := sha256.Sum256([]byte(text + f.accessToken(b.ID) + end))
		if same(q.Get("signature"), "v1_"+base64.RawStdEncoding.EncodeToString(sum[:])) {
			return b, nil
		}
	}
	return store.Sandbox{}, store.ErrNotFound
}

// callers bounds the rate of each address.
type callers struct {
	mu  sync.Mutex
	all map[string]*rate.Limiter // guarded by mu
}

// allow tells whether the address that r came from may try now.
func (c *callers) allow(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.all[host]
	if one == nil {
		if len(c.all) >= maxCallers {
			c.forget()
		}
		if c.all == nil {
			c.all = map[string]*rate.Limiter{}
		}
		one = rate.NewLimiter(signedPerSecond, signedBurst)
		c.all[host] = one
	}
	return one.Allow()
}

// forget drops those that have not come for a while; all of them where none
// has. Called with mu held.
func (c *callers) forget() {
	for host, one := range c.all {
		if one.Tokens() >= signedBurst {
			delete(c.all, host)
		}
	}
	if len(c.all) >= maxCallers {
		clear(c.all)
	}
}
