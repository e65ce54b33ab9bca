package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
		slices.Reverse(steps)
		if !of.about.Began.IsZero() {
			togetherAgain(steps)
		}
		for _, st := range steps {
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

// togetherAgain puts the steps of a command, in whose order nothing else lies, so
// that a file that is still there has what it had before another name of it is
// made again: the two are one file then.
func togetherAgain(steps []*step) {
	if slices.ContainsFunc(steps, func(st *step) bool { return st.From != "" }) {
		return
	}
	slices.SortStableFunc(steps, func(a, b *step) int {
		there := func(st *step) int {
			if st.Before.Kind == kindFile && st.After.Kind == kindFile {
				return 0
			}
			return 1
		}
		return there(a) - there(b)
	})
}

// do notes a step, has it made, and looks what is there then.
func (w *undo) do(ctx context.Context, st *step, most int64, do func() error) error {
	if err := w.begin(ctx, w.folder, st.Rel, st, most); err != nil {
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

// above makes the folders again that a name was in, if they have gone.
func (w *undo) above(ctx context.Context, rel string) error {
	up := folderAbove(rel)
	_, err := w.folder.lstat(up)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.above(ctx, up); err != nil {
		return err
	}
	return w.do(ctx, &step{Rel: up}, -1, func() error { return w.folder.mkdir(up, 0o777) })
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
	now, err := w.folder.stateOf(ctx, st.Rel, st.deep())
	if err != nil {
		return err
	}
	switch older := w.older[st.Rel]; {
	case now.equal(st.Before) && !st.Before.equal(st.After):
		return nil // it is as it was
	case !now.equal(st.After) && !older.IsZero() && older.Before(of.Time):
		return nil // it is as it was before that
	case !now.equal(st.After) && !w.anyway:
		return w.newer(st.Rel)
	case !st.modeOnly():
		return w.put(ctx, st, now)
	case now.Kind != kindDir:
		return nil
	}
	return w.do(ctx, &step{Rel: st.Rel, Before: now, After: st.Before}, -1, func() error { return w.folder.chmod(st.Rel, st.Before.Mode) })
}

func (w *undo) moveBack(ctx context.Context, st *step) error {
	now, err := w.folder.stateOf(ctx, st.Rel, false)
	if err != nil {
		return err
	}
	there, err := w.folder.stateOf(ctx, st.From, true)
	if err != nil {
		return err
	}
	switch {
	case !now.equal(st.After) && !w.anyway:
		return w.newer(st.Rel)
	case now.Kind == kindNone:
		return nil
	case there.Kind != kindNone && !w.anyway:
		return w.newer(st.From)
	case there.Kind != kindNone:
		err = w.put(ctx, &step{Rel: st.From}, there)
	default:
		err = w.above(ctx, st.From)
	}
	if err != nil {
		return err
	}
	return w.do(ctx, &step{Rel: st.From, From: st.Rel}, -1, func() error { return w.folder.renameNew(st.Rel, st.From) })
}

// put keeps what is at a name now, and puts what was there before in its place.
func (w *undo) put(ctx context.Context, st *step, now state) error {
	back, most := &step{Rel: st.Rel, After: st.Before}, int64(-1)
	if now.Kind != kindNone {
		n, err := w.folder.lstat(st.Rel)
		if err != nil {
			return err
		}
		back.InPlace = n.Kind == kindFile && st.Before.Kind == kindFile && (st.InPlace || n.Links > 1)
		most = math.MaxInt64
	} else if err := w.above(ctx, st.Rel); err != nil {
		return err
	}
	return w.do(ctx, back, most, func() error { return w.place(ctx, back, st) })
}

// temp is where what a step puts is, beside its name, before it is whole.
func (w *undo) temp(st *step) string {
	return path.Join(folderAbove(st.Rel), fmt.Sprintf("%s%s-%d.tmp", tempPrefix, w.r.Request, st.n))
}

// place puts what there was before a step of old at st's name, at once but for a
// file that is to keep its other names.
func (w *undo) place(ctx context.Context, st, old *step) error {
	tmp := w.temp(st)
	if old.Before.Kind == kindNone {
		if err := w.folder.renameNew(st.Rel, tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return w.folder.removeTree(tmp)
	}
	b, t, err := w.k.old(old)
	if err != nil {
		return err
	}
	defer b.f.Close()
	if st.InPlace {
		return b.restore(ctx, t[""], w.folder, st.Rel, 0)
	}
	if err = w.make(ctx, b, t, tmp); err == nil {
		err = w.folder.swap(tmp, st.Rel)
	}
	return errors.Join(err, w.folder.removeTree(tmp))
}

// make makes a tree again.
func (w *undo) make(ctx context.Context, b *bundle, t tree, top string) (err error) {
	all, first := slices.Sorted(maps.Keys(t)), map[capabilities.FileID][]byte{}
	for _, rel := range all {
		e, name := t[rel], path.Join(top, rel)
		switch e.Kind {
		case kindDir:
			err = w.folder.mkdir(name, 0o700)
		case kindLink:
			err = w.folder.symlink(string(e.To), name)
		case kindPipe:
			err = w.folder.mkfifo(name)
		case kindFile:
			if e.Links > 1 && w.twin(ctx, b, e, append(e.Twins, first[e.ID]), name) {
				continue
			}
			first[e.ID] = []byte(name)
			err = b.restore(ctx, e, w.folder, name, os.O_CREATE|os.O_EXCL)
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	for _, rel := range slices.Backward(all) { // what is in a folder first
		e, name := t[rel], path.Join(top, rel)
		if e.Kind == kindFile {
			continue
		}
		if e.Kind == kindDir {
			f, _, err := w.folder.open(name, os.O_RDONLY, 0)
			if err != nil {
				return err
			}
			setAttributes(f, e.Attrs)
			f.Close()
		}
		w.folder.own(name, e.node)
		if err := w.folder.dress(name, e.node); err != nil {
			return err
		}
	}
	return nil
}

// twin makes name another name of the file that e was one with, where that is
// still what e was.
func (w *undo) twin(ctx context.Context, b *bundle, e *entry, names [][]byte, name string) bool {
	w.twins = nil // are others then
	return slices.ContainsFunc(names, func(twin []byte) bool {
		return len(twin) > 0 && b.same(ctx, w.folder, string(twin), e) && w.folder.link(string(twin), name) == nil
	})
}
