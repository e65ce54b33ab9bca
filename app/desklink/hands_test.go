//go:build unix

package desklink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/desklink"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// fakeHands is a display that draws nothing: it writes what it is asked for
// into a file, one line each.
type fakeHands struct {
	manner string
	file   *os.File
	mu     sync.Mutex
	fn     func(hands.Event)
	clip   string
}

func serveFakeHands(manner string) {
	f, err := os.OpenFile(os.Getenv("DESKLINK_TEST_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(4)
	}
	h := &fakeHands{manner: manner, file: f}
	h.note("begin")
	if _, err := os.Stat(f.Name() + ".bad"); err == nil && manner == "never again" {
		os.Exit(9)
	}
	in, out, err := desklink.OpenLink()
	if err != nil {
		os.Exit(6)
	}
	if manner == "babbling" {
		fmt.Println("printed by a library")
		fmt.Fprintln(out, "not a message")
		time.Sleep(time.Minute)
	}
	if manner == "short-lived" {
		time.AfterFunc(300*time.Millisecond, func() { os.Exit(3) })
	}
	if err := desklink.ServeHands(context.Background(), in, out, h); err != nil {
		h.note("error %v", err)
		os.Exit(7)
	}
	h.note("end")
}

func (f *fakeHands) note(format string, args ...any) { fmt.Fprintf(f.file, format+"\n", args...) }

func (f *fakeHands) Abilities(context.Context) (hands.Abilities, error) {
	return hands.Abilities{System: "x11", Pictures: true, Why: map[string]string{"input": "there is none"}}, nil
}

func (f *fakeHands) Layout(context.Context) (space.Layout, error) {
	return space.Layout{Screens: []space.Screen{{Name: "DP-1", Device: image.Rect(-1920, 0, 0, 1080), Scale: 1.25}}}, nil
}

func (f *fakeHands) Shoot(ctx context.Context, a hands.Ask) (hands.Shot, error) {
	s := hands.Shot{Data: bytes.Repeat([]byte{0xff, 0, '\n'}, a.MaxBytes/3), Format: a.Format, At: time.Now(),
		View: space.View{ID: a.ID, Area: a.Area, Size: image.Pt(640, 480)}, Hidden: []string{"KeePassXC"}}
	switch a.ID {
	case "none":
		s.Stack = space.Stack{}
	case "asks": // the system asks the person about it
		time.Sleep(2 * time.Second)
	case "some":
		s.Stack = space.Stack{{ID: 7, Title: "a\nb\x00" + strings.Repeat("ü", 500), Frame: image.Rect(-5, -6, 7, 8)}}
	}
	return s, nil
}

func (f *fakeHands) Act(ctx context.Context, a hands.Action) error {
	f.note("act %s %s", a.Kind, a.Text)
	switch a.Kind {
	case hands.HoldKey:
		select {
		case <-ctx.Done():
			f.note("let go")
			return ctx.Err()
		case <-time.After(a.Hold):
		}
	case "slow":
		time.Sleep(time.Second)
	case "crash":
		panic("as asked")
	case "hang":
		select {}
	case "deaf":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Minute)
	case "out":
		return wire.Errorf(wire.CodeBounds, "That is not on a screen.").With(map[string]any{"requested_coordinate": []int{9, -9}})
	case "odd":
		return errors.New("the server said no")
	case "event":
		f.mu.Lock()
		fn := f.fn
		f.mu.Unlock()
		fn(hands.Event{Person: true, At: a.Seen})
	}
	return nil
}

