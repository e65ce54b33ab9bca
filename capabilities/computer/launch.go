package computer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// program is what is to be started.
type program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
}

// find looks a program up, on the person's own PATH.
func (c *Computer) find(p *wire.AppLaunch) (program, os.FileInfo, error) {
	if runtime.GOOS == "darwin" && p.BundleID != "" {
		fi, err := os.Stat("/usr/bin/open")
		return program{Path: "/usr/bin/open", Args: append([]string{"-b", p.BundleID, "--args"}, p.Args...)}, fi, err
	}
	name := p.ExecutablePath
	if name == "" {
		return program{}, nil, wire.Errorf(wire.CodeNotSupported, "Programs are started by the path or the name of their file here, not by a bundle id.").With(map[string]any{"feature": "bundle_id"})
	}
	missing := func(err error) error {
		return wire.Wrap(err, wire.CodePathNotFound, "There is no program %s on this computer that could be started.", name)
	}
	path := name
	if !filepath.IsAbs(name) {
		if strings.ContainsAny(name, `/\`) {
			return program{}, nil, wire.Errorf(wire.CodeInvalid, "Name a program by its absolute path, or by the name of its file alone.")
		}
		var err error
		if path, err = lookPath(name, c.o.Environ()); err != nil {
			return program{}, nil, missing(err)
		}
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || runtime.GOOS != "windows" && fi.Mode().Perm()&0o111 == 0 {
		return program{}, nil, missing(err)
	}
	return program{Path: path, Args: append([]string{}, p.Args...)}, fi, nil
}

// lookPath finds name on the PATH of env.
func lookPath(name string, env []string) (string, error) {
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue // a folder that is relative to where nobody looks
			}
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", exec.ErrNotFound
}

// launch starts a program with the person's own rights. It is asked each time,
// unless its exact text was allowed for the session.
func (c *Computer) launch(ctx context.Context, s *session, p *wire.AppLaunch) (job, error) {
	if _, err := c.able(ctx, hands.AbilityInput); err != nil {
		return job{}, err
	}
	what, fi, err := c.find(p)
	if err != nil {
		return job{}, err
	}
	exact := quoted(what.Path)
	for _, a := range what.Args {
		exact += " " + quoted(a)
	}
	name := filepath.Base(what.Path)
	d := capabilities.Description{Action: actLaunch, Title: "Start " + clipped(name, 60), Sentence: "%s wants to start the program " + clipped(name, 60) + ".", Exact: exact,
		Details: []string{"It runs with all your rights, like a program that you start yourself, and goes on when the session has ended."},
		Effects: []consent.Effect{{Kind: consent.EffectRun, Text: "starts " + clipped(name, 60)}, {Kind: consent.EffectControl, Text: "opens its window on your screen"}},
		Risk:    consent.RiskHigh, Payload: []any{"launch", what},
		Fingerprint: fmt.Sprintf("%s %d %d", what.Path, fi.Size(), fi.ModTime().UnixNano()),
		Rule:        capabilities.RuleParts{Exact: exact}, Scopes: []consent.Scope{consent.Session}}
	return job{d: d, run: func(ctx context.Context, g consent.Grant) (capabilities.Result, error) {
		_, done, err := c.touch(ctx, s, use{once: true}, c.o.thaw)
		if err != nil {
			return capabilities.Result{}, err
		}
		defer done()
		pid, err := start(what, c.o.Environ())
		if err != nil {
			return capabilities.Result{}, wire.Wrap(err, wire.CodeForbidden, "This computer's system did not start %s.", name)
		}
		c.mu.Lock()
		c.children = append(c.children, pid)
		if !c.reaping && !c.closed {
			c.reaping = true
			c.wg.Go(c.reaps)
		}
		c.mu.Unlock()
		return capabilities.Result{Type: wire.TypeAppLaunched, Payload: &wire.AppLaunched{PID: pid}, Outcome: fmt.Sprintf("started, process %d", pid)}, nil
	}}, nil
}

// reapEvery is how long what is left of a program stays after it has ended.
const reapEvery = time.Second

// reaps takes away what is left of programs that have ended, until there are no
// more, or the Computer is closed.
func (c *Computer) reaps() {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.quit:
			return
		}
		c.reap()
		c.mu.Lock()
		c.reaping = len(c.children) > 0
		more := c.reaping
		c.mu.Unlock()
		if !more {
			return
		}
	}
}

// quoted is one word of a command line for a person: in quotes where it is not
// plain. Nothing parses it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return fmt.Sprintf("%q", s)
}
