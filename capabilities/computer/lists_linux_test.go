package computer

import (
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func (r *rig) windows(p wire.Windows) []wire.Window {
	r.t.Helper()
	p.SessionID = r.ses.ID
	res, err := r.do(wire.TypeWindows, &p, r.session("DP-1", "HDMI-1"))
	if err != nil {
		r.t.Fatal(err)
	}
	return res.Payload.(*wire.WindowsResponse).Windows
}

func (r *rig) focus(id string) error {
	_, err := r.do(wire.TypeWindowFocus, &wire.WindowFocus{SessionID: r.ses.ID, WindowID: id, Raise: true}, r.session())
	return err
}

func TestWindowIDs(t *testing.T) {
	r := newRig(t)
	first := r.windows(wire.Windows{})
	if len(first) != 2 || first[0].PID != 101 || first[0].Title != "notes" || !strings.HasPrefix(first[0].WindowID, "win_") || first[0].Bounds != (wire.Rect{100, 100, 500, 400}) || !first[0].IsFocused {
		t.Fatalf("listed %+v", first)
	}
	if err := r.focus(first[0].WindowID); err != nil || len(r.s.focused) != 1 || r.s.focused[0].ID != 1 {
		t.Errorf("focused %+v, %v", r.s.focused, err)
	}
	if r.s.seen.IsZero() || r.s.seen.After(time.Now()) {
		t.Errorf("the person's hands must have rested since %v", r.s.seen)
	}
	// The next list voids them, and gives none of them again.
	second := r.windows(wire.Windows{})
	for _, w := range second {
		if w.WindowID == first[0].WindowID || w.WindowID == first[1].WindowID {
			t.Error("an id was given twice")
		}
	}
	err := r.focus(first[0].WindowID)
	wantCode(t, err, wire.CodeWindowStale)
	if e := err.(*wire.Error); e.Details["window_id"] != first[0].WindowID || e.Details["hint"] == "" {
		t.Errorf("details %+v", e.Details)
	}
	// The system uses its own id again, for another program: never bound anew.
	r.s.set(func(s *screen) { s.stack[0].PID, s.stack[0].Started = 999, 77 })
	wantCode(t, r.focus(second[0].WindowID), wire.CodeWindowStale)
	_, err = r.do(wire.TypeScreenshot, &wire.Screenshot{SessionID: r.ses.ID, WindowID: second[0].WindowID}, r.session("DP-1"))
	wantCode(t, err, wire.CodeWindowStale)
	if err := r.focus(second[1].WindowID); err != nil {
		t.Errorf("the other one: %v", err)
	}
	// Nor do they outlive a reconnection.
	third := r.windows(wire.Windows{})
	r.c.Void()
	wantCode(t, r.focus(third[1].WindowID), wire.CodeWindowStale)
	if n := len(r.s.focused); n != 2 {
		t.Errorf("%d were focused, 2 were to be", n)
	}
}

func TestWhatIsListed(t *testing.T) {
	r := newRig(t)
	r.s.set(func(s *screen) {
		s.stack = append(s.stack, s.stack[0], s.stack[0], s.stack[0], s.stack[0])
		s.stack[2].ID, s.stack[2].Ours = 3, true
		s.stack[3].ID, s.stack[3].Popup = 4, true
		s.stack[4].ID, s.stack[4].Minimized = 5, true
		s.stack[5].ID, s.stack[5].Frame = 6, image.Rect(9000, 0, 9100, 100)
	})
	for n, p := range map[int]wire.Windows{2: {}, 3: {IncludeMinimized: true}, 4: {IncludeMinimized: true, IncludeOffscreen: true}} {
		if got := r.windows(p); len(got) != n {
			t.Errorf("%+v lists %d, want %d: %+v", p, len(got), n, got)
		}
	}
	if got := r.windows(wire.Windows{}); got[1].Title != "(hidden)" || got[1].AppName != "Firefox" {
		t.Errorf("behind the curtain: %+v", got[1])
	}
	r.s.set(func(s *screen) { s.pointer = image.Pt(-1, 5) })
	r.see(1)
	res, err := r.do(wire.TypeCursor, &wire.ComputerQuery{SessionID: r.ses.ID}, r.session("DP-1", "HDMI-1"))
	if c, ok := res.Payload.(*wire.CursorResponse); err != nil || !ok || c.X != -1 || c.Y != 5 || c.Monitor != 1 || c.InPicture == nil || c.InPicture[0] != 959 {
		t.Errorf("the pointer: %+v, %v", res.Payload, err)
	}
	r.s.set(func(s *screen) { s.pointer = image.Pt(5, 5) })
	res, err = r.do(wire.TypeCursor, &wire.ComputerQuery{SessionID: r.ses.ID}, r.session("DP-1", "HDMI-1"))
	if c := res.Payload.(*wire.CursorResponse); err != nil || c.InPicture != nil || c.Monitor != 0 {
		t.Errorf("the pointer outside of the picture: %+v, %v", c, err)
	}
	res, err = r.do(wire.TypeDisplays, &wire.ComputerQuery{SessionID: r.ses.ID}, r.session("DP-1"))
	if m := res.Payload.(*wire.DisplaysResponse).Monitors; err != nil || len(m) != 2 || !m[0].Primary || m[1].Origin != (wire.Point{-1280, 0}) || m[1].PhysicalSize != (wire.Point{1280, 1024}) {
		t.Errorf("the screens: %+v, %v", m, err)
	}
}

// However windows, programs and screens call themselves, the lists of them and
// the pictures come.
func TestOddNames(t *testing.T) {
	r := newRig(t)
	odd := "a\x00b\xff\x1b[31m" + strings.Repeat("é", 5000)
	r.s.set(func(s *screen) {
		s.stack[0].Title, s.stack[0].App, s.stack[0].PID = odd, odd, os.Getpid()
		for i := range 80 {
			sc := s.layout.Screens[0]
			sc.Index, sc.Name = i+2, fmt.Sprintf("%d %s", i, odd)
			s.layout.Screens = append(s.layout.Screens, sc)
		}
		s.hidden = []string{odd}
	})
	for typ, p := range map[wire.Type]wire.Payload{
		wire.TypeWindows: &wire.Windows{SessionID: r.ses.ID}, wire.TypeApps: &wire.Apps{SessionID: r.ses.ID, IncludeBackground: true},
		wire.TypeDisplays: &wire.ComputerQuery{SessionID: r.ses.ID}, wire.TypeScreenshot: &wire.Screenshot{SessionID: r.ses.ID},
	} {
		if _, err := r.do(typ, p, r.session()); err != nil { // do says whether the answer is valid
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestApps(t *testing.T) {
	r := newRig(t)
	r.s.set(func(s *screen) { s.stack[0].PID = os.Getpid() })
	res, err := r.do(wire.TypeApps, &wire.Apps{SessionID: r.ses.ID}, r.session("DP-1", "HDMI-1"))
	if err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	apps := res.Payload.(*wire.AppsResponse).Apps
	if len(apps) != 2 || apps[0].Name != "gedit" || apps[0].ExecutablePath != exe || !apps[0].IsFrontmost || apps[0].WindowCount != 1 {
		t.Errorf("listed %+v", apps)
	}
	behind := exec.Command("sleep", "600")
	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = behind.Process.Kill(); _ = behind.Wait() }()
	res, err = r.do(wire.TypeApps, &wire.Apps{SessionID: r.ses.ID, IncludeBackground: true}, r.session("DP-1"))
	if err != nil || !slices.ContainsFunc(res.Payload.(*wire.AppsResponse).Apps, func(a wire.App) bool { return a.PID == behind.Process.Pid && a.Name == "sleep" && a.WindowCount == 0 }) {
		t.Errorf("with those in the background: %+v, %v", res.Payload, err)
	}
}

func TestLaunch(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	script := filepath.Join(dir, "my program")
	body := "#!/bin/sh\nprintf '%s|%s|%s' \"$1\" \"$MARK\" \"$#\" > " + out + ".tmp; mv " + out + ".tmp " + out + "\nexec sleep 600\n"
	if err := os.WriteFile(script, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	r.c.o.Environ = func() []string { return []string{"PATH=relative:" + dir + ":/usr/bin:/bin", "MARK=mine"} }
	p := &wire.AppLaunch{SessionID: r.ses.ID, ExecutablePath: "my program", Args: []string{"$(touch x); a b"}}
	d := r.describe(wire.TypeAppLaunch, p)
	want := strconv.Quote(script) + ` "$(touch x); a b"`
	if d.Exact != want || d.Rule.Exact != want || d.Risk != consent.RiskHigh || len(d.Effects) != 2 || d.Sentence != "%s wants to start the program my program." || len(d.Scopes) != 1 {
		t.Errorf("described %+v", d)
	}
	res, err := r.do(wire.TypeAppLaunch, p, consent.Choice{Scope: consent.Once})
	if err != nil {
		t.Fatal(err)
	}
	pid := res.Payload.(*wire.AppLaunched).PID
	if pid <= 1 {
		t.Fatalf("it has the process id %d", pid)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	eventually(t, "it has run", func() bool { _, err := os.Stat(out); return err == nil })
	got, err := os.ReadFile(out)
	if err != nil || string(got) != "$(touch x); a b|mine|1" {
		t.Errorf("it was given %q, %v", got, err)
	}
	// What a person can see keeps running when the session has gone.
	if err := r.c.EndSession(t.Context(), r.ses.ID); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("it ended with its session: %v", err)
	}
	if sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0); errno != 0 || int(sid) != pid {
		t.Errorf("it is in the session %d of processes, not in one of its own", sid)
	}
	// Once it has ended nothing is left of it.
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "it is taken away", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })

	for name, code := range map[string]wire.Code{"no such program": wire.CodePathNotFound, "./my program": wire.CodeInvalid, dir: wire.CodePathNotFound, out: wire.CodePathNotFound} {
		_, err := r.c.Describe(t.Context(), r.call(wire.TypeAppLaunch, &wire.AppLaunch{SessionID: r.ses.ID, ExecutablePath: name}))
		wantCode(t, err, code)
	}
	_, err = r.c.Describe(t.Context(), r.call(wire.TypeAppLaunch, &wire.AppLaunch{SessionID: r.ses.ID, BundleID: "com.example"}))
	wantCode(t, err, wire.CodeNotSupported)
}

func TestClipboard(t *testing.T) {
	r := newRig(t)
	read := func() (string, error) {
		res, err := r.do(wire.TypeClipRead, &wire.ClipRead{SessionID: r.ses.ID}, consent.Choice{Scope: consent.Once})
		if err != nil {
			return "", err
		}
		return res.Payload.(*wire.ClipReadResponse).Content, nil
	}
	reason := func(err error) any {
		if wire.CodeOf(err) != wire.CodeConcealed {
			t.Errorf("%v is not %s", err, wire.CodeConcealed)
			return nil
		}
		return err.(*wire.Error).Details["reason"]
	}
	write := func(text string) {
		if _, err := r.do(wire.TypeClipWrite, &wire.ClipWrite{SessionID: r.ses.ID, Content: text}, r.session()); err != nil {
			t.Error(err)
		}
	}
	r.s.set(func(s *screen) { s.clip = hands.Clip{Text: "the person's"} })
	if _, err := read(); reason(err) != "writeback_only" {
		t.Errorf("the person's text: %v", err)
	}
	write("mine")
	if got, err := read(); err != nil || got != "mine" {
		t.Errorf("its own: %q, %v", got, err)
	}
	if d := r.describe(wire.TypeClipRead, &wire.ClipRead{SessionID: r.ses.ID}); !d.Effects[0].Own || len(d.Scopes) != 0 {
		t.Errorf("its own is asked for: %+v", d)
	}
	r.s.set(func(s *screen) { s.clip = hands.Clip{Text: "mine"} }) // the same, copied by the person
	if _, err := read(); reason(err) != "writeback_overwritten" {
		t.Errorf("copied over: %v", err)
	}
	write("old")
	r.c.session(r.ses.ID).clip.at = time.Now().Add(-31 * time.Second)
	if _, err := read(); reason(err) != "writeback_only" {
		t.Errorf("after half a minute: %v", err)
	}
	r.terms.Clipboard = hands.ClipAll
	r.s.set(func(s *screen) { s.clip = hands.Clip{Text: "the person's"} })
	if got, err := read(); err != nil || got != "the person's" {
		t.Errorf("all is allowed: %q, %v", got, err)
	}
	if d := r.describe(wire.TypeClipRead, &wire.ClipRead{SessionID: r.ses.ID}); d.Effects[0].Own || len(d.Scopes) != 0 {
		t.Errorf("the person's is not asked for each time: %+v", d)
	}
	r.s.set(func(s *screen) { s.clipErr = wire.Errorf(wire.CodeConcealed, "secret") })
	if _, err := read(); reason(err) != "concealed_type" {
		t.Errorf("a secret: %v", err)
	}
	_, err := r.do(wire.TypeClipRead, &wire.ClipRead{SessionID: r.ses.ID, Format: "image"}, r.session())
	wantCode(t, err, wire.CodeNotSupported)
	r.terms.Clipboard = hands.ClipOff
	_, err = read()
	wantCode(t, err, wire.CodeNotSupported)
	_, err = r.do(wire.TypeClipWrite, &wire.ClipWrite{SessionID: r.ses.ID, Content: "a"}, r.session())
	wantCode(t, err, wire.CodeNotSupported)
}

func TestPaste(t *testing.T) {
	r := newRig(t)
	long := text(pasteFrom)
	paste := func(text string, preserve bool) hands.Action {
		if err := r.act(wire.InputAction{Action: "type", Text: text, Paste: true, PreserveClipboard: preserve}, r.session()); err != nil {
			t.Error(err)
		}
		return r.s.lastAct()
	}
	clip := func() string { return get(r.s, func(s *screen) string { return s.clip.Text }) }
	r.s.set(func(s *screen) { s.clip = hands.Clip{Text: "the person's"} })
	if a := paste(text(pasteFrom-1), false); a.Kind != hands.Type || clip() != "the person's" {
		t.Errorf("a short text: %+v", a)
	}
	// Leave for the mouse and keyboard is none to replace what is copied.
	if a := paste(long, false); a.Kind != hands.Type || clip() != "the person's" {
		t.Errorf("without leave to write: %+v", a)
	}
	writes := func() {
		if _, err := r.do(wire.TypeClipWrite, &wire.ClipWrite{SessionID: r.ses.ID, Content: "x"}, consent.Choice{Scope: consent.Session}); err != nil {
			t.Fatal(err)
		}
		r.s.set(func(s *screen) { s.clip = hands.Clip{Text: "the person's"} })
	}
	if _, err := r.once(wire.TypeClipWrite, &wire.ClipWrite{SessionID: r.ses.ID, Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if a := paste(long, false); a.Kind != hands.Type {
		t.Errorf("once is not for good: %+v", a)
	}
	writes()
	r.c.Drop("", errStopped(), true)
	if a := paste(long, false); a.Kind != hands.Type {
		t.Errorf("after that has ended: %+v", a)
	}
	writes()
	if a := paste(long, true); a.Kind != hands.Key || a.Chord != "ctrl+v" || clip() != "the person's" {
		t.Errorf("preserved: %+v, the clipboard has %q", a, clip())
	}
	if a := paste(long, false); a.Kind != hands.Key || clip() != long {
		t.Errorf("pasted: %+v, the clipboard has %.20q", a, clip())
	}
	// What could not be put back is not taken away.
	r.s.set(func(s *screen) { s.clipErr = wire.Errorf(wire.CodeNotSupported, "a picture") })
	if a := paste(long, true); a.Kind != hands.Type || a.Text != long {
		t.Errorf("over a picture: %+v", a)
	}
	r.s.set(func(s *screen) { s.clipErr = nil })
	r.terms.Clipboard = hands.ClipOff
	if a := paste(long, false); a.Kind != hands.Type {
		t.Errorf("switched off: %+v", a)
	}
}
