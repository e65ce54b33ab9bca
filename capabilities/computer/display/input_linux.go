package display

/*
#cgo pkg-config: x11 xi xtst
#include <stdlib.h>
#include "input_linux.h"
*/
import "C"

import (
	"context"
	"errors"
	"image"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// link is one connection to the X server: Xlib takes one caller at a time.
type link struct {
	mu sync.Mutex
	d  *C.Display // nil when closed
}

var errLink = errors.New("the connection to the X server is gone")

func newLink(name string) (*link, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	d := C.lx_open(c)
	if d == nil {
		return nil, wire.Errorf(wire.CodeNotSupported, "Mouse and keyboard can't be used: the display %s does not answer.", name)
	}
	return &link{d: d}, nil
}

// do runs fn with the connection, and no other meanwhile.
func (l *link) do(fn func(d *C.Display)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.d == nil || C.lx_dead(l.d) != 0 {
		return errLink
	}
	fn(l.d)
	if C.lx_dead(l.d) != 0 {
		return errLink
	}
	return nil
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.d != nil {
		C.lx_close(l.d)
		l.d = nil
	}
}

// x11Input is mouse and keyboard of an X11 display, by XTEST. One connection
// acts, the other listens: to the person's hands, the stop key and the targets.
type x11Input struct {
	around
	act *link
	ear *listener

	// token is held by who acts.
	token chan struct{}
	mu    sync.Mutex
	stop  context.CancelCauseFunc // of the action under way; nil for none
	shut  bool                    // no action begins any more

	// What follows belongs to the holder of token.
	keys    []byte       // held down, in the order in which they were pressed
	btns    map[int]bool // held down
	focus   uint64       // the window with the keyboard that was found not to be ours
	spare   spareKeys
	changed changes
	pings   int // serial of the last one
}

var errStopped = wire.Errorf(wire.CodeStopped, "Mouse and keyboard were let go.")

// newX11Input makes the input part of the X11 display with this name.
func newX11Input(name string, a around) (input, error) {
	act, err := newLink(name)
	if err != nil {
		return nil, err
	}
	var screens, lacks C.int
	err = act.do(func(d *C.Display) { lacks = C.lx_ready(d, &screens) })
	if err != nil || lacks == 1 || lacks == 2 {
		act.close()
		return nil, wire.Errorf(wire.CodeNotSupported, "Mouse and keyboard can't be used: this display server lacks the XTEST or XKB extension.")
	}
	ear, err := newListener(name)
	if err != nil {
		act.close()
		return nil, err
	}
	return &x11Input{around: a, act: act, ear: ear, token: make(chan struct{}, 1), btns: map[int]bool{}}, nil
}

// Act runs on a goroutine of its own, so that a server that hangs holds up
// nobody whose ctx ends.
func (x *x11Input) Act(ctx context.Context, a hands.Action) error {
	if err := check(&a); err != nil {
		return err
	}
	var chord []keysym
	if a.Kind == hands.Key || a.Kind == hands.HoldKey {
		var err error
		if chord, err = parseChord(a.Chord, namedByX); err != nil {
			return err
		}
	}
	select {
	case x.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x.mu.Lock()
	x.stop = cancel
	if x.shut {
		cancel(errStopped)
	}
	x.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		err := x.run(ctx, a, chord)
		if err != nil {
			x.letGo()
		}
		if wire.CodeOf(err) == wire.CodeStopped && x.Busy(a.Seen) {
			err = errPerson() // it is for their hands that all was let go of
		}
		x.keepSpare()
		x.mu.Lock()
		x.stop = nil
		x.mu.Unlock()
		cancel(nil)
		<-x.token
		done <- err
	}()
	return settle(ctx, done)
}

// settle waits for done, and not much longer than ctx.
func settle(ctx context.Context, done <-chan error) error {
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(2 * time.Second):
			err = context.Cause(ctx)
		}
	}
	if errors.Is(err, errLink) {
		return wire.Wrap(err, wire.CodeInternal, "The connection to this computer's screen failed.")
	}
	return err
}

func (x *x11Input) run(ctx context.Context, a hands.Action, chord []keysym) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := x.ready(ctx, a); err != nil {
		return err
	}
	switch a.Kind {
	case hands.Type:
		return x.typeText(ctx, a)
	case hands.Key, hands.HoldKey:
		return x.chord(ctx, a, chord)
	default:
		return x.mouse(ctx, a)
	}
}

