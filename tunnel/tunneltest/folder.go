//go:build unix

package tunneltest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// Folder is a machine that does what it is asked in one folder, without jail,
// container or record: enough for the hub's side of a test, and no more. Ask
// stands for the person.
type Folder struct {
	Dir string
	// Ask is called before anything is done, with the request's context; its
	// error is the answer. nil allows everything.
	Ask func(ctx context.Context, m wire.Message) error
	// Flood is a name; a change of it is told of as one of too many.
	Flood string

	mu       sync.Mutex
	sessions map[string]wire.SessionOpen  // guarded by mu
	asleep   map[string]bool              // sessions that are paused; guarded by mu
	metadata map[string]map[string]string // of files; guarded by mu
	procs    map[int]*child               // guarded by mu
}

// Session gives what a session was opened with, if it is open.
func (f *Folder) Session(id string) (wire.SessionOpen, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	return s, ok
}

// Sessions are the ids of the open sessions, as HELLO tells them.
func (f *Folder) Sessions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := []string{}
	for id := range f.sessions {
		ids = append(ids, id)
	}
	return ids
}

// Forget ends a session without a word to the hub.
func (f *Folder) Forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, id)
}

// Handle is the machine's tunnel.Handler.
func (f *Folder) Handle(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	var upload []byte
	if _, ok := m.Payload.(*wire.FileWrite); ok {
		for last := false; !last; {
			c, err := tunnel.Chunk(ctx, x)
			if err != nil {
				return "", nil, err
			}
			upload = append(upload, c.Data...)
			last = c.Last
		}
	}
	if f.Ask != nil {
		if err := f.Ask(ctx, m); err != nil {
			return "", nil, err
		}
	}
	if t, p, err, handled := f.state(ctx, m, x); handled {
		return t, p, err
	}
	switch p := m.Payload.(type) {
	case *wire.SessionOpen:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.sessions == nil {
			f.sessions, f.procs = map[string]wire.SessionOpen{}, map[int]*child{}
		}
		f.sessions[p.SessionID] = *p
		return wire.TypeSessionOpened, &wire.SessionOpened{Folder: f.Dir, Mode: "work", TTLSeconds: p.TTLSeconds}, nil
	case *wire.SessionTTL:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return wire.TypeAck, &wire.Empty{}, nil })
	case *wire.SessionRef:
		f.close(p.SessionID)
		return wire.TypeAck, &wire.Empty{}, nil
	case *wire.ProcessStart:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return f.run(ctx, p, x) })
	case *wire.ProcessSignal:
		return f.signal(p)
	case *wire.FileRead:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return f.read(ctx, p, x) })
	case *wire.FileWrite:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) {
			file := f.path(p.Path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, upload, 0o644)); err != nil {
				return "", nil, pathError(err, p.Path)
			}
			f.keep(file, p.Metadata)
			return f.stat(p.Path)
		})
	case *wire.FileStat:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return f.stat(p.Path) })
	case *wire.FilePath:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return f.mkdir(p.Path) })
	case *wire.FileDelete:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) {
			if err := os.RemoveAll(f.path(p.Path)); err != nil {
				return "", nil, pathError(err, p.Path)
			}
			return wire.TypeAck, &wire.Empty{}, nil
		})
	case *wire.FileMove:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) {
			if err := os.Rename(f.path(p.Src), f.path(p.Dst)); err != nil {
				return "", nil, pathError(err, p.Src)
			}
			return f.stat(p.Dst)
		})
	case *wire.FileList:
		return f.inSession(p.SessionID, func() (wire.Type, wire.Payload, error) { return f.list(ctx, p, x) })
	}
	return "", nil, wire.Errorf(wire.CodeNotSupported, "This is not done here.")
}

func (f *Folder) inSession(id string, do func() (wire.Type, wire.Payload, error)) (wire.Type, wire.Payload, error) {
	if _, ok := f.Session(id); !ok {
		return "", nil, wire.Errorf(wire.CodeSessionNotOpen, "The session is not open.")
	}
	if f.Asleep(id) {
		return "", nil, wire.Errorf(wire.CodePaused, "This session is paused by its program; it has to be resumed first.")
	}
	return do()
}

