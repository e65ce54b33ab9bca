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

const sep = string(filepath.Separator)

// maxPolicy is more than a policy file needs.
const maxPolicy = 1 << 20

// readPolicy reads the file of --policy FILE. Whoever may change it may allow
// everything, so it must be one that only its owner, the person or root, can
// change, and no program that works in the session folder.
func readPolicy(name string) (*policy.File, error) {
	real, err := filepath.Abs(name)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError(fmt.Sprintf("--policy is ask, contained, full or a policy file, and there is no file %q", name))
	}
	bad := func(err error) (*policy.File, error) { return nil, fmt.Errorf("the policy file %s: %w", name, err) }
	if err != nil {
		return bad(err)
	}
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
	if real == file.Folder || strings.HasPrefix(real, strings.TrimSuffix(file.Folder, sep)+sep) {
		return bad(fmt.Errorf("it is inside %s, where programs may work and could change it; move it elsewhere", file.Folder))
	}
	file.Name = real
	return file, nil
}
