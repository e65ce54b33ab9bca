package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"localpc/app/store"
	"localpc/capabilities"
)

// endTime bounds the look after a command.
const endTime = 10 * time.Second

// soon is when it is tried again to hold a folder that took too long.
const soon = 5 * time.Second

// window is one command under way: all that changes in the folder meanwhile is
// taken for its work, but for what our own requests do.
type window struct {
	m       *mirror
	s       *capabilities.Session
	request string
	began   time.Time
	// before is what was there of names that were seen changed meanwhile; nil
	// for nothing. Guarded by the mirror's mu, as shared is.
	before map[string]*entry
	shared bool // others of ours worked in the folder, too
	void   bool // what was there before is not known any more
}

// Snapshot holds the folder as it is: what has changed since the last command
// is copied, or shared by the file system.
func (k *Kept) Snapshot(ctx context.Context, s *capabilities.Session, request string) (capabilities.Snapshot, error) {
	if !k.on() {
		return nil, errNothing
	}
	arrived := k.o.Now()
	m := k.mirrorOf(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = arrived
	if m.began.Before(arrived) || m.began.IsZero() {
		if err := m.sync(ctx, arrived); err != nil {
			return nil, err
		}
	}
	w := &window{m: m, s: s, request: request, began: k.o.Now(), before: map[string]*entry{}, shared: len(m.windows) > 0}
	for other := range m.windows {
		other.shared = true
	}
	m.windows[w] = true
	return w, nil
}

// sync brings the mirror up to date before a command.
func (m *mirror) sync(ctx context.Context, now time.Time) error {
	if m.wasteful() {
		m.reset()
	}
	began := m.k.o.Now()
	folder, err := m.open()
	if err != nil {
		return err
	}
	defer folder.close()
	looking, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	old, err := m.update(looking, folder, true)
	if old != nil {
		m.settle(old)
	}
	if err != nil {
		if ctx.Err() == nil {
			m.failed, m.looked = now, time.Time{}
			if !errors.Is(err, errTooMuch) {
				// It goes on from here the next time, soon.
				m.failed = now.Add(soon - brokenFor)
			}
			m.k.o.Log.Warn("A folder could not be held before a command", "err", err)
			if errors.Is(err, errTooMuch) {
				m.reset()
			}
		}
		return fmt.Errorf("hold the folder: %w", err)
	}
	m.began, m.looked, m.failed = began, began, time.Time{}
	return nil
}

// settle gives what has changed since the last look to the command that has run
// longest, or, without one, to the person.
func (m *mirror) settle(old map[string]*entry) {
	var first *window
	for w := range m.windows {
		if first == nil || w.began.Before(first.began) {
			first = w
		}
	}
	for rel, was := range old {
		if now := m.files[rel]; now != nil && now.same(was.node) {
			continue
		}
		if first == nil {
			m.release(was)
		} else if _, known := first.before[rel]; known {
			m.release(was)
		} else {
			first.before[rel] = was
		}
	}
	if first == nil {
		return
	}
	for rel := range m.files {
		if _, was := old[rel]; was {
			continue
		}
		if _, known := first.before[rel]; !known {
			first.before[rel] = nil
		}
	}
}

// End notes what the command changed.
func (w *window) End(ctx context.Context) []string {
	m := w.m
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.windows, w)
	m.used = m.k.o.Now()
	if w.void {
		return []string{"what it changed can't be undone: the folder became too large to be held"}
	}
	folder, err := m.open()
	if err != nil {
		return nil
	}
	defer folder.close()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	old, err := m.update(ctx, folder, len(m.windows) > 0)
	if old == nil {
		m.k.o.Log.Warn("What a command changed could not be told", "err", err)
		return []string{"what it changed can't be undone: the folder has too many files"}
	}
	d := &diff{w: w, folder: folder, was: old, now: m.files, done: map[string]bool{}, inodes: map[capabilities.FileID]bool{}}
	if len(w.before) > 0 {
		d.was = make(map[string]*entry, len(old))
		for rel, e := range old {
			d.was[rel] = e
		}
		for rel, e := range w.before {
			if e == nil {
				delete(d.was, rel)
			} else {
				d.was[rel] = e
			}
		}
	}
	notes := d.keep(ctx)
	// What was not put among the old versions is of no use any more.
	for rel, was := range old {
		if now := m.files[rel]; now == nil || now.copy != was.copy {
			m.release(was)
		}
	}
	for _, was := range w.before {
		m.release(was)
	}
	return notes
}

