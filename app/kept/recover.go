package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"localpc/app/store"
)

// back takes the undoing back, and returns why.
func (w *undo) back(why error) error {
	if err := w.takeBack(); err != nil {
		w.k.o.Log.Error("An undoing could not be taken back; the next start tries again", "err", err)
		return errors.Join(why, err)
	}
	return why
}

// takeBack takes the steps of an undoing back, the last first. What somebody has
// worked on since stays as it is, and can be undone by itself.
func (w *undo) takeBack() error {
	ctx := context.Background()
	var left []*step
	var gone []int
	for _, st := range slices.Backward(w.steps) {
		stays, err := w.unstep(st)
		if err != nil {
			return fmt.Errorf("%s: %w", st.Rel, err)
		}
		if stays {
			left = append(left, st)
		} else {
			gone = append(gone, st.n)
		}
	}
	switch {
	case len(w.steps) == 0:
		return nil
	case len(left) == 0:
		if err := w.k.o.Store.DropKept(ctx, w.r.Request); err != nil {
			return err
		}
		w.k.mu.Lock()
		delete(w.k.all, w.r.Request)
		w.k.mu.Unlock()
	default:
		for _, st := range left {
			st.Made = true
		}
		if err := w.write(left...); err != nil {
			return err
		}
		if err := w.k.o.Store.DropSteps(ctx, w.r.Request, gone...); err != nil {
			return err
		}
		if err := w.k.o.Store.ForgetUndoes(ctx, w.r.Request); err != nil {
			return err
		}
		w.r.Undoes = nil
		if err := w.k.ended(ctx, w.r); err != nil {
			return err
		}
	}
	for _, st := range w.steps {
		if !slices.Contains(left, st) {
			w.k.discard(st.object)
		}
		w.k.again(w.r.Folder, st, true)
	}
	return nil
}

// unstep is the opposite of one step, made or only begun.
func (w *undo) unstep(st *step) (stays bool, err error) {
	ctx := context.Background()
	if _, err := w.folder.lstat(folderAbove(st.Rel)); errors.Is(err, fs.ErrNotExist) {
		return st.object != "", nil
	}
	if err := w.folder.removeTree(w.temp(st)); err != nil {
		return false, err
	}
	now, err := w.folder.stateOf(ctx, st.Rel, st.deep())
	if err != nil {
		return false, err
	}
	switch {
	case st.From != "":
		if err = w.folder.renameNew(st.Rel, st.From); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			err = nil // it had not begun
		}
		return false, err
	case now.equal(st.Before) && !now.equal(st.After):
		return false, nil
	case !now.equal(st.After) && now.Kind != kindNone && (st.Made || !st.InPlace):
		return true, nil
	case st.modeOnly():
		return false, w.folder.chmod(st.Rel, st.Before.Mode)
	case now.Kind == kindNone && st.Before.Kind == kindNone:
		return false, nil
	}
	return false, w.place(ctx, st, st)
}

// recover finds out what was cut off when this program was last killed: an
// undoing is taken back, and a request's notes are closed. Then what no note
// knows goes.
func (k *Kept) recover(ctx context.Context) error {
	list, err := k.o.Store.Kepts(ctx)
	if err != nil {
		return fmt.Errorf("read the notes of old versions: %w", err)
	}
	for _, row := range list {
		r := &kept{Kept: row}
		if err := json.Unmarshal([]byte(r.About), &r.about); err != nil {
			return fmt.Errorf("read the notes of old versions: %w", err)
		}
		if r.about.Format != format { // of an older build, which nothing reads
			if err := k.forget(ctx, r.Request); err != nil {
				return fmt.Errorf("drop old notes: %w", err)
			}
			continue
		}
		k.put(r)
	}
	for _, r := range k.all {
		if r.State != store.KeptOpen {
			continue
		}
		folder, err := folderOf(r.Kept)
		if err != nil {
			// Another start may find it: a disk that is not there now.
			k.o.Log.Warn("The folder of a request that was cut off is not there", "err", err)
			if over(r.Time, k.o.Now()) {
				if err := k.forget(ctx, r.Request); err != nil {
					return fmt.Errorf("drop old notes: %w", err)
				}
			}
			continue
		}
		steps, err := k.steps(ctx, r.Request)
		n := notes{k: k, r: r, steps: steps}
		if err == nil && len(r.Undoes) > 0 {
			err = (&undo{notes: n, folder: folder}).takeBack()
		} else if err == nil {
			err = n.end(folder)
		}
		folder.close()
		if err != nil {
			k.o.Log.Error("What was cut off could not be put right", "request", r.Request, "err", err)
		}
	}
	return k.sweep(ctx)
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
		if !known[n] {
			if err := k.dir.removeTree(n); err != nil {
				k.o.Log.Warn("A leftover could not be removed", "err", err)
			}
		}
	}
	return nil
}
