package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"localpc/consent/policy"
)

// wayTo follows a name to the file that it leads to, and returns all places on
// the way, links too: whoever may change one of them chooses the file.
func wayTo(name string) (way []string, err error) {
	name, err = filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	root := filepath.VolumeName(name) + sep
	at, todo := root, strings.Split(name[len(root):], sep)
	for links := 0; len(todo) > 0; {
		part := todo[0]
		if todo = todo[1:]; part == "" {
			continue
		}
		next := filepath.Join(at, part)
		fi, err := os.Lstat(next)
		if err != nil {
			return nil, err
		}
		way = append(way, next)
		if fi.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if links++; links > 40 { // as in Linux
			return nil, errors.New("too many links")
		}
		if filepath.IsAbs(target) {
			root = filepath.VolumeName(target) + sep
			at, target = root, target[len(root):]
		}
		todo = append(strings.Split(target, sep), todo...)
	}
	return append(way, at), nil
}

const sep = string(filepath.Separator)

// maxPolicy is more than a policy file needs.
const maxPolicy = 1 << 20

// readPolicy reads the file of --policy FILE. Whoever may change it may allow
// everything, so it must be one that only its owner, the person or root, can
// change, and no program that works in the session folder.
func readPolicy(name string) (*policy.File, error) {
	way, err := wayTo(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError(fmt.Sprintf("--policy is ask, contained, full or a policy file, and there is no file %q", name))
	}
	bad := func(err error) (*policy.File, error) { return nil, fmt.Errorf("the policy file %s: %w", name, err) }
	if err != nil {
		return bad(err)
	}
	real := way[len(way)-1]
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return bad(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return bad(err)
	}
	if !fi.Mode().IsRegular() {
		return bad(errors.New("it is no ordinary file"))
	}
	if err := ownedSafely(fi, os.Geteuid()); err != nil {
		return bad(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err != nil {
		return bad(err)
	}
	if len(data) > maxPolicy {
		return bad(errors.New("it is longer than 1 MiB"))
	}
	file, err := policy.ParseFile(data)
	if err != nil {
		return bad(err)
	}
	if file.Folder, err = filepath.EvalSymlinks(file.Folder); err != nil {
		return bad(fmt.Errorf("its folder can't be used: %w", err))
	}
	for _, at := range way {
		if at == file.Folder || strings.HasPrefix(at, strings.TrimSuffix(file.Folder, sep)+sep) {
			return bad(fmt.Errorf("it is inside %s, or its name leads through there, where programs may work and could change it; move it elsewhere", file.Folder))
		}
	}
	file.Name = real
	return file, nil
}