func (f *fakeHands) Cursor(context.Context) (image.Point, error) { return image.Pt(-3, 4), nil }
func (f *fakeHands) Windows(context.Context) (space.Stack, error) {
	return space.Stack{{ID: 1, Class: "XTerm", Started: 99}}, nil
}
func (f *fakeHands) Focus(_ context.Context, w space.Window, raise bool, seen time.Time) error {
	f.note("focus %d %v %d", w.ID, raise, seen.Unix())
	return nil
}
func (f *fakeHands) ReadClipboard(_ context.Context, max int) (hands.Clip, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return hands.Clip{Text: f.clip, Owned: f.clip != "" && f.manner != "forgetful"}, nil
}
func (f *fakeHands) WriteClipboard(_ context.Context, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clip = text
	return nil
}
func (f *fakeHands) Control(_ context.Context, c hands.Control) error {
	f.note("control %v %s %v", c.On, c.Colour, c.Own)
	return nil
}
func (f *fakeHands) Release(context.Context) error {
	_, bad := os.Stat(f.file.Name() + ".bad")
	switch {
	case f.manner == "clinging" && bad == nil:
		return errors.New("the server said no")
	case f.manner == "slow to leave":
		f.note("leaving")
		time.Sleep(time.Second)
	}
	f.note("release")
	return nil
}
func (f *fakeHands) Target(_ context.Context, p []image.Point) error {
	f.note("target %v", p)
	return nil
}
func (f *fakeHands) Hits(context.Context) ([]image.Point, error) { return []image.Point{{1, 2}}, nil }
func (f *fakeHands) Listen(fn func(hands.Event)) {
	f.mu.Lock()
	f.fn = fn
	f.mu.Unlock()
}
func (f *fakeHands) Close() error { f.note("close"); return nil }

// handsTest is a Hands with such a process, and what that was asked for.
type handsTest struct {
	*desklink.Hands
	t      *testing.T
	file   string
	events chan hands.Event
}

func newHands(t *testing.T, manner string, more ...func(*desklink.HandsOptions)) *handsTest {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	h := &handsTest{t: t, file: filepath.Join(t.TempDir(), "asked"), events: make(chan hands.Event, 100)}
	o := desklink.HandsOptions{Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "DESKLINK_TEST_HANDS="+manner, "DESKLINK_TEST_FILE="+h.file, "GORACE=atexit_sleep_ms=0")
		return cmd
	}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, m := range more {
		m(&o)
	}
	h.Hands = desklink.NewHands(o)
	h.Listen(func(e hands.Event) { h.events <- e })
	t.Cleanup(func() {
		h.Close()
		goleak.VerifyNone(t, leaks)
		if t.Failed() {
			t.Log("it was asked:\n", strings.Join(h.asked(), "\n "))
		}
	})
	return h
}

// asked are the lines that the processes wrote so far.
func (h *handsTest) asked() []string {
	b, _ := os.ReadFile(h.file)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// want waits until the processes were asked for exactly this.
func (h *handsTest) want(lines ...string) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); !slices.Equal(h.asked(), lines); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("the processes were asked for %q, want %q", h.asked(), lines)
		}
	}
}

func (h *handsTest) event() hands.Event {
	h.t.Helper()
	select {
	case e := <-h.events:
		return e
	case <-time.After(20 * time.Second):
		h.t.Fatal("no event came")
		return hands.Event{}
	}
}

func (h *handsTest) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// hold begins an action that holds a key for an hour, and waits until it does.
func (h *handsTest) hold(ctx context.Context) chan error {
	h.t.Helper()
	n := len(h.asked())
	done := make(chan error, 1)
	go func() { done <- h.Act(ctx, hands.Action{Kind: hands.HoldKey, Hold: time.Hour}) }()
	for end := time.Now().Add(20 * time.Second); len(h.asked()) <= n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatal("the action did not begin")
		}
	}
	return done
}

func (h *handsTest) ended(done chan error) error {
	h.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		h.t.Fatal("the action did not end")
		return nil
	}
}

