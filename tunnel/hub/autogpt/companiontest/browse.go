//go:build unix

package companiontest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	pageSize, scanned       = 200, 1000
	maxBrowses, maxRefs     = 8, 1200
	maxCursors, maxBindings = 32, 64
)

// browser holds the opaque references of section 4. All die with the control
// connection.
type browser struct {
	home string
	life time.Duration

	mu   sync.Mutex
	list []*browse // oldest first
}

type browse struct {
	id      string
	expires time.Time
	refs    map[string]place  // by reference
	names   map[string]string // the reference of a path
	cursors map[string]page
}

type place struct{ path, parent string }

type page struct {
	directory string
	entries   []listed
	truncated bool
}

type listed struct {
	Ref  string `json:"directory_ref"`
	Name string `json:"name"`
	Path string `json:"path"`
}

type listing struct {
	Browse    string   `json:"browse_id"`
	Current   *listed  `json:"current"`
	Parent    *string  `json:"parent_ref"`
	Entries   []listed `json:"entries"`
	Next      *string  `json:"next_cursor"`
	Truncated bool     `json:"truncated"`
	Expires   float64  `json:"expires_at"`
}

func (b *browser) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = nil
}

func (b *browser) find(id string) *browse {
	for _, w := range b.list {
		if w.id == id && time.Now().Before(w.expires) {
			return w
		}
	}
	return nil
}

// take resolves a reference and consumes its whole browse.
func (b *browser) take(id, ref string) (string, *fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.find(id)
	if w == nil || w.refs[ref].path == "" {
		return "", failf("DIRECTORY_REFERENCE_INVALID", "the reference is not known")
	}
	b.list = slices.DeleteFunc(b.list, func(o *browse) bool { return o == w })
	path := w.refs[ref].path
	if !usable(path) {
		return "", failf("DIRECTORY_UNAVAILABLE", "the directory cannot be used")
	}
	return path, nil
}

// ref gives the reference of a path, "" when there are too many.
func (w *browse) ref(path, parent string) string {
	if r, ok := w.names[path]; ok {
		return r
	}
	if len(w.refs) >= maxRefs {
		return ""
	}
	r := uuid.NewString()
	w.refs[r], w.names[path] = place{path, parent}, r
	return r
}

// usable: a real directory that can be read, written and entered.
func usable(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && syscall.Access(path, 7) == nil
}

func (s *socket) listDirectory(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Browse *string `json:"browse_id"`
		Ref    *string `json:"directory_ref"`
		Cursor *string `json:"cursor"`
	}{})
	b := &s.c.browse
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Browse == nil {
		w := &browse{id: uuid.NewString(), expires: time.Now().Add(b.life), refs: map[string]place{}, names: map[string]string{}, cursors: map[string]page{}}
		if len(b.list) >= maxBrowses {
			b.list = b.list[1:]
		}
		b.list = append(b.list, w)
		out := w.listing()
		out.Entries = append(out.Entries, listed{w.ref(b.home, ""), filepath.Base(b.home), b.home})
		return "DIRECTORY_LIST_RESPONSE", out, nil
	}
	w := b.find(*p.Browse)
	if w == nil || w.refs[*p.Ref].path == "" {
		return "", nil, failf("DIRECTORY_REFERENCE_INVALID", "the reference is not known")
	}
	here := w.refs[*p.Ref]
	var pg page
	if p.Cursor != nil {
		var ok bool
		if pg, ok = w.cursors[*p.Cursor]; !ok || pg.directory != here.path {
			return "", nil, failf("DIRECTORY_REFERENCE_INVALID", "the cursor is not of this directory")
		}
	} else if f := w.scan(here.path, *p.Ref, &pg); f != nil {
		return "", nil, f
	}
	out := w.listing()
	out.Current = &listed{*p.Ref, filepath.Base(here.path), here.path}
	if here.parent != "" {
		out.Parent = &here.parent
	}
	n := min(len(pg.entries), pageSize)
	out.Entries = append(out.Entries, pg.entries[:n]...)
	out.Truncated = pg.truncated
	if rest := pg.entries[n:]; len(rest) > 0 && len(w.cursors) < maxCursors {
		next := uuid.NewString()
		w.cursors[next] = page{here.path, rest, pg.truncated}
		out.Next = &next
	} else if len(rest) > 0 {
		out.Truncated = true
	}
	return "DIRECTORY_LIST_RESPONSE", out, nil
}

func (w *browse) listing() *listing {
	return &listing{Browse: w.id, Entries: []listed{}, Expires: float64(w.expires.UnixMicro()) / 1e6}
}

func (w *browse) scan(path, ref string, pg *page) *fault {
	if !usable(path) {
		return failf("DIRECTORY_UNAVAILABLE", "the directory cannot be used")
	}
	all, err := os.ReadDir(path)
	if err != nil {
		return failf("DIRECTORY_UNAVAILABLE", "the directory cannot be read")
	}
	pg.directory = path
	var names []string
	for i, e := range all {
		if i >= scanned {
			pg.truncated = true
			break
		}
		if e.IsDir() && usable(filepath.Join(path, e.Name())) && utf8.ValidString(e.Name()) && !strings.ContainsFunc(e.Name(), unicode.IsControl) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	for _, n := range names {
		r := w.ref(filepath.Join(path, n), ref)
		if r == "" {
			pg.truncated = true
			break
		}
		pg.entries = append(pg.entries, listed{r, n, filepath.Join(path, n)})
	}
	return nil
}
