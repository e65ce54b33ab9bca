package files

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func noAttributes(err error) bool { return errors.Is(err, unix.ENOTSUP) }

// attributesFull: file systems have a bound of their own for one file, that
// they tell as if the disk were full.
func attributesFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ERANGE)
}

func setAttribute(f *os.File, name, value string) error {
	return retry(func() error { return unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0) })
}

func removeAttribute(f *os.File, name string) error {
	err := retry(func() error { return unix.Fremovexattr(int(f.Fd()), name) })
	if errors.Is(err, unix.ENODATA) {
		return nil
	}
	return err
}

// fileMetadata is all of a file's metadata, whoever wrote it.
func fileMetadata(f *os.File) map[string]string {
	fd := int(f.Fd())
	return collect(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) },
		func(name string, b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
}

// nameMetadata is that of name in dir, which is open as a place to work in:
// such a file takes no attribute calls itself, but the way over its number
// does.
func nameMetadata(dir *os.File, name string) map[string]string {
	path := "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
	return collect(func(b []byte) (int, error) { return unix.Llistxattr(path, b) },
		func(name string, b []byte) (int, error) { return unix.Lgetxattr(path, name, b) })
}

func collect(list func([]byte) (int, error), get func(string, []byte) (int, error)) map[string]string {
	// Most files have none: ask for the length first.
	n, err := list(nil)
	if err != nil || n == 0 {
		return nil
	}
	names := make([]byte, n+1024)
	if n, err = list(names); err != nil {
		return nil
	}
	var m map[string]string
	var value []byte
	for full := range strings.SplitSeq(string(names[:n]), "\x00") {
		name, ok := strings.CutPrefix(full, metaPrefix)
		if !ok {
			continue
		}
		if value == nil {
			value = make([]byte, 64<<10) // the most that Linux takes
		}
		if n, err := get(full, value); err == nil {
			if m == nil {
				m = map[string]string{}
			}
			m[name] = string(value[:n])
		}
	}
	return m
}
