// Package setup is what this program changes on the computer outside its own
// data, such as that it starts at log-in. It takes no part in a request's seven
// steps. Whatever is changed is written down first, in one readable file, so
// that removing this program puts back exactly that.
package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// BookFile is the name of the file in the data directory.
const BookFile = "installed.toml"

// maxBefore is how many bytes of what was there before are kept. maxFile is how
// large a file may be that something is put into: programs keep more than
// settings in theirs.
const (
	maxBefore = 4 << 20
	maxFile   = 64 << 20
)

// Change is one thing outside the data directory that this program made or
// replaced.
type Change struct {
	Path string `toml:"path"`
	What string `toml:"what"` // a few words: "starts this program at log-in"
	// Hash is that of what was written: HashOf its contents, or of a link.
	Hash string `toml:"hash"`
	// Was: there was a file before, with these contents and permissions.
	Was    bool   `toml:"was"`
	Before string `toml:"before"`
	Mode   uint32 `toml:"mode"`
	// Made are folders that were made for it, the outermost first. They go with
	// it when they are empty.
	Made []string `toml:"made,omitempty"`
	// Entry names the format of a file that belongs to another program, into
	// which an entry was put; "" when the whole file is ours. Others keep their
	// secrets in such files: of what was there, Before is only what the entry took
	// the place of, the Length bytes From on. Then is the hash of all of it.
	Entry  string    `toml:"entry,omitempty"`
	From   int       `toml:"from,omitempty"`
	Length int       `toml:"length,omitempty"`
	Then   string    `toml:"then,omitempty"`
	At     time.Time `toml:"at"`
}

// HashOf names contents.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func hashOfLink(target string) string { return HashOf([]byte("link to " + target)) }

// Book is the list of changes. Safe for concurrent use within one program; the
// data directory's lock keeps others out.
type Book struct {
	data string
	mu   sync.Mutex
}

// NewBook is the book of a data directory.
func NewBook(data string) *Book { return &Book{data: data} }

func (b *Book) file() string { return filepath.Join(b.data, BookFile) }

type pages struct {
	Change []Change `toml:"change"`
}

const bookHead = `# What this program has changed on this computer outside this folder. Removing
# it puts these things back; one that was changed since is left as it is.

`

// List returns all changes, the oldest first.
func (b *Book) List() ([]Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read()
}

func (b *Book) read() ([]Change, error) {
	data, err := os.ReadFile(b.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was changed on this computer: %w", err)
	}
	var p pages
	if err := toml.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s can't be read: %w", b.file(), err)
	}
	return p.Change, nil
}

func (b *Book) write(all []Change) error {
	if len(all) == 0 {
		if err := os.Remove(b.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write down what is changed: %w", err)
		}
		return nil
	}
	var text bytes.Buffer
	text.WriteString(bookHead)
	if err := toml.NewEncoder(&text).Encode(pages{all}); err != nil {
		return fmt.Errorf("write down what is changed: %w", err)
	}
	if err := replace(b.file(), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write down what is changed: %w", err)
	}
	return nil
}

// Record notes a change, before it is made. Where its path is noted already,
// what was there before the first one stays noted.
func (b *Book) Record(c Change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record(c)
}

func (b *Book) record(c Change) error {
	if !utf8.ValidString(c.Before) || strings.ContainsRune(c.Before, 0) || len(c.Before) > maxBefore {
		return fmt.Errorf("%s is not a text that could be put back, so it is left as it is", c.Path)
	}
	all, err := b.read()
	if err != nil {
		return err
	}
	if c.At.IsZero() {
		c.At = time.Now().UTC().Truncate(time.Second)
	}
	if i := slices.IndexFunc(all, func(old Change) bool { return old.Path == c.Path }); i >= 0 {
		old := all[i]
		c.Was, c.Mode = old.Was, old.Mode
		if c.Entry == "" {
			c.Before, c.Then = old.Before, old.Then
		}
		c.Made = append(old.Made, c.Made...)
		all[i] = c
		return b.write(all)
	}
	return b.write(append(all, c))
}

// Write puts a file in its place, and what was there into the book first. A
// link is followed: what it names is written.
func (b *Book) Write(path, what string, data []byte, perm fs.FileMode) error {
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := Change{Path: path, What: what, Hash: HashOf(data)}
	before, fi, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		c.Was, c.Before, c.Mode = true, string(before), uint32(fi.Mode().Perm())
		perm = fi.Mode().Perm()
	}
	c.Made = missing(filepath.Dir(path))
	if err := b.record(c); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, data, perm)
}

// Link makes a symbolic link where nothing is.
func (b *Book) Link(path, what, target string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	} else if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already, and is not this program's", path)
	}
	if err := b.record(Change{Path: path, What: what, Hash: hashOfLink(target), Made: missing(filepath.Dir(path))}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// missing are the folders on the way to dir that are not there, the outermost
// first.
func missing(dir string) []string {
	var out []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			slices.Reverse(out)
			return out
		}
		out = append(out, dir)
		dir = filepath.Dir(dir)
	}
}

// PutBack undoes the changes of these paths, all for none, the newest first. It
// returns those that somebody changed since, which are left as they are. What
// failed stays in the book, to be tried again.
func (b *Book) PutBack(paths ...string) (left []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.read()
	if err != nil {
		return nil, err
	}
	var failed []error
	for i, c := range slices.Backward(all) {
		if len(paths) > 0 && !slices.Contains(paths, c.Path) {
			continue
		}
		same, err := putBack(c)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.Path, err))
			continue
		}
		if !same {
			left = append(left, c.Path)
		}
		all = slices.Delete(all, i, i+1)
	}
	return left, errors.Join(append(failed, b.write(all))...)
}

// putBack undoes one change; false when it is another file by now.
func putBack(c Change) (same bool, err error) {
	if handled, same, err := putBackElsewhere(c); handled {
		return same, err
	}
	var now string
	var contents []byte
	fi, err := os.Lstat(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		sweep(c.Made)
		return true, nil // somebody took it away: nothing of ours is there
	case err != nil:
		return false, err
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(c.Path)
		if err != nil {
			return false, err
		}
		now = hashOfLink(target)
	default:
		if contents, _, err = readFile(c.Path); err != nil {
			return false, err
		}
		now = HashOf(contents)
	}
	switch {
	case c.Was && now == c.then():
		return true, nil // it was never written, or is put back already
	case now != c.Hash && c.Entry != "":
		return putBackEntry(c, contents)
	case now != c.Hash:
		return false, nil
	case c.Was && c.Then != "":
		before, ok := c.without(contents)
		if !ok {
			return putBackEntry(c, contents)
		}
		return true, replace(c.Path, before, fs.FileMode(c.Mode))
	case c.Was:
		return true, replace(c.Path, []byte(c.Before), fs.FileMode(c.Mode))
	}
	if err := os.Remove(c.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	sweep(c.Made)
	return true, nil
}

// sweep removes folders that were made, as far as they are empty.
func sweep(made []string) {
	for _, dir := range slices.Backward(made) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// readFile reads a regular file of at most maxFile bytes.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return nil, nil, fmt.Errorf("%s is not a file that this program would have written", path)
	}
	data, err := os.ReadFile(path)
	return data, fi, err
}

// replace writes a file whole or not at all.
func replace(path string, data []byte, perm fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".localpc-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(perm), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
