package autogpt

import (
	"bytes"
	"os/exec"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// command is EXECUTE_COMMAND as PROCESS_START.
type command struct {
	start  wire.ProcessStart
	budget int // bytes of both outputs together

	began          time.Time
	stdout, stderr bytes.Buffer
	cut            bool
}

// grace is what a command has at its limit to end by itself.
const grace = 2 * time.Second

func newCommand(at place, p *msg.Execute, limit time.Duration, budget int) (*command, error) {
	if (p.Command != nil) == (len(p.Argv) > 0) {
		return nil, wire.Errorf(msg.CodeInternal, "Exactly one of command and argv is needed.")
	}
	c := &command{budget: budget, start: wire.ProcessStart{SessionID: at.session, Env: map[string]string{}}}
	if p.Cwd != nil {
		var err error
		if c.start.Cwd, err = at.cwd(*p.Cwd); err != nil {
			return nil, err
		}
		c.start.CwdInside = true
	}
	argv := p.Argv
	if p.Command != nil {
		var err error
		if argv, err = shellFor(goruntime.GOOS, p.Shell, *p.Command, installed); err != nil {
			return nil, err
		}
	}
	c.start.Cmd, c.start.Args = argv[0], argv[1:]
	for k, v := range p.Env {
		c.start.Env[k] = v
	}
	c.start.Env["PYTHONIOENCODING"] = "utf-8"
	if p.Timeout != nil && *p.Timeout < int64(limit/time.Second)+1 {
		limit = min(limit, time.Duration(*p.Timeout)*time.Second)
	}
	c.start.TimeoutMS, c.start.GraceMS = int(limit.Milliseconds()), int(grace.Milliseconds())
	return c, nil
}

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// shellFor is what runs a shell text on an operating system.
func shellFor(goos, shell, text string, there func(string) bool) ([]string, error) {
	power := func(name string) []string { return []string{name, "-NoLogo", "-NoProfile", "-Command", text} }
	missing := wire.Errorf(msg.CodeShellMissing, "This computer has no %s to run the command with.", shell)
	windows := goos == "windows"
	switch {
	case shell == "auto" && windows, shell == "cmd" && windows:
		return []string{"cmd.exe", "/C", "chcp 65001 >NUL & " + text}, nil
	case shell == "auto" && there("bash"):
		return []string{"bash", "-c", text}, nil
	case shell == "auto":
		return []string{"sh", "-c", text}, nil
	case shell == "cmd", shell == "powershell" && !windows, windows && (shell == "sh" || shell == "zsh"):
		return nil, missing
	case !there(shell):
		return nil, missing
	case shell == "pwsh", shell == "powershell":
		return power(shell), nil
	}
	return []string{shell, "-c", text}, nil
}

func (c *command) request() (wire.Type, wire.Payload) { return wire.TypeProcessStart, &c.start }

// send keeps the output, first come first kept; what is over the budget is
// taken too, so that the command never waits.
func (c *command) send(_ wire.Type, p wire.Payload) error {
	switch p := p.(type) {
	case *wire.ProcessStarted:
		c.began = time.Now()
	case *wire.ProcessOutput:
		to := &c.stdout
		if p.Stream == "stderr" {
			to = &c.stderr
		}
		room := c.budget - c.stdout.Len() - c.stderr.Len()
		if len(p.Data) > room {
			c.cut = true
		}
		to.Write(p.Data[:min(len(p.Data), room)])
	}
	return nil
}

func (c *command) reply(p wire.Payload) (msg.Type, wire.Payload, error) {
	exit, ok := p.(*wire.ProcessExited)
	if !ok {
		return "", nil, wire.Errorf(msg.CodeInternal, "The command ended in a way that is not understood here.")
	}
	out, errs, cut := c.stdout.Bytes(), c.stderr.Bytes(), c.cut || exit.Truncated
	if cut {
		out, errs = mark(out, errs, c.budget)
	}
	r := &msg.Result{Stdout: text(out), Stderr: text(errs), ExitCode: exit.ExitCode, TimedOut: exit.TimedOut, Truncated: cut}
	if n := signalNumber(exit.Signal); exit.Signal != "" && n > 0 {
		r.ExitCode = -n
	}
	if !c.began.IsZero() {
		r.Duration = seconds(time.Since(c.began))
	}
	return msg.TypeResult, r, nil
}

// mark says at the end of stderr that output was cut. It stays within the
// budget: the tail of stdout gives way, then that of stderr.
func mark(out, errs []byte, budget int) ([]byte, []byte) {
	note := msg.TruncationMark[:min(len(msg.TruncationMark), budget)]
	over := max(0, len(out)+len(errs)+len(note)-budget)
	off := min(over, len(out))
	out, over = whole(out[:len(out)-off]), over-off
	errs = whole(errs[:len(errs)-over])
	return out, append(bytes.Clone(errs), note...)
}

// whole is b without a character at its end of which a part is missing.
func whole(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// text is UTF-8, with U+FFFD for each byte that is none.
func text(b []byte) string { return string([]rune(string(b))) }

// signalNumber is the number of a signal by the name that package syscall has
// for it; 0 for none.
func signalNumber(name string) int {
	for n := syscall.Signal(1); n < 65; n++ {
		if strings.EqualFold(n.String(), name) {
			return int(n)
		}
	}
	return 0
}
