package shell

import (
	"context"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
)

// list looks at the folder and at /tmp. A folder that was too large once is
// not gone through again in its session; then only the start-up files are.
func (s *Shell) list(ctx context.Context, sess *capabilities.Session) *listing {
	l := &listing{files: map[string]listed{}}
	s.mu.Lock()
	_, large := s.large[sess.ID]
	s.mu.Unlock()
	if !large {
		ctx, cancel := context.WithTimeout(ctx, maxListTime)
		defer cancel()
		l.complete = l.walk(ctx, sess.Folder, "") && l.walk(ctx, sess.Tmp, "/tmp/")
		if !l.complete {
			s.mu.Lock()
			s.large[sess.ID] = struct{}{}
			s.mu.Unlock()
		}
	}
	if !l.complete {
		l.files = map[string]listed{}
		l.lookAtStartup(sess.Folder)
	}
	return l
}

// walk notes everything below top. It follows no links.
func (l *listing) walk(ctx context.Context, top, prefix string) bool {
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	return l.walkDir(ctx, os.NewFile(uintptr(fd), top), prefix, 0)
}

func (l *listing) walkDir(ctx context.Context, d *os.File, prefix string, depth int) bool {
	defer d.Close()
	names, err := d.Readdirnames(maxListed + 1)
	if len(names) > 0 {
		err = nil
	}
	if len(l.files)+len(names) > maxListed || depth > 64 || err != nil && err.Error() != "EOF" {
		return false
	}
	for _, n := range names {
		if ctx.Err() != nil {
			return false
		}
		e, ok := statAt(int(d.Fd()), n)
		if !ok {
			continue // gone meanwhile
		}
		l.files[prefix+n] = e
		if !e.dir {
			continue
		}
		fd, err := unix.Openat(int(d.Fd()), n, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		if !l.walkDir(ctx, os.NewFile(uintptr(fd), n), prefix+n+"/", depth+1) {
			return false
		}
	}
	return true
}

func statAt(fd int, name string) (listed, bool) {
	var st unix.Statx_t
	if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return listed{}, false
	}
	return listed{id: capabilities.StatxID(&st), size: st.Size, changed: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec), dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, true
}

// lookAtStartup notes the start-up files at the top of the folder.
func (l *listing) lookAtStartup(folder string) {
	root, err := openDir(unix.AT_FDCWD, folder, folder)
	if err != nil {
		return
	}
	defer root.Close()
	names := slices.Clone(startupNames)
	for _, d := range startupDirs {
		// Nothing but a folder in the folder: a pipe would be waited for.
		how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		if fd, err := unix.Openat2(int(root.Fd()), d, &how); err == nil {
			f := os.NewFile(uintptr(fd), d)
			in, _ := f.Readdirnames(200)
			f.Close()
			for _, n := range in {
				names = append(names, d+"/"+n)
			}
		}
	}
	for _, n := range names {
		if e, ok := statAt(int(root.Fd()), n); ok {
			l.files[n] = e
		}
	}
}

// learn compares with what was there before the command: what it made is the
// session's, and changed start-up files are told.
func (s *Shell) learn(ctx context.Context, sess *capabilities.Session, before *listing) []string {
	after := s.list(ctx, sess)
	if before.complete != after.complete {
		// Like with like: the short list of both.
		after = &listing{files: map[string]listed{}}
		after.lookAtStartup(sess.Folder)
	}
	if before.complete && after.complete {
		learnMade(sess.Made, before, after)
	}
	var changed []string
	for p, now := range after.files {
		if was, ok := before.files[p]; startsUp(p) && !now.dir && (!ok || was.changed != now.changed || was.size != now.size || !was.id.Same(now.id)) {
			changed = append(changed, p)
		}
	}
	slices.Sort(changed)
	var notes []string
	for i, p := range changed {
		if i == 5 {
			notes = append(notes, "changed "+itoa(len(changed)-i)+" more files that other programs run")
			break
		}
		notes = append(notes, "changed "+p+", which other programs run")
	}
	return notes
}

// learnMade adds what is new, forgets what has gone, and follows what the
// session had made. Something that only moved, or took the place of what was
// not the session's, is not the session's.
func learnMade(made *capabilities.Made, before, after *listing) {
	type inode struct{ dev, ino uint64 }
	was := map[inode]string{}
	for p, e := range before.files {
		was[inode{e.id.Dev, e.id.Ino}] = p
	}
	mine := func(p string, e listed) bool { return made.Has(p, e.id) }
	type found struct {
		p  string
		id capabilities.FileID
	}
	var add []found
	for p, now := range after.files {
		old, replaced := before.files[p]
		from, known := was[inode{now.id.Dev, now.id.Ino}]
		known = known && before.files[from].id.Same(now.id)
		switch {
		case replaced && !mine(p, old):
			// It was somebody else's name.
		case known && !mine(from, before.files[from]):
			// Moved or linked here from somebody else's name.
		default:
			add = append(add, found{p, now.id})
		}
	}
	for p := range before.files {
		if _, still := after.files[p]; !still {
			made.Forget(p)
		}
	}
	for _, f := range add {
		made.Add(f.p, f.id)
	}
}