// diff finds what a command changed.
type diff struct {
	w      *window
	folder *dir
	was    map[string]*entry
	now    map[string]*entry
	done   map[string]bool // names whose trees are told whole
	inodes map[capabilities.FileID]bool
	steps  []*step
	bytes  int64
	lost   int // could not be kept
}

// keep puts the old versions away, and notes the steps.
func (d *diff) keep(ctx context.Context) []string {
	k := d.w.m.k
	names, bytes := d.changed()
	if len(names) == 0 {
		return nil
	}
	if limit := k.o.Limit(); bytes > limit {
		return []string{"what it changed can't be undone: the old versions are larger than what is kept at most"}
	}
	for _, rel := range names {
		if err := d.one(ctx, rel); err != nil {
			k.fail(d.w.m.folder, err)
			d.drop()
			return []string{"what it changed could not be kept, and can't be undone"}
		}
	}
	// Folders that may not be written to any more get their mode back first.
	slices.SortStableFunc(d.steps, func(a, b *step) int { return rank(a) - rank(b) })
	var notes []string
	if d.lost == 1 {
		notes = append(notes, "1 file that it changed could not be kept")
	} else if d.lost > 1 {
		notes = append(notes, fmt.Sprintf("%d files that it changed could not be kept", d.lost))
	}
	if len(d.steps) == 0 {
		return notes
	}
	if err := d.note(ctx); err != nil {
		k.fail(d.w.m.folder, err)
		d.drop()
		return append(notes, "what it changed could not be kept, and can't be undone")
	}
	return notes
}

func rank(s *step) int {
	switch {
	case s.ModeOnly && s.Before.Mode&0o200 == 0:
		return 0
	case s.ModeOnly:
		return 2
	}
	return 1
}

// changed are the names that differ, in order, and the bytes that their old
// versions have.
func (d *diff) changed() (names []string, bytes int64) {
	for rel, was := range d.was {
		now := d.now[rel]
		if now != nil && now.same(was.node) || now == nil && d.w.m.lean && d.w.m.within(rel) {
			continue
		}
		if was.kind == kindDir && now != nil && now.kind == kindDir && was.mode == now.mode {
			continue
		}
		names = append(names, rel)
		if was.kind == kindFile {
			bytes += was.size
		}
	}
	for rel := range d.now {
		if d.was[rel] == nil {
			names = append(names, rel)
		}
	}
	slices.Sort(names)
	return names, bytes
}

// told: a folder above is told whole.
func (d *diff) told(rel string) bool {
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if d.done[up] {
			return true
		}
	}
	return false
}

func (d *diff) one(ctx context.Context, rel string) error {
	was, now := d.was[rel], d.now[rel]
	if d.told(rel) {
		return nil
	}
	st := &step{Rel: rel, Made: true, n: len(d.steps)}
	if now != nil {
		if now.kind == kindOther {
			return nil
		}
		st.After = now.state()
		if now.kind == kindDir && (was == nil || was.kind != kindDir) {
			tree, err := d.treeNow(ctx, rel)
			if err != nil {
				return err
			}
			st.After.Tree = tree
			d.done[rel] = true
		}
	}
	switch {
	case was == nil:
	case was.kind == kindOther:
		d.lost++
		return nil
	case was.kind == kindDir && now != nil && now.kind == kindDir:
		st.ModeOnly, st.Before = true, was.state()
		st.Before.Tree, st.After.Tree = anyTree, anyTree
	case was.kind == kindDir:
		d.done[rel] = true
		if d.w.m.lean && leftOut[base(rel)] {
			d.lost++
			return nil
		}
		st.object = newName()
		d.steps = append(d.steps, st) // so that a failure drops what there is of it
		if err := d.assemble(rel, st.object); err != nil {
			return err
		}
		var err error
		st.Before, err = d.w.m.k.dir.stateOf(ctx, st.object, true)
		return err
	case was.copy == "":
		d.lost++
		return nil
	default:
		if now != nil && now.id.Same(was.id) && now.kind == kindFile {
			if now.links > 1 {
				if d.inodes[now.id] {
					return nil // the same file under another name
				}
				d.inodes[now.id] = true
				st.InPlace = true
			}
			if now.state() == was.state() && d.sameContents(ctx, rel, was, now) {
				return nil
			}
		}
		st.Before, st.ID, st.object = was.state(), was.id, newName()
		if err := d.take(rel, was, d.w.m.k.dir, st.object); err != nil {
			return err
		}
	}
	d.steps = append(d.steps, st)
	return nil
}

