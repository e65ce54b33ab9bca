package display

// #include "input_linux.h"
import "C"

import (
	"image"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// listener hears what happens at an X11 display: the person's hands, by
// XInput 2's raw events, whose devices are told from XTEST's; the stop key; and
// clicks on targets.
type listener struct {
	*link
	person person
	deaf   bool // the server can't tell devices apart
	wake   [2]int
	done   chan struct{} // run has ended
	told   chan struct{} // tell has ended
	events chan hands.Event
	stops  chan hands.Event // apart, so that there is always room

	fnMu sync.Mutex
	fn   func(hands.Event)

	// Guarded by link's mutex.
	devs    map[int]*device
	width   int // of the screen, for devices whose axes have a scale of their own
	height  int
	screens int
	bound   stopKey
	stopped time.Time // when the stop key was last told
	marks   map[uint64]bool
	clicked []image.Point
}

// device is one that sends events.
type device struct {
	is C.lx_device
	// sure: is.absolute is as its events are, whatever it says of itself.
	sure bool
}

func newListener(name string) (*listener, error) {
	k, err := newLink(name)
	if err != nil {
		return nil, err
	}
	l := &listener{link: k, done: make(chan struct{}), told: make(chan struct{}), events: make(chan hands.Event, 32), stops: make(chan hands.Event, 1), marks: map[uint64]bool{}}
	if err := syscall.Pipe2(l.wake[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		k.close()
		return nil, err
	}
	_ = k.do(func(d *C.Display) { // gone: run ends
		var screens, w, h C.int
		l.deaf = C.lx_ready(d, &screens) != 0
		C.lx_size(d, &w, &h)
		l.width, l.height, l.screens = int(w), int(h), int(screens)
		if !l.deaf {
			C.lx_watch(d)
			l.lookAtDevices()
		}
	})
	go l.run()
	go l.tell()
	return l, nil
}

func devices(d *C.Display) []C.lx_device {
	out := make([]C.lx_device, 128)
	return out[:C.lx_devices(d, &out[0], C.int(len(out)))]
}

func (l *listener) lookAtDevices() {
	before := l.devs
	l.devs = map[int]*device{}
	for _, v := range devices(l.d) {
		now := &device{is: v}
		if was := before[int(v.id)]; was != nil {
			// Its axes are where its last event put them: it may have moved since,
			// and that event is still to come.
			now.is.value = was.is.value
			if was.sure {
				now.sure, now.is.absolute = true, was.is.absolute
			}
		}
		l.devs[int(v.id)] = now
	}
}

// run reads events until close, or until the server is gone.
func (l *listener) run() {
	defer close(l.done)
	d := l.d // close waits for run
	for {
		if C.lx_wait(d, C.int(l.wake[0])) == 1 {
			var b [16]byte
			n, _ := syscall.Read(l.wake[0], b[:])
			if n > 0 && slices.Contains(b[:n], 'q') {
				return
			}
		}
		if l.do(func(*C.Display) { l.drain() }) != nil {
			return
		}
	}
}

// catchUp returns when every event up to now has been seen.
func (l *listener) catchUp() error {
	return l.do(func(d *C.Display) {
		C.lx_failed(d)
		l.drain()
	})
}

func (l *listener) drain() {
	var e C.lx_event
	for C.lx_next(l.d, &e) != 0 {
		l.happened(&e, time.Now())
	}
}

func (l *listener) happened(e *C.lx_event, at time.Time) {
	switch e.what {
	case C.LX_DEVICES:
		l.lookAtDevices()
	case C.LX_MOTION, C.LX_KEY, C.LX_KEY_UP, C.LX_BUTTON, C.LX_BUTTON_UP:
		l.heard(e, at)
	case C.LX_GRABBED:
		if l.bound.code != 0 && int(e.detail) == l.bound.code {
			l.stop(at)
		}
	case C.LX_MAPPING:
		l.rebind()
	case C.LX_TARGET:
		if l.marks[uint64(e.window)] && e.detail <= 3 {
			l.clicked = append(l.clicked, image.Pt(int(e.x), int(e.y)))
		}
	case C.LX_EXPOSE:
		if l.marks[uint64(e.window)] {
			C.lx_paint(l.d, e.window, targetSide)
		}
	}
}

// heard takes a raw event. Those of XTEST devices are the agent's.
func (l *listener) heard(e *C.lx_event, at time.Time) {
	if e.what == C.LX_KEY && l.bound.code == int(e.detail) && l.bound.code != 0 && l.bound.held(l.d) {
		l.stop(at) // although another program holds the keyboard
	}
	v := l.devs[int(e.source)]
	if v == nil {
		l.lookAtDevices()
		if v = l.devs[int(e.source)]; v == nil {
			v = &device{}
			l.devs[int(e.source)] = v
		}
	}
	if v.is.xtest != 0 {
		return
	}
	if e.what != C.LX_MOTION {
		if l.person.pressed(at) {
			l.say(hands.Event{Person: true, At: at})
		}
		return
	}
	v.see(l.d, e)
	dx, dy := v.move(e, 0, l.width), v.move(e, 1, l.height)
	if _, tell := l.person.moved(dx, dy, at); tell {
		l.say(hands.Event{Person: true, At: at})
	}
}

// see notices a device that calls its axes relative, but sends where the pointer
// is (Xephyr's mouse, and those of some virtual machines).
func (v *device) see(d *C.Display, e *C.lx_event) {
	if v.sure || e.has[0] == 0 || e.has[1] == 0 {
		return
	}
	v.sure = true
	var x, y C.int
	var mask C.uint
	if v.is.absolute[0] == 0 && C.lx_pointer(d, &x, &y, &mask) != 0 && math.Hypot(float64(e.axis[0])-float64(x), float64(e.axis[1])-float64(y)) < 2 && x > 16 && y > 16 {
		v.is.absolute = [2]C.int{1, 1}
	}
}

// move is by how many pixels an axis moved.
func (v *device) move(e *C.lx_event, i, size int) float64 {
	if e.has[i] == 0 {
		return 0
	}
	now := float64(e.axis[i])
	if v.is.absolute[i] == 0 {
		return now
	}
	by := now - float64(v.is.value[i])
	v.is.value[i] = e.axis[i]
	if span := float64(v.is.max[i] - v.is.min[i]); span > 0 {
		by *= float64(size) / span
	}
	return by
}

// holds tells whether the person holds a key or a button down at this moment.
func (l *listener) holds() bool {
	held := false
	_ = l.do(func(d *C.Display) { // gone: the next call says so
		for id, v := range l.devs {
			if v.is.slave == 0 || v.is.xtest != 0 || v.is.keys == 0 && v.is.buttons == 0 {
				continue
			}
			var keys, btns [32]C.uchar
			if C.lx_down(d, C.int(id), &keys[0], &btns[0]) == 0 {
				continue
			}
			for i := range keys {
				held = held || keys[i] != 0 || btns[i] != 0
			}
		}
		C.lx_failed(d)
		l.drain()
	})
	return held
}

func (l *listener) listen(fn func(hands.Event)) {
	l.fnMu.Lock()
	defer l.fnMu.Unlock()
	l.fn = fn
}

// say never waits: a listener that is behind has enough to hear. A stop waits
// for none but another stop.
func (l *listener) say(e hands.Event) {
	to := l.events
	if e.Stop {
		to = l.stops
	}
	select {
	case to <- e:
	default:
	}
}

func (l *listener) tell() {
	defer close(l.told)
	for {
		e, ok := l.next()
		if !ok {
			return
		}
		l.fnMu.Lock()
		fn := l.fn
		l.fnMu.Unlock()
		if fn != nil {
			fn(e)
		}
	}
}

// next is a stop before everything else.
func (l *listener) next() (e hands.Event, ok bool) {
	select {
	case e = <-l.stops:
		return e, true
	default:
	}
	select {
	case e = <-l.stops:
		return e, true
	case e, ok = <-l.events:
		return e, ok
	}
}

func (l *listener) close() {
	_, _ = syscall.Write(l.wake[1], []byte{'q'}) // run reads, so there is room
	<-l.done
	_ = l.do(func(*C.Display) { l.release() }) // gone: nothing is bound
	l.link.close()
	close(l.events)
	<-l.told
	syscall.Close(l.wake[0])
	syscall.Close(l.wake[1])
}

// nudge has run look: what was asked of the server may have brought events.
func (l *listener) nudge() { _, _ = syscall.Write(l.wake[1], []byte{'.'}) }

const targetSide = 49

// target draws targets in place of those that are there.
func (l *listener) target(points []image.Point) error {
	var failed bool
	err := l.do(func(d *C.Display) {
		for w := range l.marks {
			C.lx_destroy(d, C.ulong(w))
		}
		clear(l.marks)
		l.clicked = nil
		for _, p := range points {
			l.marks[uint64(C.lx_target(d, C.int(p.X), C.int(p.Y), targetSide, C.int(os.Getpid())))] = true
		}
		failed = C.lx_failed(d) != 0
		l.drain()
	})
	if err != nil || failed {
		return wire.Errorf(wire.CodeInternal, "The targets of the screen test could not be drawn.")
	}
	return nil
}

func (l *listener) hits() []image.Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.clicked)
}

func (l *listener) targetIDs() map[uint64]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[uint64]bool{}
	for w := range l.marks {
		out[w] = true
	}
	return out
}
