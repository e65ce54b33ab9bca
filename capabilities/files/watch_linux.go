package files

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"localpc/tunnel/wire"
)

// maxWatched is how many folders one request may watch.
const maxWatched = 20_000

// watchMask is what is looked for in each folder.
const watchMask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watcher is an inotify instance of one request. Folders are added by an open
// folder inside the jail, never by a path; one that is moved out of the watched
// one is told no more. For one goroutine.
type watcher struct {
	f         *os.File
	fd        int
	at        place // the watched folder
	recursive bool
	deleted   *departures
	top       *watched
	byWD      map[int32]*watched
	moves     map[uint32]moved // by cookie: what has left its name and may come to another
	fresh     []*watched       // those with told names
	pass      int              // of rescan

	out      []change
	overflow bool
	buf      []byte
}

// watched is one folder that is watched.
type watched struct {
	wd       int32
	parent   *watched // nil at the top, and for one that has left
	name     string
	children map[string]*watched
	// told are names that were found when the folder was new, until all that
	// was queued before has been read: they are not told a second time.
	told map[string]bool
	pass int
}

// moved is a rename of which the first half was read.
type moved struct {
	dir        *watched
	temp, over bool // a temporary name of ours
	when       time.Time
}

func newWatcher(at place, recursive bool, deleted *departures) (_ *watcher, err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil, wire.Wrap(err, wire.CodeOverloaded, "This computer's programs watch as many places as its system allows (%s). End a watch or a program that watches, or raise the limit: sudo sysctl fs.inotify.max_user_instances=1024.", limitOf("max_user_instances"))
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{fd: fd, f: os.NewFile(uintptr(fd), "inotify"), at: at, recursive: recursive, deleted: deleted,
		byWD: map[int32]*watched{}, moves: map[uint32]moved{}, buf: make([]byte, 64<<10)}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.top, _, err = w.add(nil, ""); err != nil {
		return nil, err
	}
	if w.top == nil {
		return nil, errGone
	}
	return w, w.scan(w.top, false)
}

func (w *watcher) close() { w.f.Close() }

func limitOf(name string) string {
	data, err := os.ReadFile("/proc/sys/fs/inotify/" + name)
	if err != nil {
		return "its limit"
	}
	return strings.TrimSpace(string(data))
}

// rel is a folder's name below the watched one; false for one that has left it.
func (w *watcher) rel(d *watched) (string, bool) {
	var parts []string
	for ; d != w.top; d = d.parent {
		if d == nil {
			return "", false
		}
		parts = append(parts, d.name)
	}
	if len(parts) == 0 {
		return ".", true
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, "/"), true
}

// add watches the folder name in parent. It gives nil for one that went, became
// something else or cannot be read; known is one that is watched already, and
// may have had another name.
func (w *watcher) add(parent *watched, name string) (_ *watched, known bool, err error) {
	at := w.at
	if parent != nil {
		rel, in := w.rel(parent)
		if !in {
			return nil, false, nil
		}
		at = at.child(path.Join(rel, name))
	}
	dir, err := handle(at.base.root, at.rel)
	if err != nil {
		if parent == nil {
			return nil, false, err
		}
		return nil, false, nil
	}
	defer dir.Close()
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), watchMask)
	switch {
	case errors.Is(err, unix.ENOSPC):
		return nil, false, wire.Wrap(err, wire.CodeOverloaded, "This computer's programs watch as many folders as its system allows (%s). End a watch or a program that watches, or raise the limit: sudo sysctl fs.inotify.max_user_watches=1048576.", limitOf("max_user_watches"))
	case err != nil && parent == nil:
		return nil, false, err
	case err != nil:
		return nil, false, nil
	}
	d := w.byWD[int32(wd)]
	if known = d != nil; !known {
		if len(w.byWD) >= maxWatched {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
			return nil, false, wire.Errorf(wire.CodeTooLarge, "There are more than %d folders to watch. Watch one that is further down, or without what is below it.", maxWatched)
		}
		d = &watched{wd: int32(wd)}
		w.byWD[d.wd] = d
	}
	if d != w.top {
		w.put(d, parent, name)
	}
	return d, known, nil
}

