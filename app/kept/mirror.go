package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	mirrorWaste = 1 << 30   // of what is held no more

	// A file of holeSize may have holes. To read those costs an eighth, about, of
	// what it costs to copy as much.
	holeSize, holeCost = 1 << 20, 8
)

// leftOut are folders whose contents are made again by who made them. They are
// held like all others where there is room; else they are left out, which is
// said.
var leftOut = map[string]bool{"node_modules": true, ".venv": true, "venv": true, "__pycache__": true, ".tox": true, ".gradle": true, ".mypy_cache": true, ".pytest_cache": true}

// within tells whether a name is below a folder of leftOut.
func within(rel string) bool {
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if leftOut[path.Base(up)] {
			return true
		}
	}
	return false
}

// mirror is a session's folder as it was last seen, with what its files had:
// only what has changed since is copied before the next command.
type mirror struct {
	k      *Kept
	folder string
	id     capabilities.FileID

	mu      sync.Mutex
	files   tree            // by name in the folder; one that was handed out is never changed. Guarded by mu, as all below
	data    *bundle         // what is held; nil before there is any
	held    map[*entry]bool // what of files is held
	cost    int64           // bytes of held that are not shared
	room    int64           // that is free
	lean    bool            // leftOut is left out
	but     map[string]bool
	fits    bool             // it was found to
	began   time.Time        // the last look that held everything
	failed  time.Time        // when it could not be held
	windows map[*window]bool // commands under way
}

func (k *Kept) mirrorOf(s *capabilities.Session) *mirror {
	k.mu.Lock()
	m := k.mirrors[s.Folder]
	if old := m; m == nil || !m.id.Same(s.FolderID) {
		if old != nil {
			defer old.drop() // once mu is free
		}
		m = &mirror{k: k, folder: s.Folder, id: s.FolderID, files: tree{}, windows: map[*window]bool{}}
		k.mirrors[s.Folder] = m
	}
	k.mu.Unlock()
	return m
}

// again has the folder's mirror look at a step's names: before it, and when it
// was done, which was no command's work.
func (k *Kept) again(folder string, st *step, done bool) {
	k.mu.Lock()
	m := k.mirrors[folder]
	k.mu.Unlock()
	if m == nil {
		return
	}
	if st.From != "" {
		m.again(st.From, done)
	}
	m.again(st.Rel, done)
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

// drop removes what is held.
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
	if m.data != nil {
		m.data.f.Close()
		m.k.discard(m.data.name)
	}
	m.files, m.data, m.held, m.cost, m.began = tree{}, nil, nil, 0, time.Time{}
}

// isTemp: a write of ours under way.
func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, ".tmp")
}

// look lists what is at rel in the folder, "." for all of it. With hold it is
// held, too; what can't be is listed only, or with strict fails the look.
func (m *mirror) look(ctx context.Context, folder *dir, rel string, hold, strict bool) (tree, error) {
	now := make(tree, len(m.files))
	if m.data == nil {
		b, err := m.k.newBundle()
		if err != nil {
			return now, err
		}
		m.data, m.held = b, map[*entry]bool{}
	}
	m.room = m.k.dir.room()
	if rel == "." {
		m.but = map[string]bool{}
	}
	called := rel
	if rel == "." {
		called = ""
	}
	return now, walk(ctx, folder, rel, called, func(d *dir, name, rel string, n node) (skip error) {
		if rel == "" {
			return nil
		}
		if isTemp(name) {
			return fs.SkipDir
		}
		if len(now) >= mirrorFiles {
			return errTooMuch
		}
		e := m.files[rel]
		if e == nil || e.node != n {
			e = &entry{node: n}
			if n.Kind == kindFile && n.Size >= holeSize {
				e.taken = d.taken(name)
			}
		}
		now[rel] = e
		if n.Kind == kindFile && n.Size >= block && !m.data.tried {
			m.data.probe(d, name)
		}
		if n.Kind == kindDir && m.lean && leftOut[name] {
			m.but[name], skip = true, fs.SkipDir
		}
		if hold && !e.held {
			if err := m.hold(ctx, d, name, e); err != nil && (strict || ctx.Err() != nil) {
				return err
			}
		}
		return skip
	})
}