func (f *Folder) keep(file string, metadata map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.metadata == nil {
		f.metadata = map[string]map[string]string{}
	}
	f.metadata[file] = metadata
}

func (f *Folder) path(p string) string {
	p = strings.TrimPrefix(strings.TrimPrefix(p, "/home/user"), "~")
	return filepath.Join(f.Dir, filepath.Clean("/"+p))
}

func pathError(err error, name string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.Errorf(wire.CodePathNotFound, "There is nothing at %s.", name)
	case errors.Is(err, fs.ErrExist):
		return wire.Errorf(wire.CodePathExists, "There is something at %s already.", name)
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return wire.Errorf(wire.CodePathKind, "%s is not a file.", name)
	}
	return err
}

func (f *Folder) mkdir(name string) (wire.Type, wire.Payload, error) {
	if _, err := os.Lstat(f.path(name)); err == nil {
		return "", nil, pathError(fs.ErrExist, name)
	}
	if err := os.MkdirAll(f.path(name), 0o755); err != nil {
		return "", nil, pathError(err, name)
	}
	return f.stat(name)
}

func (f *Folder) stat(name string) (wire.Type, wire.Payload, error) {
	e, err := entry(f.path(name), name)
	if errors.Is(err, fs.ErrNotExist) {
		return wire.TypeFileStatResponse, &wire.FileStatResponse{}, nil
	}
	if err != nil {
		return "", nil, pathError(err, name)
	}
	f.mu.Lock()
	e.Metadata = f.metadata[f.path(name)]
	f.mu.Unlock()
	return wire.TypeFileStatResponse, &wire.FileStatResponse{Exists: true, Entry: &e}, nil
}

func entry(file, name string) (wire.Entry, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return wire.Entry{}, err
	}
	e := wire.Entry{Name: filepath.Base(name), Path: name, Size: info.Size(), Mode: uint32(info.Mode().Perm()), Owner: "user", Group: "user", MTime: info.ModTime().UnixMilli(), Kind: "other"}
	if info.Mode()&fs.ModeSymlink != 0 {
		e.LinkTarget, _ = os.Readlink(file)
		if target, err := os.Stat(file); err == nil {
			info = target
		}
	}
	switch {
	case info.Mode().IsRegular():
		e.Kind = "file"
	case info.IsDir():
		e.Kind = "dir"
	}
	return e, nil
}

func (f *Folder) list(ctx context.Context, p *wire.FileList, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	root := f.path(p.Path)
	reply := &wire.FileListResponse{Entries: []wire.Entry{}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		rel, _ := filepath.Rel(root, file)
		e, err := entry(file, filepath.Join(p.Path, rel))
		if err != nil {
			return err
		}
		reply.Entries = append(reply.Entries, e)
		if d.IsDir() && strings.Count(rel, string(filepath.Separator))+1 >= p.Depth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return "", nil, pathError(err, p.Path)
	}
	if err := x.Send(ctx, wire.TypeFileListResponse, reply); err != nil {
		return "", nil, err
	}
	return wire.TypeAck, &wire.Empty{}, nil
}

func (f *Folder) read(ctx context.Context, p *wire.FileRead, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	data, err := os.ReadFile(f.path(p.Path))
	if err != nil {
		return "", nil, pathError(err, p.Path)
	}
	size, mtime := int64(len(data)), int64(0)
	if info, err := os.Stat(f.path(p.Path)); err == nil {
		mtime = info.ModTime().UnixMilli()
	}
	data = data[min(p.Offset, size):]
	if p.Length != nil {
		data = data[:min(*p.Length, int64(len(data)))]
	}
	if err := x.Send(ctx, wire.TypeFileContents, &wire.FileContents{Size: size, Length: int64(len(data)), MTime: mtime}); err != nil {
		return "", nil, err
	}
	for len(data) > 0 {
		n := min(len(data), wire.MaxChunk)
		if err := x.Send(ctx, wire.TypeFileChunk, &wire.FileChunk{Data: data[:n]}); err != nil {
			return "", nil, err
		}
		data = data[n:]
	}
	return wire.TypeAck, &wire.Empty{}, nil
}
