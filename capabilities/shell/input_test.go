//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// typist is the hub's end of what follows a command.
type typist struct {
	ch    chan wire.Follow
	mu    sync.Mutex
	taken int // bytes; guarded by mu
}

func (y *typist) Next(ctx context.Context) (wire.Follow, error) {
	select {
	case f, ok := <-y.ch:
		if !ok {
			return nil, io.EOF
		}
		if d, ok := f.(*wire.ProcessInput); ok {
			y.mu.Lock()
			y.taken += len(d.Data)
			y.mu.Unlock()
		}
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (y *typist) bytes() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.taken
}

// fed is a command under way that takes input.
type fed struct {
	*running
	t *testing.T
	y *typist
}

func feed(ctx context.Context, t *testing.T, s *shell.Shell, ses *capabilities.Session, choice consent.Choice, p *wire.ProcessStart) *fed {
	t.Helper()
	y := &typist{ch: make(chan wire.Follow)}
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, p)
	call.Input = y
	return &fed{beginCall(ctx, t, s, choice, call), t, y}
}

func (f *fed) send(x wire.Follow) {
	f.t.Helper()
	select {
	case f.y.ch <- x:
	case <-time.After(20 * time.Second):
		f.t.Fatal("nobody takes the input")
	}
}

func (f *fed) types(text string) { f.t.Helper(); f.send(&wire.ProcessInput{Data: []byte(text)}) }

// reads waits until the output of a stream has all of want.
func (f *fed) reads(stream string, want ...string) string {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got := string(f.out.Contents(stream))
		all := true
		for _, w := range want {
			all = all && strings.Contains(got, w)
		}
		if all {
			return got
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%q is not in %q", want, got)
		}
	}
}

func (f *fed) exit() *wire.ProcessExited {
	f.t.Helper()
	if err := f.wait(f.t); err != nil {
		f.t.Fatal(err)
	}
	return f.res.Payload.(*wire.ProcessExited)
}

func TestStandardInput(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			cat := &wire.ProcessStart{SessionID: ses.ID, Cmd: "cat", Stdin: true}

			f := feed(t.Context(), t, s, ses, choice, cat)
			f.types("one\n")
			f.reads("stdout", "one\n")
			f.types("tw\xc3")
			f.send(&wire.ProcessInput{Data: []byte("\xa4o"), End: true})
			f.send(&wire.ProcessInput{Data: []byte("after the end")})
			if e := f.exit(); e.ExitCode != 0 || string(f.out.Contents("stdout")) != "one\ntwäo" {
				t.Errorf("%+v, %q", e, f.out.Contents("stdout"))
			}
			// Without it there is nothing to be read.
			if r := do(t, s, ses, choice, &wire.ProcessStart{SessionID: ses.ID, Cmd: "cat"}); r.out != "" || r.took > 10*time.Second {
				t.Errorf("%q after %v", r.out, r.took)
			}
			// Whole lines to a shell.
			f = feed(t.Context(), t, s, ses, choice, &wire.ProcessStart{SessionID: ses.ID, Cmd: "/bin/bash", Stdin: true})
			f.types("x=7\necho $((x*6))\n")
			f.reads("stdout", "42\n")
			f.types("exit 5\n")
			if e := f.exit(); e.ExitCode != 5 {
				t.Errorf("%+v", e)
			}
			// All bytes arrive, in order.
			data := make([]byte, 3<<20)
			for i := range data {
				data[i] = byte(i*7 + i>>11)
			}
			p := bash(ses, "sleep 0.2; cat > got")
			p.Stdin = true
			f = feed(t.Context(), t, s, ses, choice, p)
			for i := 0; i < len(data); i += wire.MaxChunk {
				f.send(&wire.ProcessInput{Data: data[i:min(i+wire.MaxChunk, len(data))]})
			}
			f.send(&wire.ProcessInput{End: true})
			_ = f.exit()
			if b, err := os.ReadFile(filepath.Join(ses.Folder, "got")); err != nil || !bytes.Equal(b, data) {
				t.Errorf("%d of %d bytes are the same, %v", len(b), len(data), err)
			}
		})
	}
}

