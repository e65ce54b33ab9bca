package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"

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
	// base is what was there when it began; told what is instead of that by now,
	// by others of ours; nil for nothing. Guarded by the mirror's mu.
	base, told tree
	void       bool // what was there before is not known any more
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
	if !m.began.After(arrived) { // a look that began meanwhile is as good
		if err := m.sync(ctx); err != nil {
			return nil, fmt.Errorf("hold the folder: %w", err)
		}
	}
	w := &window{m: m, s: s, request: request, began: k.o.Now(), base: m.files, told: tree{}}
	m.windows[w] = true
	return w, nil
}

// sync brings the mirror up to date before a command.
func (m *mirror) sync(ctx context.Context) error {
	began := m.k.o.Now()
	folder, err := openSame(m.folder, m.id)
	if err != nil {
		return err
	}
	defer folder.close()
	looking, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	var now tree
	err = m.fit(func() (err error) {
		now, err = m.look(looking, folder, ".", true, true)
		return err
	})
	switch {
	case err == nil:
		if !maps.Equal(now, m.files) {
			m.files = now
			m.free()
		}
		m.began, m.fits, m.failed = began, true, time.Time{}
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errTooMuch):
		m.failed = began
		if len(m.windows) == 0 {
			m.reset()
		}
	default:
		// It goes on from here the next time, soon.
		m.failed = began.Add(soon - brokenFor)
		files := maps.Clone(m.files)
		maps.Copy(files, now)
		m.files = files
	}
	m.fits = false
	m.k.o.Log.Warn("A folder could not be held before a command", "err", err)
	return err
}

// before is what was at a name when the command began.
func (w *window) before(rel string) *entry {
	if e, known := w.told[rel]; known {
		return e
	}
	return w.base[rel]
}

// differs tells whether a name was worked on: of a folder, only its mode counts.
func differs(was, now *entry) bool {
	if was == nil || now == nil {
		return was != now
	}
	if was.Kind == kindDir && now.Kind == kindDir {
		return was.Mode != now.Mode
	}
	return was.node != now.node
}

// changed are the names that differ now, in order.
func (w *window) changed(now tree) (names []string) {
	all := map[string]bool{}
	for _, t := range []tree{w.base, w.told, now} {
		for rel := range t {
			if w.base[rel] == now[rel] && len(w.told) == 0 {
				continue // most are
			}
			if !all[rel] && differs(w.before(rel), now[rel]) && !(now[rel] == nil && w.m.lean && within(rel)) {
				names = append(names, rel)
			}
			all[rel] = true
		}
	}
	slices.Sort(names)
	return names
}

// End notes what the command changed.
func (w *window) End(ctx context.Context) []string {
	defer w.m.k.Tidy(context.WithoutCancel(ctx)) // once mu is free: an undoing holds on to notes, and looks at the folder
	return w.end(ctx)
}

func (w *window) end(ctx context.Context) []string {
	m := w.m
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.windows, w)
	if w.void {
		return []string{"what it changed can't be undone: its folder was left meanwhile"}
	}
	folder, err := openSame(m.folder, m.id)
	if err != nil {
		return nil
	}
	defer folder.close()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var more []string
	now, err := m.look(ctx, folder, ".", len(m.windows) > 0, false)
	if err != nil {
		m.k.o.Log.Warn("What a command made could not be told", "err", err)
		more = append(more, "what it made can't be undone: the folder has too many files")
		m.fits, m.failed = false, m.k.o.Now()
		cancel()
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if now, err = w.known(ctx, folder); err != nil {
			m.k.o.Log.Warn("What a command changed could not be told", "err", err)
			return []string{"what it changed can't be undone: the folder has too many files"}
		}
	}
	names := w.changed(now)
	for _, rel := range names {
		m.tell(rel, w.before(rel), now[rel])
	}
	d := &diff{w: w, folder: folder, names: names, was: tree{}, now: now, told: map[string]bool{}, files: map[capabilities.FileID]bool{}}
	notes := d.keep(ctx)
	if m.files = now; len(names) > 0 {
		m.free()
	}
	return append(notes, more...)
}

// known looks again at what was there before, name by name: of a folder with
// too much in it that is told all the same.
func (w *window) known(ctx context.Context, folder *dir) (tree, error) {
	now := tree{}
	for _, before := range []tree{w.base, w.told} {
		for rel := range before {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			n, err := folder.lstat(rel)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e := w.m.files[rel]
			if e == nil || e.node != n {
				e = &entry{node: n}
			}
			now[rel] = e
		}
	}
	return now, nil
}

// diff finds the steps of what a command changed.
type diff struct {
	w        *window
	folder   *dir
	names    []string // that differ, in order
	was, now tree
	told     map[string]bool // folders that are told whole: what has gone, or was made
	files    map[capabilities.FileID]bool
	twins    map[capabilities.FileID][][]byte
	b        *bundle
	bytes    int64
	steps    []*step
	lost     int // could not be kept
}

