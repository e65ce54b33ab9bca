package display

// #include <stdlib.h>
// #include "input_linux.h"
import "C"

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

const (
	// typeTime lies between two keys of a text, keyTime is how long a key of a
	// chord is down and what lies between two of them.
	typeTime = 3 * time.Millisecond
	keyTime  = 8 * time.Millisecond
	// A program reads which keys have which meaning some time after they were
	// given one. Most answer a ping, which comes after that; others are looked
	// at until they sleep; those on other computers have this long.
	readTime = 100 * time.Millisecond
	doneTime = 600 * time.Millisecond
	pingTime = 3 * time.Second
	// Spare keys keep their meaning for so long after the last use.
	spareTime = 3 * time.Second
)

// spareKeys are keys without a meaning that have one for a while.
type spareKeys struct {
	bound map[keysym]byte
	timer *time.Timer
}

func namedByX(name string) keysym {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return keysym(C.lx_named(c))
}

func errNoKey(name string) error {
	return wire.Errorf(wire.CodeNotSupported, "This computer's keyboard layout has no key %s.", name)
}

// keyboard is how the keyboard is mapped, and what state it is in.
func (x *x11Input) keyboard() (*keymap, C.lx_state, error) {
	syms := make([]C.lx_sym, 16<<10)
	var modmap [256]C.uchar
	var first, last, groups C.int
	var numlock C.uint
	var state C.lx_state
	n, ok := C.int(-1), C.int(0)
	err := x.act.do(func(d *C.Display) {
		n = C.lx_map(d, &syms[0], C.int(len(syms)), &first, &last, &modmap[0], &numlock, &groups)
		ok = C.lx_state_now(d, &state)
	})
	if err != nil {
		return nil, state, err
	}
	if n < 0 || ok == 0 {
		return nil, state, wire.Errorf(wire.CodeInternal, "The keyboard of this computer can't be read.")
	}
	m := &keymap{syms: map[keysym][]stroke{}, numLock: uint8(numlock), bound: map[keysym]byte{}}
	used := map[byte]bool{}
	for _, s := range syms[:n] {
		code := byte(s.code)
		used[code] = true
		if x.spare.bound[keysym(s.sym)] == code {
			m.bound[keysym(s.sym)] = code
			continue // it may lose its meaning: plan knows it as bound
		}
		m.syms[keysym(s.sym)] = append(m.syms[keysym(s.sym)], stroke{code: code, group: int(s.group), mods: uint8(s.mods)})
		if sym := keysym(s.sym); s.mods == 0 && (sym == symShift || sym == symLevel3) {
			for bit := range 8 {
				if modmap[code]&(1<<bit) != 0 && m.holds[bit] == 0 {
					m.holds[bit] = code
				}
			}
		}
	}
	for code := int(first); code <= int(last); code++ {
		if _, ours := x.ownSpare(byte(code)); ours || !used[byte(code)] && modmap[code] == 0 {
			m.spare = append(m.spare, byte(code))
		}
	}
	return m, state, nil
}

func (x *x11Input) ownSpare(code byte) (keysym, bool) {
	for sym, c := range x.spare.bound {
		if c == code {
			return sym, true
		}
	}
	return 0, false
}

// calm takes away what distorts typing (CapsLock, a latched Shift) and gives it
// back at the end; NumLock, which distorts nothing, stays.
func (x *x11Input) calm(m *keymap, s C.lx_state) (back func()) {
	locked := s.locked &^ C.uint(m.numLock)
	if locked == 0 && s.latched == 0 {
		return func() {}
	}
	x.changed.locked = locked
	x.note()
	_ = x.act.do(func(d *C.Display) {
		C.lx_unlatch(d)
		C.lx_lock(d, locked, 0)
	})
	return func() {
		_ = x.act.do(func(d *C.Display) { C.lx_lock(d, locked, locked) })
		x.changed.locked = 0
		x.note()
	}
}

// inGroup puts group into effect; now is what is.
func (x *x11Input) inGroup(s C.lx_state, now *int, group int) {
	if group == anyGroup || group == *now {
		return
	}
	*now = group
	if x.changed.group == 0 {
		x.changed.group = int(s.locked_group) + 1
		x.note()
	}
	_ = x.act.do(func(d *C.Display) { C.lx_group(d, C.int(group)) })
}

func (x *x11Input) backInGroup(s C.lx_state, now *int) {
	if *now != int(s.group) {
		_ = x.act.do(func(d *C.Display) { C.lx_group(d, s.locked_group) })
	}
	if x.changed.group != 0 {
		x.changed.group = 0
		x.note()
	}
}

