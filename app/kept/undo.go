package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"localpc/app/store"
	"localpc/consent"
)

// tempPrefix begins the names that are put into a session's folder for a moment.
const tempPrefix = ".localpc-"

// Newer means that something would be overwritten that was made since. Nothing
// was done.
type Newer struct{ Question string }

func (e *Newer) Error() string { return e.Question }

// undo is one undoing.
type undo struct {
	k      *Kept
	r      *kept
	of     []*kept // what is undone, the newest first
	folder *dir
	done   []*step
	anyway bool
}

var (
	// ErrNothing: nothing of what is to be undone is kept any more. ErrFolder: its
	// folder is not there, or another one is.
	ErrNothing = errors.New("nothing of this is kept any more")
	ErrFolder  = errors.New("the folder is not there any more, or another one has taken its place")
)

// undo looks up what is to be undone. id "" is for looking only.
func (k *Kept) undo(id string, requests []string) (*undo, error) {
	w := &undo{k: k}
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
	first := w.of[0]
	w.r = &kept{Kept: store.Kept{Request: id, Folder: first.Folder, FolderID: first.FolderID, Time: k.o.Now(), State: store.KeptOpen, About: "{}"}}
	for _, of := range w.of {
		w.r.Undoes = append(w.r.Undoes, of.Request)
	}
	var err error
	if w.folder, err = folderOf(first.Kept); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return w, nil
}

func (k *Kept) steps(ctx context.Context, request string) ([]*step, error) {
	rows, err := k.o.Store.KeptSteps(ctx, request)
	if err != nil {
		return nil, err
	}
	return stepsOf(rows)
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
	for _, of := range w.of {
		steps, err := k.steps(ctx, of.Request)
		if err != nil {
			return 0, w.back(err)
		}
		for _, st := range slices.Backward(steps) {
			if ctx.Err() != nil {
				return 0, w.back(context.Cause(ctx))
			}
			if !st.Made {
				continue
			}
			if err := w.step(ctx, st); err != nil {
				return 0, w.back(err)
			}
			n++
		}
	}
	if err := w.commit(); err != nil {
		return 0, w.back(err)
	}
	return n, nil
}

// back takes the undoing back, and returns why.
func (w *undo) back(why error) error {
	if _, err := w.rollback(false); err != nil {
		w.k.o.Log.Error("An undoing could not be taken back; the next start tries again", "err", err)
		return errors.Join(why, err)
	}
	if err := w.k.remark(w.r.Undoes, w.done); err != nil {
		return errors.Join(why, err)
	}
	if len(w.done) > 0 {
		if err := w.k.o.Store.DropKept(context.Background(), w.r.Request); err != nil {
			return errors.Join(why, err)
		}
	}
	return why
}

func (w *undo) commit() error {
	ctx := context.Background()
	if len(w.done) == 0 { // all was as it had been
		if err := w.k.o.Store.KeepSteps(ctx, w.r.Kept); err != nil {
			return err
		}
	}
	old := map[string][]*step{}
	for _, of := range w.of {
		steps, err := w.k.steps(ctx, of.Request)
		if err != nil {
			return err
		}
		old[of.Request] = steps
	}
	if err := w.k.ended(ctx, w.r); err != nil {
		return err
	}
	for _, st := range w.done {
		if st.Aside != "" {
			_ = removeTree(w.folder, st.Aside)
		}
		w.k.touched(w.r.Folder, st.Rel)
		if st.From != "" {
			w.k.touched(w.r.Folder, st.From)
		}
	}
	for _, steps := range old {
		for _, st := range steps {
			if st.object != "" { // was copied back, or was not needed
				_ = w.k.discard(st.object) // else the next start does
			}
		}
	}
	return nil
}

// note has a step of the undoing in the store.
func (w *undo) note(st *step) error {
	row, err := st.row()
	if err != nil {
		return err
	}
	return w.k.o.Store.KeepSteps(context.Background(), w.r.Kept, row)
}

// begin notes a step that is about to be made.
func (w *undo) begin(st *step) error {
	st.n = len(w.done)
	if err := w.note(st); err != nil {
		return err
	}
	w.done = append(w.done, st)
	return nil
}

// now is what is at a step's name.
func (w *undo) now(ctx context.Context, st *step) (state, error) {
	parent, err := w.folder.at(folderAbove(st.Rel))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	defer parent.close()
	return parent.stateOf(ctx, base(st.Rel), st.After.Tree != anyTree)
}

// shared tells whether what is at a name may change under another one.
func (w *undo) shared(rel string) bool {
	parent, err := w.folder.at(folderAbove(rel))
	if err != nil {
		return false
	}
	defer parent.close()
	n, err := parent.lstat(base(rel))
	return err == nil && (n.kind == kindDir || n.links > 1)
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
	st := &step{Rel: up}
	if err := w.begin(st); err != nil {
		return nil, err
	}
	if err := above.mkdir(base(up), 0o777); err != nil {
		return nil, err
	}
	if st.After, err = above.stateOf(context.Background(), base(up), true); err != nil {
		return nil, err
	}
	st.Made = true
	if err := w.note(st); err != nil {
		return nil, err
	}
	return above.sub(base(up))
}

// newer is the conflict at a name.
func (w *undo) newer(rel string) error { return &Newer{Question: w.question([]string{rel}, nil)} }

