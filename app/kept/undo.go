package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"time"

	"localpc/app/store"
	"localpc/capabilities"
)

// tempPrefix begins the names that are put into a session's folder for a moment.
const tempPrefix = ".localpc-"

// Newer means that something would be overwritten that was made since. Nothing
// was done.
type Newer struct{ Question string }

func (e *Newer) Error() string { return e.Question }

var (
	// ErrNothing: nothing of what is to be undone is kept any more. ErrFolder: its
	// folder is not there, or another one is.
	ErrNothing = errors.New("nothing of this is kept any more")
	ErrFolder  = errors.New("the folder is not there any more, or another one has taken its place")
)

// undo is one undoing, a request of its own: each of its steps puts a copy of
// what was there before in its place, at once.
type undo struct {
	notes
	of     []*kept // what is undone, the newest first
	folder *dir
	anyway bool
	// older are the names whose old versions are of before a command that began
	// then.
	older map[string]time.Time
}

// undo looks up what is to be undone. id "" is for looking only.
func (k *Kept) undo(id string, requests []string) (*undo, error) {
	w := &undo{notes: notes{k: k}, older: map[string]time.Time{}}
	k.mu.Lock()
	for _, name := range requests {
		r := k.all[name]
		if r == nil || r.State != store.KeptWhole {
			continue
		}
		if len(w.of) > 0 && (r.Folder != w.of[0].Folder || r.FolderID != w.of[0].FolderID) {
			continue // a session has one folder
		}
		w.of = append(w.of, r)
	}
	k.mu.Unlock()
	if len(w.of) == 0 {
		return nil, ErrNothing
	}
	w.r = k.newKept("", id, w.of[0].Folder, capabilities.FileID{})
	w.r.FolderID = w.of[0].FolderID
	for _, of := range w.of {
		w.r.Undoes = append(w.r.Undoes, of.Request)
	}
	var err error
	if w.folder, err = folderOf(w.r.Kept); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return w, nil
}

// Folder is the folder that requests changed; "" when nothing of them is kept.
func (k *Kept) Folder(requests []string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range requests {
		if r := k.all[name]; r != nil && r.State == store.KeptWhole {
			return r.Folder
		}
	}
	return ""
}

// Undo puts back what requests changed, the newest first, all of it or nothing;
// id is the undoing's own request, which can be undone itself. Where somebody
// has worked since it is a *Newer, unless it is to be done anyway: what is there
// now is kept. n is how many changes were taken back.
func (k *Kept) Undo(ctx context.Context, id string, requests []string, anyway bool) (n int, err error) {
	n, err = k.undoAll(ctx, id, requests, anyway)
	if err == nil {
		k.Tidy(context.WithoutCancel(ctx))
	}
	return n, err
}

func (k *Kept) undoAll(ctx context.Context, id string, requests []string, anyway bool) (n int, err error) {
	k.undoing.Lock()
	defer k.undoing.Unlock()
	w, err := k.undo(id, requests)
	if err != nil {
		return 0, err
	}
	defer w.folder.close()
	w.anyway = anyway
	var old []string
	for _, of := range w.of {
		steps, err := k.steps(ctx, of.Request)
		if err != nil {
			return 0, w.back(err)
		}
		for _, st := range slices.Backward(steps) {
			old = append(old, st.object)
			if ctx.Err() != nil {
				return 0, w.back(context.Cause(ctx))
			}
			if !st.Made {
				continue
			}
			if err := w.step(ctx, of, st); err != nil {
				return 0, w.back(err)
			}
			if !of.about.Began.IsZero() {
				w.older[st.Rel] = of.about.Began
			}
			n++
		}
	}
	// All was as it had been where there are no steps: that is noted, too.
	if err := w.write(w.steps...); err != nil {
		return 0, w.back(err)
	}
	if err := k.ended(context.Background(), w.r); err != nil {
		return 0, w.back(err)
	}
	for _, st := range w.steps {
		k.again(w.r.Folder, st, true)
	}
	for _, object := range old {
		k.discard(object)
	}
	return n, nil
}

// do notes a step, has it made, and looks what is there then.
func (w *undo) do(ctx context.Context, d *dir, st *step, most int64, do func() error) error {
	if err := w.begin(ctx, d, st, most); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = st.look(ctx, w.folder)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", st.Rel, err)
	}
	if st.Made = true; st.InPlace {
		return w.write(st) // else how far it is can be seen
	}
	return nil
}

// parent opens the folder that a name is in; one that has gone is made again,
// if so wanted.
func (w *undo) parent(rel string, remake bool) (*dir, error) {
	up := folderAbove(rel)
	d, err := w.folder.at(up)
	if err == nil || !remake || !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	above, err := w.parent(up, true)
	if err != nil {
		return nil, err
	}
	defer above.close()
	if err := w.do(context.Background(), above, &step{Rel: up}, -1, func() error { return above.mkdir(base(up), 0o777) }); err != nil {
		return nil, err
	}
	return above.at(base(up))
}

// newer is the conflict at a name.
func (w *undo) newer(rel string) error {
	return &Newer{Question: (&asking{newer: []string{rel}}).words()}
}

