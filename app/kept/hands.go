package kept

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"localpc/app/store"
)

// itself ends the name of what was moved away or linked beside a copy of it.
// A file with several names is to be one with them again when it is put back;
// but who has another name may have written to it, so what counts is the copy.
const itself = ".it"

// reachable tells whether somebody could still write to what is at a name when
// it is among the old versions: it has another name, it is open, or there is a
// process that may have it open some other way. several: it has another name.
func (k *Kept) reachable(ctx context.Context, d *dir, name string) (yes, several bool) {
	if n, err := d.lstat(name); err == nil && n.kind != kindFile && n.kind != kindDir {
		return false, false
	}
	yes = k.o.Busy()
	err := walkFiles(ctx, d, name, "", func(d *dir, name, _ string, n node) {
		several = several || n.links > 1
		yes = yes || several || beingWritten(d, name)
	})
	return yes || err != nil, several
}

// walkFiles calls f for each file at a name and below it, in order; rel is the
// file's name below there.
func walkFiles(ctx context.Context, d *dir, name, rel string, f func(d *dir, name, rel string, n node)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := d.lstat(name)
	if err != nil {
		return err
	}
	if n.kind == kindFile {
		f(d, name, rel, n)
	}
	if n.kind != kindDir {
		return nil
	}
	in, err := d.sub(name)
	if err != nil {
		return err
	}
	defer in.close()
	names, err := in.names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, child := range names {
		if err := walkFiles(ctx, in, child, rel+"/"+child, f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// markOf is of an old version that is no copy: it is another one when a file in
// it was written to, whatever its time says then. "" where that can't be told,
// since such a file has another name.
func (k *Kept) markOf(object string) string {
	h, several := sha256.New(), false
	err := walkFiles(context.Background(), k.dir, object, "", func(_ *dir, _, rel string, n node) {
		several = several || n.links > 1
		fmt.Fprintf(h, "%q %d %d %d\n", rel, n.size, n.mtime, n.ctime)
	})
	if err != nil || several {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ruined tells whether what a step kept is not what it kept any more.
func (k *Kept) ruined(st *step) bool { return st.Mark != "" && k.markOf(st.object) != st.Mark }

// remark marks the old versions of requests anew that an undoing had in the
// folder for a moment: to be moved changes them.
func (k *Kept) remark(requests []string, done []*step) error {
	ctx, moved := context.Background(), map[string]bool{}
	for _, st := range done {
		moved[st.source] = true
	}
	for _, of := range requests {
		k.mu.Lock()
		r := k.all[of]
		k.mu.Unlock()
		steps, err := k.steps(ctx, of)
		if err != nil {
			return err
		}
		var rows []store.KeptStep
		for _, st := range steps {
			if st.Mark == "" || !moved[st.object] {
				continue
			}
			st.Mark = k.markOf(st.object)
			row, err := st.row()
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		if r == nil || len(rows) == 0 {
			continue
		}
		if err := k.o.Store.KeepSteps(ctx, r.Kept, rows...); err != nil {
			return err
		}
	}
	return nil
}

// discard removes an old version.
func (k *Kept) discard(object string) error {
	if object == "" {
		return nil
	}
	return errors.Join(removeTree(k.dir, object), removeTree(k.dir, object+itself))
}

// putItself moves the thing itself to a name, if it is there and still what its
// copy is.
func (k *Kept) putItself(ctx context.Context, object string, to *dir, name string) bool {
	if _, err := k.dir.lstat(object + itself); err != nil || !sameTree(ctx, k.dir, object, k.dir, object+itself) {
		return false
	}
	return renameNew(k.dir, object+itself, to, name) == nil
}

// sameTree compares what is at two names, with all below.
func sameTree(ctx context.Context, d *dir, a string, e *dir, b string) bool {
	x, err := d.lstat(a)
	if err != nil {
		return false
	}
	y, err := e.lstat(b)
	if err != nil || x.state() != y.state() || x.uid != y.uid || x.gid != y.gid {
		return false
	}
	switch x.kind {
	case kindLink:
		to, err := d.readlink(a)
		other, err2 := e.readlink(b)
		return err == nil && err2 == nil && to == other
	case kindFile:
		f, err := d.open(a, os.O_RDONLY, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		g, err := e.open(b, os.O_RDONLY, 0)
		if err != nil {
			return false
		}
		defer g.Close()
		return maps.Equal(plain(attributesOf(f)), plain(attributesOf(g))) && sameBytes(ctx, f, g)
	case kindDir:
		return sameFolder(ctx, d, a, e, b)
	}
	return true
}

func sameFolder(ctx context.Context, d *dir, a string, e *dir, b string) bool {
	x, err := d.sub(a)
	if err != nil {
		return false
	}
	defer x.close()
	y, err := e.sub(b)
	if err != nil {
		return false
	}
	defer y.close()
	names, err := x.names()
	others, err2 := y.names()
	if err != nil || err2 != nil {
		return false
	}
	slices.Sort(names)
	slices.Sort(others)
	return slices.Equal(names, others) && !slices.ContainsFunc(names, func(name string) bool { return !sameTree(ctx, x, name, y, name) })
}

// plain are the attributes that a copy has like its file.
func plain(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(name, _ string) bool {
		return !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl")
	})
	return all
}

// sameBytes compares what two readers have; what can't be told in time differs.
func sameBytes(ctx context.Context, a, b io.Reader) bool {
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		if ctx.Err() != nil {
			return false
		}
		n, err := io.ReadFull(a, x)
		m, other := io.ReadFull(b, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if err != nil || other != nil {
			return (err == io.EOF || err == io.ErrUnexpectedEOF) && (other == io.EOF || other == io.ErrUnexpectedEOF)
		}
	}
}
