//go:build unix

package companiontest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// inside resolves every link of a path; what is not there yet may follow. The
// result lies in the root.
func (s *socket) inside(name string) (string, *fault) {
	if name == "~" || strings.HasPrefix(name, "~/") {
		home, _ := os.UserHomeDir()
		name = home + name[1:]
	}
	if strings.ContainsRune(name, 0) || name == "" || len(name) > 4096 {
		return "", failf("PATH_INVALID_CHARS", "the path cannot be used")
	}
	// Relative to where the program runs, not to the root: hubs must know.
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", failf("PATH_INVALID_CHARS", "the path cannot be used")
	}
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return "", failf("PATH_OUTSIDE_ALLOWED_ROOT", "the root is gone")
	}
	resolved, tail := abs, ""
	for {
		r, err := filepath.EvalSymlinks(resolved)
		if err == nil {
			resolved = filepath.Join(r, tail)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || resolved == "/" {
			return "", failf("PATH_INVALID_CHARS", "the path cannot be resolved")
		}
		tail = filepath.Join(filepath.Base(resolved), tail)
		resolved = filepath.Dir(resolved)
	}
	if resolved != root && !strings.HasPrefix(resolved, root+"/") {
		return "", failf("PATH_OUTSIDE_ALLOWED_ROOT", "%s is outside of the folder", name)
	}
	return resolved, nil
}

func missing(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return failf("PATH_NOT_FOUND", "%s is not there", name)
	}
	return err
}

type contents struct {
	Content   string `json:"content"`
	Encoding  string `json:"encoding"`
	Size      int    `json:"size_bytes"`
	Truncated bool   `json:"truncated"`
}

func (s *socket) fileRead(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Path     string `json:"path"`
		Encoding string `json:"encoding"`
		Format   string `json:"format"`
		Offset   int64  `json:"offset"`
		Length   *int64 `json:"length"`
	}{Encoding: "utf-8", Format: "text"})
	path, f := s.inside(p.Path)
	if f != nil {
		return "", nil, f
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, missing(err, p.Path)
	}
	if info.IsDir() {
		return "", nil, failf("INTERNAL_ERROR", "%s is a directory", p.Path)
	}
	out := contents{Encoding: "utf-8"}
	limit := min(s.fileSize, textCap)
	if p.Encoding == "base64" || p.Format == "bytes" {
		out.Encoding, limit = "base64", min(s.fileSize, rawCap)
	}
	want := max(info.Size()-p.Offset, 0)
	if p.Length != nil {
		want = *p.Length
	}
	if want > limit {
		return "", nil, failf("FILE_TOO_LARGE", "%d bytes, at most %d", want, limit)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, p.Offset, want))
	if err != nil {
		return "", nil, err
	}
	out.Size, out.Truncated = len(data), p.Offset+int64(len(data)) < info.Size()
	if out.Encoding == "base64" {
		out.Content = base64.StdEncoding.EncodeToString(data)
	} else {
		out.Content = strings.ToValidUTF8(string(data), "\uFFFD")
	}
	return "FILE_CONTENTS", out, nil
}

func (s *socket) fileWrite(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Path          string `json:"path"`
		Content       string `json:"content"`
		Encoding      string `json:"encoding"`
		CreateParents bool   `json:"create_parents"`
	}{Encoding: "utf-8"})
	path, f := s.inside(p.Path)
	if f != nil {
		return "", nil, f
	}
	data := []byte(p.Content)
	if p.Encoding == "base64" {
		var err error
		if data, err = base64.StdEncoding.Strict().DecodeString(p.Content); err != nil {
			return "", nil, failf("INTERNAL_ERROR", "not base64")
		}
	}
	if int64(len(data)) > s.fileSize {
		return "", nil, failf("FILE_TOO_LARGE", "%d bytes, at most %d", len(data), s.fileSize)
	}
	if p.CreateParents {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", nil, err
		}
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", nil, missing(err, p.Path)
	}
	return "ACK", ack{true}, nil
}

type stat struct {
	Exists    bool     `json:"exists"`
	IsFile    *bool    `json:"is_file"`
	IsDir     *bool    `json:"is_dir"`
	IsSymlink *bool    `json:"is_symlink"`
	Size      *int64   `json:"size_bytes"`
	MTime     *float64 `json:"mtime"`
	CTime     *float64 `json:"ctime"`
	Mode      *string  `json:"mode"`
	UID       *int     `json:"owner_uid"`
	GID       *int     `json:"owner_gid"`
	MIME      *string  `json:"mime_type"`
	Path      *string  `json:"path"`
}

