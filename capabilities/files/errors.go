package files

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"localpc/tunnel/wire"
)

func outside(name string) error {
	return wire.Errorf(wire.CodePathOutside, "%s leads outside the session's folder, and this session may work only inside it.", shown(name))
}

func tooLong(component string) error {
	return wire.Errorf(wire.CodePathChars, "A name of %d bytes is too long: each part of a path may have at most %d.", len(component), maxName)
}

func notFound(name string) error {
	return wire.Errorf(wire.CodePathNotFound, "There is no %s in this session's folder.", shown(name))
}

func notEmpty(name string) error {
	return wire.Errorf(wire.CodePathNotEmpty, "The folder %s is not empty.", shown(name))
}

func notRegular(name string, n node) error {
	what := "a device"
	switch {
	case n.mode.IsDir():
		what = "a folder"
	case n.mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case n.mode&fs.ModeSocket != 0:
		what = "a socket"
	case n.mode&fs.ModeSymlink != 0:
		what = "a link that leads nowhere"
	}
	return wire.Errorf(wire.CodePathKind, "%s is %s, not a file.", shown(name), what)
}

// fileError turns an error of the file system into what a client is told.
// name is how the client called the file. Errors that have a code keep it.
func fileError(err error, name string) error {
	if err == nil || wire.CodeOf(err) != "" {
		return err
	}
	name = shown(name)
	var errno syscall.Errno
	errors.As(err, &errno)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.Wrap(err, wire.CodePathNotFound, "There is no %s in this session's folder.", name)
	case errors.Is(err, fs.ErrPermission):
		return wire.Wrap(err, wire.CodeForbidden, "This computer does not allow the program that runs here to use %s. Its owner can change its permissions.", name)
	case strings.HasSuffix(err.Error(), "path escapes from parent"):
		return wire.Wrap(err, wire.CodePathOutside, "%s leads outside the session's folder, and this session may work only inside it.", name)
	case full(err):
		return wire.Wrap(err, wire.CodeDiskFull, "The disk is full, so %s was not changed. Free some space, then try again.", name)
	}
	switch errno {
	case syscall.EFBIG:
		return wire.Wrap(err, wire.CodeTooLarge, "%s would be larger than this computer allows a file to be, so it was not changed.", name)
	case syscall.ENAMETOOLONG, syscall.EILSEQ, syscall.EINVAL:
		return wire.Wrap(err, wire.CodePathChars, "The disk does not take the name %s.", name)
	case syscall.ENOTDIR:
		return wire.Wrap(err, wire.CodePathKind, "A part of %s is not a folder.", name)
	case syscall.EISDIR:
		return wire.Wrap(err, wire.CodePathKind, "%s is a folder, not a file.", name)
	case syscall.ENXIO, syscall.ENODEV:
		return wire.Wrap(err, wire.CodePathKind, "%s is not a file.", name)
	case syscall.ELOOP:
		return wire.Wrap(err, wire.CodePathKind, "%s cannot be followed: its links go round in circles.", name)
	case syscall.ENOTEMPTY:
		return wire.Wrap(err, wire.CodePathNotEmpty, "The folder %s is not empty.", name)
	case syscall.EEXIST:
		return wire.Wrap(err, wire.CodePathExists, "%s exists already.", name)
	case syscall.EROFS:
		return wire.Wrap(err, wire.CodeForbidden, "The disk that %s is on can only be read.", name)
	case syscall.EBUSY:
		return wire.Wrap(err, wire.CodeForbidden, "This computer is using %s itself, so it cannot be changed.", name)
	case syscall.ETXTBSY:
		return wire.Wrap(err, wire.CodeForbidden, "%s is a program that runs right now, so it cannot be changed.", name)
	}
	return err
}

// full: no space, or no space left of this person's share.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
