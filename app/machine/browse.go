package machine

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"localpc/capabilities"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// Limits of browsing (wire 1.1, sections 4 and 9).
const (
	maxBrowses = 8
	maxRefs    = 1200 // folders named in one browse
	maxCursors = 32   // of one browse
	maxScanned = 1000 // names looked at in one folder
	browseTime = 300 * time.Second
)

// browser lets a hub find a folder by names: one level at a time, folders
// only, and each by a random reference, so that the hub can't name a path. It
// lists what could be lent, and the home, from where the person's folders are
// reached. Safe for concurrent use; the disk is read without its lock.
type browser struct {
	// forbidden says why a canonical path can't be lent; "" when it can.
	forbidden func(path string) string
	// mounts are the folders in which disks are mounted, each of which is a
	// root; drives are those with one folder a letter (WSL2).
	mounts, drives []string
	now            func() time.Time

	mu  sync.Mutex
	all []*browse // oldest first; guarded by mu
}

// browse is one search, from its roots on. Guarded by the browser's mu.
type browse struct {
	id      string
	expires time.Time
	dirs    map[string]*dir // by reference
	refs    map[string]*dir // by path
	pages   map[string]page // by cursor
	cursors []string        // oldest first
}

// dir is one folder that was named. It does not change.
type dir struct {
	ref, parent string // parent is "" for a root
	name, path  string // path is canonical
	id          capabilities.FileID
}

// page is what is left to tell of one folder, nil for the roots.
type page struct {
	of        *dir
	rest      []*dir
	truncated bool
}

func newBrowser(forbidden func(string) string) *browser {
	b := &browser{forbidden: forbidden, now: time.Now, mounts: []string{"/Volumes"}}
	if user := os.Getenv("USER"); user != "" && filepath.Base(user) == user {
		b.mounts = append(b.mounts, "/media/"+user, "/run/media/"+user)
	}
	if onWSL() {
		b.drives = []string{"/mnt"}
	}
	return b
}

func unknownRef() error {
	return wire.Errorf(autogpt.CodeReferenceInvalid, "This folder list is not open any more; begin again with the first folders.")
}

func unavailable(cause error, path string) error {
	return wire.Wrap(cause, autogpt.CodeUnavailable, "The folder %s can't be used: it was moved or deleted, or this computer does not let the program work in it.", path)
}

// reset ends every browse.
func (b *browser) reset() {
	b.mu.Lock()
	b.all = nil
	b.mu.Unlock()
}

// find returns a live browse. Called with mu held.
func (b *browser) find(id string) *browse {
	now := b.now()
	b.all = slices.DeleteFunc(b.all, func(br *browse) bool { return !now.Before(br.expires) })
	for _, br := range b.all {
		if br.id == id {
			return br
		}
	}
	return nil
}

// folder returns the folder that a reference of a live browse names.
func (b *browser) folder(browse, ref string) (*dir, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br := b.find(browse); br != nil && br.dirs[ref] != nil {
		return br.dirs[ref], nil
	}
	return nil, unknownRef()
}

// consume ends a browse; false when it has ended before.
func (b *browser) consume(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.find(id)
	b.all = slices.DeleteFunc(b.all, func(other *browse) bool { return other == br })
	return br != nil
}

// begin starts a browse with the roots. The oldest of too many ends.
func (b *browser) begin() (*autogpt.Directory, error) {
	found := b.roots()
	b.mu.Lock()
	defer b.mu.Unlock()
	br := &browse{id: rand.Text(), expires: b.now().Add(browseTime), dirs: map[string]*dir{}, refs: map[string]*dir{}, pages: map[string]page{}}
	b.find("") // those whose time is over do not count
	if b.all = append(b.all, br); len(b.all) > maxBrowses {
		b.all = b.all[1:]
	}
	return br.tell(br.name(page{}, found)), nil
}