func (x *x11Input) typeText(ctx context.Context, a hands.Action) error {
	m, state, err := x.keyboard()
	if err == nil && state.base != 0 {
		// The person holds nothing (ready looked): an earlier process, or another
		// program, left a key down, and the text would come out wrong.
		if err = x.letGoOfAll(true); err == nil {
			m, state, err = x.keyboard()
		}
	}
	if err != nil {
		return err
	}
	group := int(state.group)
	pieces, err := m.plan(a.Text, group)
	if err != nil {
		return err
	}
	defer x.calm(m, state)()
	defer x.backInGroup(state, &group)
	for i, p := range pieces {
		if len(p.bind) > 0 {
			if i > 0 {
				if err := x.wasRead(ctx, a, doneTime); err != nil {
					return err
				}
			}
			if err := x.bind(p.bind); err != nil {
				return err
			}
			if err := x.wasRead(ctx, a, readTime); err != nil {
				return err
			}
		}
		for _, s := range p.strokes {
			if err := x.may(ctx, a); err != nil {
				return err
			}
			if err := x.focused(ctx, a); err != nil {
				return err
			}
			x.inGroup(state, &group, s.group)
			x.holdOnly(m, s.mods)
			x.key(s.code, true)
			x.key(s.code, false)
			if err := x.pause(ctx, a, typeTime); err != nil {
				return err
			}
		}
	}
	x.holdOnly(m, 0)
	return x.done()
}

// holdOnly holds exactly mods.
func (x *x11Input) holdOnly(m *keymap, mods uint8) {
	for bit := range 8 {
		code, want := m.holds[bit], mods&(1<<bit) != 0
		if held := code != 0 && slices.Contains(x.keys, code); held != want && code != 0 {
			x.key(code, want)
		}
	}
}

// bind gives spare keys a meaning.
func (x *x11Input) bind(to map[byte]keysym) error {
	if x.spare.bound == nil {
		x.spare.bound = map[keysym]byte{}
	}
	for code, sym := range to {
		if was, ok := x.ownSpare(code); ok {
			delete(x.spare.bound, was)
		}
		x.spare.bound[sym] = code
	}
	x.note()
	return x.remap(to)
}

func (x *x11Input) remap(to map[byte]keysym) error {
	var codes []C.int
	var syms []C.ulong
	for code, sym := range to {
		codes, syms = append(codes, C.int(code)), append(syms, C.ulong(sym))
	}
	if len(codes) == 0 {
		return nil
	}
	ok, failed := C.int(0), C.int(0)
	err := x.act.do(func(d *C.Display) {
		ok = C.lx_bind(d, &codes[0], &syms[0], C.int(len(codes)))
		failed = C.lx_failed(d)
	})
	if err == nil && (ok == 0 || failed != 0) {
		err = wire.Errorf(wire.CodeInternal, "The keyboard of this computer could not be given the characters of the text.")
	}
	return err
}

// keepSpare has the spare keys lose their meaning some time from now.
func (x *x11Input) keepSpare() {
	switch {
	case len(x.spare.bound) == 0:
	case x.spare.timer == nil:
		x.spare.timer = time.AfterFunc(spareTime, x.unbindLater)
	default:
		x.spare.timer.Reset(spareTime)
	}
}

// unbindLater runs on the timer's goroutine: not while somebody acts.
func (x *x11Input) unbindLater() {
	select {
	case x.token <- struct{}{}:
		x.unbind()
		<-x.token
	default: // who acts sets the timer anew
	}
}

// unbind takes the meanings away again, where nobody has given others.
func (x *x11Input) unbind() {
	if x.spare.timer != nil {
		x.spare.timer.Stop()
	}
	none := map[byte]keysym{}
	_ = x.act.do(func(d *C.Display) {
		for sym, code := range x.spare.bound {
			if keysym(C.lx_bound(d, C.int(code))) == sym {
				none[code] = 0
			}
		}
	})
	_ = x.remap(none) // gone, or as it was: there is nobody to tell
	if x.spare.bound != nil {
		x.spare.bound = nil
		x.note()
	}
}

// wasRead waits until the program with the keyboard has read everything that
// was sent to it; one that answers no pings has so long.
func (x *x11Input) wasRead(ctx context.Context, a hands.Action, otherwise time.Duration) error {
	var window C.ulong
	pid := 0
	x.pings++
	serial := C.long(x.pings)
	err := x.act.do(func(d *C.Display) {
		w, up := C.lx_focus(d), C.ulong(0)
		for more := C.int(1); w > 1 && more != 0 && window == 0; w = up {
			if C.lx_pings(d, w) != 0 {
				window = w
			}
			if pid == 0 {
				pid = int(C.lx_pid(d, w))
			}
			more = C.lx_up(d, w, &up)
		}
		if window != 0 {
			C.lx_listen_pongs(d, 1)
			C.lx_ping(d, window, serial)
		}
	})
	if err != nil || window == 0 {
		if err != nil {
			return err
		}
		return x.idle(ctx, a, pid, otherwise)
	}
	defer func() { _ = x.act.do(func(d *C.Display) { C.lx_listen_pongs(d, 0); C.lx_ponged(d, serial) }) }()
	for end := time.Now().Add(pingTime); time.Now().Before(end); {
		var came C.int
		if err := x.act.do(func(d *C.Display) { came = C.lx_ponged(d, serial) }); err != nil {
			return err
		}
		if came != 0 {
			return x.may(ctx, a)
		}
		if err := x.pause(ctx, a, time.Millisecond); err != nil {
			return err
		}
	}
	return nil // it hangs, and reads all of it later
}