// A command that does not read holds up nothing but its own input; one that has
// ended, or has closed its input, drops the rest.
func TestInputThatNobodyReads(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			p := bash(ses, "echo before; sleep 3; echo after; exit 3")
			p.Stdin = true
			f := feed(t.Context(), t, s, ses, choice, p)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case f.y.ch <- &wire.ProcessInput{Data: make([]byte, 64<<10)}:
					case <-stop:
						return
					}
				}
			}()
			f.reads("stdout", "before\n")
			time.Sleep(500 * time.Millisecond)
			if n := f.y.bytes(); n > 1<<20 || strings.Contains(string(f.out.Contents("stdout")), "after") {
				t.Errorf("%d bytes were taken for a command that reads none", n)
			}
			f.reads("stdout", "after\n")
			if e := f.exit(); e.ExitCode != 3 {
				t.Errorf("%+v", e)
			}
			close(stop)
			<-stopped

			p = bash(ses, "exec 0<&-; sleep 0.5; echo closed")
			p.Stdin = true
			f = feed(t.Context(), t, s, ses, choice, p)
			time.Sleep(100 * time.Millisecond)
			for range 40 {
				f.types(strings.Repeat("x", 64<<10))
			}
			if e := f.exit(); e.ExitCode != 0 || string(f.out.Contents("stdout")) != "closed\n" {
				t.Errorf("%+v, %q", e, f.out.Contents("stdout"))
			}
			// A child that was left behind sees the end of it.
			p = bash(ses, "(cat; echo ended > mark) <&0 >/dev/null & sleep 0.1")
			p.Stdin = true
			f = feed(t.Context(), t, s, ses, choice, p)
			_ = f.exit()
			eventually(t, "a child reads the end of its input", func() bool {
				_, err := os.Stat(filepath.Join(ses.Folder, "mark"))
				return err == nil
			})
		})
	}
}

// The end of the request ends a command that is being fed, as any other.
func TestCancelWhileFed(t *testing.T) {
	for name, choice := range modes {
		for kind, change := range map[string]func(*wire.ProcessStart){
			"input":    func(p *wire.ProcessStart) { p.Stdin = true },
			"terminal": func(p *wire.ProcessStart) { p.PTY = &wire.TerminalSize{Cols: 80, Rows: 24} },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				s := newShell(t)
				ses := capabilitytest.NewSession(t, consent.ModeWork)
				n := uniqueSleep()
				p := bash(ses, "(sleep "+n+"; true) & sleep "+n+"; true")
				change(p)
				ctx, cancel := context.WithCancel(t.Context())
				f := feed(ctx, t, s, ses, choice, p)
				eventually(t, "it sleeps", func() bool { return sleeping(n) == 2 })
				cancel()
				if err := f.wait(t); wire.CodeOf(err) != wire.CodeCancelled {
					t.Errorf("%v", err)
				}
				if got := sleeping(n); got != 0 {
					t.Errorf("%d still run", got)
				}
				// So does its time limit.
				p.TimeoutMS = 300
				f = feed(t.Context(), t, s, ses, choice, p)
				if e := f.exit(); !e.TimedOut || sleeping(n) != 0 {
					t.Errorf("%+v, %d still run", e, sleeping(n))
				}
			})
		}
	}
}

func at(ses *capabilities.Session, cols, rows int, argv ...string) *wire.ProcessStart {
	return &wire.ProcessStart{SessionID: ses.ID, Cmd: argv[0], Args: argv[1:], PTY: &wire.TerminalSize{Cols: cols, Rows: rows}}
}