// ready makes every check that comes before an action.
func (x *x11Input) ready(ctx context.Context, a hands.Action) error {
	layout, err := x.layout(ctx)
	if err != nil {
		return err
	}
	if err := bounds(a, layout); err != nil {
		return err
	}
	if a.Layout != "" && a.Layout != layout.Fingerprint() {
		return errLayout()
	}
	if x.ear.holds() {
		return errPerson()
	}
	if err := x.may(ctx, a); err != nil {
		return err
	}
	if keyboard(a) {
		x.focus = 0
		return x.focused(ctx, a)
	}
	at := points(a)
	if len(at) == 0 {
		p, err := x.cursor()
		if err != nil {
			return err
		}
		at = []image.Point{p}
	}
	stack, err := x.stack(ctx)
	if err != nil {
		return err
	}
	return aimed(a, at, stack, x.ear.targetIDs())
}

// still checks again, in the middle of a long action, what is under at and a's
// aim; checked is when that was last done.
func (x *x11Input) still(ctx context.Context, a hands.Action, at []image.Point, checked *time.Time) error {
	if time.Since(*checked) < checkEvery {
		return nil
	}
	stack, err := x.stack(ctx)
	if err != nil {
		return err
	}
	*checked = time.Now()
	return aimed(a, at, stack, x.ear.targetIDs())
}

// may tells before each step whether to go on: nobody has ended the action, and
// the person's hands are off.
func (x *x11Input) may(ctx context.Context, a hands.Action) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := x.ear.catchUp(); err != nil {
		return err
	}
	if x.ear.person.after(a.Seen) {
		return errPerson()
	}
	return nil
}

// pause is a step that takes time.
func (x *x11Input) pause(ctx context.Context, a hands.Action, d time.Duration) error {
	end := time.Now().Add(d)
	for {
		left := time.Until(end)
		if left > 0 {
			t := time.NewTimer(min(left, 15*time.Millisecond))
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
		}
		if err := x.may(ctx, a); err != nil {
			return err
		}
		if time.Until(end) <= 0 {
			return nil
		}
	}
}

// focused says that the window with the keyboard is this program's, or another
// than a's keys have to go to.
func (x *x11Input) focused(ctx context.Context, a hands.Action) error {
	var f C.ulong
	if err := x.act.do(func(d *C.Display) { f = C.lx_focus(d) }); err != nil {
		return err
	}
	const pointerRoot = 1
	switch {
	case f == 0 && a.Keyboard != nil:
		return errElsewhere()
	case f == 0 || f != pointerRoot && uint64(f) == x.focus:
		return nil
	}
	stack, err := x.stack(ctx)
	if err != nil {
		return err
	}
	if f == pointerRoot {
		p, err := x.cursor()
		if err != nil {
			return err
		}
		var aim []hands.Aim
		if a.Keyboard != nil {
			aim = []hands.Aim{{Point: p, Window: a.Keyboard}}
		}
		return aimed(hands.Action{Aim: aim}, []image.Point{p}, stack, nil)
	}
	own := map[int]bool{os.Getpid(): true}
	windows := map[uint64]bool{}
	for _, w := range stack {
		if w.Ours {
			own[w.PID], windows[w.ID] = true, true
		}
	}
	there := a.Keyboard == nil
	for w, more := f, C.int(1); more != 0; {
		there = there || uint64(w) == a.Keyboard.ID && slices.ContainsFunc(stack, a.Keyboard.Same)
		var up C.ulong
		var pid C.int
		if err := x.act.do(func(d *C.Display) {
			pid = C.lx_pid(d, w)
			more = C.lx_up(d, w, &up)
		}); err != nil {
			return err
		}
		if windows[uint64(w)] || own[int(pid)] {
			return errOwn()
		}
		w = up
	}
	if !there {
		return errElsewhere()
	}
	x.focus = uint64(f)
	return nil
}

func (x *x11Input) cursor() (image.Point, error) {
	var px, py C.int
	var mask C.uint
	err := x.act.do(func(d *C.Display) { C.lx_pointer(d, &px, &py, &mask) })
	return image.Pt(int(px), int(py)), err
}

