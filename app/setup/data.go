package setup

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/google/uuid"

	"localpc/app/settings"
)

// kept are the entries of the data directory that stay when the person keeps
// the record: the database, and the files that it names.
func kept(name string) bool {
	return name == "outputs" || name == "versions" || strings.HasPrefix(name, "machine.db")
}

// contents are this program's entries of the data directory. For a folder it
// says which of the entries in it are this program's: the name was chosen by
// the program, but somebody may have had a folder of that name there before.
var contents = map[string]func(name string) bool{
	"control.sock": nil, "secrets.age": nil, "secrets.age.new": nil, "localpc.log.1": nil,
	"machine.db": nil, "machine.db-wal": nil, "machine.db-shm": nil, "machine.db-journal": nil,
	"sessions": anything, "spool": anything, // emptied at each start
	"journal":  withSuffix(".json", ".data", ".part"),
	"outputs":  byHash,
	"versions": byHash,
	"hub":      withPrefix("hub.", "replaced-"),
}

// last are removed when all else is gone: what is in them is needed to try
// again. By the settings a data directory is known, so they go last of all.
var last = []string{BookFile, "localpc.log", "lock", "settings.toml"}

func anything(string) bool { return true }

func byHash(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 32 || strings.HasPrefix(name, ".new-")
}

func withSuffix(all ...string) func(string) bool {
	return func(name string) bool {
		for _, s := range all {
			if strings.HasSuffix(name, s) {
				return true
			}
		}
		return false
	}
}

func withPrefix(all ...string) func(string) bool {
	return func(name string) bool {
		for _, s := range all {
			if strings.HasPrefix(name, s) {
				return true
			}
		}
		return false
	}
}

// ErrNotOurs means that a directory is none of this program's.
var ErrNotOurs = errors.New("this is not a folder in which Local PC Executor keeps its data, so nothing in it was removed")

// Ours tells whether this program has kept its data in a directory: nil, or an
// error that wraps ErrNotOurs. Many a program has a settings.toml, a lock, or a
// folder of sessions: it is by what is in them that ours are known.
func Ours(p settings.Paths) error {
	root, err := os.OpenRoot(p.Data)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Data, ErrNotOurs)
	}
	defer root.Close()
	var s settings.Settings
	switch {
	case toml.Unmarshal(beginning(root, "settings.toml"), &s) == nil && uuid.Validate(s.MachineID) == nil,
		bytes.HasPrefix(beginning(root, "machine.db"), []byte("SQLite format 3\x00")),
		bytes.HasPrefix(beginning(root, BookFile), []byte(bookHead)),
		unused(root):
		return nil
	}
	return fmt.Errorf("%s: %w", p.Data, ErrNotOurs)
}

// Fit tells whether this program may keep its data in a directory: some folders
// there it empties at each start, and they must not be somebody else's.
func Fit(p settings.Paths) error {
	if Ours(p) == nil {
		return nil
	}
	for _, dir := range []string{p.Sessions(), p.Spool()} {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return fmt.Errorf("%s has things of another program in it; name another directory with --data", dir)
		}
	}
	return nil
}

// beginning is what an ordinary file begins with, or nothing.
func beginning(root *os.Root, name string) []byte {
	fi, err := root.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 64<<10))
	return b
}

// unused tells whether a directory has been made by this program and has
// nothing in it yet: its lock, and folders without anything.
func unused(root *os.Root) bool {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return false
	}
	locked := false
	for _, e := range entries {
		if e.Name() == "lock" {
			fi, err := e.Info()
			locked = err == nil && fi.Mode().IsRegular() && fi.Size() == 0
			continue
		}
		inside, err := fs.ReadDir(root.FS(), e.Name())
		if _, folder := contents[e.Name()]; !folder || err != nil || len(inside) > 0 {
			return false
		}
	}
	return locked
}

// Spare is what Data leaves in its place.
type Spare struct {
	Record bool // the database, outputs and kept versions
	// Journal: files that were being written, which could not be put back.
	Journal bool
	// Settings: what another try needs.
	Settings bool
}

// spares tells whether an entry stays.
func (s Spare) spares(name string) bool {
	switch {
	case s.Record && kept(name), s.Journal && name == "journal":
		return true
	}
	return s.Settings && slices.Contains(last, name)
}

// Data removes what this program kept in its data directory. It never follows a
// link, and leaves what is not this program's: left are the paths of that.
// failed names what could not be removed; then what another try needs stays too.
// It is called with the directory's lock.
func Data(p settings.Paths, spare Spare) (left []string, failed error) {
	if err := Ours(p); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.Data)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var errs []error
	note := func(name string, err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(p.Data, name), err))
		}
	}
	for name, inside := range contents {
		if spare.spares(name) {
			continue
		}
		fi, err := root.Lstat(name)
		if err != nil {
			note(name, err)
			continue
		}
		if inside == nil || !fi.IsDir() {
			note(name, root.Remove(name)) // a link goes, not what it leads to
			continue
		}
		entries, err := fs.ReadDir(root.FS(), name)
		if err != nil {
			note(name, err)
			continue
		}
		for _, e := range entries {
			if inside(e.Name()) {
				unlock(root, filepath.Join(name, e.Name()))
				note(filepath.Join(name, e.Name()), root.RemoveAll(filepath.Join(name, e.Name())))
			}
		}
		if rest, err := fs.ReadDir(root.FS(), name); err == nil && len(rest) == 0 {
			note(name, root.Remove(name))
		}
	}
	spare.Settings = spare.Settings || len(errs) > 0
	if !spare.Settings {
		for _, name := range last {
			note(name, root.Remove(name))
		}
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	note("", err)
	for _, e := range entries {
		name := e.Name()
		switch _, folder := contents[name]; {
		case strings.HasPrefix(name, ".settings-"), strings.HasPrefix(name, ".localpc-"):
			note(name, root.Remove(name)) // cut off while it was written
		case spare.spares(name), folder && len(errs) > 0:
		default:
			left = append(left, filepath.Join(p.Data, name))
		}
	}
	if len(left) == 0 && len(errs) == 0 && spare == (Spare{}) {
		note("", removeDir(p.Data))
	}
	return left, errors.Join(errs...)
}

// unlock lets a folder be removed that may not be written to, as kept versions
// of such folders may not.
func unlock(root *os.Root, name string) {
	fi, err := root.Lstat(name)
	if err != nil || !fi.IsDir() {
		return
	}
	if fi.Mode().Perm()&0o700 != 0o700 {
		_ = root.Chmod(name, 0o700)
	}
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(name))
	if err != nil {
		return // what can't be removed is named
	}
	for _, e := range entries {
		if e.IsDir() {
			unlock(root, filepath.Join(name, e.Name()))
		}
	}
}

// removeDir removes an empty directory, and the link that leads to it.
func removeDir(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := os.Remove(real); err != nil {
		return err
	}
	if real == path {
		return nil
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return os.Remove(path)
	}
	return nil
}
