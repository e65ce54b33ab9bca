package ui

import (
	"sync"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"
)

// A press that is only sent to a window, with the mark of such events, was made
// by no hand: no device has pressed anything. Nor was one of XTEST's. The
// person's counts, once.
func TestWhatAHandMade(t *testing.T) {
	x := onX(t)
	if x.gate == nil {
		t.Fatal("this X server can't tell")
	}
	if err := xtest.Init(x.conn); err != nil {
		t.Fatal(err)
	}
	win, err := xproto.NewWindowId(x.conn)
	if err != nil {
		t.Fatal(err)
	}
	must := func(c interface{ Check() error }) {
		t.Helper()
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	must(xproto.CreateWindowChecked(x.conn, 0, win, x.root.Root, 0, 0, 200, 200, 0, xproto.WindowClassInputOutput, 0,
		xproto.CwEventMask, []uint32{xproto.EventMaskButtonPress | xproto.EventMaskKeyPress}))
	must(xproto.MapWindowChecked(x.conn, win))
	must(xproto.SetInputFocusChecked(x.conn, xproto.InputFocusParent, win, 0))
	must(xproto.WarpPointerChecked(x.conn, 0, x.root.Root, 0, 0, 0, 0, 50, 50))
	sent := func() {
		t.Helper()
		button := xproto.ButtonPressEvent{Detail: 1, Root: x.root.Root, Event: win, RootX: 50, RootY: 50, EventX: 50, EventY: 50, SameScreen: true}
		key := xproto.KeyPressEvent{Detail: 38, Root: x.root.Root, Event: win, SameScreen: true}
		must(xproto.SendEventChecked(x.conn, false, win, xproto.EventMaskButtonPress, string(button.Bytes())))
		must(xproto.SendEventChecked(x.conn, false, win, xproto.EventMaskKeyPress, string(key.Bytes())))
	}
	// No server of a test has a device that a hand moves: what its device would
	// tell is put where the gate reads it.
	byHand := func(key int) {
		x.gate.mu.Lock()
		defer x.gate.mu.Unlock()
		x.gate.presses = append(x.gate.presses, devicePress{key: key, at: time.Now(), device: 1, window: win})
	}
	sent()
	if x.gate.press(0, win).Mine || x.gate.press(38, win).Mine {
		t.Error("what was only sent counts as the person's")
	}
	byHand(0)
	byHand(38)
	if !x.gate.press(0, win).Mine || !x.gate.press(38, win).Mine {
		t.Error("the person's own press does not count")
	}
	sent()
	if x.gate.press(0, win).Mine || x.gate.press(38, win).Mine {
		t.Error("what is sent after the person's press counts as theirs")
	}
	byHand(0)
	must(xtest.FakeInputChecked(x.conn, xproto.ButtonPress, 1, 0, x.root.Root, 50, 50, 0))
	must(xtest.FakeInputChecked(x.conn, xproto.ButtonRelease, 1, 0, x.root.Root, 50, 50, 0))
	for range 2 { // and asked again
		if x.gate.press(0, win).Mine {
			t.Error("a program's press beside the person's counts as theirs")
		}
	}
	time.Sleep(robotNear + 100*time.Millisecond)
	byHand(0)
	if !x.gate.press(0, win).Mine {
		t.Error("the person's press does not count long after a program's")
	}
}

// The gate's connection is the X library's, which several goroutines use: while
// one waits for events, others ask. None of them spoils another's.
func TestGateIsAskedByMany(t *testing.T) {
	x := onX(t)
	if err := xtest.Init(x.conn); err != nil {
		t.Fatal(err)
	}
	within(t, "the gate hangs when many ask it", func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					if x.gate.press(0, 1).Mine {
						t.Error("a press of nobody counts as the person's")
						return
					}
				}
			})
		}
		wg.Go(func() {
			for range 200 {
				xtest.FakeInput(x.conn, xproto.ButtonPress, 1, 0, x.root.Root, 1, 1, 0)
				xtest.FakeInput(x.conn, xproto.ButtonRelease, 1, 0, x.root.Root, 1, 1, 0)
			}
			x.conn.Sync()
		})
		wg.Wait()
	})
}
