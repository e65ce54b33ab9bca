package spawn

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type proc struct {
	pid, parent int
	start       uint64 // since boot, in ticks: tells a reused pid apart
	zombie      bool
}

func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The name may hold blanks and parentheses: count from its last one.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return proc{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	if err1 != nil || err2 != nil {
		return proc{}, false
	}
	return proc{pid: pid, parent: parent, start: start, zombie: f[0][0] == 'Z' || f[0][0] == 'X'}, true
}

// descendants returns the living processes below root.
func descendants(root int) []proc {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	below := map[int][]proc{}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			below[p.parent] = append(below[p.parent], p)
		}
	}
	var out []proc
	for todo := []int{root}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range below[next] {
			todo = append(todo, p.pid)
			if !p.zombie {
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
	if now, ok := readProc(p.pid); !ok || now.start != p.start {
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

// StopTree stops every process below root, those that start meanwhile too. It
// returns them, and how many could not be stopped (they have other rights).
func StopTree(root int) (seen map[int]proc, immune int) {
	seen = map[int]proc{}
	for fresh := true; fresh; {
		fresh = false
		for _, p := range descendants(root) {
			if old, ok := seen[p.pid]; ok && old.start == p.start {
				continue
			}
			seen[p.pid], fresh = p, true
			if !p.send(syscall.SIGSTOP) {
				immune++
			}
		}
	}
	return seen, immune
}

// KillTree ends every process below root and returns how many could not be
// ended (they have other rights). It stops them all before it kills the first,
// so that none can start another meanwhile.
func KillTree(root int) int {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		seen, immune := StopTree(root)
		for _, p := range seen {
			p.send(syscall.SIGKILL)
		}
		if len(seen) == immune {
			return immune
		}
		time.Sleep(pause)
	}
}