func TestTerminal(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			f := feed(t.Context(), t, s, ses, choice, at(ses, 91, 33, "/bin/bash", "-i", "-l"))
			f.types("stty size; tty; test -t 0 -a -t 1 -a -t 2 && echo a''ll of it; echo $TERM; ps -o tty= -p $$; ls -l $(tty) >/dev/null && echo th''ere\n")
			got := f.reads("pty", "33 91\r\n", "all of it\r\n", "xterm-256color\r\n", "there\r\n")
			if !regexp.MustCompile(`(?m)^/dev/pts/\d+\r$`).MatchString(got) || !regexp.MustCompile(`(?m)^pts/\d+ *\r$`).MatchString(got) {
				t.Errorf("it has no name: %q", got)
			}
			// A new size is told.
			f.types("bash -c 'trap \"stty size; exit\" WINCH; echo re''ady; while :; do sleep 0.1; done'\n")
			f.reads("pty", "ready\r\n")
			f.send(&wire.TerminalSize{Cols: 100, Rows: 44})
			f.reads("pty", "44 100\r\n")
			// Keys that signal: Ctrl-C ends what runs in front, Ctrl-Z stops it.
			n := uniqueSleep()
			f.types("sleep " + n + "; echo after $?\n")
			eventually(t, "it sleeps", func() bool { return sleeping(n) == 1 })
			f.types("\x03")
			f.reads("pty", "^C")
			eventually(t, "Ctrl-C ends it", func() bool { return sleeping(n) == 0 })
			f.types("sleep " + n + "\n")
			eventually(t, "it sleeps", func() bool { return sleeping(n) == 1 })
			f.types("\x1a")
			f.reads("pty", "Stopped")
			f.types("jobs; kill %1; fg; echo in fr''ont again\n")
			f.reads("pty", "in front again\r\n")
			// What is typed unseen is not shown.
			f.types("read -s -p 'word: ' w; echo; echo it has ${#w} letters\n")
			f.reads("pty", "\rword: ")
			f.types("secret\n")
			if got := f.reads("pty", "it has 6 letters\r\n"); strings.Contains(got, "secret") {
				t.Errorf("an unseen word was shown: %q", got)
			}
			f.send(&wire.ProcessInput{End: true})
			if e := f.exit(); e.ExitCode != 0 || e.Truncated {
				t.Errorf("%+v", e)
			}
			if b := f.out.Contents("stdout"); len(b) != 0 {
				t.Errorf("a terminal has no standard output: %q", b)
			}
		})
	}
}

// The end of the input is the key for it, in the middle of a line too; what was
// written just before the exit is there; a program's whole screen arrives.
func TestTerminalEnds(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			for _, text := range []string{"whole line\n", "half a line", "both\nof them"} {
				f := feed(t.Context(), t, s, ses, choice, at(ses, 80, 24, "/usr/bin/python3", "-c", "import sys; d = sys.stdin.read(); print('got', repr(d))"))
				f.types(text)
				f.send(&wire.ProcessInput{End: true})
				if e := f.exit(); e.ExitCode != 0 {
					t.Errorf("%+v", e)
				}
				if want := "got '" + strings.ReplaceAll(text, "\n", `\n`) + "'\r\n"; !strings.Contains(string(f.out.Contents("pty")), want) {
					t.Errorf("%q is not in %q", want, f.out.Contents("pty"))
				}
			}
			for range 5 {
				r := do(t, s, ses, choice, at(ses, 80, 24, "/bin/bash", "-l", "-c", "head -c 200000 /dev/zero | tr '\\0' x; echo; echo last words; exit 9"))
				got := strings.ReplaceAll(string(r.pty), "\r\n", "\n")
				if r.exit.ExitCode != 9 || len(got) != 200000+len("\nlast words\n") || !strings.HasSuffix(got, "last words\n") {
					t.Fatalf("%+v, %d bytes, the end is %q", r.exit, len(got), got[max(0, len(got)-40):])
				}
			}
			// A pager and an editor draw their screens, and take keys.
			if err := os.WriteFile(filepath.Join(ses.Folder, "long.txt"), []byte(strings.Repeat("a line\n", 100)+"the end\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			f := feed(t.Context(), t, s, ses, choice, at(ses, 40, 10, "less", "long.txt"))
			f.reads("pty", "a line")
			f.types("G")
			f.reads("pty", "the end")
			f.types("q")
			if e := f.exit(); e.ExitCode != 0 {
				t.Errorf("%+v", e)
			}
			f = feed(t.Context(), t, s, ses, choice, at(ses, 60, 15, "vi", "-u", "NONE", "new.txt"))
			f.reads("pty", "new.txt")
			f.types("ihello from an editor\x1b:wq\r")
			if e := f.exit(); e.ExitCode != 0 {
				t.Errorf("%+v", e)
			}
			if b, err := os.ReadFile(filepath.Join(ses.Folder, "new.txt")); err != nil || string(b) != "hello from an editor\n" {
				t.Errorf("%q, %v", b, err)
			}
			// A child that outlives the shell is told that its terminal has gone.
			n := uniqueSleep()
			f = feed(t.Context(), t, s, ses, choice, at(ses, 80, 24, "/bin/bash", "-i"))
			f.types("(trap '' HUP; sleep " + n + "; true) &\n")
			eventually(t, "it sleeps", func() bool { return sleeping(n) == 1 })
			f.types("exit 4\n")
			if e := f.exit(); e.ExitCode != 4 || e.Running == 0 {
				t.Errorf("%+v", e)
			}
			if err := s.EndSession(context.Background(), ses.ID); err != nil || sleeping(n) != 0 {
				t.Errorf("%v, %d still run", err, sleeping(n))
			}
		})
	}
}

