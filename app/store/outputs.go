package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Outputs are kept this long, and this much of them. They are looked through
// at each start, and whenever that many bytes have been added.
const (
	KeepOutputs    = 30 * 24 * time.Hour
	MaxOutputBytes = 512 << 20
	pruneEvery     = 32 << 20
)

// KeepOutput keeps b as a file named by its SHA-256 and returns that name.
func (s *Store) KeepOutput(b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	sum := sha256.Sum256(b)
	name := hex.EncodeToString(sum[:])
	path := s.outputPath(name)
	if fi, err := os.Stat(path); err == nil && fi.Size() == int64(len(b)) {
		now := time.Now()
		return name, os.Chtimes(path, now, now)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return "", fmt.Errorf("keep output: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return "", fmt.Errorf("keep output: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return "", fmt.Errorf("keep output: %w", err)
	}
	if s.grown.Add(int64(len(b))) >= pruneEvery {
		_ = s.Prune(time.Now()) // this output is kept; the next time, or the next start, tries again
	}
	return name, nil
}

// Output returns a kept output; ok is false when it has been let go. One that
// is not what was kept is an error.
func (s *Store) Output(name string) (b []byte, ok bool, err error) {
	if raw, err := hex.DecodeString(name); err != nil || len(raw) != sha256.Size {
		return nil, false, nil
	}
	b, err = os.ReadFile(s.outputPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != name {
		return nil, false, fmt.Errorf("the kept output %s was changed", name)
	}
	return b, true, nil
}

func (s *Store) outputPath(name string) string { return filepath.Join(s.dir, "outputs", name) }

// Prune lets old outputs go, and the oldest beyond the size limit. The record
// keeps their hashes.
func (s *Store) Prune(now time.Time) error {
	s.grown.Store(0)
	entries, err := os.ReadDir(filepath.Join(s.dir, "outputs"))
	if err != nil {
		return fmt.Errorf("prune outputs: %w", err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil {
			continue
		}
		stale := strings.HasPrefix(e.Name(), ".new-") && now.Sub(fi.ModTime()) > time.Hour
		if stale || now.Sub(fi.ModTime()) > KeepOutputs {
			err = os.Remove(s.outputPath(e.Name()))
		} else {
			files = append(files, fi)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune outputs: %w", err)
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().After(files[j].ModTime()) })
	var total int64
	for _, fi := range files {
		if total += fi.Size(); total > MaxOutputBytes {
			if err := os.Remove(s.outputPath(fi.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("prune outputs: %w", err)
			}
		}
	}
	return nil
}
