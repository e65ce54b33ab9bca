package kept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"localpc/capabilities"
)

func itoa(n int) string { return strconv.Itoa(n) }

// kind of what is at a name. Serialised.
type kind string

const (
	kindNone  kind = ""
	kindFile  kind = "f"
	kindDir   kind = "d"
	kindLink  kind = "l"
	kindOther kind = "o" // a pipe, a socket, a device
)

// node is what a file system says of one name, links not followed.
type node struct {
	id           capabilities.FileID
	kind         kind
	mode         uint32 // 0..07777
	size         int64
	mtime, ctime int64 // Unix nanoseconds
	links        uint32
	uid, gid     int
}

// same tells whether o is still n, untouched: ctime can't be set by programs.
func (n node) same(o node) bool {
	return n.id.Same(o.id) && n.kind == o.kind && n.mode == o.mode && n.uid == o.uid && n.gid == o.gid &&
		(n.kind == kindDir || n.size == o.size && n.mtime == o.mtime && n.ctime == o.ctime)
}

// state is what is at a name, as notes remember it: enough to tell whether
// somebody has worked on it since. Serialised.
type state struct {
	Kind  kind   `json:"k,omitempty"`
	Size  int64  `json:"s,omitempty"`
	MTime int64  `json:"t,omitempty"`
	Mode  uint32 `json:"m,omitempty"`
	// Tree is a hash of what is in a folder; "" for nothing, anyTree where that
	// does not count.
	Tree string `json:"h,omitempty"`
}

const anyTree = "*"

func (n node) state() state {
	s := state{Kind: n.kind}
	switch n.kind {
	case kindFile:
		s.Size, s.MTime, s.Mode = n.size, n.mtime, n.mode
	case kindLink:
		s.Size, s.MTime = n.size, n.mtime
	case kindDir:
		s.Mode = n.mode
	}
	return s
}

// equal tells whether nobody has worked on it in between.
func (s state) equal(o state) bool {
	if s.Kind == kindDir && (s.Tree == anyTree || o.Tree == anyTree) {
		s.Tree, o.Tree = "", ""
	}
	return s == o
}

// stateOf looks at a name, and below it with deep.
func (d *dir) stateOf(ctx context.Context, name string, deep bool) (state, error) {
	n, err := d.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	s := n.state()
	if n.kind != kindDir {
		return s, nil
	}
	if !deep {
		s.Tree = anyTree
		return s, nil
	}
	s.Tree, err = d.treeOf(ctx, name)
	return s, err
}

// treeOf is the hash of what is in a folder.
func (d *dir) treeOf(ctx context.Context, name string) (string, error) {
	h, found := sha256.New(), false
	var walk func(d *dir, rel string) error
	walk = func(d *dir, rel string) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		names, err := d.names()
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			n, err := d.lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			found = true
			writeState(h, rel+name, n)
			if n.kind != kindDir {
				continue
			}
			sub, err := d.sub(name)
			if err != nil {
				return err
			}
			err = walk(sub, rel+name+"/")
			sub.close()
			if err != nil {
				return err
			}
		}
		return nil
	}
	in, err := d.sub(name)
	if err != nil {
		return "", err
	}
	defer in.close()
	if err := walk(in, ""); err != nil || !found {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeState(w interface{ Write([]byte) (int, error) }, rel string, n node) {
	s := n.state()
	fmt.Fprintf(w, "%q %s %d %d %o\n", rel, s.Kind, s.Size, s.MTime, s.Mode)
}
