package files

import (
	"context"
	"os"

	"localpc/capabilities"
	"localpc/consent"
)

// would tells whether so many bytes at p would be kept. The session's own /tmp
// goes with it.
func (r *request) would(p place, bytes int64) bool {
	return r.e.o.Keep != nil && !p.base.tmp && r.e.o.Keep.Would(r.j.session, bytes)
}

// note has what is changed from now on noted.
func (r *request) note(n capabilities.Notes) { r.j.notes = n }

// undoable is what an effect ends with.
func undoable(kept bool) string {
	if kept {
		return "; can be undone"
	}
	return "; cannot be undone"
}

// keptPrint is the part of a fingerprint: what was promised is done, or asked
// about again.
func keptPrint(kept bool) string {
	if kept {
		return "\x00kept"
	}
	return ""
}

// unnoted is a change that nobody keeps.
type unnoted struct{}

func (unnoted) Done() {}
func (unnoted) Not()  {}

// makes notes that something is made at p, in parent.
func (j *jail) makes(parent *os.Root, p place) capabilities.Change {
	if j.notes == nil || p.base.tmp {
		return unnoted{}
	}
	return j.notes.Makes(parent, p.rel)
}

// way is one of Notes' to keep something.
type way func(n capabilities.Notes, ctx context.Context, parent *os.Root, rel string) (capabilities.Change, error)

var (
	replaces way = capabilities.Notes.Replaces
	rewrites way = capabilities.Notes.Rewrites
	leaves   way = capabilities.Notes.Leaves
)

// hold keeps what is at p. What a card promised to be kept, and can't be, is
// asked about again.
func (j *jail) hold(ctx context.Context, kept bool, parent *os.Root, p place, how way) (capabilities.Change, error) {
	if j.notes == nil || p.base.tmp || !kept {
		return unnoted{}, nil
	}
	c, err := how(j.notes, ctx, parent, p.rel)
	if err != nil && ctx.Err() == nil {
		err = consent.ErrChanged
	}
	return c, err
}

// settle notes how a change ended.
func settle(c capabilities.Change, err error) {
	if err != nil {
		c.Not()
	} else {
		c.Done()
	}
}
