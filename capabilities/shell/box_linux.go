package shell

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// emptyFor is how long a container is kept that nothing runs in. Tests are less
// patient.
var emptyFor = 5 * time.Minute

// box is a container that was entered once: the commands of a session start in
// it, each with processes, a /proc and a network of its own. What they share is
// what they have in common anyway: the folder, /tmp, the caches, and /dev.
type box struct {
	key  string // of all that is mounted: see container.key
	conn *net.UnixConn
	cmd  *exec.Cmd
	gone chan struct{} // closed when everything in it has ended

	users   int         // guarded by Shell.boxing: commands that are in it, or about to be
	retired bool        // guarded by Shell.boxing: nothing new starts in it
	empty   *time.Timer // guarded by Shell.boxing

	mu      sync.Mutex
	message string // guarded by mu; the first line that bubblewrap has to say
}

// enter gives the session's container as c describes it. A command that is to
// have another one, since its mode changed or what has to be mounted, gets a new
// one; the old one ends with the last command in it. leave gives it back.
func (s *Shell) enter(session string, c *container) (*box, error) {
	s.boxing.Lock()
	defer s.boxing.Unlock()
	key := c.key()
	b := s.boxes[session]
	if b != nil && (b.key != key || b.over()) {
		s.retire(session, b)
		b = nil
	}
	if b == nil {
		if s.life.Err() != nil {
			return nil, wire.Errorf(wire.CodeStopped, "This computer is shutting down.")
		}
		var err error
		if b, err = s.openBox(c, key); err != nil {
			return nil, err
		}
		s.boxes[session] = b
	}
	if b.empty != nil {
		b.empty.Stop()
		b.empty = nil
	}
	b.users++
	return b, nil
}

func (s *Shell) leave(session string, b *box) {
	s.boxing.Lock()
	defer s.boxing.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	if b.retired {
		b.conn.Close()
		return
	}
	b.empty = time.AfterFunc(emptyFor, func() {
		s.boxing.Lock()
		defer s.boxing.Unlock()
		if b.users == 0 && !b.retired {
			s.retire(session, b)
		}
	})
}

// retire has nothing new start in b. Called with boxing held.
func (s *Shell) retire(session string, b *box) {
	b.retired = true
	if s.boxes[session] == b {
		delete(s.boxes, session)
	}
	if b.empty != nil {
		b.empty.Stop()
		b.empty = nil
	}
	if b.users == 0 {
		b.conn.Close()
	}
}

// closeBox ends the container of a session, "" for all of them, with everything
// in it, and waits for that.
func (s *Shell) closeBox(ctx context.Context, session string) error {
	s.boxing.Lock()
	var all []*box
	for of, b := range s.boxes {
		if session == "" || session == of {
			s.retire(of, b)
			b.conn.Close()
			all = append(all, b)
		}
	}
	s.boxing.Unlock()
	for _, b := range all {
		select {
		case <-b.gone:
		case <-ctx.Done():
			return wire.Wrap(ctx.Err(), wire.CodeInternal, "A container could not be ended in time.")
		}
	}
	return nil
}

// openBox starts a container. It does not wait until it is there: what it is
// given waits in its socket.
func (s *Shell) openBox(c *container, key string) (_ *box, err error) {
	const first = 4 // after the control socket
	args, files, err := c.start(first)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	saidR, saidW, err := os.Pipe()
	if err != nil {
		conn.Close()
		return nil, err
	}
	defer saidW.Close()
	if os.Geteuid() == 0 {
		// Only here: the keeper covers it for each command.
		args = append(args, "--bind", "/proc", spawn.Cover)
	}
	args = append(args, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", "--cap-add", "CAP_NET_ADMIN", "--", spawnInside, spawn.RoleKeep)
	if os.Geteuid() == 0 {
		args = append(args, procNames...)
	}
	b := &box{key: key, conn: conn, gone: make(chan struct{})}
	b.cmd = exec.Command(s.o.Bwrap, args...)
	b.cmd.Env, b.cmd.Dir, b.cmd.Stderr = []string{}, "/", saidW
	b.cmd.ExtraFiles = append([]*os.File{theirs}, files...)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := b.cmd.Start(); err != nil {
		conn.Close()
		saidR.Close()
		return nil, wire.Wrap(err, wire.CodeInternal, "This computer could not start bubblewrap, so nothing was run.")
	}
	s.wg.Go(func() { b.watch(saidR) })
	return b, nil
}

// watch waits for the end of the container. It owns said.
func (b *box) watch(said *os.File) {
	in := bufio.NewReader(io.LimitReader(said, 4096))
	line, _ := in.ReadString('\n')
	b.mu.Lock()
	b.message = strings.TrimSpace(line)
	b.mu.Unlock()
	_, _ = io.Copy(io.Discard, in)
	_, _ = io.Copy(io.Discard, said)
	said.Close()
	stuck := time.AfterFunc(5*time.Second, func() { _ = b.cmd.Process.Kill() })
	_ = b.cmd.Wait()
	stuck.Stop()
	b.conn.Close()
	close(b.gone)
}

func (b *box) over() bool {
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}

// why is what bubblewrap had to say, once it has ended.
func (b *box) why() string {
	select {
	case <-b.gone:
	case <-time.After(2 * time.Second):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.message
}

// give hands a command's descriptors over: its control socket, standard output,
// error and input.
func (b *box) give(files ...*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	_, _, err := b.conn.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	return err
}

// socketPair makes a control socket: ours and theirs.
func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs, ours := os.NewFile(uintptr(pair[1]), "control"), os.NewFile(uintptr(pair[0]), "control")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// tryBox starts a command in a container that is entered once: some systems let
// bubblewrap make containers, and nothing in them have rights of its own. There
// each command has a container of its own.
func (s *Shell) tryBox(ctx context.Context) error {
	c := &container{args: append([]string{}, s.extra...)}
	c.isolate()
	c.add("--ro-bind", s.o.Spawn, spawnInside)
	b, err := s.openBox(c, "")
	if err != nil {
		return err
	}
	defer func() {
		b.conn.Close()
		<-b.gone
	}()
	p, err := startProcess(ctx, "", launch{box: b, spec: spawn.Spec{Argv: [][]byte{[]byte("/usr/bin/true")}, Dir: []byte("/"), Proxy: true}})
	if err != nil {
		return err
	}
	defer p.closeFiles()
	if p.listener == nil {
		return errors.New("no way out of it")
	}
	p.listener.Close()
	select {
	case <-p.gone:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e := <-p.exited; e.Code != 0 {
		return errors.New("a command in it failed")
	}
	return nil
}
