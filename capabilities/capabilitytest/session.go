// Package capabilitytest is how steps 3 and 5 are tested: the suite that every
// executor passes, and what a test of one needs. NewSession makes a session in
// a folder of its own; Grant gets a Grant from a real Gate, because there is no
// other way to one; Output records the frames of a reply; Do takes a call
// through describe, grant and run as the dispatcher does; Run is the suite.
//
// A test of an executor:
//
//	func TestConformance(t *testing.T) {
//		capabilitytest.Run(t, capabilitytest.Suite{
//			New:   func(t testing.TB) capabilities.Capability { return files.New(files.Options{}) },
//			Small: func(t testing.TB, s *capabilities.Session) capabilities.Call { … },
//			Large: func(t testing.TB, s *capabilities.Session) capabilities.Call { … },
//		})
//	}
package capabilitytest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// NewSession makes an open session with an empty folder, a tmp and a cache of
// its own, which go when t ends.
func NewSession(t testing.TB, mode consent.Mode) *capabilities.Session {
	t.Helper()
	return NewSessionIn(t, t.TempDir(), mode)
}

// NewSessionIn is NewSession below base, an existing directory; the folder is
// base/folder.
func NewSessionIn(t testing.TB, base string, mode consent.Mode) *capabilities.Session {
	t.Helper()
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	s := &capabilities.Session{
		ID:     "s" + consent.NewID(),
		Folder: filepath.Join(base, "folder"),
		Tmp:    filepath.Join(base, "tmp"),
		Cache:  filepath.Join(base, "cache"),
		Mode:   mode,
		Env:    map[string]string{},
		Made:   capabilities.NewMade(0),
	}
	for dir, mode := range map[string]os.FileMode{s.Folder: 0o755, s.Tmp: 0o700, s.Cache: 0o700} {
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	fi, err := os.Stat(s.Folder)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := capabilities.FileIDOf(fi)
	if !ok {
		t.Fatal("this system gives no identity of a folder")
	}
	s.FolderID = id
	return s
}

// NewUpload spools data as the dispatcher does, outside every session folder.
func NewUpload(t testing.TB, data []byte) *capabilities.Upload {
	t.Helper()
	path := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return &capabilities.Upload{Path: path, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Head: data[:min(len(data), 4096)]}
}

// NewCall makes a call, with a payload that must pass its validator.
func NewCall(t testing.TB, s *capabilities.Session, typ wire.Type, p wire.Payload) capabilities.Call {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatalf("the test's own payload is not valid: %v", err)
	}
	return capabilities.Call{Type: typ, Payload: p, Session: s}
}

// Tree lists everything below dir with kind, mode, link target and contents'
// hash: equal lists mean that nothing changed.
func Tree(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		line := info.Mode().String() + " " + rel
		switch {
		case info.Mode().IsRegular():
			if data, err := os.ReadFile(path); err == nil {
				sum := sha256.Sum256(data)
				line += " " + hex.EncodeToString(sum[:8])
			}
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			line += " -> " + target
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
