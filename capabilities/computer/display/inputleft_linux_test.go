package display

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
)

// typesOn is a program that types what no keyboard has, until it is killed.
func typesOn() {
	h, err := Open(context.Background(), Options{Log: slog.New(slog.DiscardHandler), Env: os.Getenv})
	if err != nil {
		os.Exit(1)
	}
	for h.Act(context.Background(), hands.Action{Kind: hands.Type, Text: strings.Repeat("世界 ёж", 200), Seen: time.Now()}) == nil {
	}
	os.Exit(0)
}

// TestKilledWhileTyping: the next process gives the person's keyboard back.
func TestKilledWhileTyping(t *testing.T) {
	name := xvfb(t, "300x200")
	run(t, name, "setxkbmap", "us,ru")
	start(t, name, "xterm")
	h := openAt(t, name)
	run(t, name, "xdotool", "key", "Caps_Lock")
	keys := func() string { return run(t, name, "xmodmap", "-pke") }
	before, was := keys(), state(t, h)
	if was == 0 {
		t.Fatal("CapsLock is off")
	}
	t.Setenv("DISPLAY_TEST_FLING", "types")
	typist := start(t, name, os.Args[0])
	eventually(t, "typing", func() bool { return strings.Contains(keys(), "U4E16") && state(t, h)&0xff == 0 })
	if err := h.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	if keys() == before {
		t.Error("the keyboard was changed under a process that types")
	}
	eventually(t, "the other group", func() bool { return state(t, h)>>8 != 0 })
	if err := typist.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	typist.Wait()
	if keys() == before {
		t.Fatal("nothing was left over")
	}
	if err := h.Release(within(t)); err != nil {
		t.Fatal(err)
	}
	if keys() != before || state(t, h) != was {
		t.Errorf("the keyboard is not as before: %t, state %#x, not %#x", keys() == before, state(t, h), was)
	}
	if left := run(t, name, "xprop", "-root", "_LOCALPC_KEYBOARD"); strings.Contains(left, "=") {
		t.Errorf("it is still written down: %s", left)
	}
}
