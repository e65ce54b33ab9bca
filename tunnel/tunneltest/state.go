//go:build unix

package tunneltest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// state handles what is about a session as a whole, and watches; handled is
// false for the rest.
func (f *Folder) state(ctx context.Context, m wire.Message, x tunnel.Exchange) (t wire.Type, p wire.Payload, err error, handled bool) {
	switch m.Type {
	case wire.TypeSessionPause, wire.TypeSessionResume:
		id := m.Payload.(*wire.SessionRef).SessionID
		if _, ok := f.Session(id); !ok {
			return "", nil, wire.Errorf(wire.CodeSessionNotOpen, "The session is not open."), true
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.asleep == nil {
			f.asleep = map[string]bool{}
		}
		f.asleep[id] = m.Type == wire.TypeSessionPause
		return wire.TypeAck, &wire.Empty{}, nil, true
	case wire.TypeMetrics:
		t, p, err = f.inSession(m.Payload.(*wire.Metrics).SessionID, func() (wire.Type, wire.Payload, error) {
			return wire.TypeMetricsResponse, &wire.MetricsResponse{Samples: []wire.Sample{{Time: time.Now().Unix(), CPUs: 4, CPUPercent: 12.5,
				MemTotal: 8 << 30, MemUsed: 3 << 30, MemCache: 1 << 30, DiskTotal: 100 << 30, DiskUsed: 40 << 30}}}, nil
		})
		return t, p, err, true
	case wire.TypeFileWatch:
		w := m.Payload.(*wire.FileWatch)
		t, p, err = f.inSession(w.SessionID, func() (wire.Type, wire.Payload, error) { return f.watch(ctx, w, x) })
		return t, p, err, true
	}
	return "", nil, nil, false
}

// Asleep tells whether a session is paused.
func (f *Folder) Asleep(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asleep[id]
}

// watch tells of changes below a directory until ctx ends. More at once than it
// may tell of in one message is an overflow.
func (f *Folder) watch(ctx context.Context, p *wire.FileWatch, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	root := f.path(p.Path)
	if info, err := os.Stat(root); err != nil {
		return "", nil, pathError(err, p.Path)
	} else if !info.IsDir() {
		return "", nil, wire.Errorf(wire.CodePathKind, "%s is not a directory.", p.Path)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return "", nil, err
	}
	defer w.Close()
	add := func(dir string) error {
		return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (file == root || p.Recursive) {
				return w.Add(file)
			}
			return err
		})
	}
	if err := add(root); err != nil {
		return "", nil, pathError(err, p.Path)
	}
	if err := x.Send(ctx, wire.TypeFileWatching, &wire.Empty{}); err != nil {
		return "", nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return "", nil, wire.Errorf(wire.CodeCancelled, "The request was cancelled.")
		case err := <-w.Errors:
			return "", nil, err
		case e := <-w.Events:
			told := &wire.FileChanges{}
			for op, name := range map[fsnotify.Op]string{fsnotify.Create: "create", fsnotify.Write: "write", fsnotify.Remove: "remove", fsnotify.Rename: "rename", fsnotify.Chmod: "chmod"} {
				if !e.Has(op) {
					continue
				}
				rel, _ := filepath.Rel(root, e.Name)
				c := wire.FileChange{Op: name, Name: rel}
				if entry, err := entry(e.Name, filepath.Join(p.Path, rel)); err == nil && p.Entries {
					c.Entry = &entry
				}
				told.Changes = append(told.Changes, c)
				told.Overflow = told.Overflow || rel == f.Flood
			}
			if e.Has(fsnotify.Create) && p.Recursive {
				_ = add(e.Name)
			}
			if err := x.Send(ctx, wire.TypeFileChanges, told); err != nil {
				return "", nil, err
			}
			if e.Has(fsnotify.Remove) && e.Name == root {
				return wire.TypeAck, &wire.Empty{}, nil
			}
		}
	}
}