// step takes back one step of a request.
func (w *undo) step(ctx context.Context, of *kept, st *step) error {
	if st.From != "" {
		if err := w.moveBack(ctx, st); err != nil || st.Before.Kind == kindNone {
			return err
		}
		st = &step{Rel: st.Rel, Before: st.Before, Index: st.Index, object: st.object} // what it took the place of
	}
	parent, err := w.parent(st.Rel, st.Before.Kind != kindNone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has gone with its folder
	}
	if err != nil {
		return err
	}
	defer parent.close()
	name := base(st.Rel)
	now, err := parent.stateOf(ctx, name, st.deep())
	if err != nil {
		return err
	}
	switch {
	case now.equal(st.Before) && !st.Before.equal(st.After):
		return nil // it is as it was
	case !now.equal(st.After) && w.older[st.Rel].Before(of.Time) && !w.older[st.Rel].IsZero():
		return nil // it is as it was before that
	case !now.equal(st.After) && !w.anyway:
		return w.newer(st.Rel)
	case !st.modeOnly():
		return w.put(ctx, parent, st, now)
	case now.Kind != kindDir:
		return nil
	}
	return w.do(ctx, parent, &step{Rel: st.Rel, Before: now, After: st.Before}, -1, func() error { return parent.chmod(name, st.Before.Mode) })
}

func (w *undo) moveBack(ctx context.Context, st *step) error {
	now, err := w.folder.stateAt(ctx, st.Rel, false)
	if err != nil {
		return err
	}
	if !now.equal(st.After) && !w.anyway {
		return w.newer(st.Rel)
	}
	if now.Kind == kindNone {
		return nil
	}
	from, err := w.parent(st.Rel, false)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := w.parent(st.From, true)
	if err != nil {
		return err
	}
	defer to.close()
	there, err := to.stateOf(ctx, base(st.From), true)
	if err != nil {
		return err
	}
	if there.Kind != kindNone {
		if !w.anyway {
			return w.newer(st.From)
		}
		if err := w.put(ctx, to, &step{Rel: st.From}, there); err != nil {
			return err
		}
	}
	return w.do(ctx, to, &step{Rel: st.From, From: st.Rel}, -1, func() error { return renameNew(from, base(st.Rel), to, base(st.From)) })
}

// put keeps what is at a name now, and puts what was there before in its place.
func (w *undo) put(ctx context.Context, parent *dir, st *step, now state) error {
	back, most := &step{Rel: st.Rel, After: st.Before}, int64(-1)
	if now.Kind != kindNone {
		n, err := parent.lstat(base(st.Rel))
		if err != nil {
			return err
		}
		back.InPlace = n.Kind == kindFile && st.Before.Kind == kindFile && (st.InPlace || n.Links > 1)
		most = math.MaxInt64
	}
	return w.do(ctx, parent, back, most, func() error { return w.place(ctx, parent, back, st) })
}

// temp is where what a step puts is, beside its name, before it is whole.
func (w *undo) temp(st *step) string {
	return fmt.Sprintf("%s%s-%d.tmp", tempPrefix, w.r.Request, st.n)
}

// place puts what there was before a step of old at st's name, at once but for a
// file that is to keep its other names.
func (w *undo) place(ctx context.Context, parent *dir, st, old *step) error {
	name, tmp := base(st.Rel), w.temp(st)
	if old.Before.Kind == kindNone {
		if err := renameNew(parent, name, parent, tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return removeTree(parent, tmp)
	}
	b, t, err := w.k.old(old)
	if err != nil {
		return err
	}
	defer b.f.Close()
	if st.InPlace {
		return b.restore(ctx, t[""], parent, name, 0)
	}
	m := &maker{w: w, b: b, t: t, in: map[string][]string{}, first: map[capabilities.FileID]string{}, tmp: path.Join(folderAbove(st.Rel), tmp)}
	for rel := range t {
		if rel != "" {
			m.in[folderAbove(rel)] = append(m.in[folderAbove(rel)], rel)
		}
	}
	if err = m.one(ctx, parent, tmp, ""); err == nil {
		err = parent.swap(tmp, name)
	}
	return errors.Join(err, removeTree(parent, tmp))
}

// maker makes a tree again.
type maker struct {
	w     *undo
	b     *bundle
	t     tree
	in    map[string][]string            // what is in each folder
	first map[capabilities.FileID]string // of files with several names
	tmp   string                         // where it is made
}

func (m *maker) one(ctx context.Context, d *dir, name, rel string) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := m.t[rel]
	switch e.Kind {
	case kindFile:
		if e.Links > 1 && m.twin(ctx, e, d, name) {
			return nil
		}
		if e.Links > 1 {
			m.first[e.ID] = path.Join(m.tmp, rel)
		}
		return m.b.restore(ctx, e, d, name, os.O_CREATE|os.O_EXCL)
	case kindLink:
		err = d.symlink(string(e.To), name)
	case kindPipe:
		err = d.mkfifo(name)
	case kindDir:
		err = m.dir(ctx, d, name, rel)
	}
	if err != nil {
		return err
	}
	own(d, name, e.node)
	return d.dress(name, e.node)
}

func (m *maker) dir(ctx context.Context, d *dir, name, rel string) error {
	if err := d.mkdir(name, 0o700); err != nil {
		return err
	}
	in, err := d.at(name)
	if err != nil {
		return err
	}
	defer in.close()
	for _, child := range m.in[path.Clean(rel)] {
		if err := m.one(ctx, in, base(child), child); err != nil {
			return err
		}
	}
	f, _, err := in.open(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	setAttributes(f, m.t[rel].Attrs)
	return nil
}

// twin makes name another name of the file that e was one with, where that is
// still what e was.
func (m *maker) twin(ctx context.Context, e *entry, d *dir, name string) bool {
	m.w.twins = nil // are others then
	for _, rel := range append([][]byte{[]byte(m.first[e.ID])}, e.Twins...) {
		at, err := m.w.folder.at(folderAbove(string(rel)))
		if err != nil {
			continue
		}
		one := m.b.same(ctx, at, base(string(rel)), e) && hardLink(at, base(string(rel)), d, name) == nil
		at.close()
		if one {
			return true
		}
	}
	return false
}