func (d *diff) treeNow(ctx context.Context, rel string) (string, error) {
	at, err := d.folder.at(folderAbove(rel))
	if err != nil {
		return "", err
	}
	defer at.close()
	tree, err := at.treeOf(ctx, base(rel))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return tree, err
}

// take moves a copy to where it stays.
func (d *diff) take(rel string, was *entry, to *dir, name string) error {
	m := d.w.m
	if m.hold == nil {
		return errNothing
	}
	err := error(nil)
	if was.copy == packed {
		err = m.unpack(was, to, name)
	} else {
		err = renameNew(m.hold, was.copy, to, name)
	}
	if err != nil {
		return err
	}
	m.spend(was)
	was.copy = ""
	d.bytes += was.size
	return nil
}

// assemble puts a folder together again that has gone.
func (d *diff) assemble(rel, object string) error {
	k := d.w.m.k
	if err := k.dir.mkdir(object, 0o700); err != nil {
		return err
	}
	var below []string
	for name := range d.was {
		if strings.HasPrefix(name, rel+"/") {
			below = append(below, name)
		}
	}
	slices.Sort(below)
	top, err := k.dir.sub(object)
	if err != nil {
		return err
	}
	defer top.close()
	var dirs []string
	for _, name := range below {
		was := d.was[name]
		in, err := top.at(folderAbove(name[len(rel)+1:]))
		if errors.Is(err, fs.ErrNotExist) {
			d.lost++
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case was.kind == kindDir:
			err = in.mkdir(base(name), 0o700)
			dirs = append(dirs, name)
		case was.copy == "":
			d.lost++
		default:
			err = d.take(name, was, in, base(name))
		}
		in.close()
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(append([]string{rel}, dirs...)) {
		at, last := k.dir, object
		if name != rel {
			if at, err = top.at(folderAbove(name[len(rel)+1:])); err != nil {
				return err
			}
			last = base(name)
		}
		was := d.was[name]
		own(at, last, was.node)
		err := at.chmod(last, was.mode)
		if err == nil {
			err = at.setTime(last, was.mtime)
		}
		if name != rel {
			at.close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameContents compares a file and its attributes with its copy. What can't be
// told in time counts as changed.
func (d *diff) sameContents(ctx context.Context, rel string, was, now *entry) bool {
	at, err := d.folder.at(folderAbove(rel))
	if err != nil {
		return false
	}
	defer at.close()
	a, err := at.open(base(rel), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer a.Close()
	// Processes of the session may put a pipe at the name, which has no end.
	if n, err := lstatFile(a); err != nil || n.kind != kindFile || !n.id.Same(now.id) {
		return false
	}
	if d.w.m.hold == nil {
		return false
	}
	b, had, done, err := d.w.m.old(was)
	if err != nil {
		return false
	}
	defer done()
	if !maps.Equal(plain(attributesOf(a)), plain(had)) {
		return false
	}
	return sameBytes(ctx, a, b)
}

// note writes the steps, all at once.
func (d *diff) note(ctx context.Context) error {
	w, k := d.w, d.w.m.k
	r, err := k.newKept(w.s, w.request)
	if err != nil {
		return err
	}
	r.Bytes = d.bytes
	long := k.o.Now().Sub(w.began)
	if long >= longRun {
		r.about.Long = long
	}
	r.about.Shared = w.shared && long >= sharedRun
	text, err := json.Marshal(r.about)
	if err != nil {
		return err
	}
	r.About = string(text)
	var rows []store.KeptStep
	for i, st := range d.steps {
		st.n = i
		row, err := st.row()
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	ctx = context.WithoutCancel(ctx)
	if err := k.o.Store.KeepSteps(ctx, r.Kept, rows...); err != nil {
		return err
	}
	if err := k.ended(ctx, r); err != nil {
		return err
	}
	k.Tidy(ctx)
	return nil
}

// drop removes what was put away for nothing.
func (d *diff) drop() {
	for _, st := range d.steps {
		if st.object != "" {
			_ = removeTree(d.w.m.k.dir, st.object) // else the next start does
		}
	}
}
