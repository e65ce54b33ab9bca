//go:build unix

package companiontest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	textCap = 2785280
	rawCap  = 12533760
	mark    = "\n[command output truncated]\n"
)

type commandResult struct {
	Stdout    string  `json:"stdout"`
	Stderr    string  `json:"stderr"`
	ExitCode  int     `json:"exit_code"`
	TimedOut  bool    `json:"timed_out"`
	Duration  float64 `json:"duration_seconds"`
	Truncated bool    `json:"output_truncated"`
}

// budget keeps what comes first of two streams together.
type budget struct {
	mu   sync.Mutex
	left int
	cut  bool
}

type output struct {
	b    *budget
	data []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.b.mu.Lock()
	defer o.b.mu.Unlock()
	n := min(len(p), o.b.left)
	o.data = append(o.data, p[:n]...)
	o.b.left -= n
	o.b.cut = o.b.cut || n < len(p)
	return len(p), nil
}

func (s *socket) execute(ctx context.Context, raw json.RawMessage) (string, any, error) {
	p := params(raw, struct {
		Command *string           `json:"command"`
		Argv    []string          `json:"argv"`
		Shell   string            `json:"shell"`
		Cwd     *string           `json:"cwd"`
		Timeout *int              `json:"timeout_seconds"`
		Env     map[string]string `json:"env"`
	}{Shell: "auto"})
	if !s.c.o.Shell {
		return "", nil, s.notGranted("shell")
	}
	if !s.c.rate() {
		return "", nil, failf("SHIM_OVERLOADED", "too many commands a minute")
	}
	if (p.Command == nil) == (p.Argv == nil) || p.Argv != nil && len(p.Argv) == 0 {
		return "", nil, failf("INTERNAL_ERROR", "exactly one of command and argv is needed")
	}
	cwd := s.root
	if p.Cwd != nil {
		var f *fault
		if cwd, f = s.inside(*p.Cwd); f != nil {
			return "", nil, f
		}
	}
	argv := p.Argv
	if p.Command != nil {
		shell := map[string]string{"auto": "bash", "bash": "bash", "sh": "sh", "zsh": "zsh"}[p.Shell]
		path, err := exec.LookPath(shell)
		if err != nil && p.Shell == "auto" {
			path, err = exec.LookPath("sh")
		}
		if err != nil {
			return "", nil, failf("SHELL_NOT_AVAILABLE", "the shell %s is not available", p.Shell)
		}
		argv = []string{path, "-c", *p.Command}
	}
	limit := s.timeout
	if p.Timeout != nil {
		limit = min(limit, time.Duration(*p.Timeout)*time.Second)
	}
	b := &budget{left: int(min(s.fileSize, textCap))}
	total := b.left
	stdout, stderr := &output{b: b}, &output{b: b}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cwd, environment(p.Env), stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second
	began := time.Now()
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return "", nil, failf("SHELL_NOT_AVAILABLE", "%s is not there", argv[0])
		}
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	res := commandResult{}
	select {
	case <-ended:
	case <-timer.C:
		res.TimedOut = true
	case <-ctx.Done():
	}
	if res.TimedOut || ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(s.c.o.TermWait):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	res.ExitCode = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		res.ExitCode = -int(ws.Signal())
	}
	res.Duration = math.Round(time.Since(began).Seconds()*1000) / 1000
	b.mu.Lock()
	defer b.mu.Unlock()
	out, errs := stdout.data, stderr.data
	if b.cut {
		res.Truncated = true
		over := len(out) + len(errs) + len(mark) - total
		n := min(max(over, 0), len(out))
		out, over = out[:len(out)-n], over-n
		errs = append(errs[:len(errs)-min(max(over, 0), len(errs))], mark...)
	}
	res.Stdout, res.Stderr = strings.ToValidUTF8(string(out), "\uFFFD"), strings.ToValidUTF8(string(errs), "\uFFFD")
	return "COMMAND_RESULT", res, nil
}

// rate admits a command, if there were not too many within the minute.
func (c *Companion) rate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.starts) > 0 && time.Since(c.starts[0]) > time.Minute {
		c.starts = c.starts[1:]
	}
	if len(c.starts) >= c.o.CommandsPerMinute {
		return false
	}
	c.starts = append(c.starts, time.Now())
	return true
}

func environment(over map[string]string) []string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "HOME", "PATH", "LANG", "TZ", "TMPDIR", "USER", "SHELL":
			env[k] = v
		default:
			if strings.HasPrefix(k, "LC_") {
				env[k] = v
			}
		}
	}
	for k, v := range over {
		env[k] = v
	}
	env["PYTHONIOENCODING"] = "utf-8"
	list := []string{}
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return list
}
