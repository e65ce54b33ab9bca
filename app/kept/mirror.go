package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"localpc/capabilities"
)

// Bounds of what a folder may have to be held before a command.
const (
	mirrorFiles = 20_000
	mirrorBytes = 256 << 20 // that can't be shared by the file system
	mirrorTime  = 1500 * time.Millisecond
	lookTime    = 80 * time.Millisecond
	mirrorRoom  = 256 << 20 // is left free
	mirrorIdle  = 15 * time.Minute
)

// leftOut are folders whose contents are made again by who made them. They are
// held like all others where there is room; else they are left out, which is
// said.
var leftOut = map[string]bool{"node_modules": true, ".venv": true, "venv": true, "__pycache__": true, ".tox": true, ".gradle": true, ".mypy_cache": true, ".pytest_cache": true}

// mirror is a session's folder as it was last seen, with copies of its files:
// only what has changed since is copied before the next command.
type mirror struct {
	k      *Kept
	folder string
	id     capabilities.FileID

	mu    sync.Mutex
	name  string // of the directory of copies; "" before there is one
	hold  *dir
	files map[string]*entry // by name in the folder; guarded by mu
	next  int
	pack  *os.File // nil before there is one
	buf   []byte
	// packEnd is how large the pack is, packLive how much of it is in use.
	packEnd, packLive int64
	copied            int64     // bytes that were not shared
	tried             bool      // it is known whether contents are
	shared            bool      // shared
	began             time.Time // the last look that held everything
	lean              bool      // leftOut is left out
	but               map[string]bool
	failed            time.Time // when it could not be held
	used              time.Time
	looked            time.Time        // when it was last found to fit
	windows           map[*window]bool // commands under way
}

// entry is one name of the folder.
type entry struct {
	node
	copy string // in the directory of copies; "" while there is none
	at   int64  // where it begins in the pack
}

// errTooMuch: the folder has more than can be held.
var errTooMuch = errors.New("the folder is too large to be held")

func (k *Kept) mirrorOf(s *capabilities.Session) *mirror {
	k.mu.Lock()
	m := k.mirrors[s.Folder]
	if old := m; m == nil || !m.id.Same(s.FolderID) {
		if old != nil {
			defer old.drop() // once mu is free
		}
		m = &mirror{k: k, folder: s.Folder, id: s.FolderID, files: map[string]*entry{}, but: map[string]bool{}, windows: map[*window]bool{}}
		k.mirrors[s.Folder] = m
	}
	k.mu.Unlock()
	return m
}

// touched tells the folder's mirror that a request of ours changed a name.
func (k *Kept) touched(folder, rel string) {
	k.mu.Lock()
	m := k.mirrors[folder]
	k.mu.Unlock()
	if m != nil {
		m.touched(rel)
	}
}

// Leave lets go of what is held of a folder in which nobody works any more.
func (k *Kept) Leave(folder string) {
	k.mu.Lock()
	m := k.mirrors[folder]
	delete(k.mirrors, folder)
	k.mu.Unlock()
	if m != nil {
		m.drop()
	}
}

// idle: no command has run there for long.
func (m *mirror) idle(now time.Time) bool {
	if !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	return len(m.windows) == 0 && now.Sub(m.used) > mirrorIdle
}

// drop removes the copies.
func (m *mirror) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reset()
}

// reset forgets all. Commands under way can't be compared with anything then.
func (m *mirror) reset() {
	for w := range m.windows {
		w.void = true
	}
	if m.pack != nil {
		m.pack.Close()
	}
	if m.hold != nil {
		m.hold.close()
		_ = removeTree(m.k.dir, m.name) // else the next start does
	}
	m.hold, m.name, m.copied, m.files = nil, "", 0, map[string]*entry{}
	m.pack, m.buf, m.packEnd, m.packLive = nil, nil, 0, 0
	m.began = time.Time{}
}

// seen is one look at a folder.
type seen struct {
	files map[string]*entry
	bytes int64
	but   map[string]bool
}

// look lists the folder; names of leftOut are only noted when lean.
func (m *mirror) look(ctx context.Context, folder *dir, lean bool) (*seen, error) {
	s := &seen{files: make(map[string]*entry, len(m.files)), but: map[string]bool{}}
	top, err := folder.at(".")
	if err != nil {
		return nil, err
	}
	defer top.close()
	return s, s.walk(ctx, top, "", lean, 0)
}

