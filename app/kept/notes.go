package kept

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"localpc/capabilities"
)

// notes are of one file request.
type notes struct {
	k     *Kept
	s     *capabilities.Session
	r     *kept
	n     int
	made  int
	known bool // in the store
	last  *change
}

// Begin opens the notes of a file request.
func (k *Kept) Begin(s *capabilities.Session, request string) capabilities.Notes {
	if !k.on() {
		return nothing{}
	}
	r, err := k.newKept(s, request)
	if err != nil {
		k.o.Log.Error("A request's changes could not be noted", "err", err)
		return nothing{}
	}
	return &notes{k: k, s: s, r: r}
}

// change is one of them.
type change struct {
	n      *notes
	parent *dir // open until it is done; nil for a move
	step   *step
	bytes  int64
	// vacated: what is at the name afterwards came there by a move.
	vacated bool
	lent    bool // what is kept is the thing itself, and no copy
}

// begin notes a step that is about to be made.
func (n *notes) begin(parent *os.Root, st *step) (*change, error) {
	c := &change{n: n, step: st}
	st.n = n.n
	if parent != nil {
		var err error
		if c.parent, err = dirOf(parent); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// write has a step in the store, before what it is about is done, and after.
func (n *notes) write(st *step) error {
	row, err := st.row()
	if err != nil {
		return err
	}
	if err := n.k.o.Store.KeepSteps(context.Background(), n.r.Kept, row); err != nil {
		return err
	}
	if !n.known {
		n.known = true
		n.k.put(n.r)
	}
	n.n = max(n.n, st.n+1)
	return nil
}

func (c *change) close() {
	if c.parent != nil {
		c.parent.close()
		c.parent = nil
	}
}

// Done notes what is there now.
func (c *change) Done() {
	defer c.close()
	k := c.n.k
	st, err := state{}, error(nil)
	if c.vacated {
		// Nothing was left there.
	} else if c.parent == nil {
		st, err = c.n.stateAt(c.step.Rel)
	} else {
		st, err = c.parent.stateOf(context.Background(), base(c.step.Rel), true)
	}
	if err == nil {
		c.step.After, c.step.Made = st, true
		if c.lent {
			c.step.Mark = k.markOf(c.step.object)
		}
		err = c.n.write(c.step)
	}
	if err != nil {
		k.o.Log.Error("A change could not be noted", "err", err)
		return
	}
	c.n.made++
	c.n.tell(c.step)
}

// stateAt looks at what was moved to rel; what is in a folder does not count.
func (n *notes) stateAt(rel string) (state, error) {
	folder, err := folderOf(n.r.Kept)
	if err != nil {
		return state{}, err
	}
	parent, err := folder.down(folderAbove(rel))
	if err != nil {
		return state{}, err
	}
	defer parent.close()
	return parent.stateOf(context.Background(), base(rel), false)
}

// tell has the folder's mirror know that this was no command's work.
func (n *notes) tell(st *step) {
	if st.From != "" {
		n.k.touched(n.r.Folder, st.From)
	}
	n.k.touched(n.r.Folder, st.Rel)
}

// Not forgets the step.
func (c *change) Not() {
	defer c.close()
	if c.step.Made {
		c.n.made--
	}
	if c.n.known {
		if err := c.n.k.o.Store.DropSteps(context.Background(), c.n.r.Request, c.step.n); err != nil {
			c.n.k.o.Log.Error("A note could not be dropped", "err", err)
			return
		}
	}
	if c.step.object != "" {
		_ = c.n.k.discard(c.step.object) // else the next start does
	}
	if c.bytes > 0 {
		r := *c.n.r
		r.Bytes -= c.bytes
		c.n.r = &r
		c.n.k.put(c.n.r)
	}
}

func (n *notes) Makes(parent *os.Root, rel string) capabilities.Change {
	c, err := n.begin(parent, &step{Rel: rel})
	if err == nil {
		if err = n.write(c.step); err == nil {
			return c
		}
		c.close()
	}
	n.k.o.Log.Warn("A change could not be noted", "err", err)
	return nothing{}
}

func (n *notes) Moves(from, to string) capabilities.Change {
	c := &change{n: n, step: &step{Rel: to, From: from, n: n.n}}
	if n.last != nil && n.last.step.Rel == to {
		n.last.vacated = true
	}
	if err := n.write(c.step); err != nil {
		n.k.o.Log.Warn("A change could not be noted", "err", err)
		return nothing{}
	}
	return c
}

// hold begins a step that keeps what is at rel now.
func (n *notes) hold(ctx context.Context, parent *os.Root, rel string) (*change, node, error) {
	c, err := n.begin(parent, &step{Rel: rel, object: newName()})
	if err != nil {
		return nil, node{}, err
	}
	now, err := c.parent.lstat(base(rel))
	if err == nil {
		c.step.ID = now.id
		c.step.Before, err = c.parent.stateOf(ctx, base(rel), true)
	}
	if err != nil {
		c.close()
		return nil, node{}, err
	}
	n.last = c
	return c, now, nil
}

// failed gives a step up that could not be kept.
func (c *change) failed(err error) error {
	c.Not()
	c.n.k.fail(c.n.r.Folder, err)
	return fmt.Errorf("keep the old version: %w", err)
}

// held notes the bytes of what is kept.
func (c *change) held(bytes int64) error {
	if limit := c.n.k.o.Limit(); c.n.r.Bytes+bytes > limit {
		return c.failed(fmt.Errorf("%d bytes are more than the limit of %d", c.n.r.Bytes+bytes, limit))
	}
	r := *c.n.r
	r.Bytes += bytes
	c.n.r, c.bytes = &r, bytes
	if err := c.n.write(c.step); err != nil {
		return c.failed(err)
	}
	c.n.k.put(c.n.r)
	return nil
}

// Replaces holds on to the file itself, by a further name: it is about to lose
// the one it has. One that others can still write to is copied.
func (n *notes) Replaces(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, now, err := n.hold(ctx, parent, rel)
	if err != nil {
		n.k.fail(n.r.Folder, err)
		return nil, err
	}
	bytes := now.size
	if now.kind == kindDir { // an empty one
		bytes = 0
	}
	// Noted first: what is there by two names after a kill was not replaced.
	if err := c.held(bytes); err != nil {
		return nil, err
	}
	reachable, several := n.k.reachable(ctx, c.parent, base(rel))
	if now.kind != kindDir && !reachable && hardLink(c.parent, base(rel), n.k.dir, c.step.object) == nil {
		c.lent = true
		return c, nil
	}
	if err := n.k.copyIn(ctx, c.parent, base(rel), c.step.object); err != nil {
		return nil, c.failed(err)
	}
	if several {
		_ = hardLink(c.parent, base(rel), n.k.dir, c.step.object+itself) // else it is put back as a file of its own
	}
	return c, nil
}

// Rewrites copies the file.
func (n *notes) Rewrites(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, now, err := n.hold(ctx, parent, rel)
	if err != nil {
		n.k.fail(n.r.Folder, err)
		return nil, err
	}
	c.step.InPlace = true
	if err := c.held(now.size); err != nil {
		return nil, err
	}
	if err := n.k.copyIn(ctx, c.parent, base(rel), c.step.object); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// Leaves copies what is to be moved out of the folder: what becomes of it there
// is not this folder's.
func (n *notes) Leaves(ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error) {
	c, _, err := n.hold(ctx, parent, rel)
	if err != nil {
		n.k.fail(n.r.Folder, err)
		return nil, err
	}
	bytes, err := sizeOf(ctx, c.parent, base(rel))
	if err != nil {
		return nil, c.failed(err)
	}
	if err := c.held(bytes); err != nil {
		return nil, err
	}
	if err := n.k.copyIn(ctx, c.parent, base(rel), c.step.object); err != nil {
		return nil, c.failed(err)
	}
	return c, nil
}

// Takes moves what is to be deleted away, or copies it from another file
// system, and where others can still write to it. Of a file with several names a
// copy is one of its own: put back, it is not changed any more with the others.
func (n *notes) Takes(ctx context.Context, parent *os.Root, rel string) (_ capabilities.Change, gone bool, err error) {
	c, _, err := n.hold(ctx, parent, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing{}, false, nil // the caller finds out
	}
	if err != nil {
		n.k.fail(n.r.Folder, err)
		return nil, false, err
	}
	bytes, err := sizeOf(ctx, c.parent, base(rel))
	if err != nil {
		return nil, false, c.failed(err)
	}
	if err := c.held(bytes); err != nil {
		return nil, false, err
	}
	reachable, several := n.k.reachable(ctx, c.parent, base(rel))
	if !reachable && renameNew(c.parent, base(rel), n.k.dir, c.step.object) == nil {
		c.lent = true
		return c, true, nil
	}
	if err := n.k.copyIn(ctx, c.parent, base(rel), c.step.object); err != nil {
		return nil, false, c.failed(err)
	}
	gone = several && renameNew(c.parent, base(rel), n.k.dir, c.step.object+itself) == nil
	return c, gone, nil
}

// End closes the notes: the request can be undone.
func (n *notes) End() {
	if !n.known {
		return
	}
	ctx := context.Background()
	if n.made == 0 {
		if err := n.k.forget(ctx, n.r.Request); err != nil {
			n.k.o.Log.Error("Notes could not be dropped", "err", err)
		}
		return
	}
	if err := n.k.ended(ctx, n.r); err != nil {
		n.k.o.Log.Error("Notes could not be closed", "err", err)
		return
	}
	n.k.Tidy(ctx)
}

// nothing notes nothing.
type nothing struct{}

var (
	_ capabilities.Notes  = nothing{}
	_ capabilities.Change = nothing{}
)

func (nothing) Makes(*os.Root, string) capabilities.Change { return nothing{} }
func (nothing) Moves(string, string) capabilities.Change   { return nothing{} }
func (nothing) Done()                                      {}
func (nothing) Not()                                       {}
func (nothing) End()                                       {}

var errNothing = errors.New("nothing is kept on this system")

func (nothing) Replaces(context.Context, *os.Root, string) (capabilities.Change, error) {
	return nil, errNothing
}
func (nothing) Rewrites(context.Context, *os.Root, string) (capabilities.Change, error) {
	return nil, errNothing
}
func (nothing) Leaves(context.Context, *os.Root, string) (capabilities.Change, error) {
	return nil, errNothing
}
func (nothing) Takes(context.Context, *os.Root, string) (capabilities.Change, bool, error) {
	return nil, false, errNothing
}
