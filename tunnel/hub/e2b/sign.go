package e2b

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

const (
	// One network may come with so many signatures at once, and with one more
	// every so often: each is compared with that of every sandbox.
	signedBurst = 200
	signedEvery = 20 * time.Millisecond
	// All together may come with so many.
	signedBurstAll = 2000
	signedEveryAll = 2 * time.Millisecond
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

// callers bounds how often signatures are tried, by each network and by all.
type callers struct{ each, all *limit.Limiter }

func newCallers(now func() time.Time) callers {
	return callers{limit.New(signedBurst, signedEvery, now), limit.New(signedBurstAll, signedEveryAll, now)}
}

// allow tells whether the network that r came from may try now. What one has
// too many of costs the others nothing.
func (c callers) allow(r *http.Request) bool {
	return c.each.Take(limit.Network(limit.From(r))) && c.all.Take("")
}
