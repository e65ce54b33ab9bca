package kept

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// block is what contents are aligned to that the file system may share.
const block = 4096

// errOdd: a socket or a device can't be kept.
var errOdd = errors.New("this is a socket or a device")

// bundle is a file in the directory of old versions: contents of other files,
// one after the other, shared by the file system where it can, and lists of what
// they are. Nobody else has it, whatever becomes of where they came from.
type bundle struct {
	name string
	f    *os.File
	end  int64
	buf  []byte
	// tried: it is known whether contents are shared.
	tried, shares bool
	// wrote is how many bytes were copied into it; most, where it is not 0, is
	// what that may come to: more is errTooMuch.
	wrote, most int64
}

// newName is the name of a new bundle.
func newName() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}

func (k *Kept) newBundle() (b *bundle, err error) {
	b = &bundle{name: newName()}
	b.f, _, err = k.dir.open(b.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return b, err
}

// discard removes a bundle; what fails the next start does.
func (k *Kept) discard(name string) {
	if name != "" {
		_ = k.dir.removeTree(name)
	}
}

func aligned(n int64) int64 { return (n + block - 1) &^ (block - 1) }

// probe finds out whether the contents of what is at name can be shared.
func (b *bundle) probe(d *dir, name string) {
	f, n, err := d.open(name, os.O_RDONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if n.Kind == kindFile && n.Size >= block {
		b.tried, b.shares = true, clone(b.f, aligned(b.end), f, 0, 0)
		_ = b.f.Truncate(b.end)
	}
}

// add puts size bytes of f from at into the bundle, or as many as there are.
// length is what is asked to be shared: 0 for all, to f's end.
func (b *bundle) add(ctx context.Context, f *os.File, at, size, length int64) (start, n int64, err error) {
	start = b.end
	if size >= block {
		start = aligned(b.end)
		if (!b.tried || b.shares) && clone(b.f, start, f, at, length) {
			b.tried, b.shares = true, true
			fi, err := b.f.Stat() // the file may have grown
			if err != nil {
				return 0, 0, err
			}
			b.end = aligned(max(fi.Size(), start+size))
			return start, size, b.f.Truncate(b.end)
		}
		b.tried = true
	}
	if n, err = b.copyParts(ctx, start, f, at, size); err == nil {
		b.end = start + n
	}
	return start, n, errors.Join(err, b.f.Truncate(b.end)) // nothing stands where the next begins
}

// copyParts writes size bytes of f from at to the bundle's end at start, or as
// many as there are. Holes of f are not read.
func (b *bundle) copyParts(ctx context.Context, start int64, f *os.File, at, size int64) (n int64, err error) {
	for n < size {
		from, to := nextPart(f, at+n, at+size)
		if from == to {
			break
		}
		m, err := b.copy(ctx, &counted{io.NewOffsetWriter(b.f, start+from-at), b}, io.NewSectionReader(f, from, to-from), true)
		n = from - at + m
		if err != nil || m < to-from {
			return n, err
		}
	}
	if n < size { // what is left is a hole, or is gone
		fi, err := f.Stat()
		if err != nil {
			return n, err
		}
		n = max(n, min(size, fi.Size()-at))
	}
	return n, nil
}

// copy writes what from has to to. Where sparse, nothing stands at to yet, and
// blocks of zeros are left out, as a file with holes has them.
func (b *bundle) copy(ctx context.Context, to io.WriteSeeker, from io.Reader, sparse bool) (n int64, err error) {
	if b.buf == nil {
		b.buf = make([]byte, 256<<10)
	}
	for left := false; ; {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		m, err := from.Read(b.buf)
		for at := 0; at < m; {
			end := min(at+block, m)
			empty := sparse && allZero(b.buf[at:end])
			for end < m && (sparse && allZero(b.buf[end:min(end+block, m)])) == empty {
				end = min(end+block, m)
			}
			if left = empty; empty {
				if _, err := to.Seek(int64(end-at), io.SeekCurrent); err != nil {
					return n, err
				}
			} else if _, err := to.Write(b.buf[at:end]); err != nil {
				return n, err
			}
			n += int64(end - at)
			at = end
		}
		if err == io.EOF && left { // the file is as long as it was
			if _, err := to.Seek(-1, io.SeekCurrent); err != nil {
				return n, err
			}
			if _, err := to.Write([]byte{0}); err != nil {
				return n, err
			}
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	}
}

// counted counts what is written into its bundle, and stops at most.
type counted struct {
	*io.OffsetWriter
	b *bundle
}

func (c *counted) Write(p []byte) (int, error) {
	if c.b.wrote += int64(len(p)); c.b.most > 0 && c.b.wrote > c.b.most {
		return 0, errTooMuch
	}
	return c.OffsetWriter.Write(p)
}

var zeros [block]byte

func allZero(p []byte) bool { return bytes.Equal(p, zeros[:len(p)]) }

// take holds what is at name in d, which is to be what e was seen as. steady:
// nobody wrote to it meanwhile.
func (b *bundle) take(ctx context.Context, d *dir, name string, e *entry) (steady bool, err error) {
	switch e.Kind {
	case kindOther:
		return false, errOdd
	case kindPipe:
		e.held = true
		return true, nil
	case kindLink:
		e.To, err = d.readlink(name)
		e.held = err == nil
		return e.held, err
	}
	f, n, err := d.open(name, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if n.Kind != e.Kind {
		return false, fmt.Errorf("%s: %w", name, fs.ErrNotExist) // another thing has taken its place
	}
	e.node, e.Attrs, steady = n, attributes(f), true
	if e.Kind == kindFile {
		if e.At, e.Size, err = b.add(ctx, f, 0, n.Size, 0); err != nil {
			return false, err
		}
		now, err := d.lstat(name)
		steady = err == nil && now == n && e.Size == n.Size
	}
	e.held = true
	return steady, nil
}

// takeFrom is take of what another bundle holds.
func (b *bundle) takeFrom(ctx context.Context, from *bundle, e *entry) (*entry, error) {
	c := *e
	if e.Kind != kindFile {
		return &c, nil
	}
	var n int64
	var err error
	if c.At, n, err = b.add(ctx, from.f, e.At, e.Size, aligned(e.Size)); err == nil && n != e.Size {
		err = io.ErrUnexpectedEOF
	}
	return &c, err
}

// item is an entry in a list.
type item struct {
	Rel []byte `json:"n"`
	entry
}

// list writes what a tree is.
func (b *bundle) list(t tree) (at [2]int64, err error) {
	var items []item
	for _, rel := range slices.Sorted(maps.Keys(t)) {
		items = append(items, item{[]byte(rel), *t[rel]})
	}
	text, err := json.Marshal(items)
	if err == nil {
		_, err = b.f.WriteAt(text, b.end)
	}
	at = [2]int64{b.end, int64(len(text))}
	b.end += int64(len(text))
	return at, err
}

// old opens what a step has kept; the bundle is to be closed.
func (k *Kept) old(st *step) (*bundle, tree, error) {
	f, _, err := k.dir.open(st.object, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	text := make([]byte, st.Index[1])
	var items []item
	if _, err = f.ReadAt(text, st.Index[0]); err == nil {
		err = json.Unmarshal(text, &items)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("read an old version: %w", err)
	}
	t := tree{}
	for _, i := range items {
		i.held = true
		t[string(i.Rel)] = &i.entry
	}
	return &bundle{name: st.object, f: f}, t, nil
}

// restore gives the file at name in d the contents that e had, with their
// attributes, mode and time. flags are os.O_CREATE|os.O_EXCL for a new one.
func (b *bundle) restore(ctx context.Context, e *entry, d *dir, name string, flags int) error {
	f, now, err := d.open(name, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if now.Kind != kindFile {
		return errOdd
	}
	if e.Size < block || !clone(f, 0, b.f, e.At, aligned(e.Size)) {
		n, err := b.copy(ctx, f, io.NewSectionReader(b.f, e.At, e.Size), flags != 0)
		if err != nil || n != e.Size {
			return cmp.Or(err, io.ErrUnexpectedEOF)
		}
	}
	if err := f.Truncate(e.Size); err != nil {
		return err
	}
	if flags != 0 {
		d.own(name, e.node)
	}
	setAttributes(f, e.Attrs)
	if err := f.Close(); err != nil {
		return err
	}
	return d.dress(name, e.node)
}

// same tells whether what is at name in d is what e was, byte for byte. What
// can't be told in time differs.
func (b *bundle) same(ctx context.Context, d *dir, name string, e *entry) bool {
	f, n, err := d.open(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if n.state() != e.state() || n.UID != e.UID || n.GID != e.GID || !maps.EqualFunc(plain(attributes(f)), plain(e.Attrs), bytes.Equal) {
		return false
	}
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < n.Size; at += int64(len(x)) {
		if ctx.Err() != nil {
			return false
		}
		l := int(min(int64(len(x)), n.Size-at))
		got, _ := f.ReadAt(x[:l], at)
		had, _ := b.f.ReadAt(y[:l], e.At+at)
		if got != l || had != l || !bytes.Equal(x[:l], y[:l]) {
			return false
		}
	}
	return true
}

// plain are the attributes that a copy has like its file.
func plain(all map[string][]byte) map[string][]byte {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ []byte) bool {
		return !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl")
	})
	return out
}
