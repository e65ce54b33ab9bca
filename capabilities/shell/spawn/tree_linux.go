package spawn

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type proc struct {
	pid, parent int
	start       uint64 // since boot, in ticks: tells a reused pid apart
	state       byte
	threads     int
}

// readProc reads the first thread's part of a process, or that of another one:
// dir is "PID" or "PID/task/TID".
func readProc(dir string) (proc, bool) {
	b, err := os.ReadFile("/proc/" + dir + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The name may hold blanks and parentheses: count from its last one.
	i, j := bytes.IndexByte(b, ' '), bytes.LastIndexByte(b, ')')
	if i < 0 || j < 0 {
		return proc{}, false
	}
	f := bytes.Fields(b[j+1:])
	if len(f) < 20 {
		return proc{}, false
	}
	pid, err1 := strconv.Atoi(string(b[:i]))
	parent, err2 := strconv.Atoi(string(f[1]))
	threads, err3 := strconv.Atoi(string(f[17]))
	start, err4 := strconv.ParseUint(string(f[19]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return proc{}, false
	}
	return proc{pid: pid, parent: parent, start: start, state: f[0][0], threads: threads}, true
}

// ended tells whether nothing of p runs any more. The first thread may have
// ended, while others go on.
func (p proc) ended() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

// still tells whether every thread of p has stopped.
func (p proc) still() bool {
	switch p.state {
	case 'T', 't':
		return true
	case 'Z', 'X':
	default:
		return false
	}
	own := strconv.Itoa(p.pid) + "/task/"
	for _, tid := range numbers("/proc/" + own) {
		if t, ok := readProc(own + strconv.Itoa(tid)); ok && !strings.ContainsRune("TtZX", rune(t.state)) {
			return false
		}
	}
	return true
}

// descendants returns the living processes below root, parents before their
// children.
func descendants(root int) []proc {
	below := map[int][]proc{}
	for _, pid := range numbers("/proc") {
		if p, ok := readProc(strconv.Itoa(pid)); ok {
			below[p.parent] = append(below[p.parent], p)
		}
	}
	var out []proc
	for todo := []int{root}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range below[next] {
			todo = append(todo, p.pid)
			if !p.ended() {
				out = append(out, p)
			}
		}
	}
	return out
}

// send signals exactly the process that was seen, not one that has its pid
// now. It reports whether the process could be reached or has gone.
func (p proc) send(sig syscall.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	if now, ok := readProc(strconv.Itoa(p.pid)); !ok || now.start != p.start {
		return true
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) != unix.EPERM
}

// SignalTree sends sig to every process below root, once.
func SignalTree(root int, sig syscall.Signal) {
	for _, p := range descendants(root) {
		p.send(sig)
	}
}

// stopPending tells whether a stop waits for p to be given a processor: then it
// does nothing else before.
func (p proc) stopPending() bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte("\nShdPnd:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pending, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	return err == nil && pending&(1<<(syscall.SIGSTOP-1)) != 0
}

// ran is how long the first thread of p has had a processor, in nanoseconds; it
// is not ok where this kernel does not tell, or that thread has ended.
func (p proc) ran() (ns uint64, ok bool) {
	if p.state == 'Z' || p.state == 'X' {
		return 0, false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/schedstat")
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(b, []byte(" "))
	ns, err = strconv.ParseUint(string(first), 10, 64)
	return ns, err == nil
}

// Bounds of the effort to stop a tree. One that does as it is told stands still
// after two or three rounds, or when it is given a processor.
const (
	patience = 20                      // in so many rounds what runs is only stopped again,
	atLeast  = 600 * time.Millisecond  // and for so long
	tooLong  = 1500 * time.Millisecond // when there is always something new by then, all of the tree is ended
	atMost   = 10 * time.Second        // a stop may wait for a processor
)

// StopTree stops every process below root, those that start meanwhile too. It
// returns when they stand still: when two looks in a row have found nothing that
// runs, since one look may miss what has just been started by what it saw
// stopped.
//
// Two processes that wake each other could go on for ever, or one that always
// has left a child behind by the time it is found. What has been stopped again
// and again and runs is ended, which nobody undoes: while a card is open,
// nothing may run that could answer it.
func StopTree(root int) {
	type seen struct {
		proc
		since  time.Time
		rounds int    // in which it ran in spite of a stop
		ran    uint64 // as of the last
		told   bool   // to stop
		immune bool   // it has other rights
	}
	all := map[int]*seen{}
	pause := time.Millisecond
	for begun, quiet := time.Now(), 0; quiet < 2; {
		running, anew := false, false
		for _, p := range descendants(root) {
			s := all[p.pid]
			if s == nil || s.start != p.start {
				s = &seen{proc: p, since: time.Now()}
				all[p.pid] = s
			}
			if s.immune || p.still() {
				continue
			}
			sig := syscall.SIGSTOP
			switch {
			case !s.told:
				running, anew = true, true
				s.ran, _ = p.ran()
			case p.state == 'D':
				// Waiting for a disk, or for a child that is about to start a program, it
				// can't be found stopped: it stops before it does anything else.
			case p.stopPending():
				running = true
				continue
			default:
				// On a busy computer a stop takes a while to reach every thread. What has
				// had no processor meanwhile has not been woken.
				running = true
				ran, ok := p.ran()
				if !ok || ran != s.ran {
					s.rounds, s.ran = s.rounds+1, ran
				}
				if s.rounds > patience && time.Since(s.since) > atLeast {
					sig = syscall.SIGKILL
				}
			}
			s.told = true
			s.immune = !p.send(sig)
		}
		if !running {
			// What always has left a child behind by then was not in the look. Its newest
			// is a child of root, which is looked up in a moment.
			for end := time.Now().Add(2 * time.Millisecond); !anew && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
				anew = signalChildren(root, syscall.SIGSTOP, func(pid int) bool { return all[pid] != nil })
			}
		}
		if !running && !anew {
			quiet++
			continue
		}
		quiet = 0
		switch took := time.Since(begun); {
		case anew && took > tooLong:
			KillTree(root, atMost)
			return
		case took > atMost:
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// KillTree ends every process below root and returns how many it could not end
// within that time, 0 being no bound: they have other rights, or wait for a disk.
// Each is ended as soon as it is seen, parents first; between two looks at all
// processes those are that are quicker than one. It is over when nothing was
// found twice in a row.
func KillTree(root int, within time.Duration) int {
	begun := time.Now()
	for pause, quiet := 2*time.Millisecond, 0; ; pause = min(2*pause, 20*time.Millisecond) {
		left, immune := descendants(root), 0
		for _, p := range left {
			if !p.send(syscall.SIGKILL) {
				immune++
			}
		}
		found := len(left) > immune
		for end := time.Now().Add(pause); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
			found = signalChildren(root, syscall.SIGKILL, nil) || found
		}
		if quiet++; found {
			quiet = 0
		}
		if quiet == 2 || within > 0 && time.Since(begun) > within {
			return len(left)
		}
	}
}

// signalChildren sends sig to the children of root that are not known, and
// reports whether there was one.
func signalChildren(root int, sig syscall.Signal, known func(pid int) bool) (any bool) {
	own := "/proc/" + strconv.Itoa(root) + "/task/"
	for _, tid := range numbers(own) {
		b, err := os.ReadFile(own + strconv.Itoa(tid) + "/children")
		if err != nil {
			continue // this kernel does not tell
		}
		for _, f := range bytes.Fields(b) {
			pid, err := strconv.Atoi(string(f))
			if err != nil || known != nil && known(pid) {
				continue
			}
			if fd, err := unix.PidfdOpen(pid, 0); err == nil {
				// What has the number now is still a child, or is left alone.
				if p, ok := readProc(strconv.Itoa(pid)); ok && p.parent == root && !p.ended() {
					any = unix.PidfdSendSignal(fd, sig, nil, 0) != unix.EPERM || any
				}
				unix.Close(fd)
			}
		}
	}
	return any
}