// HKUDS/nanobot#2323, opencode#1852: what wants a terminal and has none fails
// in seconds, with input to read as well.
func TestNoTerminalToWaitFor(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			for _, text := range []string{"exec 3<>/dev/tty", "tty", "stty size", "/usr/bin/python3 -c 'import getpass, sys; sys.stdin.close(); getpass.getpass()'"} {
				p := bash(ses, text)
				p.Stdin = true
				f := feed(t.Context(), t, s, ses, choice, p)
				if e := f.exit(); e.ExitCode == 0 {
					t.Errorf("%s worked: %q", text, f.out.Contents(""))
				}
			}
		})
	}
}

// What is typed later was not shown: a shell or a language that reads it is
// asked about in a folder where all else runs, with words that say so; a program
// that takes it as data is not.
func TestWhatIsTypedLaterIsAskedAbout(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, c := range []struct {
		p     *wire.ProcessStart
		asked string
	}{
		{at(ses, 80, 24, "/bin/bash", "-i", "-l"), "Opens a terminal. What is typed there runs without being shown first."},
		{at(ses, 80, 24, "vim", "x"), "Opens a terminal. What is typed there runs without being shown first."},
		{at(ses, 80, 24, "cat"), ""},
		{&wire.ProcessStart{SessionID: ses.ID, Cmd: "/bin/bash", Stdin: true}, "What it is sent later runs without being shown first."},
		{&wire.ProcessStart{SessionID: ses.ID, Cmd: "python3", Stdin: true}, "What it is sent later runs without being shown first."},
		{&wire.ProcessStart{SessionID: ses.ID, Cmd: "cat", Stdin: true}, ""},
	} {
		d := describe(t, s, ses, c.p)
		asked := verdict(ses, d) == ""
		if asked != (c.asked != "") {
			t.Errorf("%s: asked %v", d.Exact, asked)
		}
		if c.asked == "" {
			continue
		}
		words := strings.Join(d.Steps, "\n")
		for _, e := range d.Effects {
			words += "\n" + e.Text
		}
		if strings.Count(strings.ToLower(words), strings.ToLower(c.asked)) < 2 || len(d.Scopes) != 1 || d.Scopes[0] != consent.Session || d.Rule.Env == "" {
			t.Errorf("%s: scopes %v, rule %+v, %s", d.Exact, d.Scopes, d.Rule, words)
		}
		// What was allowed without is not allowed with it.
		without := *c.p
		without.Stdin, without.PTY = false, nil
		o := describe(t, s, ses, &without)
		if o.Rule == d.Rule || consent.DigestOf(o.Payload) == consent.DigestOf(d.Payload) {
			t.Errorf("%s: the same with and without", d.Exact)
		}
	}
}
