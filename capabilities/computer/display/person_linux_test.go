package display

import (
	"image"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// events collects what is told.
type events struct {
	mu  sync.Mutex
	all []hands.Event
}

func hear(h hands.Hands) *events {
	e := new(events)
	h.Listen(func(ev hands.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, ev)
	})
	return e
}

// take is how many Person and Stop events there were since.
func (e *events) take() (person, stop int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Person {
			person++
		}
		if ev.Stop {
			stop++
		}
	}
	e.all = nil
	return person, stop
}

// nested is a desktop in a desktop: the person is on the outer one.
func nested(t *testing.T) (*apptest.Desktop, hands.Hands) {
	t.Helper()
	d := apptest.New(t, apptest.Options{NoBus: true, NoTray: true, Width: 800, Height: 600})
	t.Setenv("DISPLAY", d.Inner)
	h := openAt(t, d.Inner)
	return d, h
}

func TestPersonsHands(t *testing.T) {
	d, h := nested(t)
	told := hear(h)
	w := take(t, h, d.Inner, "xterm")
	p, _ := h.Cursor(within(t))

	t.Run("the agent is not the person", func(t *testing.T) {
		began := time.Now()
		path := []image.Point{p}
		for n := range 300 {
			path = append(path, p.Add(image.Pt(n%40, n%30)))
		}
		for range 3 {
			act(t, h, hands.Action{Kind: hands.Drag, Path: path, Seen: began})
			if err := h.Act(within(t), hands.Action{Kind: hands.Type, Text: strings.Repeat("Long text, ÄÖ 世界. ", 20), Seen: began}); err != nil {
				t.Fatal(err)
			}
		}
		act(t, h, hands.Action{Kind: hands.Scroll, Direction: "down", Amount: 30, Seen: began})
		if person, _ := told.take(); person > 0 {
			t.Errorf("the agent's own input was told as the person's %d times", person)
		}
	})
	refusedAfter := func(what string, do func()) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			time.Sleep(150 * time.Millisecond)
			told.take()
			seen := time.Now()
			do()
			eventually(t, "the refusal", func() bool {
				err := h.Act(within(t), hands.Action{Kind: hands.Move, At: &p, Seen: seen})
				if err != nil && wire.CodeOf(err) != wire.CodePerson {
					t.Fatal(err)
				}
				return err != nil
			})
			eventually(t, "the event", func() bool { person, _ := told.take(); return person > 0 })
			time.Sleep(100 * time.Millisecond)
			act(t, h, hands.Action{Kind: hands.Move, At: &p}) // with a fresh picture it goes on
		})
	}
	refusedAfter("a key", func() { d.Key("Shift_L") })
	refusedAfter("a click", func() { d.Click(400, 580) })
	refusedAfter("the wheel", func() { d.Scroll(400, 580, 1) })
	refusedAfter("the mouse", func() { d.Move(300, 500) })

	t.Run("a device that came later", func(t *testing.T) {
		run(t, d.Inner, "xinput", "create-master", "second")
		run(t, d.Inner, "xinput", "reattach", "Xephyr virtual mouse", "second pointer")
		defer func() {
			run(t, d.Inner, "xinput", "reattach", "Xephyr virtual mouse", "Virtual core pointer")
			run(t, d.Inner, "xinput", "remove-master", "second pointer")
		}()
		time.Sleep(200 * time.Millisecond)
		seen := time.Now()
		d.Move(350, 450)
		eventually(t, "the refusal", func() bool {
			return wire.CodeOf(h.Act(within(t), hands.Action{Kind: hands.Move, At: &p, Seen: seen})) == wire.CodePerson
		})
	})
	t.Run("a mouse that trembles is not the person", func(t *testing.T) {
		d.Move(500, 500)
		time.Sleep(700 * time.Millisecond)
		told.take()
		seen := time.Now()
		for n := range 8 {
			d.Move(500+n%3, 500)
			time.Sleep(30 * time.Millisecond)
		}
		if err := h.Act(within(t), hands.Action{Kind: hands.Move, At: &p, Seen: seen}); err != nil {
			t.Errorf("after trembling: %v", err)
		}
		if person, _ := told.take(); person > 0 {
			t.Errorf("trembling was told %d times", person)
		}
	})
	t.Run("in the middle of typing", func(t *testing.T) {
		had := w.text()
		long := strings.Repeat("0123456789", 300)
		done := make(chan error, 1)
		go func() { done <- h.Act(within(t), hands.Action{Kind: hands.Type, Text: long, Seen: time.Now()}) }()
		eventually(t, "typing", func() bool { return len(w.text()) > len(had)+20 })
		d.Key("Control_L")
		if err := <-done; wire.CodeOf(err) != wire.CodePerson || !strings.Contains(err.Error(), "fresh picture") {
			t.Errorf("typing ended with %v", err)
		}
		time.Sleep(200 * time.Millisecond)
		if got := strings.TrimPrefix(w.text(), had); len(got) >= len(long) || !strings.HasPrefix(long, got) {
			t.Errorf("it typed %d of %d characters", len(got), len(long))
		}
		if got := held(t, d.Inner); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	t.Run("in the middle of holding", func(t *testing.T) {
		done := make(chan error, 1)
		go func() {
			done <- h.Act(within(t), hands.Action{Kind: hands.HoldKey, Chord: "shift+F8", Hold: time.Minute, Seen: time.Now()})
		}()
		eventually(t, "holding", func() bool { return len(held(t, d.Inner)) == 2 })
		d.Move(100, 550)
		if err := <-done; wire.CodeOf(err) != wire.CodePerson {
			t.Errorf("holding ended with %v", err)
		}
		if got := held(t, d.Inner); len(got) > 0 {
			t.Errorf("still down: %q", got)
		}
	})
	// As the machine has it: it lets go of all when it is told of the person.
	t.Run("with a button held", func(t *testing.T) {
		h.Listen(func(e hands.Event) {
			if e.Person {
				go func() { _ = h.Release(within(t)) }()
			}
		})
		defer func() { told = hear(h) }()
		time.Sleep(200 * time.Millisecond)
		act(t, h, hands.Action{Kind: hands.Press, Button: "left", At: &p})
		done := make(chan error, 1)
		go func() {
			done <- h.Act(within(t), hands.Action{Kind: hands.HoldKey, Chord: "shift+F8", Hold: time.Minute, Seen: time.Now()})
		}()
		eventually(t, "button and keys held", func() bool { return len(held(t, d.Inner)) == 3 })
		d.Move(140, 520)
		if err := <-done; wire.CodeOf(err) != wire.CodePerson || !strings.Contains(err.Error(), "fresh picture") {
			t.Errorf("holding ended with %v", err)
		}
		eventually(t, "all let go", func() bool { return len(held(t, d.Inner)) == 0 })
	})
	t.Run("a modifier that the person holds distorts nothing", func(t *testing.T) {
		time.Sleep(200 * time.Millisecond)
		told.take()
		run(t, d.Outer, "xdotool", "keydown", "shift")
		defer run(t, d.Outer, "xdotool", "keyup", "shift")
		eventually(t, "the key down", func() bool { person, _ := told.take(); return person > 0 })
		time.Sleep(200 * time.Millisecond)
		had := w.text()
		if err := h.Act(within(t), hands.Action{Kind: hands.Type, Text: "abc", Seen: time.Now()}); wire.CodeOf(err) != wire.CodePerson {
			t.Errorf("typing with Shift held: %v", err)
		}
		if got := w.text(); got != had {
			t.Errorf("it typed %q", got)
		}
	})
	t.Run("told ten times a second at most", func(t *testing.T) {
		time.Sleep(200 * time.Millisecond)
		told.take()
		began := time.Now()
		for n := range 40 {
			d.Move(200+10*n, 400)
		}
		took := time.Since(began)
		person, _ := told.take()
		if most := int(took/tellEvery) + 2; person < 1 || person > most {
			t.Errorf("told %d times in %v", person, took)
		}
	})
	// The keyboard's own state survives a change of device, and typing is exact
	// after the person typed on theirs.
	t.Run("text after the person's", func(t *testing.T) {
		d.Key("Caps_Lock")
		defer d.Key("Caps_Lock")
		time.Sleep(300 * time.Millisecond)
		wantText(t, h, w, "Hello, wörld 世界")
		if before := state(t, h); before&2 == 0 {
			t.Error("CapsLock is off after typing")
		}
	})
}

func TestStopKey(t *testing.T) {
	d, h := nested(t)
	if a, err := h.Abilities(within(t)); err != nil || a.StopKey != "" || !a.Person {
		t.Errorf("%+v, %v", a, err)
	}
	bind := func(h hands.Hands) (string, string) {
		t.Helper()
		if err := h.Control(within(t), hands.Control{On: true, StopKey: true}); err != nil {
			t.Fatal(err)
		}
		a, err := h.Abilities(within(t))
		if err != nil {
			t.Fatal(err)
		}
		return a.StopKey, a.StopKeyProblem
	}
	if key, problem := bind(h); key != stopKeys[0].name || problem != "" {
		t.Fatalf("bound as %q, %q", key, problem)
	}
	chords := []string{"ctrl+shift+Escape", "ctrl+alt+shift+Escape"}
	told := hear(h)
	stops := func(what string, do func()) {
		t.Helper()
		time.Sleep(400 * time.Millisecond)
		told.take()
		do()
		n := 0
		eventually(t, what, func() bool { _, stop := told.take(); n += stop; return n > 0 })
		time.Sleep(100 * time.Millisecond)
		if _, more := told.take(); n+more != 1 {
			t.Errorf("%s stopped %d times", what, n+more)
		}
	}
	stops("the person's key", func() { d.Key(chords[0]) })
	stops("the key by XTEST", func() { run(t, d.Inner, "xdotool", "key", chords[0]) })
	for _, lock := range []string{"Num_Lock", "Caps_Lock"} {
		d.Key(lock)
		stops("the key with "+lock, func() { d.Key(chords[0]) })
	}
	run(t, d.Inner, "setxkbmap", "fr")
	stops("the key in another layout", func() { d.Key(chords[0]) })
	time.Sleep(400 * time.Millisecond)
	d.Key("Escape")
	d.Key("shift+Escape")
	time.Sleep(200 * time.Millisecond)
	if _, stop := told.take(); stop > 0 {
		t.Error("another key stopped")
	}
	stops("the key while a program has the keyboard", func() {
		start(t, d.Inner, "xterm", "-T", "grabber", "-e", "sleep 1000")
		time.Sleep(300 * time.Millisecond)
		d.Key(chords[0])
	})

	// A second program finds the first key taken; when all are, it says so.
	others := []hands.Hands{h}
	for n := 1; n < len(stopKeys); n++ {
		g := openAt(t, d.Inner)
		others = append(others, g)
		if key, problem := bind(g); key != stopKeys[n].name || problem != "" {
			t.Errorf("program %d has %q, %q", n, key, problem)
		}
	}
	last := openAt(t, d.Inner)
	if key, problem := bind(last); key != "" || !strings.Contains(problem, stopKeys[0].name) {
		t.Errorf("with all taken: %q, %q", key, problem)
	}
	// Let go of, it is free again.
	if err := others[0].Control(within(t), hands.Control{}); err != nil {
		t.Fatal(err)
	}
	if key, _ := bind(last); key != stopKeys[0].name {
		t.Errorf("after it was let go of: %q", key)
	}
}