func TestHandsCross(t *testing.T) {
	h, ctx := newHands(t, "plain"), context.Background()
	if h.PID() != 0 {
		t.Error("it runs before it is needed")
	}
	h.must(h.Release(ctx))
	h.must(h.Control(ctx, hands.Control{}))
	if h.PID() != 0 {
		t.Error("it was started to let go of nothing")
	}
	a, err := h.Abilities(ctx)
	h.must(err)
	if !a.Pictures || a.Input || a.Why["input"] != "there is none" {
		t.Errorf("abilities came as %+v", a)
	}
	l, err := h.Layout(ctx)
	h.must(err)
	if want, _ := (&fakeHands{}).Layout(ctx); l.Fingerprint() != want.Fingerprint() {
		t.Errorf("the layout came as %+v", l)
	}
	for _, id := range []string{"", "none", "some"} {
		ask := hands.Ask{ID: id, Area: image.Rect(-1920, 0, 0, 1080), Format: hands.PNG, MaxBytes: 3 << 20}
		s, err := h.Shoot(ctx, ask)
		h.must(err)
		want, _ := (&fakeHands{}).Shoot(ctx, ask)
		if time.Since(s.At) > time.Minute {
			t.Errorf("taken at %v", s.At)
		}
		s.At, want.At = time.Time{}, time.Time{}
		if !reflect.DeepEqual(s, want) {
			s.Data, want.Data = nil, nil
			t.Errorf("picture %q came as %+v, want %+v", id, s, want)
		}
	}
	if p, err := h.Cursor(ctx); err != nil || p != image.Pt(-3, 4) {
		t.Errorf("cursor: %v, %v", p, err)
	}
	if w, err := h.Windows(ctx); err != nil || len(w) != 1 || w[0].Class != "XTerm" || w[0].Started != 99 {
		t.Errorf("windows: %v, %v", w, err)
	}
	text := "no UTF-8 \xff\x00 héllo 世界 🚀\r\n"
	h.must(h.WriteClipboard(ctx, text))
	if c, err := h.ReadClipboard(ctx, 100); err != nil || c.Text != text || !c.Owned {
		t.Errorf("clipboard: %+v, %v", c, err)
	}
	if p, err := h.Hits(ctx); err != nil || len(p) != 1 || p[0] != image.Pt(1, 2) {
		t.Errorf("hits: %v, %v", p, err)
	}
	h.must(h.Act(ctx, hands.Action{Kind: hands.Type, Text: "héllo 🚀"}))
	h.must(h.Focus(ctx, space.Window{ID: 1 << 60}, true, time.Unix(12, 0)))
	h.must(h.Control(ctx, hands.Control{On: true, Colour: "#ff8800", Own: []int{5, 6}}))
	h.must(h.Target(ctx, []image.Point{{3, 4}}))
	h.must(h.Target(ctx, nil))
	h.must(h.Release(ctx))
	at := time.Now().Add(-time.Hour)
	h.must(h.Act(ctx, hands.Action{Kind: "event", Seen: at}))
	if e := h.event(); !e.Person || !e.At.Equal(at) {
		t.Errorf("the event came as %+v", e)
	}
	pid := h.PID()
	h.must(h.Close())
	gone(t, pid)
	if _, err := h.Cursor(ctx); err == nil {
		t.Error("a closed one was asked, and answered")
	}
	h.want("begin", "act type héllo 🚀", "focus 1152921504606846976 true 12", "control true #ff8800 [5 6]", "target [(3,4)]", "target []", "release", "act event ", "release", "close", "end")
}