// idle waits until the process of the window with the keyboard has nothing to
// do: it sleeps, and has not run for some looks. Where it can't be looked at, it
// has so long.
func (x *x11Input) idle(ctx context.Context, a hands.Action, pid int, otherwise time.Duration) error {
	const look, looks = 10 * time.Millisecond, 4
	before, ok := worked(pid)
	if !ok {
		return x.pause(ctx, a, otherwise)
	}
	for end, same := time.Now().Add(pingTime), 0; same < looks && time.Now().Before(end); {
		if err := x.pause(ctx, a, look); err != nil {
			return err
		}
		now, _ := worked(pid)
		if same++; now != before || now == "" {
			before, same = now, 0
		}
	}
	return nil
}

// worked is how long a process has run, to compare; "" while it does.
func worked(pid int) (string, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	sched, err2 := os.ReadFile(dir + "/schedstat")
	if pid == 0 || err != nil || err2 != nil {
		return "", false
	}
	_, after, _ := strings.Cut(string(stat), ") ") // behind the name
	if !strings.HasPrefix(after, "S") {
		return "", true
	}
	return string(sched), true
}

func (x *x11Input) chord(ctx context.Context, a hands.Action, syms []keysym) error {
	m, state, err := x.keyboard()
	if err != nil {
		return err
	}
	group := int(state.group)
	var strokes []stroke
	bind := map[byte]keysym{}
	free := m.free(m.bound)
	for _, sym := range syms {
		any := []keysym{sym}
		if r := runeOf(sym); r != 0 {
			any = symsOf(r)
		}
		s, ok := m.findAny(any, group)
		if code, bound := m.bound[sym]; !ok && bound {
			s, ok = stroke{code: code, group: anyGroup}, true
		}
		if !ok {
			if isModifier(sym) || len(free) == 0 {
				return errNoKey(a.Chord)
			}
			s = stroke{code: free[0], group: anyGroup}
			bind[free[0]], free = sym, free[1:]
		}
		strokes = append(strokes, s)
	}
	if last := syms[len(syms)-1]; runeOf(last) != 0 {
		defer x.calm(m, state)() // "a" is a, with CapsLock too
	}
	if len(bind) > 0 {
		if err := x.bind(bind); err != nil {
			return err
		}
		if err := x.wasRead(ctx, a, readTime); err != nil {
			return err
		}
	}
	defer x.backInGroup(state, &group)
	held, repeat := keyTime, a.Repeat
	if a.Kind == hands.HoldKey {
		held, repeat = a.Hold, 1
	}
	for n := range repeat {
		if n > 0 {
			if err := x.pause(ctx, a, keyTime); err != nil {
				return err
			}
		}
		if err := x.focused(ctx, a); err != nil { // the first time too: there may have been a wait
			return err
		}
		for _, s := range strokes {
			x.inGroup(state, &group, s.group)
			for bit := range 8 {
				if code := m.holds[bit]; s.mods&(1<<bit) != 0 && !slices.Contains(x.keys, code) {
					x.key(code, true)
				}
			}
			x.key(s.code, true)
		}
		if err := x.held(ctx, a, held); err != nil {
			return err
		}
		for len(x.keys) > 0 {
			x.key(x.keys[len(x.keys)-1], false)
		}
	}
	return x.done()
}

// held waits while keys are down: where they go must stay the same.
func (x *x11Input) held(ctx context.Context, a hands.Action, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if err := x.pause(ctx, a, min(left, checkEvery)); err != nil || left <= checkEvery {
			return err
		}
		if err := x.focused(ctx, a); err != nil {
			return err
		}
	}
}

// isModifier: a key that only its place in the layout makes what it is.
func isModifier(s keysym) bool {
	return s >= 0xffe1 && s <= 0xffee || s == symLevel3 || s == 0xff7f
}

// runeOf is the character of a keysym that symsOf gives; 0 for other keys.
func runeOf(s keysym) rune {
	switch {
	case s >= 0x20 && s < 0x7f, s >= 0xa0 && s < 0x100:
		return rune(s)
	case s > unicodeSym && s <= unicodeSym+0x10ffff:
		return rune(s - unicodeSym)
	}
	return 0
}
