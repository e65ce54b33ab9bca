package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"localpc/app/store"
	"localpc/capabilities"
)

var errNothing = errors.New("nothing is kept on this system")

// notes are of what one request changes. A step is in the store, with a copy of
// what is there, before it is made: whenever it is cut off, there is all that is
// needed to find out, and to take it back.
type notes struct {
	k     *Kept
	r     *kept
	steps []*step
	twins map[capabilities.FileID][][]byte // nil before it was looked
}

// Begin opens the notes of a file request.
func (k *Kept) Begin(s *capabilities.Session, request string) capabilities.Notes {
	return &notes{k: k, r: k.newKept(s.ID, request, s.Folder, s.FolderID)}
}

// write has steps in the store.
func (n *notes) write(steps ...*step) error {
	var rows []store.KeptStep
	for _, st := range steps {
		row, err := st.row()
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if err := n.k.o.Store.KeepSteps(context.Background(), n.r.Kept, rows...); err != nil {
		return err
	}
	n.k.put(n.r)
	return nil
}

// begin notes a step that is about to be made at name in d. What is there is kept
// first, of at most so many bytes; none for negative.
func (n *notes) begin(ctx context.Context, d *dir, name string, st *step, most int64) (err error) {
	if !n.k.on() {
		return errNothing
	}
	n.k.again(n.r.Folder, st, false)
	size := int64(0)
	for try := 0; try < 3 && most >= 0; try++ {
		n.k.discard(st.object)
		if size, err = n.copyOf(ctx, d, name, st, most); err != nil {
			return err
		}
		if now, err := d.stateOf(ctx, name, true); err == nil && now == st.Before {
			break // else somebody worked on it meanwhile
		}
	}
	if len(n.steps) > 0 {
		st.n = n.steps[len(n.steps)-1].n + 1
	}
	n.k.grow(n.r, size)
	if err = n.write(st); err != nil {
		n.k.grow(n.r, -size)
		n.k.discard(st.object)
		return err
	}
	n.steps = append(n.steps, st)
	return nil
}

// copyOf holds what is at name in d as st's old version, in a bundle of its own of
// at most so many bytes.
func (n *notes) copyOf(ctx context.Context, d *dir, name string, st *step, most int64) (size int64, err error) {
	b, err := n.k.newBundle()
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, b.f.Close()); err != nil {
			n.k.discard(b.name)
		}
	}()
	t, first := tree{}, map[capabilities.FileID]*entry{}
	err = walk(ctx, d, name, "", func(d *dir, name, rel string, now node) error {
		e := &entry{node: now}
		if one := first[now.ID]; one != nil {
			e = one // the same file by another name
		} else if now.Kind == kindFile && now.Size > most-size {
			return fmt.Errorf("more than %d bytes: %w", most, errTooMuch)
		} else if _, err := b.take(ctx, d, name, e); err != nil {
			return err
		} else if now.Kind == kindFile {
			size += e.Size
			if now.Links > 1 {
				first[now.ID] = e
				e.Twins = n.twinsOf(ctx, now.ID)
			}
		}
		t[rel] = e
		return nil
	})
	if err != nil {
		return 0, err
	}
	st.Before, st.object = t.state(), b.name
	st.Index, err = b.list(t)
	return size, err
}

// twinsOf are the names of a file with several, as far as they can be found.
func (n *notes) twinsOf(ctx context.Context, id capabilities.FileID) [][]byte {
	if n.twins == nil {
		n.twins = map[capabilities.FileID][][]byte{}
		if folder, err := folderOf(n.r.Kept); err == nil {
			all, _ := folder.list(ctx, ".", true)
			n.twins = all.twins()
			folder.close()
		}
	}
	return n.twins[id]
}

// end closes the notes, unless nothing was made: from now on the request can be
// undone. Of what is not known to have been made it is looked.
func (n *notes) end(folder *dir) error {
	ctx := context.Background()
	var found, not []*step
	var numbers []int
	for _, st := range n.steps {
		if st.Made {
			continue
		}
		changed, err := st.look(ctx, folder)
		if err != nil {
			return err
		}
		if st.Made = changed && !st.InPlace; st.Made { // who writes in place has its own way back
			found = append(found, st)
		} else {
			not, numbers = append(not, st), append(numbers, st.n)
		}
	}
	if len(not) == len(n.steps) {
		return n.k.forget(ctx, n.r.Request)
	}
	if err := n.write(found...); err != nil {
		return err
	}
	if err := n.k.o.Store.DropSteps(ctx, n.r.Request, numbers...); err != nil {
		return err
	}
	for _, st := range not {
		n.k.discard(st.object)
	}
	return n.k.ended(ctx, n.r)
}