// step takes back one step of a request.
func (w *undo) step(ctx context.Context, st *step) error {
	if st.From != "" {
		return w.moveBack(ctx, st)
	}
	parent, err := w.parent(st.Rel, st.Before.Kind != kindNone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has gone with its folder
	}
	if err != nil {
		return err
	}
	defer parent.close()
	now, err := parent.stateOf(ctx, base(st.Rel), st.After.Tree != anyTree)
	if err != nil {
		return err
	}
	if now.equal(st.Before) && !st.Before.equal(st.After) {
		return nil // it is as it was
	}
	if !now.equal(st.After) && !w.anyway {
		return w.newer(st.Rel)
	}
	if st.ModeOnly {
		if now.Kind != kindDir {
			return nil
		}
		return w.mode(parent, st, now)
	}
	if !w.anyway && w.k.ruined(st) {
		return &Newer{Question: w.question(nil, []string{st.Rel})}
	}
	return w.put(ctx, parent, st, now)
}

func (w *undo) mode(parent *dir, st *step, now state) error {
	back := &step{Rel: st.Rel, ModeOnly: true, Before: now, After: st.Before}
	back.Before.Tree, back.After.Tree = anyTree, anyTree
	if err := w.begin(back); err != nil {
		return err
	}
	if err := parent.chmod(base(st.Rel), st.Before.Mode); err != nil {
		return err
	}
	back.Made = true
	return w.note(back)
}

func (w *undo) moveBack(ctx context.Context, st *step) error {
	from, err := w.parent(st.Rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		if w.anyway {
			return nil
		}
		return w.newer(st.Rel)
	}
	if err != nil {
		return err
	}
	defer from.close()
	now, err := from.stateOf(ctx, base(st.Rel), false)
	if err != nil {
		return err
	}
	if !now.equal(st.After) {
		if !w.anyway {
			return w.newer(st.Rel)
		}
		if now.Kind == kindNone {
			return nil
		}
	}
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
	back := &step{Rel: st.From, From: st.Rel}
	if err := w.begin(back); err != nil {
		return err
	}
	if err := renameNew(from, base(st.Rel), to, base(st.From)); err != nil {
		return err
	}
	if back.After, err = to.stateOf(ctx, base(st.From), false); err != nil {
		return err
	}
	back.Made = true
	return w.note(back)
}

// put keeps what is at a name now, and puts what was there before in its place.
func (w *undo) put(ctx context.Context, parent *dir, st *step, now state) error {
	name := base(st.Rel)
	back := &step{Rel: st.Rel, Before: now, source: st.object}
	if st.Before.Kind == kindNone {
		back.source = ""
	}
	if now.Kind != kindNone {
		n, err := parent.lstat(name)
		if err != nil {
			return err
		}
		back.object, back.ID = newName(), n.id
		back.InPlace = back.source != "" && now.Kind == kindFile && st.Before.Kind == kindFile && (st.InPlace || n.links > 1)
		bytes, err := sizeOf(ctx, parent, name)
		if err != nil {
			return err
		}
		w.r.Bytes += bytes
	}
	if err := w.begin(back); err != nil {
		return err
	}
	var err error
	if back.InPlace {
		if err = w.k.copyIn(ctx, parent, name, back.object); err == nil {
			err = writeInPlace(ctx, w.k.dir, back.source, parent, name)
		}
	} else {
		err = w.swap(ctx, parent, name, back)
	}
	if err != nil {
		return err
	}
	if back.After, err = parent.stateOf(ctx, name, true); err != nil {
		return err
	}
	back.Made = true
	if back.object != "" && !back.InPlace && back.Aside == "" {
		back.Mark = w.k.markOf(back.object)
	}
	return w.note(back)
}

// errReachable: others can still write to what was to be moved.
var errReachable = errors.New("others can still write to it")

// swap moves what is at name to the old versions, and back's source there.
// Across file systems, and where others can still write to it, these are
// copies, and what was there waits at the top of the folder until all is done.
// A file with several names stays one with them.
func (w *undo) swap(ctx context.Context, parent *dir, name string, back *step) error {
	k := w.k
	if back.object != "" {
		err := errReachable
		if reachable, several := k.reachable(ctx, parent, name); !reachable || several {
			err = renameNew(parent, name, k.dir, back.object)
		}
		if err == errReachable || crossDevice(err) {
			back.Aside = tempPrefix + consent.NewID() + ".tmp"
			if err = w.note(back); err != nil {
				return err
			}
			if err = k.copyIn(ctx, parent, name, back.object); err != nil {
				return err
			}
			err = renameNew(parent, name, w.folder, back.Aside)
		}
		if err != nil {
			return err
		}
	}
	if back.source == "" || k.putItself(ctx, back.source, parent, name) {
		return nil
	}
	err := renameNew(k.dir, back.source, parent, name)
	if !crossDevice(err) {
		return err
	}
	_, err = copyTree(ctx, k.dir, back.source, parent, name)
	return err
}

// copyIn copies what is at name into the directory of old versions: whole, or
// not at all.
func (k *Kept) copyIn(ctx context.Context, parent *dir, name, object string) error {
	part := ".new-" + object
	if _, err := copyTree(ctx, parent, name, k.dir, part); err != nil {
		return err
	}
	err := renameNew(k.dir, part, k.dir, object)
	if err != nil {
		_ = removeTree(k.dir, part)
	}
	return err
}

// writeInPlace gives a file the contents, the mode and the time of another one.
func writeInPlace(ctx context.Context, from *dir, source string, to *dir, name string) error {
	in, err := from.open(source, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := lstatFile(in)
	if err != nil {
		return err
	}
	out, err := to.open(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	if now, err := lstatFile(out); err != nil || now.kind != kindFile || n.kind != kindFile {
		return errors.Join(err, errOdd)
	}
	if err := copyContents(ctx, in, out); err != nil {
		return err
	}
	if err := out.Truncate(n.size); err != nil {
		return err
	}
	copyAttributes(in, out)
	if err := to.chmod(name, n.mode); err != nil {
		return err
	}
	return to.setTime(name, n.mtime)
}
