//go:build unix

package shell

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// login is the PATH that the person's log-in sets, asked for once.
type login struct {
	done chan struct{}
	path string
}

// askLogin asks the person's own shell on a goroutine that wg waits for.
func askLogin(ctx context.Context, wg *sync.WaitGroup, known string) *login {
	l := &login{done: make(chan struct{}), path: known}
	if known != "" {
		close(l.done)
		return l
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer close(l.done)
		// Many an installer writes its PATH into a file for interactive
		// shells only.
		for _, flags := range [][]string{{"-l", "-i", "-c"}, {"-l", "-c"}} {
			if l.path = loginPath(ctx, flags); l.path != "" {
				return
			}
		}
		if l.path = os.Getenv("PATH"); l.path == "" {
			l.path = systemPath
		}
	}()
	return l
}

// get waits for the answer.
func (l *login) get(ctx context.Context) string {
	select {
	case <-l.done:
		return l.path
	case <-ctx.Done():
		return systemPath
	}
}

func loginPath(ctx context.Context, flags []string) string {
	shell := os.Getenv("SHELL")
	switch path.Base(shell) {
	case "bash", "zsh", "sh", "dash", "ksh", "fish":
	default:
		shell = "/bin/bash"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	const mark = "\x01localpc\x01"
	cmd := exec.CommandContext(ctx, shell, append(flags, `printf '\001localpc\001%s\001localpc\001' "$PATH"`)...)
	cmd.Env = []string{"PATH=" + systemPath, "TERM=dumb"}
	for _, k := range []string{"HOME", "USER", "LOGNAME", "SHELL", "LANG"} {
		if v := os.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	cmd.Dir = "/"
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.WaitDelay = 200 * time.Millisecond
	// A session of its own, ended as a whole: start-up files start things.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	_ = cmd.Run()
	parts := strings.Split(out.String(), mark)
	if len(parts) < 3 || !strings.Contains(parts[1], "/") || strings.ContainsAny(parts[1], "\x00\n") {
		return ""
	}
	return parts[1]
}
