package display

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// witness is xev: a program of others that says which events it got.
type witness struct {
	t    testing.TB
	mu   sync.Mutex
	seen []string
}

var (
	eventLine = regexp.MustCompile(`^(ButtonPress|ButtonRelease|KeyPress|KeyRelease|MotionNotify) event`)
	rootAt    = regexp.MustCompile(`root:\((-?\d+),(-?\d+)\)`)
	keyName   = regexp.MustCompile(`state 0x([0-9a-f]+), keycode \d+ \(keysym 0x[0-9a-f]+, (\w+)\)`)
	buttonNo  = regexp.MustCompile(`state 0x([0-9a-f]+), button (\d+)`)
)

// watch covers all of the display with xev. What it got is told as "press 1 @
// 10,20 state 0", "key down a state 0", "move @ 10,20".
func watch(t testing.TB, name, size string) *witness {
	t.Helper()
	w := &witness{t: t}
	cmd := exec.Command("stdbuf", "-oL", "xev", "-geometry", size+"+0+0", "-event", "mouse", "-event", "keyboard")
	cmd.Env = append(os.Environ(), "DISPLAY="+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		var kind, at string
		for s := bufio.NewScanner(out); s.Scan(); {
			line := s.Text()
			if m := eventLine.FindStringSubmatch(line); m != nil {
				kind, at = m[1], ""
			}
			if m := rootAt.FindStringSubmatch(line); m != nil {
				at = m[1] + "," + m[2]
			}
			say := ""
			switch m, b := keyName.FindStringSubmatch(line), buttonNo.FindStringSubmatch(line); {
			case m != nil:
				say = fmt.Sprintf("key %s %s state %s", map[string]string{"KeyPress": "down", "KeyRelease": "up"}[kind], m[2], m[1])
			case b != nil:
				say = fmt.Sprintf("%s %s @ %s state %s", map[string]string{"ButtonPress": "press", "ButtonRelease": "release"}[kind], b[2], at, b[1])
			case kind == "MotionNotify" && at != "":
				say = "move @ " + at
				kind = ""
			}
			if say != "" {
				w.mu.Lock()
				w.seen = append(w.seen, say)
				w.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); wg.Wait(); cmd.Wait() })
	eventually(t, "the witness on the screen", func() bool {
		return strings.Contains(run(t, name, "xwininfo", "-root", "-tree"), "Event Tester")
	})
	eventually(t, "the witness hears", func() bool {
		run(t, name, "xdotool", "key", "F9")
		time.Sleep(50 * time.Millisecond)
		return len(w.take(nil)) > 0
	})
	time.Sleep(200 * time.Millisecond)
	w.take(nil)
	return w
}

// take is what was seen since, of what keep wants.
func (w *witness) take(keep func(string) bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.seen {
		if keep == nil || keep(s) {
			out = append(out, s)
		}
	}
	w.seen = nil
	return out
}

