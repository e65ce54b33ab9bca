package kept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"localpc/app/store"
	"localpc/capabilities"
)

// kind of what is at a name. Serialised.
type kind string

const (
	kindNone  kind = ""
	kindFile  kind = "f"
	kindDir   kind = "d"
	kindLink  kind = "l"
	kindPipe  kind = "p"
	kindOther kind = "o" // a socket, a device
)

// node is what a file system says of one name, links not followed. ctime can't
// be set by programs: a node that is as it was is of something nobody touched.
// Serialised.
type node struct {
	ID    capabilities.FileID `json:"id"`
	Kind  kind                `json:"k"`
	Mode  uint32              `json:"m"` // 0..07777
	Size  int64               `json:"s,omitempty"`
	MTime int64               `json:"t"` // Unix nanoseconds, as CTime
	CTime int64               `json:"-"`
	Links uint32              `json:"l"`
	UID   int                 `json:"u"`
	GID   int                 `json:"g"`
}

// entry is one name of a tree; what a bundle has of it, once that is held.
// Serialised.
type entry struct {
	node
	To    []byte            `json:"to,omitempty"` // of a link
	Attrs map[string][]byte `json:"x,omitempty"`
	At    int64             `json:"at,omitempty"` // where its contents begin
	// Twins are other names of a file, in the session's folder.
	Twins [][]byte `json:"w,omitempty"`
	held  bool
	taken int64 // bytes that a large file takes on the disk, without its holes
}

// tree is what is at a name, which is "" there, and all below it.
type tree map[string]*entry

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
	s := state{Kind: n.Kind}
	switch n.Kind {
	case kindFile:
		s.Size, s.MTime, s.Mode = n.Size, n.MTime, n.Mode
	case kindLink:
		s.Size, s.MTime = n.Size, n.MTime
	case kindDir, kindPipe:
		s.Mode = n.Mode
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

// twins are the names of the files that have several.
func (t tree) twins() map[capabilities.FileID][][]byte {
	out := map[capabilities.FileID][][]byte{}
	for rel, e := range t {
		if e.Kind == kindFile && e.Links > 1 {
			out[e.ID] = append(out[e.ID], []byte(rel))
		}
	}
	return out
}

func (t tree) state() state {
	if t[""] == nil {
		return state{}
	}
	s := t[""].state()
	if s.Kind != kindDir || len(t) == 1 {
		return s
	}
	h := sha256.New()
	for _, rel := range slices.Sorted(maps.Keys(t)) {
		if rel != "" {
			x := t[rel].state()
			fmt.Fprintf(h, "%q %s %d %d %o\n", rel, x.Kind, x.Size, x.MTime, x.Mode)
		}
	}
	s.Tree = hex.EncodeToString(h.Sum(nil))
	return s
}

// below is the part of t at rel; names are t's in order, and maybe more.
func (t tree) below(names []string, rel string) tree {
	part := tree{"": t[rel]}
	i, _ := slices.BinarySearch(names, rel+"/")
	for ; i < len(names) && strings.HasPrefix(names[i], rel+"/"); i++ {
		if e := t[names[i]]; e != nil {
			part[names[i][len(rel)+1:]] = e
		}
	}
	return part
}

// maxDepth is how deep folders are looked into.
const maxDepth = 128

// errTooMuch: there is more than can be held.
var errTooMuch = errors.New("this is too large to be held")

// walk calls visit for what is at name in d, and then for all below it, in
// order; rel is what name is called. visit's fs.SkipDir leaves out what is in a
// folder. What goes meanwhile is passed over, as sockets and devices in folders
// are: they are nothing without who made them.
func walk(ctx context.Context, d *dir, name, rel string, visit func(d *dir, name, rel string, n node) error) error {
	n, err := d.lstat(name)
	if err != nil || n.Kind == kindOther && rel != "" {
		return err
	}
	if err = visit(d, name, rel, n); errors.Is(err, fs.SkipDir) {
		return nil
	}
	if err != nil || n.Kind != kindDir {
		return err
	}
	if strings.Count(rel, "/") > maxDepth {
		return errTooMuch
	}
	in, err := d.at(name)
	if err != nil {
		return err
	}
	defer in.close()
	names, err := in.names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	if rel != "" {
		rel += "/"
	}
	for _, child := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := walk(ctx, in, child, rel+child, visit); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// list lists what is at a name, and below it with deep; nothing for nothing.
func (d *dir) list(ctx context.Context, name string, deep bool) (tree, error) {
	t := tree{}
	err := walk(ctx, d, name, "", func(_ *dir, _, rel string, n node) error {
		t[rel] = &entry{node: n}
		if !deep {
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return t, err
}

// stateOf looks at a name, and below it with deep.
func (d *dir) stateOf(ctx context.Context, name string, deep bool) (state, error) {
	t, err := d.list(ctx, name, deep)
	s := t.state()
	if s.Kind == kindDir && !deep {
		s.Tree = anyTree
	}
	return s, err
}

// step is one change of a request: what was at a name before it, and what is
// there after. Serialised.
type step struct {
	// Rel is the name in the folder; From where it was moved from.
	Rel, From string `json:"-"`
	// RelBytes and FromBytes are the same: names need not be UTF-8.
	RelBytes  []byte `json:"rel"`
	FromBytes []byte `json:"from,omitempty"`
	// Before is what was there, of what was moved there: what it took the place
	// of; the part Index of the object lists it. After is what the request left,
	// once Made.
	Before state    `json:"before,omitzero"`
	After  state    `json:"after,omitzero"`
	Index  [2]int64 `json:"index,omitzero"`
	Made   bool     `json:"made,omitempty"`
	// InPlace: the contents were changed and the file stayed, with its other
	// names.
	InPlace bool `json:"in_place,omitempty"`

	n      int
	object string
}

// modeOnly: nothing but the mode of a folder was changed.
func (s *step) modeOnly() bool { return s.From == "" && s.Before.Tree == anyTree }

// deep: what is in a folder at the name counts.
func (s *step) deep() bool { return s.From == "" && s.Before.Tree != anyTree }

func (s *step) row() (store.KeptStep, error) {
	s.RelBytes, s.FromBytes = []byte(s.Rel), []byte(s.From)
	b, err := json.Marshal(s)
	return store.KeptStep{N: s.n, Object: s.object, Body: string(b)}, err
}

// steps are those of a request.
func (k *Kept) steps(ctx context.Context, request string) (out []*step, err error) {
	rows, err := k.o.Store.KeptSteps(ctx, request)
	for _, r := range rows {
		s := &step{n: r.N, object: r.Object}
		if err := json.Unmarshal([]byte(r.Body), s); err != nil {
			return nil, err
		}
		s.Rel, s.From = string(s.RelBytes), string(s.FromBytes)
		out = append(out, s)
	}
	return out, err
}

// folderAbove and base are the two parts of a name in the folder.
func folderAbove(rel string) string { return path.Dir(rel) }
func base(rel string) string        { return path.Base(rel) }
