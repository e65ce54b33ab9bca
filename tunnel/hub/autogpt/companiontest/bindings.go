//go:build unix

package companiontest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// binding is a chat's folder, as both replies and grants name it.
type binding struct {
	Session     string `json:"session_id"`
	Root        string `json:"allowed_root"`
	Fingerprint string `json:"fingerprint"`
	Revision    int    `json:"revision"`
	Grant       string `json:"root_grant"`
}

// activated is a binding without its grant.
type activated struct {
	Session     string `json:"session_id"`
	Root        string `json:"allowed_root"`
	Fingerprint string `json:"fingerprint"`
	Revision    int    `json:"revision"`
}

// bindings are remembered until the program ends.
type bindings struct {
	machine, secret string

	mu    sync.Mutex
	list  map[string]binding // guarded by mu
	order []string           // guarded by mu
}

type claims struct {
	Root        string  `json:"allowed_root"`
	Fingerprint string  `json:"fingerprint"`
	Issued      float64 `json:"issued_at"`
	Machine     string  `json:"machine_id"`
	Revision    int     `json:"revision"`
	Session     string  `json:"session_id"`
}

func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

// fingerprint is the identity of a folder; "" when it is not usable.
func fingerprint(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !usable(path) {
		return ""
	}
	st := info.Sys().(*syscall.Stat_t)
	sum := sha256.Sum256(compact(struct {
		Device uint64 `json:"device"`
		Inode  uint64 `json:"inode"`
		Path   string `json:"path"`
	}{uint64(st.Dev), st.Ino, path}))
	return hex.EncodeToString(sum[:])
}

func (b *bindings) mac(encoded string) []byte {
	key := hmac.New(sha256.New, []byte(b.secret))
	key.Write([]byte("autogpt-root-grant-v1"))
	m := hmac.New(sha256.New, key.Sum(nil))
	m.Write([]byte(encoded))
	return m.Sum(nil)
}

func (b *bindings) mint(session, root, print string, revision int) binding {
	encoded := base64.RawURLEncoding.EncodeToString(compact(claims{root, print, float64(time.Now().Unix()), b.machine, revision, session}))
	return binding{session, root, print, revision, "v1." + encoded + "." + base64.RawURLEncoding.EncodeToString(b.mac(encoded))}
}

// verify reads a grant and looks at its folder.
func (b *bindings) verify(grant, session string) (binding, *fault) {
	invalid := failf("ROOT_GRANT_INVALID", "the grant does not hold")
	parts := strings.Split(grant, ".")
	if len(parts) != 3 || parts[0] != "v1" {
		return binding{}, invalid
	}
	sum, err := base64.RawURLEncoding.DecodeString(parts[2])
	raw, err2 := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	if err != nil || err2 != nil || !hmac.Equal(sum, b.mac(parts[1])) || json.Unmarshal(raw, &c) != nil {
		return binding{}, invalid
	}
	if c.Machine != b.machine || c.Session != session || fingerprint(c.Root) != c.Fingerprint {
		return binding{}, invalid
	}
	return binding{c.Session, c.Root, c.Fingerprint, c.Revision, grant}, nil
}

// remember keeps a binding, and forgets the oldest inactive one for it.
func (b *bindings) remember(n binding, live func(string) bool) {
	if _, ok := b.list[n.Session]; !ok {
		if len(b.list) >= maxBindings {
			if i := slices.IndexFunc(b.order, func(s string) bool { return !live(s) }); i >= 0 {
				delete(b.list, b.order[i])
				b.order = slices.Delete(b.order, i, i+1)
			}
		}
		b.order = append(b.order, n.Session)
	}
	b.list[n.Session] = n
}

func (s *socket) attach(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Session string `json:"session_id"`
		Browse  string `json:"browse_id"`
		Ref     string `json:"directory_ref"`
	}{})
	if s.c.live(p.Session) {
		return "", nil, failf("SESSION_ALREADY_ACTIVE", "the chat is active; detach it first")
	}
	root, f := s.c.browse.take(p.Browse, p.Ref)
	if f != nil {
		return "", nil, f
	}
	b := &s.c.binds
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.mint(p.Session, root, fingerprint(root), b.list[p.Session].Revision+1)
	b.remember(n, s.c.live)
	return "SESSION_ATTACHED", n, nil
}

func (s *socket) activate(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Session  string `json:"session_id"`
		Revision int    `json:"revision"`
	}{})
	b := &s.c.binds
	b.mu.Lock()
	n, ok := b.list[p.Session]
	b.mu.Unlock()
	if !ok {
		return "", nil, failf("SESSION_NOT_ATTACHED", "the chat is not attached")
	}
	if n.Revision != p.Revision {
		return "", nil, &fault{Code: "SESSION_REVISION_MISMATCH", Message: "another revision is attached", Details: map[string]any{"current_revision": n.Revision}}
	}
	if _, f := b.verify(n.Grant, p.Session); f != nil {
		return "", nil, f
	}
	if f := s.c.start(n); f != nil {
		return "", nil, f
	}
	return "SESSION_ACTIVATED", activated{n.Session, n.Root, n.Fingerprint, n.Revision}, nil
}

func (s *socket) restore(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Session string `json:"session_id"`
		Grant   string `json:"root_grant"`
	}{})
	b := &s.c.binds
	n, f := b.verify(p.Grant, p.Session)
	if f != nil {
		return "", nil, f
	}
	b.mu.Lock()
	old, known := b.list[p.Session]
	if known && (n.Revision < old.Revision || n.Revision == old.Revision && n.Fingerprint != old.Fingerprint) {
		b.mu.Unlock()
		return "", nil, &fault{Code: "SESSION_REVISION_MISMATCH", Message: "a newer binding is remembered", Details: map[string]any{"current_revision": old.Revision}}
	}
	b.remember(n, s.c.live)
	b.mu.Unlock()
	if f := s.c.start(n); f != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if known {
			b.list[p.Session] = old
		} else {
			delete(b.list, p.Session)
			b.order = slices.DeleteFunc(b.order, func(o string) bool { return o == p.Session })
		}
		return "", nil, f
	}
	return "SESSION_RESTORED", n, nil
}

func (s *socket) detach(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Session string `json:"session_id"`
	}{})
	s.c.stop(p.Session)
	b := &s.c.binds
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.list, p.Session)
	b.order = slices.DeleteFunc(b.order, func(o string) bool { return o == p.Session })
	return "ACK", ack{true}, nil
}