// keep puts the old versions away, and notes the steps.
func (d *diff) keep(ctx context.Context) (notes []string) {
	k, size := d.w.m.k, int64(0)
	for _, rel := range d.names {
		if was := d.w.before(rel); was != nil {
			d.was[rel] = was
			if was.Kind == kindFile {
				size += was.Size
			}
		}
	}
	if len(d.names) == 0 {
		return nil
	}
	if size > k.o.Limit() {
		return []string{"what it changed can't be undone: the old versions are larger than what is kept at most"}
	}
	if err := d.all(ctx); err != nil {
		k.fail(d.w.m.folder, err)
		notes = append(notes, "what it changed could not be kept, and can't be undone")
	} else if d.lost == 1 {
		notes = append(notes, "1 file that it changed could not be kept")
	} else if d.lost > 1 {
		notes = append(notes, fmt.Sprintf("%d files that it changed could not be kept", d.lost))
	}
	return notes
}

func (d *diff) all(ctx context.Context) (err error) {
	k := d.w.m.k
	if d.b, err = k.newBundle(); err != nil {
		return err
	}
	noted := false
	defer func() {
		if d.b.f.Close(); !noted {
			k.discard(d.b.name)
		}
	}()
	for _, rel := range d.names {
		if err := d.one(ctx, rel); err != nil {
			return err
		}
	}
	if len(d.steps) == 0 {
		return nil
	}
	// Folders that may not be written to any more get their mode back first.
	slices.SortStableFunc(d.steps, func(a, b *step) int { return rank(a) - rank(b) })
	n := &notes{k: k, r: k.newKept(d.w.s.ID, d.w.request, d.w.s.Folder, d.w.s.FolderID), steps: d.steps}
	n.r.tell(about{Began: d.w.began})
	n.r.Bytes = d.bytes
	for i, st := range d.steps {
		st.n = i
	}
	if err := n.write(d.steps...); err != nil {
		return err
	}
	noted = true
	return k.ended(context.WithoutCancel(ctx), n.r)
}

func rank(s *step) int {
	switch {
	case s.modeOnly() && s.Before.Mode&0o200 == 0:
		return 0
	case s.modeOnly():
		return 2
	}
	return 1
}

// one finds the step at a name that differs, if there is any.
func (d *diff) one(ctx context.Context, rel string) error {
	was, now := d.was[rel], d.now[rel]
	if d.above(rel) || !differs(was, now) {
		return nil
	}
	st := &step{Rel: rel, Made: true}
	if now != nil {
		st.After = now.state()
		if now.Kind == kindDir && (was == nil || was.Kind != kindDir) {
			var err error
			if st.After, err = d.folder.stateOf(ctx, rel, true); err != nil {
				return err
			}
			d.told[rel] = false
		}
	}
	switch {
	case was == nil:
	case was.Kind == kindDir && now != nil && now.Kind == kindDir:
		st.Before = was.state()
		st.Before.Tree, st.After.Tree = anyTree, anyTree
	default:
		if now != nil && now.Kind == kindFile && now.ID.Same(was.ID) {
			if now.Links > 1 {
				if d.files[now.ID] {
					return nil // the same file under another name
				}
				d.files[now.ID], st.InPlace = true, true
			}
			if was.held && now.state() == was.state() && d.w.m.data.same(ctx, d.folder, rel, was) {
				return nil
			}
		}
		if was.Kind == kindDir {
			d.told[rel] = true
		}
		if !was.held && was.Kind != kindDir || d.w.m.lean && was.Kind == kindDir && leftOut[base(rel)] {
			d.lost++
			return nil
		}
		if err := d.hold(ctx, rel, st); err != nil {
			return err
		}
	}
	d.steps = append(d.steps, st)
	return nil
}

// above: a folder above is told whole. What another request of ours deleted with
// a folder that was made again is not in that.
func (d *diff) above(rel string) bool {
	for up := folderAbove(rel); up != "."; up = folderAbove(up) {
		if gone, told := d.told[up]; told && (gone || d.was[rel] == nil) {
			return true
		}
	}
	return false
}

// hold puts what was at a name, and below it, where it stays.
func (d *diff) hold(ctx context.Context, rel string, st *step) (err error) {
	t := d.was.below(d.names, rel)
	for name, e := range t {
		if !e.held && e.Kind != kindDir {
			d.lost++
			delete(t, name)
			continue
		}
		if t[name], err = d.b.takeFrom(ctx, d.w.m.data, e); err != nil {
			return err
		}
		if e.Kind == kindFile {
			d.bytes += e.Size
			if e.Links > 1 {
				if d.twins == nil {
					d.twins = d.w.base.twins()
				}
				t[name].Twins = d.twins[e.ID]
			}
		}
	}
	st.Before, st.object = t.state(), d.b.name
	st.Index, err = d.b.list(t)
	return err
}
