//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/snapshot"
)

// runningProgram is one, as far as its control socket shows.
type runningProgram struct {
	paths settings.Paths

	mu        sync.Mutex
	snap      snapshot.Snapshot
	intents   []snapshot.Intent
	cancelled chan struct{}
	answer    chan error // of the pairing
}

func newRunningProgram(t testing.TB) *runningProgram {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &runningProgram{paths: settings.Paths{Data: dir}, cancelled: make(chan struct{}), answer: make(chan error, 1)}
	server, err := control.Listen(p.paths.Socket(), control.Handler{Snapshot: func() snapshot.Snapshot {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.snap
	}, Intend: p.intend}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return p
}

func (p *runningProgram) intend(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
	p.mu.Lock()
	p.intents = append(p.intents, in)
	p.mu.Unlock()
	if in.Kind == snapshot.CheckSecrets {
		return snapshot.Reply{Text: "kept in an encrypted file"}, nil
	}
	if in.Kind == snapshot.CancelPair {
		close(p.cancelled)
		return snapshot.Reply{}, nil
	}
	select {
	case err := <-p.answer:
		return snapshot.Reply{Text: "Paired."}, err
	case <-p.cancelled:
		return snapshot.Reply{}, errors.New("Pairing was cancelled.")
	case <-ctx.Done():
		return snapshot.Reply{}, ctx.Err()
	}
}

func (p *runningProgram) shows(fn func(*snapshot.Snapshot)) {
	p.mu.Lock()
	fn(&p.snap)
	p.mu.Unlock()
}

// output is what a command prints, while it prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) until(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		o.mu.Lock()
		text := o.b.String()
		o.mu.Unlock()
		missing := ""
		for _, w := range words {
			if !strings.Contains(text, w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it does not say %q:\n%s", missing, text)
		}
	}
}

func TestPairSaysWhatToDo(t *testing.T) {
	t.Setenv("DISPLAY", ":9")
	p := newRunningProgram(t)
	out := &output{}
	c := &cli{paths: p.paths, out: out}
	done := make(chan error, 1)
	go func() { done <- pair(c, []string{"hub.example"}) }()
	until := time.Now().Add(10 * time.Minute)
	p.shows(func(s *snapshot.Snapshot) {
		s.Connect.SignIn = &snapshot.SigningIn{Stage: snapshot.SignInBrowser, URL: "https://hub.example/oauth?x=\x1b[2J", Match: "0427", Until: until}
	})
	out.until(t, "Open this page in a browser", "https://hub.example/oauth?x=", "Check that it shows  0427", "Waiting until "+until.Local().Format("15:04"), "Ctrl+C cancels")
	p.shows(func(s *snapshot.Snapshot) {
		s.Connect.SignIn = &snapshot.SigningIn{Stage: snapshot.SignInCode, URL: "https://hub.example/pair", UserCode: "BCDF-GHJK", Until: until}
	})
	out.until(t, "Open this page on any device", "https://hub.example/pair", "BCDF-GHJK")
	p.shows(func(s *snapshot.Snapshot) { s.Connect.SignIn = &snapshot.SigningIn{Stage: snapshot.SignInFinishing} })
	out.until(t, "You have agreed.")
	p.answer <- nil
	if err := <-done; err != nil {
		t.Error(err)
	}
	out.until(t, "Paired.")
	if strings.Contains(out.b.String(), "\x1b") {
		t.Error("what the hub sent is written to the terminal as it is")
	}
	if n := strings.Count(out.b.String(), "0427"); n != 1 {
		t.Errorf("the same is said %d times", n)
	}
}