func (s *seen) walk(ctx context.Context, d *dir, rel string, lean bool, depth int) error {
	names, err := d.names()
	if err != nil {
		return err
	}
	if len(s.files)+len(names) > mirrorFiles || depth > 128 {
		return errTooMuch
	}
	for i, name := range names {
		if i%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := d.lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, ".tmp") {
			continue // a write of ours under way
		}
		s.files[rel+name] = &entry{node: n}
		switch {
		case n.kind == kindFile:
			s.bytes += n.size
		case n.kind == kindDir && lean && leftOut[name]:
			s.but[name] = true
		case n.kind == kindDir:
			sub, err := d.sub(name)
			if err != nil {
				return err
			}
			err = s.walk(ctx, sub, rel+name+"/", lean, depth+1)
			sub.close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the folder, if it is still the same.
func (m *mirror) open() (*dir, error) {
	d, err := openDir(m.folder)
	if err != nil {
		return nil, err
	}
	if n, err := lstatFile(d.f); err != nil || !n.id.Same(m.id) {
		d.close()
		return nil, errors.Join(err, errNotSame)
	}
	return d, nil
}

// WouldSnapshot tells whether a folder can be held, as far as that is known
// without doing it.
func (k *Kept) WouldSnapshot(ctx context.Context, s *capabilities.Session) (ok bool, but string) {
	if !k.Would(s, 0) {
		return false, ""
	}
	m := k.mirrorOf(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := k.o.Now()
	if !m.failed.IsZero() && now.Sub(m.failed) < brokenFor {
		return false, ""
	}
	if !m.looked.IsZero() {
		return true, m.butWords()
	}
	folder, err := m.open()
	if err != nil {
		return false, ""
	}
	defer folder.close()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var found *seen
	lean := m.lean
	for {
		found, err = m.look(ctx, folder, lean)
		if err == nil && found.bytes > mirrorBytes && !m.shares(ctx, folder, found) {
			err = errTooMuch
		}
		if lean || !errors.Is(err, errTooMuch) {
			break
		}
		lean = true
	}
	if err != nil {
		if errors.Is(err, errTooMuch) {
			m.failed = now
		}
		return false, ""
	}
	m.looked, m.but = now, found.but
	if lean && !m.lean {
		m.leaner()
	}
	return true, m.butWords()
}

// shares tells whether the file system can share contents between the folder and
// the copies: only trying tells.
func (m *mirror) shares(ctx context.Context, folder *dir, found *seen) bool {
	if m.tried {
		return m.shared
	}
	for rel, e := range found.files {
		if e.kind != kindFile || e.size == 0 {
			continue
		}
		at, err := folder.at(folderAbove(rel))
		if err != nil {
			continue
		}
		in, err := at.open(base(rel), os.O_RDONLY, 0)
		at.close()
		if err != nil {
			continue
		}
		probe := ".new-" + newName()
		if out, err := m.k.dir.open(probe, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			m.tried, m.shared = true, clone(in, out)
			out.Close()
			_ = m.k.dir.unlink(probe)
		}
		in.Close()
		break
	}
	return m.shared
}

func (m *mirror) butWords() string {
	var names []string
	for n := range m.but {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// update makes the mirror what the folder is now. What has changed since the
// last time is handed to changed. With copies each file is held, within the
// bounds.
func (m *mirror) update(ctx context.Context, folder *dir, copies bool) (old map[string]*entry, err error) {
	found, err := m.look(ctx, folder, m.lean)
	if errors.Is(err, errTooMuch) && !m.lean {
		m.leaner()
		found, err = m.look(ctx, folder, true)
	}
	if err != nil {
		return nil, err
	}
	m.but = found.but
	old = m.files
	var todo []string
	for rel, now := range found.files {
		if was := old[rel]; was != nil && was.same(now.node) {
			now.copy, now.at = was.copy, was.at
		}
		if now.copy == "" && (now.kind == kindFile || now.kind == kindLink) {
			todo = append(todo, rel)
		}
	}
	m.files = found.files
	if !copies || len(todo) == 0 {
		return old, nil
	}
	return old, m.copyAll(ctx, folder, todo)
}

// leaner leaves out what programs make again, from now on.
func (m *mirror) leaner() {
	m.lean = true
	for rel := range m.files {
		if m.within(rel) {
			m.release(m.files[rel])
			delete(m.files, rel)
		}
	}
}

// within tells whether a name is below a folder that is left out.
func (m *mirror) within(rel string) bool {
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if leftOut[path.Base(up)] {
			return true
		}
	}
	return false
}

// copyAll holds files.
func (m *mirror) copyAll(ctx context.Context, folder *dir, todo []string) error {
	if m.hold == nil {
		name := newName()
		if err := m.k.dir.mkdir(name, 0o700); err != nil {
			return err
		}
		hold, err := m.k.dir.sub(name)
		if err != nil {
			return err
		}
		m.hold, m.name = hold, name
	}
	slices.Sort(todo)
	free := m.k.dir.room()
	at, in := (*dir)(nil), ""
	defer func() {
		if at != nil {
			at.close()
		}
	}()
	for _, rel := range todo {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if up := folderAbove(rel); at == nil || up != in {
			if at != nil {
				at.close()
			}
			var err error
			if at, err = folder.at(up); errors.Is(err, fs.ErrNotExist) {
				at = nil
				continue
			} else if err != nil {
				at = nil
				return err
			}
			in = up
		}
		e := m.files[rel]
		if m.copied+e.size > mirrorBytes && !m.shared || free-m.copied-e.size < mirrorRoom {
			return fmt.Errorf("%d bytes: %w", m.copied+e.size, errTooMuch)
		}
		if err := m.copyOne(ctx, at, rel, e); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirror) copyOne(ctx context.Context, at *dir, rel string, e *entry) error {
	name, c, err := packed, newCopier(), error(nil)
	defer c.close()
	small := false
	if e.kind == kindFile && e.size <= packMost {
		small, err = m.packOne(at, e, base(rel))
	}
	if err == nil && !small {
		m.next++
		name, c.whole = itoa(m.next), m.tried && !m.shared
		err = c.one(ctx, at, base(rel), m.hold, name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // gone meanwhile
	case errors.Is(err, fs.ErrPermission):
		return nil // it can't be held, and is not
	case err != nil:
		if name != packed {
			_ = removeTree(m.hold, name)
		}
		return err
	}
	if !small && e.kind == kindFile && e.size > 0 {
		m.tried, m.shared = true, c.shared
		if !c.shared {
			m.copied += e.size
		}
	}
	now, err := at.lstat(base(rel))
	if err != nil || !now.same(e.node) {
		// It is being written at this moment: what was read may be of two minds.
		m.release(&entry{node: e.node, copy: name, at: e.at})
		return nil
	}
	e.copy = name
	return nil
}

// release lets go of one copy.
func (m *mirror) release(e *entry) {
	if e == nil || e.copy == "" || m.hold == nil {
		return
	}
	if e.copy != packed {
		_ = removeTree(m.hold, e.copy) // else it goes with the rest
	}
	m.spend(e)
}

// spend counts a copy out.
func (m *mirror) spend(e *entry) {
	if e.copy == packed {
		m.packLive -= e.size
	} else if m.shared || e.kind != kindFile {
		return
	}
	m.copied = max(0, m.copied-e.size)
}

// touched looks again at one name, and below it, after a request of ours.
func (m *mirror) touched(rel string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.windows) == 0 {
		return // the next command looks at everything
	}
	for w := range m.windows {
		w.shared = true
	}
	for name, e := range m.files {
		if name == rel || strings.HasPrefix(name, rel+"/") {
			m.release(e)
			delete(m.files, name)
		}
	}
	folder, err := m.open()
	if err != nil {
		return
	}
	defer folder.close()
	// Folders above may be new, too.
	names := []string{rel}
	for up := folderAbove(rel); up != "." && m.files[up] == nil; up = folderAbove(up) {
		names = append(names, up)
	}
	for _, name := range slices.Backward(names) {
		at, err := folder.at(folderAbove(name))
		if err != nil {
			return
		}
		n, err := at.lstat(base(name))
		at.close()
		if err != nil {
			return
		}
		m.files[name] = &entry{node: n}
		if n.kind != kindDir || name != rel {
			continue
		}
		s := &seen{files: m.files, but: map[string]bool{}}
		sub, err := folder.at(rel)
		if err != nil {
			return
		}
		_ = s.walk(context.Background(), sub, rel+"/", m.lean, 0)
		sub.close()
	}
	var todo []string
	for name, e := range m.files {
		if e.copy == "" && (name == rel || strings.HasPrefix(name, rel+"/")) && (e.kind == kindFile || e.kind == kindLink) {
			todo = append(todo, name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTime)
	defer cancel()
	if err := m.copyAll(ctx, folder, todo); err != nil {
		m.k.o.Log.Warn("A changed file could not be held for a command under way", "err", err)
	}
}