// put gives d its place in the tree.
func (w *watcher) put(d, parent *watched, name string) {
	w.leave(d)
	if parent == nil {
		return // the top itself
	}
	if old := parent.children[name]; old != nil && old != d {
		w.leave(old)
	}
	if parent.children == nil {
		parent.children = map[string]*watched{}
	}
	parent.children[name] = d
	d.parent, d.name = parent, name
}

// leave takes d out of the tree; it is not watched on for long.
func (w *watcher) leave(d *watched) {
	if d.parent != nil && d.parent.children[d.name] == d {
		delete(d.parent.children, d.name)
	}
	d.parent = nil
}

// drop stops watching d and all below it.
func (w *watcher) drop(d *watched) {
	for _, c := range d.children {
		w.drop(c)
	}
	w.leave(d)
	if w.byWD[d.wd] == d {
		delete(w.byWD, d.wd)
		_, _ = unix.InotifyRmWatch(w.fd, uint32(d.wd)) // it may have gone
	}
}

// each calls f for the names in d, but not for temporary ones of ours, and
// returns the folders among them where those are watched as well. A folder that
// went, or cannot be read, has none.
func (w *watcher) each(d *watched, f func(dir *os.File, name string)) (below []string) {
	rel, in := w.rel(d)
	if !in {
		return nil
	}
	at := w.at.child(rel)
	dir, err := at.base.root.OpenFile(at.rel, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if _, temp := isTemp(e.Name()); temp {
				continue
			}
			if f != nil {
				f(dir, e.Name())
			}
			if e.IsDir() && w.recursive {
				below = append(below, e.Name())
			}
		}
		if err != nil || len(entries) == 0 {
			return below
		}
	}
}

// scan watches what is below a folder that has just become watched. With tell,
// what is found counts as made: it may have been, between the making of the
// folder and its watch.
func (w *watcher) scan(d *watched, tell bool) error {
	if !w.recursive {
		return nil
	}
	var each func(*os.File, string)
	if tell {
		d.told = map[string]bool{}
		w.fresh = append(w.fresh, d)
		each = func(dir *os.File, name string) {
			d.told[name] = true
			w.emit("create", d, name)
			if n, err := lstatIn(dir, name); err == nil && n.mode.IsRegular() && n.size > 0 {
				w.emit("write", d, name)
			}
		}
	}
	for _, name := range w.each(d, each) {
		if err := w.found(d, name, tell); err != nil {
			return err
		}
	}
	return nil
}

// found watches a folder and what is in it, unless it is watched already.
func (w *watcher) found(parent *watched, name string, tell bool) error {
	d, known, err := w.add(parent, name)
	if err != nil || d == nil || known {
		return err
	}
	return w.scan(d, tell)
}

// next waits for changes. With overflow more changed than could be told, and
// what is watched was looked through anew. errGone: the watched folder itself
// has gone.
func (w *watcher) next(ctx context.Context) (changes []change, overflow bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for len(w.out) == 0 && !w.overflow && err == nil {
		err = w.read()
	}
	for len(w.out) < wire.MaxEvents && err == nil {
		left, ierr := unix.IoctlGetInt(w.fd, unix.TIOCINQ)
		if ierr != nil || left == 0 {
			w.drained()
			break
		}
		err = w.read()
	}
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	changes, overflow = w.out, w.overflow
	w.out, w.overflow = nil, false
	return changes, overflow, err
}

// drained: all that was queued has been read.
func (w *watcher) drained() {
	for _, d := range w.fresh {
		d.told = nil
	}
	w.fresh = nil
	for cookie, m := range w.moves {
		// The two halves of a rename come close together.
		if time.Since(m.when) > time.Second {
			delete(w.moves, cookie)
			if m.dir != nil && m.dir.parent == nil {
				w.drop(m.dir)
			}
		}
	}
}