// look finds what a step left, and whether anything is not as it was.
func (s *step) look(ctx context.Context, folder *dir) (changed bool, err error) {
	if s.After, err = folder.stateOf(ctx, s.Rel, s.deep()); err != nil || s.From == "" {
		return !s.After.equal(s.Before), err
	}
	from, err := folder.stateOf(ctx, s.From, false)
	return from.Kind == kindNone && s.After.Kind != kindNone, err
}

// change is a step of a file request; none where it could not be noted.
type change struct {
	n  *notes
	st *step
}

// Done notes what is there now.
func (c change) Done() {
	if c.st == nil {
		return
	}
	folder, err := folderOf(c.n.r.Kept)
	if err == nil {
		_, err = c.st.look(context.Background(), folder)
		folder.close()
	}
	if err == nil {
		c.st.Made = true
		err = c.n.write(c.st)
	}
	if err != nil {
		c.n.k.o.Log.Error("A change could not be noted", "err", err)
		return
	}
	c.n.k.again(c.n.r.Folder, c.st, true)
}

// Not forgets the step: the end of the notes does.
func (c change) Not() {
	if c.st != nil {
		c.st.Made = false
	}
}

// keep begins a step that keeps a copy of what is at rel: whoever has it open, or
// by another name, can't write to that. What is taken goes, also out of folders
// that may not be written to.
func (n *notes) keep(ctx context.Context, parent *os.Root, st *step, take bool) (c capabilities.Change, gone bool, err error) {
	d, err := dirOf(parent)
	if err == nil {
		defer d.close()
		err = n.begin(ctx, d, base(st.Rel), st, max(0, n.k.o.Limit()-n.r.Bytes))
	}
	if err != nil && take && d != nil {
		if _, gone := d.lstat(base(st.Rel)); errors.Is(gone, fs.ErrNotExist) {
			return change{}, false, nil // the caller finds out
		}
	}
	if err != nil {
		n.k.fail(n.r.Folder, err)
		return nil, false, fmt.Errorf("keep the old version: %w", err)
	}
	return change{n, st}, take && d.removeTree(base(st.Rel)) == nil, nil
}

func (n *notes) Replaces(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, _, err := n.keep(ctx, parent, &step{Rel: rel}, false)
	return c, err
}

func (n *notes) Rewrites(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, _, err := n.keep(ctx, parent, &step{Rel: rel, InPlace: true}, false)
	return c, err
}

func (n *notes) Leaves(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, _, err := n.keep(ctx, parent, &step{Rel: rel}, false)
	return c, err
}

func (n *notes) Takes(ctx context.Context, parent *os.Root, rel string) (_ capabilities.Change, gone bool, err error) {
	return n.keep(ctx, parent, &step{Rel: rel}, true)
}

func (n *notes) Makes(_ *os.Root, rel string) capabilities.Change { return n.moves("", rel) }

func (n *notes) Moves(from, to string) capabilities.Change {
	if i := len(n.steps) - 1; i >= 0 && n.steps[i].Rel == to {
		n.steps[i].From = from // what is replaced there makes room
		if err := n.write(n.steps[i]); err == nil {
			return change{n, n.steps[i]}
		}
	}
	return n.moves(from, to)
}

// moves notes what loses nothing, and never fails.
func (n *notes) moves(from, to string) capabilities.Change {
	c := change{n, &step{Rel: to, From: from}}
	if err := n.begin(context.Background(), nil, "", c.st, -1); err != nil {
		if n.k.on() {
			n.k.o.Log.Warn("A change could not be noted", "err", err)
		}
		return change{}
	}
	return c
}

// End closes the notes of a file request.
func (n *notes) End() {
	if len(n.steps) == 0 {
		return
	}
	folder, err := folderOf(n.r.Kept)
	if err == nil {
		err = n.end(folder)
		folder.close()
	}
	if err != nil {
		n.k.o.Log.Error("Notes could not be closed", "err", err)
		return
	}
	n.k.Tidy(context.Background())
}
