package shell

import (
	"bufio"
	"context"
	"encoding/binary"
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

	"localpc/capabilities"
	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// emptyFor is how long a container is kept that nothing runs in. Tests are less
// patient.
var emptyFor = 5 * time.Minute

// box is a container that was entered once: the commands of a session start in
// it, each with processes and a /proc of its own, and with terminals of its own
// where it runs at one. What they share is what they have in common anyway: the
// folder, /tmp, the caches, /dev, and the network, so that one command reaches
// what another one serves.
//
// What a command leaves in /dev/shm stays as long as the box, which is shorter
// than what it leaves in /tmp stays: that goes with the session. Both are the
// session's own. No other session ever sees them, and the next command of this
// one has the same rights as the one before: it could have left the same in the
// folder. The memory that it takes comes free when nothing has run for emptyFor.
type box struct {
	key  string // of all that is mounted: see container.key
	conn *net.UnixConn
	cmd  *exec.Cmd
	gone chan struct{} // closed when everything in it has ended

	users   int         // guarded by Shell.boxing: commands that are in it, or about to be
	retired bool        // guarded by Shell.boxing: nothing new starts in it
	empty   *time.Timer // guarded by Shell.boxing

	visiting sync.Mutex
	number   int64            // guarded by visiting; the last that was given
	proxies  map[int64]*proxy // guarded by visiting; of the commands in it, by their numbers
	stray    *proxy           // takes what can't be said to be any command's; nil without a way out

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
		if b, err = s.openBox(c, key, session, s.o.Connect != nil); err != nil {
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
func (s *Shell) openBox(c *container, key, session string, open bool) (_ *box, err error) {
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
	network := spawn.Closed
	if open {
		network = spawn.Open
	}
	args = append(args, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", "--", spawnInside, spawn.RoleKeep, network)
	if os.Geteuid() == 0 {
		args = append(args, procNames...)
	}
	b := &box{key: key, conn: conn, gone: make(chan struct{}), proxies: map[int64]*proxy{}}
	b.cmd = exec.Command(s.o.Bwrap, args...)
	b.cmd.Env, b.cmd.Dir, b.cmd.Stderr = []string{}, "/", saidW
	b.cmd.ExtraFiles = append([]*os.File{theirs}, files...)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := b.cmd.Start(); err != nil {
		conn.Close()
		saidR.Close()
		return nil, wire.Wrap(err, wire.CodeInternal, "This computer could not start bubblewrap, so nothing was run.")
	}
	if open && s.o.Connect != nil {
		b.stray = s.newProxy(capabilities.Connect{SessionID: session, Program: "a program"})
		b.stray.stray = true
	}
	s.wg.Go(func() { b.watch(saidR) })
	s.wg.Go(b.admit)
	return b, nil
}

// expect has what p's command connects to come to x from now on, and returns
// what the keeper is to call the command.
func (b *box) expect(x *proxy) int64 {
	b.visiting.Lock()
	defer b.visiting.Unlock()
	b.number++
	b.proxies[b.number] = x
	return b.number
}

func (b *box) forget(number int64) {
	b.visiting.Lock()
	defer b.visiting.Unlock()
	delete(b.proxies, number)
}

// admit takes the connections of b's commands, until b has gone.
func (b *box) admit() {
	if b.stray != nil {
		defer b.stray.close()
	}
	visit := make([]byte, spawn.VisitSize)
	from := &withFiles{conn: b.conn}
	defer from.close()
	for {
		if n, err := from.Read(visit); err != nil || n < len(visit) {
			return
		}
		f := from.next("connection")
		if f == nil {
			return
		}
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			continue
		}
		number := int64(binary.NativeEndian.Uint64(visit))
		x := b.stray
		b.visiting.Lock()
		if number != 0 {
			x = b.proxies[number]
		}
		if x != nil {
			x.wg.Add(1) // so that its end, which forget comes before, waits for this
		}
		b.visiting.Unlock()
		if x == nil { // its command has ended
			conn.Close()
			continue
		}
		x.take(conn)
		x.wg.Done()
	}
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
	if b.stray != nil {
		b.stray.leave(errStopped()) // admit may wait for a place there
	}
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
	b, err := s.openBox(c, "", "", true)
	if err != nil {
		return err
	}
	defer func() {
		b.conn.Close()
		<-b.gone
	}()
	p, err := startProcess(ctx, "", launch{box: b, spec: spawn.Spec{Argv: [][]byte{[]byte("/usr/bin/true")}, Dir: []byte("/")}})
	if err != nil {
		return err
	}
	defer p.closeFiles()
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
