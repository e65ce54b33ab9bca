package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

// entryTries is how often an entry is made for a file that somebody writes at
// that moment.
const entryTries = 8

// WriteEntry is Write for a file that belongs to another program and gets our
// entry: put makes of what is there, nothing where there is no file, what is to
// be there. What is put back is the entry alone where the file was changed since.
func (b *Book) WriteEntry(path, what, format string, put func(before []byte) ([]byte, error)) error {
	path = resolved(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	for range entryTries {
		before, fi, err := readFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		after, err := put(before)
		if err != nil || bytes.Equal(before, after) && fi != nil {
			return err
		}
		first, fresh, err := b.first(path, before)
		if err != nil {
			return err
		}
		if fresh {
			continue // it was put back: that is what is there now
		}
		c := Change{Path: path, What: what, Hash: HashOf(after), Entry: format, Was: fi != nil, Made: missing(filepath.Dir(path))}
		perm := fs.FileMode(0o600)
		if fi != nil {
			perm = fi.Mode().Perm()
			c.Mode = uint32(perm)
		}
		c.instead(first, after)
		if err := b.record(c); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		now, nowFi, err := readFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if bytes.Equal(now, before) && (nowFi != nil) == (fi != nil) {
			return replace(path, after, perm)
		}
	}
	return fmt.Errorf("%s is being written by another program; try again", path)
}

// first is what was in a file before an earlier entry of ours. That one is too
// old when others have written the file meanwhile: it is put back then, as far as
// that can be, and fresh is true. It needs mu.
func (b *Book) first(path string, now []byte) (first []byte, fresh bool, err error) {
	all, err := b.read()
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(all, func(c Change) bool { return c.Path == path })
	if i < 0 {
		return now, false, nil
	}
	c := all[i]
	switch {
	case HashOf(now) == c.then() || len(now) == 0 && !c.Was:
		return now, false, nil // it was noted, and not made
	case HashOf(now) == c.Hash && !c.Was:
		return nil, false, nil
	case HashOf(now) == c.Hash && c.Then == "":
		return []byte(c.Before), false, nil // as it was noted once
	case HashOf(now) == c.Hash:
		if first, ok := c.without(now); ok {
			return first, false, nil
		}
	}
	if _, err := putBack(c); err != nil {
		return nil, false, err
	}
	return nil, true, b.write(slices.Delete(all, i, i+1))
}

// then is the hash of what was there before.
func (c Change) then() string {
	if c.Then != "" {
		return c.Then
	}
	return HashOf([]byte(c.Before))
}

// instead notes what of before is not in after, and where.
func (c *Change) instead(before, after []byte) {
	from := 0
	for from < len(before) && from < len(after) && before[from] == after[from] {
		from++
	}
	for from > 0 && (!starts(before, from) || !starts(after, from)) {
		from--
	}
	same := 0
	for same < len(before)-from && same < len(after)-from && before[len(before)-1-same] == after[len(after)-1-same] {
		same++
	}
	for same > 0 && (!starts(before, len(before)-same) || !starts(after, len(after)-same)) {
		same--
	}
	c.Before, c.From, c.Length, c.Then = string(before[from:len(before)-same]), from, len(after)-same-from, HashOf(before)
}

// starts: no character is cut in two there.
func starts(text []byte, at int) bool { return at == len(text) || utf8.RuneStart(text[at]) }

// without is what was there before, made of what was written.
func (c Change) without(after []byte) (before []byte, ok bool) {
	if c.From < 0 || c.Length < 0 || c.From+c.Length > len(after) {
		return nil, false
	}
	before = slices.Concat(after[:c.From], []byte(c.Before), after[c.From+c.Length:])
	return before, HashOf(before) == c.Then
}