func TestHandsErrorsCross(t *testing.T) {
	h, ctx := newHands(t, "plain"), context.Background()
	err := h.Act(ctx, hands.Action{Kind: "out"})
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.CodeBounds || e.Message != "That is not on a screen." || fmt.Sprint(e.Details) != "map[requested_coordinate:[9 -9]]" {
		t.Errorf("it came as %+v", err)
	}
	if err := h.Act(ctx, hands.Action{Kind: "odd"}); err == nil || wire.CodeOf(err) != "" || err.Error() != "the server said no" {
		t.Errorf("it came as %v", err)
	}
	if _, err := h.Shoot(ctx, hands.Ask{MaxBytes: desklink.MaxBody + 3}); wire.CodeOf(err) != wire.CodeTooLarge {
		t.Errorf("a picture of 32 MiB: %v", err)
	}
	if err := h.WriteClipboard(ctx, strings.Repeat("x", desklink.MaxBody+1)); err == nil {
		t.Error("32 MiB went to the clipboard")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := h.Act(ended, hands.Action{Kind: "late"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
	if _, err := h.Cursor(ctx); err != nil {
		t.Error(err)
	}
	h.want("begin", "act out ", "act odd ")
}

// What ends an action, and what lets go, passes it.
func TestHandsAreFreeDuringAnAction(t *testing.T) {
	h := newHands(t, "plain")
	ctx, cancel := context.WithCancelCause(context.Background())
	done := h.hold(ctx)
	h.must(h.Release(context.Background()))
	if _, err := h.Cursor(context.Background()); err != nil {
		t.Error(err)
	}
	why := errors.New("the session has ended")
	cancel(why)
	if err := h.ended(done); !errors.Is(err, why) {
		t.Errorf("it ended with %v", err)
	}
	h.want("begin", "act hold-key ", "release", "let go")
}

// A process that was killed while it held a key: a fresh one lets go, has the
// frame drawn again, and only then does what is asked.
func TestHandsAreKilled(t *testing.T) {
	h, ctx := newHands(t, "plain"), context.Background()
	h.must(h.Control(ctx, hands.Control{On: true, Colour: "#123456"}))
	n := len(h.asked())
	done := h.hold(ctx)
	syscall.Kill(h.PID(), syscall.SIGKILL)
	err := h.ended(done)
	if wire.CodeOf(err) != wire.CodeInternal || !strings.Contains(err.Error(), "take a new picture") {
		t.Errorf("the action ended with %v", err)
	}
	h.must(h.Act(ctx, hands.Action{Kind: "after"}))
	if !h.event().Lost {
		t.Error("nothing told of the loss")
	}
	want := []string{"begin", "control true #123456 []", "control true #123456 []", "act hold-key ",
		"begin", "release", "control true #123456 []", "act after "}
	if n == 2 { // it was asked itself before it was told again
		want = slices.Delete(want, 1, 2)
	}
	h.want(want...)
}

func TestHandsCrash(t *testing.T) {
	h, ctx := newHands(t, "plain"), context.Background()
	if err := h.Act(ctx, hands.Action{Kind: "crash"}); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("the action ended with %v", err)
	}
	if !h.event().Lost {
		t.Error("nothing told of the loss")
	}
	h.want("begin", "act crash ", "begin", "release")
}

// A process that hangs is ended, be it that its request was, or that it takes
// far too long.
func TestHandsHang(t *testing.T) {
	h := newHands(t, "plain", func(o *desklink.HandsOptions) {
		o.Grace, o.Stuck, o.Asked = 300*time.Millisecond, 700*time.Millisecond, time.Millisecond
	})
	h.must(h.Act(context.Background(), hands.Action{Kind: "first"}))
	if err := h.Act(context.Background(), hands.Action{Kind: "hang"}); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("a request that hangs: %v", err)
	}
	h.event()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := h.Act(ctx, hands.Action{Kind: "deaf"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that has ended: %v", err)
	}
	if !h.event().Lost {
		t.Error("nothing told of the loss")
	}
	h.must(h.Act(context.Background(), hands.Action{Kind: "last"}))
	h.want("begin", "act first ", "act hang ", "begin", "release", "act deaf ", "begin", "release", "act last ")
}

// A picture for a card may take as long as the card is open: the person may be
// reading the system's own question.
func TestHandsWaitForTheSystemsQuestion(t *testing.T) {
	h := newHands(t, "plain", func(o *desklink.HandsOptions) {
		o.Grace, o.Stuck, o.Asked = 300*time.Millisecond, 700*time.Millisecond, time.Millisecond
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s, err := h.Shoot(ctx, hands.Ask{ID: "asks", MaxBytes: 30, Card: true}); err != nil || len(s.Data) == 0 {
		t.Errorf("a picture for a card: %v", err)
	}
	if _, err := h.Shoot(ctx, hands.Ask{ID: "asks", MaxBytes: 30}); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("another that takes far too long: %v", err)
	}
}

func TestHandsBabble(t *testing.T) {
	h := newHands(t, "babbling")
	if _, err := h.Cursor(context.Background()); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("asked for the cursor: %v", err)
	}
	h.must(h.Close())
}

func TestHandsCanNotBeStarted(t *testing.T) {
	h := newHands(t, "plain", func(o *desklink.HandsOptions) {
		o.Command = func() *exec.Cmd { return exec.Command("/nowhere/localpc-desktop") }
	})
	if _, err := h.Abilities(context.Background()); wire.CodeOf(err) != wire.CodeInternal || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("asked what works: %v", err)
	}
}

func TestHandsRest(t *testing.T) {
	h, ctx := newHands(t, "plain", func(o *desklink.HandsOptions) { o.Idle = 300 * time.Millisecond }), context.Background()
	h.must(h.Control(ctx, hands.Control{On: true}))
	pid := h.PID()
	time.Sleep(700 * time.Millisecond)
	if h.PID() != pid {
		t.Fatal("it went while a program has control")
	}
	h.must(h.WriteClipboard(ctx, "kept"))
	h.must(h.Control(ctx, hands.Control{}))
	time.Sleep(700 * time.Millisecond)
	if h.PID() != pid {
		t.Fatal("it went, and took what it had put on the clipboard along")
	}
	h.must(h.WriteClipboard(ctx, "")) // it is somebody else's now
	gone(t, pid)
	if _, err := h.Cursor(ctx); err != nil {
		t.Error(err)
	}
	select {
	case e := <-h.events:
		t.Errorf("an end that was to be was told as %+v", e)
	default:
	}
}

// The link ends while a key is held: localpc has died.
func TestHandsLetGoWithTheirLink(t *testing.T) {
	h := newHands(t, "plain")
	done := h.hold(context.Background())
	h.must(h.Close())
	if err := h.ended(done); err == nil {
		t.Error("the action was done")
	}
	got := h.asked()
	slices.Sort(got[2:4])
	if !slices.Equal(got, []string{"begin", "act hold-key ", "let go", "release", "close", "end"}) {
		t.Errorf("it was asked for %q", got)
	}
}

// One that has to be killed at the end held a key: somebody lets go of it.
func TestHandsAreKilledAtTheEnd(t *testing.T) {
	h := newHands(t, "plain")
	go h.Act(context.Background(), hands.Action{Kind: "deaf"})
	for !slices.Contains(h.asked(), "act deaf ") {
		time.Sleep(5 * time.Millisecond)
	}
	h.must(h.Close())
	h.want("begin", "act deaf ", "begin", "release", "release", "close", "end")
}

// A display that has gone: the tries end.
func TestHandsNeverComeBack(t *testing.T) {
	h := newHands(t, "never again")
	h.must(h.Act(context.Background(), hands.Action{Kind: "first"}))
	h.must(os.WriteFile(h.file+".bad", nil, 0o600))
	h.Act(context.Background(), hands.Action{Kind: "crash"})
	if !h.event().Lost {
		t.Error("nothing told of the loss")
	}
	h.want("begin", "act first ", "act crash ", "begin", "begin", "begin", "begin")
	h.must(os.Remove(h.file + ".bad"))
	h.must(h.Act(context.Background(), hands.Action{Kind: "again"}))
	h.want("begin", "act first ", "act crash ", "begin", "begin", "begin", "begin", "begin", "release", "act again ")
}

// The person reads the system's own question about a picture or an action.
func TestHandsWaitForThePerson(t *testing.T) {
	h := newHands(t, "plain", func(o *desklink.HandsOptions) { o.Stuck = 300 * time.Millisecond })
	h.must(h.Act(context.Background(), hands.Action{Kind: "slow"}))
	h.want("begin", "act slow ")
}

// A process that can't live is not started without end.
func TestHandsDoNotLive(t *testing.T) {
	h := newHands(t, "short-lived")
	h.must(h.Act(context.Background(), hands.Action{Kind: "first"}))
	if !h.event().Lost {
		t.Error("nothing told of the loss")
	}
	time.Sleep(1500 * time.Millisecond)
	h.want("begin", "act first ", "begin", "release")
	if !h.event().Lost { // then another is tried
		t.Error("nothing told of the second loss")
	}
}

// A process that can't let go of what an earlier one held is not used.
func TestHandsCling(t *testing.T) {
	h := newHands(t, "clinging")
	h.must(os.WriteFile(h.file+".bad", nil, 0o600))
	h.Act(context.Background(), hands.Action{Kind: "crash"})
	h.event()
	if err := h.Act(context.Background(), hands.Action{Kind: "again"}); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("asked all the same: %v", err)
	}
	h.must(os.Remove(h.file + ".bad"))
	h.event()
	h.must(h.Act(context.Background(), hands.Action{Kind: "last"}))
	if a := h.asked(); slices.Contains(a, "act again ") || !slices.Equal(a[len(a)-2:], []string{"release", "act last "}) {
		t.Errorf("it was asked for %q", a)
	}
}

// A process that is leaving lets go of everything: its successor waits for that.
func TestHandsLeaveOneAfterTheOther(t *testing.T) {
	h := newHands(t, "slow to leave", func(o *desklink.HandsOptions) { o.Idle = 100 * time.Millisecond })
	h.must(h.Act(context.Background(), hands.Action{Kind: "first"}))
	for !slices.Contains(h.asked(), "leaving") {
		time.Sleep(2 * time.Millisecond)
	}
	h.must(h.Act(context.Background(), hands.Action{Kind: "next"}))
	a := h.asked()
	if next, end := slices.Index(a, "act next "), slices.Index(a, "end"); end < 0 || next < end {
		t.Errorf("it was asked for %q", a)
	}
}