func (x *x11Input) Cursor(ctx context.Context) (image.Point, error) {
	if err := ctx.Err(); err != nil {
		return image.Point{}, err
	}
	p, err := x.cursor()
	if err != nil {
		err = wire.Wrap(err, wire.CodeInternal, "The connection to this computer's screen failed.")
	}
	return p, err
}

// Release ends the action under way, and lets go of everything that XTEST holds
// down, of an earlier process too, whose changes of the keyboard it takes back.
func (x *x11Input) Release(ctx context.Context) error {
	for {
		x.mu.Lock()
		if x.stop != nil {
			x.stop(errStopped)
		}
		x.mu.Unlock()
		select {
		case x.token <- struct{}{}:
			done := make(chan error, 1)
			go func() {
				x.letGo()
				err := x.letGoOfAll(false)
				if err == nil {
					err = x.takeBack()
				}
				<-x.token
				done <- err
			}()
			return settle(ctx, done)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond): // who came in between is stopped too
		}
	}
}

// letGo releases what this process holds down: keys in reverse, then buttons.
func (x *x11Input) letGo() {
	for len(x.keys) > 0 {
		x.key(x.keys[len(x.keys)-1], false)
	}
	for b := range x.btns {
		x.button(b, false)
	}
}

// letGoOfAll releases what the XTEST devices hold down, whoever pressed it; or
// the keys of it.
func (x *x11Input) letGoOfAll(keysOnly bool) error {
	return x.act.do(func(d *C.Display) {
		for _, v := range devices(d) {
			if v.xtest == 0 {
				continue
			}
			var keys, btns [32]C.uchar
			C.lx_down(d, v.id, &keys[0], &btns[0])
			for n := range 256 {
				if v.keys != 0 && keys[n/8]&(1<<(n%8)) != 0 {
					C.lx_key(d, C.int(n), 0)
				}
				if !keysOnly && v.buttons != 0 && btns[n/8]&(1<<(n%8)) != 0 {
					C.lx_button(d, C.int(n), 0)
				}
			}
		}
		C.lx_failed(d)
	})
}

// key presses or releases one key, and knows that it is down.
func (x *x11Input) key(code byte, down bool) {
	if down {
		x.keys = append(x.keys, code)
	} else {
		for i := len(x.keys) - 1; i >= 0; i-- {
			if x.keys[i] == code {
				x.keys = append(x.keys[:i], x.keys[i+1:]...)
				break
			}
		}
	}
	_ = x.act.do(func(d *C.Display) { C.lx_key(d, C.int(code), flag(down)) }) // gone: nothing is held
}

func (x *x11Input) button(n int, down bool) {
	if down {
		x.btns[n] = true
	} else {
		delete(x.btns, n)
	}
	_ = x.act.do(func(d *C.Display) { C.lx_button(d, C.int(n), flag(down)) }) // gone: nothing is held
}

// done waits until the server has what was sent.
func (x *x11Input) done() error {
	return x.act.do(func(d *C.Display) { C.lx_failed(d) })
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (x *x11Input) Target(ctx context.Context, points []image.Point) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return x.ear.target(points)
}

func (x *x11Input) Hits(ctx context.Context) ([]image.Point, error) {
	if err := x.ear.catchUp(); err != nil {
		return nil, err
	}
	return x.ear.hits(), ctx.Err()
}

func (x *x11Input) Listen(fn func(hands.Event)) { x.ear.listen(fn) }

func (x *x11Input) StopKey(_ context.Context, on bool) (bound, problem string) {
	return x.ear.stopKey(on)
}

func (x *x11Input) Person() (ok bool, why string) {
	if x.ear.deaf {
		return false, "This display server is too old to tell the person's mouse and keyboard from the agent's (it lacks XInput 2.2)."
	}
	return true, ""
}

func (x *x11Input) Busy(t time.Time) bool {
	err := x.ear.catchUp()
	return err == nil && x.ear.person.after(t)
}

func (x *x11Input) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	x.mu.Lock()
	x.shut = true
	x.mu.Unlock()
	err := x.Release(ctx)
	if errors.Is(err, errLink) {
		err = nil // the server has let go of everything
	}
	x.token <- struct{}{} // for good
	x.unbind()
	x.ear.close()
	x.act.close()
	return err
}