func (s *socket) fileStat(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Path   string `json:"path"`
		Follow bool   `json:"follow_symlinks"`
	}{Follow: true})
	path, f := s.inside(p.Path)
	if f != nil {
		return "", nil, f
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "FILE_STAT_RESPONSE", stat{}, nil
	}
	if err != nil {
		return "", nil, err
	}
	link, err := os.Lstat(p.Path)
	isLink := err == nil && link.Mode()&fs.ModeSymlink != 0
	st := info.Sys().(*syscall.Stat_t)
	isFile, isDir, size := info.Mode().IsRegular(), info.IsDir(), info.Size()
	mtime := float64(info.ModTime().UnixNano()) / 1e9
	ctime := mtime // systems name the field differently, and nothing here looks at it
	mode, uid, gid := fmt.Sprintf("%04o", info.Mode().Perm()), int(st.Uid), int(st.Gid)
	out := stat{true, &isFile, &isDir, &isLink, &size, &mtime, &ctime, &mode, &uid, &gid, nil, &path}
	if m, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";"); m != "" {
		out.MIME = &m
	}
	return "FILE_STAT_RESPONSE", out, nil
}

type entry struct {
	Name      string   `json:"name"`
	Path      string   `json:"path"`
	IsFile    bool     `json:"is_file"`
	IsDir     bool     `json:"is_dir"`
	IsSymlink bool     `json:"is_symlink"`
	Size      *int64   `json:"size_bytes"`
	MTime     *float64 `json:"mtime"`
}

func (s *socket) fileList(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Path      string  `json:"path"`
		Glob      *string `json:"glob"`
		Recursive bool    `json:"recursive"`
		Hidden    bool    `json:"include_hidden"`
		Max       int     `json:"max_entries"`
	}{Max: 1000})
	root, f := s.inside(p.Path)
	if f != nil {
		return "", nil, f
	}
	info, err := os.Stat(root)
	if err != nil {
		return "", nil, missing(err, p.Path)
	}
	if !info.IsDir() {
		return "", nil, failf("INTERNAL_ERROR", "%s is not a directory", p.Path)
	}
	entries, truncated := []entry{}, false
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		next := error(nil)
		if d.IsDir() && !p.Recursive {
			next = fs.SkipDir
		}
		if strings.HasPrefix(d.Name(), ".") && !p.Hidden {
			return next
		}
		if p.Glob != nil {
			if ok, _ := filepath.Match(strings.ReplaceAll(*p.Glob, "[!", "[^"), d.Name()); !ok {
				return next
			}
		}
		own, err := d.Info()
		if err != nil {
			return next
		}
		target, _ := os.Stat(path)
		size, mtime := own.Size(), float64(own.ModTime().UnixNano())/1e9
		entries = append(entries, entry{d.Name(), path, target != nil && target.Mode().IsRegular(), target != nil && target.IsDir(),
			own.Mode()&fs.ModeSymlink != 0, &size, &mtime})
		if len(entries) >= p.Max {
			truncated = true
			return fs.SkipAll
		}
		return next
	})
	if err != nil {
		return "", nil, err
	}
	return "FILE_LIST_RESPONSE", map[string]any{"entries": entries, "truncated": truncated}, nil
}

func (s *socket) fileDelete(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
		MissingOK bool   `json:"missing_ok"`
	}{})
	path, f := s.inside(p.Path)
	if f != nil {
		return "", nil, f
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.MissingOK:
		return "ACK", ack{true}, nil
	case err != nil:
		return "", nil, missing(err, p.Path)
	case info.IsDir() && p.Recursive:
		err = os.RemoveAll(path)
	default:
		err = os.Remove(path)
	}
	if err != nil && info.IsDir() {
		return "", nil, failf("PATH_NOT_EMPTY", "%s is not empty", p.Path)
	}
	return "ACK", ack{true}, err
}

func (s *socket) fileMove(raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Src       string `json:"src"`
		Dst       string `json:"dst"`
		Overwrite bool   `json:"overwrite"`
	}{})
	src, f := s.inside(p.Src)
	if f != nil {
		return "", nil, f
	}
	dst, f := s.inside(p.Dst)
	if f != nil {
		return "", nil, f
	}
	if _, err := os.Lstat(src); err != nil {
		return "", nil, missing(err, p.Src)
	}
	if _, err := os.Lstat(dst); err == nil {
		if !p.Overwrite {
			return "", nil, failf("PATH_EXISTS", "%s is there already", p.Dst)
		}
		if err := os.RemoveAll(dst); err != nil {
			return "", nil, err
		}
	}
	if err := os.Rename(src, dst); err != nil {
		return "", nil, err
	}
	return "ACK", ack{true}, nil
}