// read reads what is there, and waits for it.
func (w *watcher) read() error {
	n, err := w.f.Read(w.buf)
	if err != nil {
		return err
	}
	for b := w.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		wd, mask, cookie := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")
		b = b[end:]
		if err := w.event(wd, mask, cookie, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) event(wd int32, mask, cookie uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.overflow = true
		return w.rescan()
	}
	d := w.byWD[wd]
	if d == nil {
		return nil
	}
	if d == w.top && mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0 {
		return errGone
	}
	if mask&unix.IN_IGNORED != 0 {
		w.leave(d)
		delete(w.byWD, wd)
		return nil
	}
	if _, in := w.rel(d); !in || name == "" {
		return nil // it has left; or it is about the folder itself, which its parent tells
	}
	if over, temp := isTemp(name); temp {
		if mask&unix.IN_MOVED_FROM != 0 {
			w.moves[cookie] = moved{temp: true, over: over, when: time.Now()}
		}
		return nil
	}
	isDir := mask&unix.IN_ISDIR != 0
	told := d.told[name]
	switch {
	case mask&unix.IN_CREATE != 0:
		delete(d.told, name)
		if !told {
			w.emit("create", d, name)
		}
		if isDir && w.recursive {
			return w.found(d, name, true)
		}
	case mask&unix.IN_MOVED_TO != 0:
		m := w.moves[cookie]
		delete(w.moves, cookie)
		delete(d.told, name)
		if !told {
			w.arrived(d, name, m, isDir)
		}
		if !isDir || !w.recursive {
			return nil
		}
		if m.dir != nil && m.dir.parent == nil && w.byWD[m.dir.wd] == m.dir {
			w.put(m.dir, d, name)
			return nil
		}
		return w.found(d, name, true)
	case mask&unix.IN_MOVED_FROM != 0:
		delete(d.told, name)
		op := "rename"
		if rel, in := w.rel(d); in && w.deleted.has(w.at.child(path.Join(rel, name)).abs()) {
			op = "remove"
		}
		w.emit(op, d, name)
		if c := d.children[name]; c != nil {
			w.leave(c)
			w.moves[cookie] = moved{dir: c, when: time.Now()}
		}
	case mask&unix.IN_DELETE != 0:
		delete(d.told, name)
		w.emit("remove", d, name)
	case mask&unix.IN_MODIFY != 0:
		w.emit("write", d, name)
	case mask&unix.IN_ATTRIB != 0:
		w.emit("chmod", d, name)
	}
	return nil
}

// arrived tells of a name that something was renamed to. A file that this
// program wrote was written under another name first: it is told as if it had
// been written at its own.
func (w *watcher) arrived(d *watched, name string, m moved, isDir bool) {
	if !m.temp || !m.over || isDir {
		w.emit("create", d, name)
	}
	if m.temp && !isDir {
		w.emit("chmod", d, name)
		w.emit("write", d, name)
	}
}

// emit notes a change; writes in a row are one.
func (w *watcher) emit(op string, d *watched, name string) {
	rel, in := w.rel(d)
	if !in {
		return
	}
	c := change{op, path.Join(rel, name)}
	if n := len(w.out); n > 0 && op == "write" && w.out[n-1] == c {
		return
	}
	w.out = append(w.out, c)
}

// rescan looks through everything after changes were lost: folders that came
// are watched, and those that went are not any more.
func (w *watcher) rescan() error {
	w.pass++
	clear(w.moves)
	w.fresh = nil
	if err := w.look(w.top); err != nil {
		return err
	}
	for _, d := range w.byWD {
		if d.pass != w.pass && w.byWD[d.wd] == d {
			w.drop(d)
		}
	}
	return nil
}

func (w *watcher) look(d *watched) error {
	d.pass, d.told = w.pass, nil
	for _, name := range w.each(d, nil) {
		c, _, err := w.add(d, name)
		if err != nil {
			return err
		}
		if c != nil && c.pass != w.pass {
			if err := w.look(c); err != nil {
				return err
			}
		}
	}
	return nil
}