func (w *witness) want(what string, want ...string) {
	w.t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got = append(got, w.take(func(s string) bool { return !strings.HasPrefix(s, "move") })...)
		if len(got) >= len(want) {
			time.Sleep(50 * time.Millisecond)
			got = append(got, w.take(func(s string) bool { return !strings.HasPrefix(s, "move") })...)
			break
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: the program got\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func at(x, y int) *image.Point { p := image.Pt(x, y); return &p }

func TestMouse(t *testing.T) {
	name := xvfb(t, "800x600")
	h := openAt(t, name)
	w := watch(t, name, "800x600")

	act(t, h, hands.Action{Kind: hands.Click, At: at(10, 20)})
	w.want("a click", "press 1 @ 10,20 state 0", "release 1 @ 10,20 state 100")
	act(t, h, hands.Action{Kind: hands.Click, Button: "right"})
	w.want("a click where the pointer is", "press 3 @ 10,20 state 0", "release 3 @ 10,20 state 400")
	act(t, h, hands.Action{Kind: hands.Click, Button: "middle", At: at(799, 599), Count: 3})
	w.want("a triple click", "press 2 @ 799,599 state 0", "release 2 @ 799,599 state 200", "press 2 @ 799,599 state 0",
		"release 2 @ 799,599 state 200", "press 2 @ 799,599 state 0", "release 2 @ 799,599 state 200")
	act(t, h, hands.Action{Kind: hands.Click, At: at(5, 6), Modifiers: []string{"ctrl", "alt", "super", "shift"}})
	w.want("a click with modifiers", "key down Control_L state 0", "key down Alt_L state 4", "key down Super_L state c", "key down Shift_L state 4c",
		"press 1 @ 5,6 state 4d", "release 1 @ 5,6 state 14d",
		"key up Shift_L state 4d", "key up Super_L state 4c", "key up Alt_L state c", "key up Control_L state 4")
	act(t, h, hands.Action{Kind: hands.Press, At: at(50, 60)})
	act(t, h, hands.Action{Kind: hands.Move, At: at(70, 80)})
	act(t, h, hands.Action{Kind: hands.Unpress})
	w.want("press, move, release", "press 1 @ 50,60 state 0", "release 1 @ 70,80 state 100")
	for direction, button := range map[string]int{"up": 4, "down": 5, "left": 6, "right": 7} {
		act(t, h, hands.Action{Kind: hands.Scroll, Direction: direction, Amount: 2, At: at(100, 100), Modifiers: []string{"ctrl"}})
		held := map[int]string{4: "804", 5: "1004", 6: "4", 7: "4"}[button]
		press, release := fmt.Sprintf("press %d @ 100,100 state 4", button), fmt.Sprintf("release %d @ 100,100 state %s", button, held)
		w.want("scrolling "+direction, "key down Control_L state 0", press, release, press, release, "key up Control_L state 4")
	}
	act(t, h, hands.Action{Kind: hands.Scroll, Direction: "down", Amount: 0, At: at(1, 2)})
	w.want("scrolling by nothing")

	// Every point of a drag is gone through, with the button down.
	path := []image.Point{{100, 100}, {200, 110}, {210, 300}, {50, 310}}
	w.take(nil)
	act(t, h, hands.Action{Kind: hands.Drag, Path: path, Button: "right", Modifiers: []string{"shift"}})
	var all []string
	eventually(t, "the drag", func() bool { all = append(all, w.take(nil)...); return slices.Contains(all, "key up Shift_L state 1") })
	down, up := slices.Index(all, "press 3 @ 100,100 state 1"), slices.Index(all, "release 3 @ 50,310 state 401")
	if down < 0 || up < down {
		t.Fatalf("the drag was %q", all)
	}
	last := down
	for _, p := range path[1:] {
		i := slices.Index(all[last:up], fmt.Sprintf("move @ %d,%d", p.X, p.Y))
		if i < 0 {
			t.Fatalf("%v is not on the way %q", p, all[down:up])
		}
		last += i
	}
	// A left-handed person's mouse: left is left for programs all the same.
	run(t, name, "xmodmap", "-e", "pointer = 3 2 1")
	act(t, h, hands.Action{Kind: hands.Click, At: at(9, 9)})
	w.want("a click with the buttons swapped", "press 1 @ 9,9 state 0", "release 1 @ 9,9 state 100")
}

func TestKeys(t *testing.T) {
	name := xvfb(t, "400x300")
	h := openAt(t, name)
	w := watch(t, name, "400x300")
	key := func(chord string, repeat int) {
		t.Helper()
		act(t, h, hands.Action{Kind: hands.Key, Chord: chord, Repeat: repeat})
	}
	key("ctrl+s", 0)
	w.want("ctrl+s", "key down Control_L state 0", "key down s state 4", "key up s state 4", "key up Control_L state 4")
	key("Page_Down", 3)
	w.want("Page_Down three times", "key down Next state 0", "key up Next state 0", "key down Next state 0", "key up Next state 0", "key down Next state 0", "key up Next state 0")
	key("A", 0)
	w.want("A", "key down Shift_L state 0", "key down A state 1", "key up A state 1", "key up Shift_L state 1")
	key("ctrl++", 0)
	w.want("ctrl++", "key down Control_L state 0", "key down Shift_L state 4", "key down plus state 5", "key up plus state 5", "key up Shift_L state 5", "key up Control_L state 4")
	key("win+f12", 0)
	w.want("win+f12", "key down Super_L state 0", "key down F12 state 40", "key up F12 state 40", "key up Super_L state 40")
	key("é", 0)
	w.want("é, which the layout lacks", "key down eacute state 0", "key up eacute state 0")
	run(t, name, "xdotool", "key", "Caps_Lock")
	w.want("CapsLock", "key down Caps_Lock state 0", "key up Caps_Lock state 2")
	key("b", 0)
	w.want("b with CapsLock", "key down b state 0", "key up b state 0")
	run(t, name, "xdotool", "key", "Caps_Lock")
	w.want("CapsLock is still on", "key down Caps_Lock state 2", "key up Caps_Lock state 2")

	// A Latin shortcut while Cyrillic is active.
	run(t, name, "setxkbmap", "-layout", "us,ru")
	key("ISO_Next_Group", 0)
	w.take(nil)
	before := state(t, h)
	key("ctrl+c", 0)
	if before>>8 != 1 || state(t, h) != before {
		t.Errorf("the group was %x, and is %x", before, state(t, h))
	}
	eventually(t, "ctrl+c", func() bool { return slices.Contains(w.take(nil), "key down c state 4") })
	key("ISO_Next_Group", 0)
	eventually(t, "the first group", func() bool { return slices.Contains(w.take(nil), "key up ISO_Next_Group state 0") })

	eventually(t, "the first group", func() bool { return state(t, h)>>8 == 0 })
	time.Sleep(200 * time.Millisecond)
	w.take(nil)
	began := time.Now()
	act(t, h, hands.Action{Kind: hands.HoldKey, Chord: "shift+F5", Hold: 700 * time.Millisecond})
	if took := time.Since(began); took < 700*time.Millisecond {
		t.Errorf("held for %v", took)
	}
	var all []string
	eventually(t, "the key up", func() bool { all = append(all, w.take(nil)...); return slices.Contains(all, "key up Shift_L state 1") })
	if all[0] != "key down Shift_L state 0" || all[1] != "key down F5 state 1" {
		t.Errorf("holding was %q", all)
	}
	for _, a := range []hands.Action{{Kind: hands.Key, Chord: "ctrl+nokey"}, {Kind: hands.HoldKey, Chord: "shift+"}, {Kind: hands.Type, Text: "abc\x00"}} {
		if err := h.Act(within(t), a); wire.CodeOf(err) != wire.CodeInvalid {
			t.Errorf("%+v: %v", a, err)
		}
	}
	w.want("what can't be pressed")
}

// three puts three monitors side by side onto one screen.
func three(t testing.TB, name string) {
	t.Helper()
	run(t, name, "xrandr", "--setmonitor", "left", "400/100x600/150+0+0", "screen")
	run(t, name, "xrandr", "--setmonitor", "middle", "300/80x600/150+400+0", "none")
	run(t, name, "xrandr", "--setmonitor", "right", "300/80x400/100+700+200", "none")
}

func TestScreens(t *testing.T) {
	name := xvfb(t, "1000x600")
	three(t, name)
	h := openAt(t, name)
	w := watch(t, name, "1000x600")
	layout, err := h.Layout(within(t))
	if err != nil || len(layout.Screens) != 3 {
		t.Fatalf("%+v, %v", layout, err)
	}
	for _, p := range []image.Point{{10, 100}, {0, 0}, {399, 599}, {400, 0}, {699, 300}, {700, 200}, {999, 599}} {
		act(t, h, hands.Action{Kind: hands.Click, At: &p, Layout: layout.Fingerprint()})
		w.want("a click", fmt.Sprintf("press 1 @ %d,%d state 0", p.X, p.Y), fmt.Sprintf("release 1 @ %d,%d state 100", p.X, p.Y))
		if c, err := h.Cursor(within(t)); err != nil || c != p {
			t.Errorf("the pointer is at %v, %v; want %v", c, err, p)
		}
	}
	for _, a := range []hands.Action{
		{Kind: hands.Click, At: at(800, 100)}, {Kind: hands.Move, At: at(-1, 5)}, {Kind: hands.Press, At: at(1000, 300)},
		{Kind: hands.Drag, Path: []image.Point{{10, 10}, {750, 10}, {20, 20}}}, {Kind: hands.Scroll, Direction: "up", Amount: 3, At: at(5, 600)},
	} {
		a.Seen = time.Now()
		err := h.Act(within(t), a)
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != wire.CodeBounds || len(e.Details["displays"].([]map[string]any)) != 3 {
			t.Errorf("%+v: %v", a, err)
		}
	}
	w.want("what is out of bounds")
	run(t, name, "xrandr", "--delmonitor", "right")
	a := hands.Action{Kind: hands.Click, At: at(10, 10), Layout: layout.Fingerprint(), Seen: time.Now()}
	if err := h.Act(within(t), a); wire.CodeOf(err) != wire.CodePictureStale {
		t.Errorf("with other screens: %v", err)
	}
	w.want("a click into a picture of other screens")
}

// held is what XTEST's devices hold down, as xinput says.
func held(t testing.TB, name string) []string {
	t.Helper()
	var out []string
	for _, device := range []string{"Virtual core XTEST pointer", "Virtual core XTEST keyboard"} {
		for _, line := range strings.Split(run(t, name, "xinput", "query-state", device), "\n") {
			if strings.Contains(line, "=down") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return out
}

func TestReleased(t *testing.T) {
	name := xvfb(t, "400x300")
	watch(t, name, "400x300")
	h := openAt(t, name)
	long := hands.Action{Kind: hands.HoldKey, Chord: "ctrl+shift+F6", Hold: time.Minute, Seen: time.Now()}

	t.Run("when its caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		done := make(chan error, 1)
		go func() { done <- h.Act(ctx, long) }()
		eventually(t, "holding", func() bool { return len(held(t, name)) == 3 })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	t.Run("in the middle of a drag", func(t *testing.T) {
		ctx, cancel := context.WithCancel(within(t))
		path := []image.Point{}
		for n := range 90 {
			path = append(path, image.Pt(n, n))
		}
		done := make(chan error, 1)
		go func() {
			done <- h.Act(ctx, hands.Action{Kind: hands.Drag, Path: path, Modifiers: []string{"alt"}, Seen: time.Now()})
		}()
		eventually(t, "dragging", func() bool { return len(held(t, name)) > 0 })
		cancel()
		<-done
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	t.Run("when control ends", func(t *testing.T) {
		act(t, h, hands.Action{Kind: hands.Press, Button: "right", At: at(5, 5)})
		if got := held(t, name); !slices.Equal(got, []string{"button[3]=down"}) {
			t.Fatalf("down: %q", got)
		}
		if err := h.Control(within(t), hands.Control{}); err != nil {
			t.Fatal(err)
		}
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
		done := make(chan error, 1)
		go func() { done <- h.Act(within(t), long) }()
		eventually(t, "holding", func() bool { return len(held(t, name)) == 3 })
		if err := h.Release(within(t)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; wire.CodeOf(err) != wire.CodeStopped {
			t.Errorf("it ended with %v", err)
		}
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	t.Run("when it closes", func(t *testing.T) {
		g := openAt(t, name)
		act(t, g, hands.Action{Kind: hands.Press, At: at(5, 5)})
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	t.Run("by a fresh one after a crash", func(t *testing.T) {
		run(t, name, "xdotool", "keydown", "shift", "keydown", "F7", "mousedown", "2")
		if got := held(t, name); len(got) != 3 {
			t.Fatalf("down: %q", got)
		}
		if err := h.Release(within(t)); err != nil {
			t.Fatal(err)
		}
		if got := held(t, name); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
}

// A key that somebody left down does not distort a text; a button that the
// agent holds stays down.
func TestTypedWithAKeyLeftDown(t *testing.T) {
	name := managed(t, "600x400")
	h := openAt(t, name)
	w := take(t, h, name, "xterm")
	act(t, h, hands.Action{Kind: hands.Press})
	run(t, name, "xdotool", "keydown", "shift")
	wantText(t, h, w, "small letters")
	if got := held(t, name); !slices.Equal(got, []string{"button[1]=down"}) {
		t.Errorf("down: %q", got)
	}
}

// The server goes away: every call is an error, and the process lives.
func TestServerGone(t *testing.T) {
	name, server := runX(t, "Xvfb", "-screen", "0", "300x200x24")
	h := openAt(t, name)
	act(t, h, hands.Action{Kind: hands.Press, At: at(5, 5)})
	server.Process.Kill()
	eventually(t, "an error", func() bool {
		return h.Act(within(t), hands.Action{Kind: hands.Move, At: at(9, 9), Seen: time.Now()}) != nil
	})
	if _, err := h.Cursor(within(t)); err == nil {
		t.Error("a pointer on no display")
	}
	if err := h.Act(within(t), hands.Action{Kind: hands.Type, Text: "abc", Seen: time.Now()}); err == nil {
		t.Error("typed on no display")
	}
}