// hold holds one name. What is being written, can't be read or has gone is not
// held.
func (m *mirror) hold(ctx context.Context, d *dir, name string, e *entry) error {
	left := min(mirrorBytes-m.cost, m.room-mirrorRoom)
	if m.costOf(e) > left {
		return fmt.Errorf("%d bytes: %w", m.cost+m.costOf(e), errTooMuch)
	}
	// What it was said to take on the disk may not be all that it has.
	before := m.data.wrote
	m.data.most = before + left
	steady, err := m.data.take(ctx, d, name, e)
	m.data.most = 0
	e.taken = max(e.taken, m.data.wrote-before)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	m.held[e] = true
	m.cost, m.room = m.cost+m.costOf(e), m.room-m.costOf(e)
	if !steady {
		m.release(e)
	}
	return nil
}

// costOf is what it costs to hold a file.
func (m *mirror) costOf(e *entry) int64 {
	if e.Kind != kindFile || m.data.shares && e.Size >= block {
		return 0
	}
	if e.Size >= holeSize {
		return max(min(e.taken, e.Size), e.Size/holeCost)
	}
	return e.Size
}

// release lets go of what is held of a name.
func (m *mirror) release(e *entry) {
	if e.Kind == kindFile && e.Size > 0 {
		punch(m.data.f, e.At, e.Size)
	}
	m.cost -= m.costOf(e)
	e.held = false
	delete(m.held, e)
}

// free lets go of all that neither the folder nor a command's beginning has any
// more.
func (m *mirror) free() {
	live, size := make(map[*entry]bool, len(m.held)), int64(0)
	add := func(t tree) {
		for _, e := range t {
			live[e] = true
		}
	}
	add(m.files)
	for w := range m.windows {
		add(w.base)
		add(w.told)
	}
	for e := range m.held {
		if live[e] {
			size += e.Size
		} else {
			m.release(e)
		}
	}
	if len(m.windows) == 0 && m.data != nil && m.data.end-size > mirrorWaste {
		m.reset()
	}
}

// fit has look done, once more without leftOut where there is too much.
func (m *mirror) fit(look func() error) error {
	err := look()
	if errors.Is(err, errTooMuch) && !m.lean {
		m.lean = true
		err = look()
	}
	return err
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
	if k.o.Now().Sub(m.failed) < brokenFor {
		return false, ""
	}
	if !m.fits {
		folder, err := openSame(m.folder, m.id)
		if err != nil {
			return false, ""
		}
		defer folder.close()
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		err = m.fit(func() error {
			now, err := m.look(ctx, folder, ".", false, true)
			cost := int64(0)
			for _, e := range now {
				cost += m.costOf(e)
			}
			if err == nil && cost > mirrorBytes {
				err = errTooMuch
			}
			return err
		})
		if errors.Is(err, errTooMuch) {
			m.failed = k.o.Now()
		}
		if m.fits = err == nil; !m.fits {
			return false, ""
		}
	}
	return true, strings.Join(slices.Sorted(maps.Keys(m.but)), " and ")
}

// again looks again at one name, and below it, for commands under way. What is
// done is told to all that had not worked on it before.
func (m *mirror) again(rel string, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.windows) == 0 {
		return // the next command looks at everything
	}
	folder, err := openSame(m.folder, m.id)
	if err != nil {
		return
	}
	defer folder.close()
	// Folders above may be new, too.
	for up := folderAbove(rel); up != "." && m.files[up] == nil; up = folderAbove(up) {
		rel = up
	}
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTime)
	defer cancel()
	now, err := m.look(ctx, folder, rel, true, false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.k.o.Log.Warn("A changed file could not be held for a command under way", "err", err)
	}
	files := maps.Clone(m.files)
	for name := range m.files {
		if name == rel || strings.HasPrefix(name, rel+"/") {
			delete(files, name)
			if done && now[name] == nil {
				m.tell(name, m.files[name], nil)
			}
		}
	}
	maps.Copy(files, now)
	for name, e := range now {
		if done {
			m.tell(name, m.files[name], e)
		}
	}
	m.files = files
}

// tell has commands under way know that what is at a name is another's work: all
// but those that had changed it before, which have what was there before that.
func (m *mirror) tell(name string, was, now *entry) {
	for w := range m.windows {
		if !differs(w.before(name), was) {
			w.told[name] = now
		}
	}
}