// What goes over the control socket for each command line, and which are wrong.
func TestPairCommandLine(t *testing.T) {
	own := &snapshot.AutoGPT{Web: "https://web.example", API: "https://api.example", WS: "wss://ws.example"}
	for line, want := range map[string]snapshot.Intent{
		"this":                {Text: "this"},
		"hub.example":         {Text: "hub.example"},
		"hub.example --code":  {Text: "hub.example", Way: "code"},
		"https://hub.ex#line": {Text: "https://hub.ex#line"},
		"autogpt":             {Text: "autogpt"},
		"autogpt --web https://web.example --api https://api.example --ws wss://ws.example": {Text: "autogpt", AutoGPT: own},
	} {
		t.Setenv("DISPLAY", ":9")
		p := newRunningProgram(t)
		p.answer <- nil
		if code := realMain(append([]string{"pair", "--data", p.paths.Data}, strings.Fields(line)...)); code != exitOK {
			t.Errorf("pair %s ended with %d", line, code)
		}
		got := p.intents[0]
		if got.Kind != snapshot.Pair || got.Text != want.Text || got.Way != want.Way || (got.AutoGPT == nil) != (want.AutoGPT == nil) || got.AutoGPT != nil && *got.AutoGPT != *want.AutoGPT {
			t.Errorf("pair %s asks for %+v", line, got)
		}
	}
	p := newRunningProgram(t)
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	p.answer <- nil
	if code := realMain([]string{"pair", "hub.example", "--data", p.paths.Data}); code != exitOK || p.intents[0].Way != "code" {
		t.Errorf("without a display: %d, %+v", code, p.intents)
	}
	p.answer <- errors.New("The sign-in was declined in the browser.")
	if code := realMain([]string{"pair", "hub.example", "--data", p.paths.Data}); code != exitFail {
		t.Errorf("declined: %d", code)
	}
	if code := realMain([]string{"pair", "hub.example", "--data", t.TempDir()}); code != exitFail {
		t.Errorf("nothing runs: %d", code)
	}
	for _, line := range []string{"", "one two", "autogpt --code", "hub.example --web https://x", "this --ports 1-2", "hub.example --hurry"} {
		if code := realMain(append([]string{"pair", "--data", p.paths.Data}, strings.Fields(line)...)); code != exitUsage {
			t.Errorf("pair %s ended with %d", line, code)
		}
	}
}

func TestInterruptCancelsThePairing(t *testing.T) {
	p := newRunningProgram(t)
	out := &output{}
	done := make(chan error, 1)
	go func() { done <- pair(&cli{paths: p.paths, out: out}, []string{"hub.example"}) }()
	p.shows(func(s *snapshot.Snapshot) {
		s.Connect.SignIn = &snapshot.SigningIn{Stage: snapshot.SignInCode, URL: "https://hub.example/pair", UserCode: "BCDF-GHJK"}
	})
	out.until(t, "Ctrl+C cancels") // so the signal is caught by now
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestStatusAndDoctorNameTheHub(t *testing.T) {
	p := newRunningProgram(t)
	p.shows(func(s *snapshot.Snapshot) {
		s.Machine, s.Line, s.State = "Anna's PC", "Online · nothing is running", snapshot.Online
		s.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Anna's hub", Address: "https://hub.example", Account: "Ana", Online: true, SignIn: "kept in the keychain", Proxy: "proxy.example:3128"}
	})
	out := &output{}
	c := &cli{paths: p.paths, out: out}
	if err := status(c, nil); err != nil {
		t.Fatal(err)
	}
	out.until(t, "Paired with Anna's hub as Ana (https://hub.example)", "Sign-in: kept in the keychain", "Through the proxy proxy.example:3128")
	if err := doctor(c, nil); err != nil {
		t.Fatal(err)
	}
	out.until(t, "ok  hub        Paired with Anna's hub as Ana", "ok  sign-in    kept in the keychain", "ok  proxy      the hub is reached through proxy.example:3128", "ok  secrets    kept in an encrypted file")
	p.shows(func(s *snapshot.Snapshot) {
		s.State, s.Problem, s.Hub.Online, s.Hub.SignIn, s.Hub.Proxy = snapshot.SignIn, "The hub disconnected this computer.", false, "ended", ""
		s.Connect.SignIn = &snapshot.SigningIn{Stage: snapshot.SignInCode, URL: "https://hub.example/pair", UserCode: "BCDF-GHJK"}
	})
	out = &output{}
	c.out = out
	if err := errors.Join(status(c, nil), doctor(c, nil)); err != nil {
		t.Fatal(err)
	}
	out.until(t, "BCDF-GHJK", "Sign-in: ended", "!   sign-in    ended", "!   hub        Paired with Anna's hub as Ana (https://hub.example)", ": The hub disconnected this computer.", "without a proxy")
	p.shows(func(s *snapshot.Snapshot) { s.Hub = snapshot.Hub{} })
	if err := doctor(c, nil); err != nil {
		t.Fatal(err)
	}
	out.until(t, "!   hub        not paired")
}
