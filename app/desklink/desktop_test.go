//go:build unix

package desklink_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

// TestMain is also the fake desktop: a real process that speaks the protocol
// as localpc-desktop does, and draws nothing.
func TestMain(m *testing.M) {
	if manner := os.Getenv("DESKLINK_TEST_DESKTOP"); manner != "" {
		fakeDesktop(manner)
		os.Exit(0)
	}
	if manner := os.Getenv("DESKLINK_TEST_HANDS"); manner != "" {
		serveFakeHands(manner)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeDesktop shows each card at once, unless its manner says otherwise.
// Requests named "allow…" are answered.
func fakeDesktop(manner string) {
	send := func(u desklink.Up) {
		b, _ := json.Marshal(u)
		os.Stdout.Write(append(b, '\n'))
	}
	tell := func(format string, args ...any) {
		send(desklink.Up{Intent: &snapshot.Intent{Kind: snapshot.Find, Text: fmt.Sprintf(format, args...)}})
	}
	windows := func(n int) { send(desklink.Up{Windows: &n}) }
	switch manner {
	case "deaf": // reads nothing and never ends
		time.Sleep(time.Minute)
	case "babbling":
		os.Stdout.WriteString("Gtk-WARNING: something\n\n{\"shown\":7}\nnull\n[]\n{}\n\xff\xfe\n{\"of_a_later_version\":{}}\n")
		fmt.Fprintln(os.Stderr, strings.Repeat("a very long complaint ", 10_000))
	}
	send(desklink.Up{Ready: &desklink.Ready{PID: os.Getpid()}})
	if manner == "slow" {
		time.Sleep(700 * time.Millisecond)
	}
	in := bufio.NewReader(os.Stdin)
	snapshots, last := 0, uint64(0)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if manner == "clinging" {
				time.Sleep(time.Minute)
			}
			return
		}
		var d desklink.Down
		if err := json.Unmarshal(line, &d); err != nil {
			os.Exit(5)
		}
		switch {
		case d.Card != nil && d.Card.Update:
			tell("updated %s: %d folded, digits %s, denied %d", d.Card.Request.ID, len(d.Card.Folded), d.Card.Digits, d.Card.Denied)
		case d.Card != nil && manner == "blind":
		case d.Card != nil && manner == "dumb": // its side of the link is closed, and it stays
			os.Stdout.Close()
			time.Sleep(time.Minute)
		case d.Card != nil && manner == "endless":
			os.Stdout.WriteString(strings.Repeat("x", desklink.MaxLine+1) + "\n")
			time.Sleep(time.Minute)
		case d.Card != nil && manner == "earless": // its other side is
			os.Stdin.Close()
			send(desklink.Up{Shown: &desklink.CardRef{ID: d.Card.Request.ID}})
			time.Sleep(time.Minute)
		case d.Card != nil:
			send(desklink.Up{Shown: &desklink.CardRef{ID: d.Card.Request.ID}})
			if strings.HasPrefix(d.Card.Request.ID, "allow") {
				send(desklink.Up{Answer: &desklink.CardAnswer{ID: d.Card.Request.ID, Answer: consent.Answer{Allow: true, Via: "card",
					Choice: consent.Choice{Folder: d.Card.Digits + fmt.Sprint(d.Card.ArmMS) + fmt.Sprint(d.Card.Folders)}}}})
			}
		case d.Close != nil:
			tell("closed %s", d.Close.ID)
		case d.Look != nil:
			tell("look %s %d", d.Look.Screen, len(d.Look.Data))
		case d.Raise != nil:
			tell("raised")
		case d.Removed != nil:
			tell("removed %q %q", d.Removed.Problem, d.Removed.Notes) // refused: nobody is there to hear it
			if d.Removed.Problem == "" {
				go func() { time.Sleep(300 * time.Millisecond); windows(0) }()
			}
		case d.Show != nil:
			windows(1)
			if d.Show.Window == "count" {
				tell("%d snapshots, the last %d", snapshots, last)
			}
			if d.Show.Window == "shut" {
				windows(-3)
			}
		case d.Snapshot != nil:
			snapshots, last = snapshots+1, d.Snapshot.Seq
			if manner == "watching" {
				tell("snapshot %d", last)
			}
		case d.Found != nil, d.Told != nil:
			if d.Told != nil {
				tell("told %v: %s", d.Told.OK, d.Told.Text)
			}
		case d.Quit && manner == "clinging":
			// it does not want to
		case d.Quit:
			return
		}
	}
}

// events collects what a Host tells, in words.
type events struct {
	t  *testing.T
	ch chan string
	// asked answers intents; nil: with an empty reply.
	asked func(context.Context, snapshot.Intent) (snapshot.Reply, error)
}

func (e *events) want(what string) string {
	e.t.Helper()
	for {
		select {
		case got := <-e.ch:
			if strings.HasPrefix(got, what) {
				return got
			}
			e.t.Fatalf("told %q, want %q", got, what)
		case <-time.After(10 * time.Second):
			e.t.Fatalf("never told %q", what)
		}
	}
}

func (e *events) nothing(within time.Duration) {
	e.t.Helper()
	select {
	case got := <-e.ch:
		e.t.Fatalf("told %q", got)
	case <-time.After(within):
	}
}

func newHost(t *testing.T, manner string, idle time.Duration, more ...func(*desklink.HostOptions)) (*desklink.Host, *events) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	e := &events{t: t, ch: make(chan string, 1000)}
	o := desklink.HostOptions{
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "DESKLINK_TEST_DESKTOP="+manner, "GORACE=atexit_sleep_ms=0")
			return cmd
		},
		OnShown: func(id string) { e.ch <- "shown " + id },
		OnAnswer: func(id string, a consent.Answer) {
			e.ch <- fmt.Sprintf("answer %s %v %s", id, a.Allow, a.Choice.Folder)
		},
		OnIntent: func(ctx context.Context, in snapshot.Intent) (snapshot.Reply, error) {
			e.ch <- in.Text
			if e.asked != nil {
				return e.asked(ctx, in)
			}
			return snapshot.Reply{Entries: []snapshot.Entry{}}, nil
		},
		OnLost: func() { e.ch <- "lost" },
		Idle:   idle, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, m := range more {
		m(&o)
	}
	h := desklink.NewHost(o)
	t.Cleanup(func() { h.Close(); goleak.VerifyNone(t, leaks) })
	return h, e
}

func present(t *testing.T, h *desklink.Host, id string) {
	t.Helper()
	shown, err := h.Present(consent.Request{ID: id}, snapshot.CardInfo{Folders: []string{"/project"}})
	if err != nil || shown {
		t.Fatalf("presented: shown %v, %v", shown, err)
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
