//go:build linux

package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tokenVar marks the environment of everything that runs in a Desktop.
const tokenVar = "LOCALPC_TEST_DESKTOP"

// Process is a program that runs in a Desktop, with its log in a file.
type Process struct {
	Name string
	Log  string // path of its standard output and error
	PID  int

	cmd    *exec.Cmd
	daemon bool // a part of the desktop itself
	done   chan struct{}
	err    error // of Wait, once done is closed
}

// Command is a program of the desktop, not started yet: the desktop's
// environment, home and user. Set what else it needs, then give it to StartCmd.
func (d *Desktop) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = d.Env()
	cmd.Dir = d.Home
	d.attributes(cmd)
	return cmd
}

// attributes make the process the head of its own group, run it as the
// desktop's user, and end it should the test itself be killed.
func (d *Desktop) attributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if d.uid != os.Getuid() {
		id := uint32(d.uid)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
}

// Start runs a program in the desktop, its output in Artifacts/NAME.log, and
// ends it when the test does.
func (d *Desktop) Start(name string, args ...string) *Process {
	d.t.Helper()
	return d.StartCmd(filepath.Base(name), d.Command(name, args...))
}

// StartCmd starts a command made by Command. Output that cmd does not send
// elsewhere goes to the log.
func (d *Desktop) StartCmd(label string, cmd *exec.Cmd) *Process {
	d.t.Helper()
	p, err := d.launch(label, cmd, false)
	if err != nil {
		d.t.Fatalf("start %s: %v", label, err)
	}
	return p
}

func (d *Desktop) launch(label string, cmd *exec.Cmd, daemon bool) (*Process, error) {
	d.mu.Lock()
	d.seq++
	log := filepath.Join(d.Artifacts, fmt.Sprintf("%02d-%s.log", d.seq, label))
	d.mu.Unlock()
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	if cmd.Stderr == nil {
		cmd.Stderr = f
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Name: label, Log: log, PID: cmd.Process.Pid, cmd: cmd, daemon: daemon, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	d.mu.Lock()
	d.procs = append(d.procs, p)
	d.mu.Unlock()
	return p, nil
}

// Run runs a program in the desktop to its end, within limit, and returns its
// standard output; a failure's error holds its standard error.
func (d *Desktop) Run(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = d.Env(), d.Home
	d.attributes(cmd)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Output is what the process has written to its log so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return ""
	}
	return string(b)
}

// WaitOutput waits up to limit until the log contains text.
func (d *Desktop) WaitOutput(p *Process, limit time.Duration, text string) {
	d.t.Helper()
	if !until(limit, func() bool { return strings.Contains(p.Output(), text) }) {
		d.fail("%s does not write %q within %v", p.Name, text, limit)
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running says whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode waits up to limit for the end and returns the exit code; -1 when it
// was ended by a signal or still runs.
func (p *Process) ExitCode(limit time.Duration) int {
	select {
	case <-p.done:
	case <-time.After(limit):
		if p.Running() {
			return -1
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.Running() {
		return errors.New(p.Name + " has ended")
	}
	return syscall.Kill(p.PID, sig)
}

// Kill ends the process alone with SIGKILL and waits for its end.
func (p *Process) Kill() {
	if p.Running() {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
	<-p.done
}

// Stop asks the process to end with SIGTERM, waits up to grace, then ends it
// and what is left of its process group.
func (p *Process) Stop(grace time.Duration) {
	if p.Running() {
		syscall.Kill(p.PID, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
			syscall.Kill(-p.PID, syscall.SIGKILL)
			<-p.done
		}
	}
}

// Found is a process of the desktop as /proc shows it.
type Found struct {
	PID, Parent int
	Command     string
}

func (f Found) String() string { return fmt.Sprintf("%d %s", f.PID, f.Command) }

// Processes lists all live processes that carry the desktop's environment, the
// desktop's own parts too.
func (d *Desktop) Processes() []Found { return carrying(d.token) }

// Leftovers lists the processes of the desktop that are none of those started
// by it or by the test: children that should have ended with their parents,
// and programs that the bus started.
func (d *Desktop) Leftovers() []Found {
	d.mu.Lock()
	known := map[int]bool{}
	for _, p := range d.procs {
		if p.Running() {
			known[p.PID] = true
		}
	}
	d.mu.Unlock()
	var left []Found
	for _, f := range d.Processes() {
		if !known[f.PID] {
			left = append(left, f)
		}
	}
	return left
}

func carrying(token string) []Found {
	want := []byte(tokenVar + "=" + token)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []Found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, want...)) {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid …; the name may hold anything, so cut after it
		rest := string(stat[bytes.LastIndexByte(stat, ')')+1:])
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		found = append(found, Found{pid, parent, strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))})
	}
	return found
}
