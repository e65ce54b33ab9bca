//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"localpc/capabilities"
)

const openFlags = syscall.O_NONBLOCK

func handle(root *os.Root, dir string) (*os.File, error) { return root.Open(dir) }

func openFolder(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name) }

func (b *base) lstat(rel string) (node, error) {
	fi, err := b.root.Lstat(rel)
	if err != nil {
		return node{}, err
	}
	return fromInfo(fi), nil
}

func lstatIn(dir *os.File, name string) (node, error) {
	fi, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return node{}, err
	}
	return fromInfo(fi), nil
}

func lstatFile(f *os.File) (node, error) {
	fi, err := f.Stat()
	if err != nil {
		return node{}, err
	}
	return fromInfo(fi), nil
}

// fromInfo knows no number of links and no owner here, so a file counts as
// having one, and as this process's.
func fromInfo(fi fs.FileInfo) node {
	id, _ := capabilities.FileIDOf(fi)
	return node{id: id, mode: fi.Mode(), size: fi.Size(), mtime: fi.ModTime(), links: 1, uid: os.Geteuid(), gid: os.Getegid()}
}

func writable(*os.File, string) error { return nil }

func rename(from *os.Root, old string, to *os.Root, name string) error {
	return os.Rename(filepath.Join(from.Name(), old), filepath.Join(to.Name(), name))
}

func renameNew(from *os.Root, old string, to *os.Root, name string) error {
	if _, err := to.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return rename(from, old, to, name)
}

func copyAttributes(from, to *os.File) bool { return false }

func sameDisk(a, b *os.File) bool { return false }

func adopt(*os.Root, string, *os.File, *os.File, string) bool { return false }

func giveBack(*os.Root, string, *os.File, string) {}

// Metadata is kept on Linux only so far: elsewhere writing some is refused.
var errNoAttributes = errors.New("no attributes here")

func noAttributes(err error) bool { return errors.Is(err, errNoAttributes) }

func attributesFull(error) bool { return false }

func setAttribute(*os.File, string, string) error { return errNoAttributes }

func removeAttribute(*os.File, string) error { return nil }

func fileMetadata(*os.File) map[string]string { return nil }

func nameMetadata(*os.File, string) map[string]string { return nil }
