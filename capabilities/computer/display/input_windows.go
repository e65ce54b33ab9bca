package display

import (
	"context"
	"errors"
	"image"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"
	"unsafe"

	win "golang.org/x/sys/windows"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

var (
	procSendInput     = user32.NewProc("SendInput")
	procSetCursorPos  = user32.NewProc("SetCursorPos")
	procGetCursorPos  = user32.NewProc("GetCursorPos")
	procSetHook       = user32.NewProc("SetWindowsHookExW")
	procUnhook        = user32.NewProc("UnhookWindowsHookEx")
	procNextHook      = user32.NewProc("CallNextHookEx")
	procGetMessage    = user32.NewProc("GetMessageW")
	procPostThread    = user32.NewProc("PostThreadMessageW")
	procPeekMessage   = user32.NewProc("PeekMessageW")
	procRegisterKey   = user32.NewProc("RegisterHotKey")
	procUnregisterKey = user32.NewProc("UnregisterHotKey")
)

// win32Event is INPUT, as large as its mouse event; of a keyboard event the
// fields are laid over those: vk and scan in dx, flags in dy.
type win32Event struct {
	kind  uint32
	_     uint32
	dx    int32
	dy    int32
	data  int32
	flags uint32
	time  uint32
	_     uint32
	extra uintptr
}

const (
	inputMouse    = 0
	inputKeyboard = 1

	mouseWheel  = 0x800
	mouseHWheel = 0x1000
	wheelNotch  = 120

	keyUp      = 2
	keyUnicode = 4
)

func sendWin32(events ...win32Event) error {
	n, _, err := procSendInput.Call(uintptr(len(events)), uintptr(unsafe.Pointer(&events[0])), unsafe.Sizeof(events[0]))
	if int(n) != len(events) {
		return wire.Wrap(err, wire.CodeNotSupported, "Windows let no input through: the program in front may be an administrator's, or the screen locked.")
	}
	return nil
}

// win32Own is what robotgo does not do right here: it takes places for points
// of the first screen's scale, turns the wheel up where it is to go sideways,
// and types by the layout.
type win32Own struct{}

func (win32Own) place(p image.Point) error {
	if ok, _, err := procSetCursorPos.Call(uintptr(p.X), uintptr(p.Y)); ok == 0 {
		return wire.Wrap(err, wire.CodeNotSupported, "Windows did not let the mouse be moved: the screen may be locked.")
	}
	// An event too: programs that wait for one don't hear of the place alone.
	const move = 1
	return sendWin32(win32Event{kind: inputMouse, flags: move})
}

func (win32Own) at() (image.Point, error) {
	var p win32Point
	if ok, _, err := procGetCursorPos.Call(uintptr(unsafe.Pointer(&p))); ok == 0 {
		return image.Point{}, err
	}
	return p.image(), nil
}

func (win32Own) wheel(direction string, steps int) error {
	e := win32Event{kind: inputMouse, flags: mouseWheel, data: int32(steps * wheelNotch)}
	switch direction {
	case "down":
		e.data = -e.data
	case "left":
		e.flags, e.data = mouseHWheel, -e.data
	case "right":
		e.flags = mouseHWheel
	}
	return sendWin32(e)
}

func (win32Own) char(r rune) error {
	var events []win32Event
	for _, u := range utf16.AppendRune(nil, r) {
		down := win32Event{kind: inputKeyboard, dx: int32(uint32(u) << 16), dy: keyUnicode}
		up := down
		up.dy |= keyUp
		events = append(events, down, up)
	}
	return sendWin32(events...)
}

func (win32Own) clicked(string, bool, int) (bool, error) { return false, nil }

// win32Watch hears the person's own hands by hooks that see every event before
// programs do, and says which were made up; and the stop key. Both need a
// thread that takes messages.
type win32Watch struct {
	hands_ person
	fn     atomic.Pointer[func(hands.Event)]
	thread uint32
	done   chan struct{}
	told   chan struct{} // tell has ended
	events chan hands.Event
	stops  chan hands.Event // apart, so that there is always room
	bound  chan win32Bound

	asking sync.Mutex // one question about the key at a time
	asked  uintptr    // which it was
}

// win32Bound answers a question about the stop key.
type win32Bound struct {
	asked uintptr
	has   bool
}

// theWatch is the one that hooks tell; the system calls them without a word on
// whose they are.
var theWatch atomic.Pointer[win32Watch]

const (
	hookKeyboard = 13
	hookMouse    = 14

	messageQuit   = 0x12
	messageHotKey = 0x312
	messageBind   = 0x8001 // ours
	messageUnbind = 0x8002

	stopKeyID  = 1
	modAlt     = 1
	modControl = 2
	modOnce    = 0x4000
	vkEscape   = 0x1b
)

// win32Message is MSG.
type win32Message struct {
	hwnd    uintptr
	message uint32
	wparam  uintptr
	lparam  uintptr
	time    uint32
	point   win32Point
	private uint32
}

// The structures that hooks get; both begin so.
type (
	hookedMouse struct {
		at    win32Point
		data  uint32
		flags uint32
	}
	hookedKey struct{ vk, scan, flags uint32 }
)

var (
	lastMouse atomic.Int64 // where the pointer was, packed

	mouseHook = win.NewCallback(func(code int32, what uintptr, e *hookedMouse) uintptr {
		const injected, moved = 3, 0x200 // by any program, also of lower rights
		if w := theWatch.Load(); code >= 0 && w != nil {
			now := int64(e.at.X)<<32 | int64(uint32(e.at.Y))
			was := lastMouse.Swap(now)
			if e.flags&injected == 0 {
				if what == moved {
					w.moved(float64(e.at.X-int32(was>>32)), float64(e.at.Y-int32(uint32(was))))
				} else {
					w.pressed()
				}
			}
		}
		next, _, _ := procNextHook.Call(0, uintptr(code), what, uintptr(unsafe.Pointer(e)))
		return next
	})
	keyHook = win.NewCallback(func(code int32, what uintptr, e *hookedKey) uintptr {
		const injected = 0x12
		if w := theWatch.Load(); code >= 0 && w != nil && e.flags&injected == 0 {
			w.pressed()
		}
		next, _, _ := procNextHook.Call(0, uintptr(code), what, uintptr(unsafe.Pointer(e)))
		return next
	})
)

func newWin32Watch() (*win32Watch, error) {
	w := &win32Watch{done: make(chan struct{}), told: make(chan struct{}), bound: make(chan win32Bound, 1), events: make(chan hands.Event, 1), stops: make(chan hands.Event, 1)}
	started := make(chan error, 1)
	go w.run(started)
	go w.tell()
	if err := <-started; err != nil {
		<-w.told
		return nil, err
	}
	return w, nil
}

// tell passes on what was heard until run ends: a hook that waits for whom it
// tells holds up the mouse of the whole computer.
func (w *win32Watch) tell() {
	defer close(w.told)
	for {
		var e hands.Event
		select {
		case e = <-w.stops:
		case e = <-w.events:
		case <-w.done:
			return
		}
		if fn := w.fn.Load(); fn != nil && *fn != nil {
			(*fn)(e)
		}
	}
}

// say never waits: one that waits already says the same.
func (w *win32Watch) say(e hands.Event) {
	to := w.events
	if e.Stop {
		to = w.stops
	}
	select {
	case to <- e:
	default:
	}
}

// run is the thread; it ends with close.
func (w *win32Watch) run(started chan<- error) {
	defer close(w.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var m win32Message
	_, _, _ = procPeekMessage.Call(uintptr(unsafe.Pointer(&m)), 0, 0, 0, 0) // makes the thread's queue
	w.thread = win.GetCurrentThreadId()
	theWatch.Store(w)
	defer theWatch.Store(nil)
	for kind, fn := range map[uintptr]uintptr{hookMouse: mouseHook, hookKeyboard: keyHook} {
		h, _, err := procSetHook.Call(kind, fn, 0, 0)
		if h == 0 {
			started <- err
			return
		}
		defer func() { _, _, _ = procUnhook.Call(h) }()
	}
	started <- nil
	bound := false
	for {
		got, _, _ := procGetMessage.Call(uintptr(unsafe.Pointer(&m)), 0, 0, 0)
		if int32(got) <= 0 {
			return
		}
		switch m.message {
		case messageHotKey:
			w.say(hands.Event{Stop: true, At: time.Now()})
		case messageBind:
			if !bound {
				ok, _, _ := procRegisterKey.Call(0, stopKeyID, modAlt|modControl|modOnce, vkEscape)
				bound = ok != 0
			}
			w.answer(win32Bound{m.wparam, bound})
		case messageUnbind:
			_, _, _ = procUnregisterKey.Call(0, stopKeyID)
			bound = false
			w.answer(win32Bound{m.wparam, false})
		}
	}
}

func (w *win32Watch) moved(dx, dy float64) {
	if busy, tell := w.hands_.moved(dx, dy, time.Now()); busy && tell {
		w.say(hands.Event{Person: true, At: time.Now()})
	}
}

func (w *win32Watch) pressed() {
	if w.hands_.pressed(time.Now()) {
		w.say(hands.Event{Person: true, At: time.Now()})
	}
}

// answer takes the place of one that nobody waited for.
func (w *win32Watch) answer(b win32Bound) {
	select {
	case <-w.bound:
	default:
	}
	w.bound <- b
}

func (w *win32Watch) listen(fn func(hands.Event)) { w.fn.Store(&fn) }

func (w *win32Watch) after(t time.Time) bool { return w.hands_.after(t) }

func (w *win32Watch) person() (bool, string) { return true, "" }

func (w *win32Watch) stopKey(ctx context.Context, on bool) (bound, problem string) {
	message := uintptr(messageUnbind)
	if on {
		message = messageBind
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	w.asked++
	if ok, _, _ := procPostThread.Call(uintptr(w.thread), message, w.asked, 0); ok == 0 {
		return "", "Windows gave no key for Stop everything. Use the tray icon instead."
	}
	for {
		select {
		case b := <-w.bound:
			switch {
			case b.asked != w.asked: // of a question that nobody waits for any more
				continue
			case b.has:
				return "Ctrl+Alt+Esc", ""
			case on:
				return "", "Another program has the key Ctrl+Alt+Esc. Stop everything from the tray icon instead."
			}
			return "", ""
		case <-ctx.Done():
			return "", "Windows did not answer about the key for Stop everything."
		}
	}
}

func (w *win32Watch) close() error {
	_, _, _ = procPostThread.Call(uintptr(w.thread), messageQuit, 0, 0)
	select {
	case <-w.told:
		return nil
	case <-time.After(2 * time.Second):
		return errors.New("the thread that hears mouse and keyboard does not end")
	}
}
