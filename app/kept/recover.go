package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"localpc/app/store"
)

// rollback takes the steps of an undoing back, the last first. Gently, it leaves
// what somebody has worked on since, and returns those steps.
func (w *undo) rollback(gently bool) (left []*step, err error) {
	for _, st := range slices.Backward(w.done) {
		kept, err := w.takeBack(st, gently)
		if err != nil {
			return left, fmt.Errorf("%s: %w", st.Rel, err)
		}
		if kept {
			left = append(left, st)
		}
	}
	slices.Reverse(left)
	return left, nil
}

// takeBack is the opposite of one step, made or only begun.
func (w *undo) takeBack(st *step, gently bool) (kept bool, err error) {
	ctx, k := context.Background(), w.k
	parent, err := w.folder.at(folderAbove(st.Rel))
	if errors.Is(err, fs.ErrNotExist) {
		return st.Made, nil
	}
	if err != nil {
		return false, err
	}
	defer parent.close()
	name := base(st.Rel)
	now, err := parent.stateOf(ctx, name, st.After.Tree != anyTree)
	if err != nil {
		return false, err
	}
	if gently && st.Made && !now.equal(st.After) {
		return true, nil
	}
	switch {
	case st.From != "":
		return false, w.moveAgain(parent, name, st, now)
	case st.ModeOnly:
		if now.Kind != kindDir {
			return false, nil
		}
		return false, parent.chmod(name, st.Before.Mode)
	case st.object == "" && st.source == "":
		if err := parent.rmdir(name); err != nil && !errors.Is(err, fs.ErrNotExist) && st.Made {
			return false, err
		}
		return false, nil
	}
	haveObject, err := k.has(st.object)
	if err != nil {
		return false, err
	}
	haveSource, err := k.has(st.source)
	if err != nil {
		return false, err
	}
	if st.InPlace {
		if !haveObject || now.Kind != kindFile {
			return false, nil // it had not begun
		}
		if err := writeInPlace(ctx, k.dir, st.object, parent, name); err != nil {
			return false, err
		}
		return false, removeTree(k.dir, st.object)
	}
	aside := false
	if st.Aside != "" {
		_, err := w.folder.lstat(st.Aside)
		if aside = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	begun := haveObject && st.Aside == "" || aside || st.Before.Kind == kindNone
	if now.Kind != kindNone && begun && st.source != "" {
		// What was put there goes back; a copy goes.
		if haveSource {
			err = removeTree(parent, name)
		} else {
			err = renameNew(parent, name, k.dir, st.source)
		}
		if err != nil {
			return false, err
		}
	}
	switch {
	case aside:
		if err := renameNew(w.folder, st.Aside, parent, name); err != nil {
			return false, err
		}
		return false, removeTree(k.dir, st.object)
	case st.Aside != "" && haveObject:
		return false, removeTree(k.dir, st.object)
	case haveObject:
		return false, renameNew(k.dir, st.object, parent, name)
	}
	return false, nil
}

func (w *undo) moveAgain(parent *dir, name string, st *step, now state) error {
	if now.Kind == kindNone {
		return nil
	}
	to, err := w.folder.at(folderAbove(st.From))
	if err != nil {
		return err
	}
	defer to.close()
	err = renameNew(parent, name, to, base(st.From))
	if errors.Is(err, fs.ErrExist) && !st.Made {
		return nil // it had not begun
	}
	return err
}

// has tells whether an old version is there, whole.
func (k *Kept) has(object string) (bool, error) {
	if object == "" {
		return false, nil
	}
	_, err := k.dir.lstat(object)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// recover finds out what was cut off when this program was last killed: an
// undoing is taken back, and of a request it is looked which changes it had
// made. Then what no note knows goes.
func (k *Kept) recover(ctx context.Context) error {
	list, err := k.o.Store.Kepts(ctx)
	if err != nil {
		return fmt.Errorf("read the notes of old versions: %w", err)
	}
	for _, r := range list {
		known := &kept{Kept: r}
		if err := json.Unmarshal([]byte(r.About), &known.about); err != nil {
			return fmt.Errorf("read the notes of old versions: %w", err)
		}
		k.put(known)
	}
	for _, r := range list {
		if r.State != store.KeptOpen {
			if len(r.Undoes) > 0 {
				k.clearAside(ctx, r)
			}
			continue
		}
		folder, err := folderOf(r)
		if err != nil {
			// Another start may find it: a disk that is not there now.
			k.o.Log.Warn("The folder of a request that was cut off is not there", "err", err)
			continue
		}
		if len(r.Undoes) > 0 {
			err = k.cutUndo(ctx, r, folder)
		} else {
			err = k.cutRequest(ctx, r, folder)
		}
		folder.close()
		if err != nil {
			k.o.Log.Error("What was cut off could not be put right", "request", r.Request, "err", err)
		}
	}
	return k.sweep(ctx)
}

// clearAside removes what waited aside when an undoing was done.
func (k *Kept) clearAside(ctx context.Context, r store.Kept) {
	steps, err := k.steps(ctx, r.Request)
	if err != nil || !slices.ContainsFunc(steps, func(st *step) bool { return st.Aside != "" }) {
		return
	}
	folder, err := folderOf(r)
	if err != nil {
		return // another start may find it
	}
	defer folder.close()
	for _, st := range steps {
		if strings.HasPrefix(st.Aside, tempPrefix) {
			if err := removeTree(folder, st.Aside); err != nil {
				k.o.Log.Warn("A leftover could not be removed", "err", err)
			}
		}
	}
}

// cutUndo takes an undoing back. What somebody has worked on since stays as it
// is, and can be undone by itself.
func (k *Kept) cutUndo(ctx context.Context, r store.Kept, folder *dir) error {
	steps, err := k.steps(ctx, r.Request)
	if err != nil {
		return err
	}
	w := &undo{k: k, r: &kept{Kept: r}, folder: folder, done: steps}
	left, err := w.rollback(true)
	if err != nil {
		return err
	}
	if err := k.remark(r.Undoes, steps); err != nil {
		return err
	}
	if len(left) == 0 {
		k.mu.Lock()
		if known := k.all[r.Request]; known != nil {
			k.bytes -= known.Bytes
			delete(k.all, r.Request)
		}
		k.mu.Unlock()
		return k.o.Store.DropKept(ctx, r.Request)
	}
	// The steps of what it undid whose old versions are in use now go.
	used, gone := map[string]bool{}, []int{}
	for _, st := range left {
		used[st.source] = st.source != ""
	}
	for _, of := range r.Undoes {
		theirs, err := k.steps(ctx, of)
		if err != nil {
			return err
		}
		var ns []int
		for _, st := range theirs {
			if used[st.object] {
				ns = append(ns, st.n)
			}
		}
		if err := k.o.Store.DropSteps(ctx, of, ns...); err != nil {
			return err
		}
	}
	for _, st := range steps {
		if !slices.Contains(left, st) {
			gone = append(gone, st.n)
		}
	}
	if err := k.o.Store.DropSteps(ctx, r.Request, gone...); err != nil {
		return err
	}
	if err := k.o.Store.ForgetUndoes(ctx, r.Request); err != nil {
		return err
	}
	known := &kept{Kept: r}
	known.Undoes = nil
	return k.ended(ctx, known)
}

// cutRequest finds out which of a request's changes were made.
func (k *Kept) cutRequest(ctx context.Context, r store.Kept, folder *dir) error {
	steps, err := k.steps(ctx, r.Request)
	if err != nil {
		return err
	}
	made := 0
	for i, st := range steps {
		if !st.Made {
			if err := k.find(ctx, st, folder); err != nil {
				return err
			}
			if i+1 < len(steps) && steps[i+1].From != "" && steps[i+1].Rel == st.Rel {
				st.After = state{} // it made room
			}
			if n, err := k.dir.lstat(st.object); st.object != "" && err == nil && n.id.Same(st.ID) {
				st.Mark = k.markOf(st.object)
			}
			if !st.Made {
				if err := k.o.Store.DropSteps(ctx, r.Request, st.n); err != nil {
					return err
				}
				continue
			}
			row, err := st.row()
			if err == nil {
				err = k.o.Store.KeepSteps(ctx, r, row)
			}
			if err != nil {
				return err
			}
		}
		made++
	}
	if made == 0 {
		return k.forget(ctx, r.Request)
	}
	return k.ended(ctx, &kept{Kept: r})
}

// find looks whether a step was made that was only begun.
func (k *Kept) find(ctx context.Context, st *step, folder *dir) error {
	if st.InPlace {
		return nil // who writes in place has its own way back
	}
	if st.object != "" {
		if have, err := k.has(st.object); err != nil || !have {
			return err
		}
	}
	parent, err := folder.at(folderAbove(st.Rel))
	if errors.Is(err, fs.ErrNotExist) {
		st.Made = st.object != ""
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.close()
	now, err := parent.stateOf(ctx, base(st.Rel), st.From == "")
	if err != nil {
		return err
	}
	st.After = now
	switch {
	case st.From != "":
		up, err := folder.at(folderAbove(st.From))
		if err == nil {
			_, err = up.lstat(base(st.From))
			up.close()
		}
		st.Made = now.Kind != kindNone && errors.Is(err, fs.ErrNotExist)
	case st.object == "":
		st.Made = now.Kind != kindNone
	case now.Kind == kindNone:
		st.Made = true
	default:
		n, err := parent.lstat(base(st.Rel))
		st.Made = err != nil || !n.id.Same(st.ID) || !now.equal(st.Before)
	}
	return nil
}

// sweep removes old versions that no note knows.
func (k *Kept) sweep(ctx context.Context) error {
	known, err := k.o.Store.KeptObjects(ctx)
	if err != nil {
		return fmt.Errorf("read the notes of old versions: %w", err)
	}
	names, err := k.dir.names()
	if err != nil {
		return fmt.Errorf("list the old versions: %w", err)
	}
	for _, n := range names {
		if !known[strings.TrimSuffix(n, itself)] {
			if err := removeTree(k.dir, n); err != nil {
				k.o.Log.Warn("A leftover could not be removed", "err", err)
			}
		}
	}
	return nil
}