// list tells what is in a folder, or goes on where a cursor stands.
func (b *browser) list(browse, ref string, cursor *string) (*autogpt.Directory, error) {
	d, err := b.folder(browse, ref)
	if err != nil {
		return nil, err
	}
	var found []*dir
	var more bool
	if cursor == nil {
		if found, more, err = b.scan(d); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	br := b.find(browse)
	if br == nil {
		return nil, unknownRef()
	}
	if cursor == nil {
		return br.tell(br.name(page{of: d, truncated: more}, found)), nil
	}
	p, ok := br.pages[*cursor]
	if !ok || p.of != d {
		return nil, unknownRef()
	}
	return br.tell(p), nil
}

// name gives what was found its references, as far as there are any left.
func (br *browse) name(p page, found []*dir) page {
	for _, d := range found {
		known := br.refs[d.path]
		switch {
		case known != nil && known.id.Same(d.id):
			d = known
		case len(br.dirs) >= maxRefs:
			p.truncated = true
			continue
		default:
			d.ref = rand.Text()
			if p.of != nil {
				d.parent = p.of.ref
			}
			br.dirs[d.ref], br.refs[d.path] = d, d
		}
		p.rest = append(p.rest, d)
	}
	return p
}

// tell makes the reply of a page, and a cursor for what is left.
func (br *browse) tell(p page) *autogpt.Directory {
	out := &autogpt.Directory{BrowseID: br.id, Truncated: p.truncated, ExpiresAt: float64(br.expires.UnixMilli()) / 1000}
	if p.of != nil {
		out.Current = p.of.told()
		if p.of.parent != "" {
			out.ParentRef = &p.of.parent
		}
	}
	for _, d := range p.rest[:min(len(p.rest), autogpt.MaxPage)] {
		out.Entries = append(out.Entries, *d.told())
	}
	if p.rest = p.rest[len(out.Entries):]; len(p.rest) > 0 {
		cursor := rand.Text()
		br.pages[cursor] = p
		if br.cursors = append(br.cursors, cursor); len(br.cursors) > maxCursors {
			delete(br.pages, br.cursors[0])
			br.cursors = br.cursors[1:]
		}
		out.NextCursor = &cursor
	}
	return out
}

func (d *dir) told() *autogpt.DirectoryRef {
	return &autogpt.DirectoryRef{Ref: d.ref, Name: d.name, Path: d.path}
}

// same makes sure that d is still the folder it was, reached through no link.
func (d *dir) same() error {
	id, err := capabilities.FolderID(d.path)
	if err == nil && !id.Same(d.id) {
		err = errReplaced
	}
	if err != nil {
		return unavailable(err, d.path)
	}
	return nil
}

var errReplaced = errors.New("another folder is there now")

// usable makes sure too that d may be worked in.
func (d *dir) usable() error {
	if err := d.same(); err != nil {
		return err
	}
	if err := enterable(nil, d.path); err != nil {
		return unavailable(err, d.path)
	}
	return nil
}

// roots are where a browse begins: the home, and what is mounted.
func (b *browser) roots() []*dir {
	var out []*dir
	if home := homes(); len(home) > 0 {
		path := canonical(home[0])
		d := &dir{name: filepath.Base(path), path: path}
		if id, err := capabilities.FolderID(path); err == nil && tellable(d) {
			if d.id = id; d.usable() == nil {
				out = append(out, d)
			}
		}
	}
	for _, m := range append(slices.Clone(b.mounts), b.drives...) {
		id, err := capabilities.FolderID(m)
		if err != nil {
			continue
		}
		found, _, err := b.scan(&dir{path: m, id: id})
		if err != nil {
			continue
		}
		for _, d := range found {
			if !slices.Contains(b.drives, m) || len(d.name) == 1 {
				out = append(out, d)
			}
		}
	}
	return out
}

// ofWindows are the folders of a Windows drive that are not the person's.
var ofWindows = []string{"$Recycle.Bin", "Documents and Settings", "Program Files", "Program Files (x86)", "ProgramData", "Recovery", "System Volume Information", "Windows"}

// tellable: it can be told, and its path can stand in this machine's own HELLO.
func tellable(d *dir) bool {
	return utf8.RuneCountInString(d.name) <= autogpt.MaxName && len(d.path) <= wire.MaxPath && autogpt.RootFits(d.path)
}

// scan finds the folders in d that could be lent, by name without case. more:
// there were more names than are looked at.
func (b *browser) scan(d *dir) (found []*dir, more bool, err error) {
	if err := d.same(); err != nil {
		return nil, false, err
	}
	root, err := os.OpenRoot(d.path + "/") // with the slash it waits for no pipe in the folder's place
	if err != nil {
		return nil, false, unavailable(err, d.path)
	}
	defer root.Close()
	// What was opened is the folder that was named, wherever its name leads now.
	fi, err := root.Stat(".")
	if err != nil {
		return nil, false, unavailable(err, d.path)
	}
	if id, ok := capabilities.FileIDOf(fi); !ok || !id.Same(d.id) {
		return nil, false, unavailable(errReplaced, d.path)
	}
	f, err := root.Open(".")
	if err != nil {
		return nil, false, unavailable(err, d.path)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxScanned + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, unavailable(err, d.path)
	}
	if more = len(names) > maxScanned; more {
		names = names[:maxScanned]
	}
	drive := slices.Contains(b.drives, filepath.Dir(d.path))
	for _, name := range names {
		child := &dir{name: name, path: filepath.Join(d.path, name)}
		if strings.HasPrefix(name, ".") || !tellable(child) || drive && slices.Contains(ofWindows, name) {
			continue
		}
		fi, err := root.Lstat(name)
		if err != nil || !fi.IsDir() {
			continue
		}
		id, ok := capabilities.FileIDOf(fi)
		if !ok || enterable(f, name) != nil || b.forbidden(child.path) != "" {
			continue
		}
		child.id = id
		found = append(found, child)
	}
	slices.SortFunc(found, func(a, b *dir) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)), strings.Compare(a.name, b.name))
	})
	return found, more, nil
}
