package display

import (
	"context"
	"image"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// quartzWindows lists the windows of the person's session. Their titles are
// there only where the screen may be seen.
type quartzWindows struct{ *quartz }

const (
	onScreenOnly    = 1
	withoutDesktop  = 16
	numberSInt64    = 4
	numberFloat64   = 6
	normalLayer     = 0
	textBufferBytes = 1024
)

func (q quartzWindows) list(_ context.Context, _ time.Time) (stack, over space.Stack, err error) {
	array := q.copyWindows(onScreenOnly|withoutDesktop, 0)
	if array == 0 {
		return nil, nil, wire.Errorf(wire.CodeNotSupported, "macOS did not list its windows: nobody may be logged in to its desktop.")
	}
	defer q.release(array)
	keys := q.keys("kCGWindowNumber", "kCGWindowOwnerPID", "kCGWindowOwnerName", "kCGWindowName", "kCGWindowBounds", "kCGWindowLayer", "kCGWindowAlpha")
	defer func() {
		for _, k := range keys {
			q.release(k)
		}
	}()
	focused := false
	for i := range q.count(array) { // the topmost first
		d := q.at(array, i)
		var r cgRect
		if b := q.value(d, keys["kCGWindowBounds"]); b == 0 || !q.rect(b, &r) {
			continue
		}
		w := space.Window{ID: uint64(q.whole(q.value(d, keys["kCGWindowNumber"]))), PID: int(q.whole(q.value(d, keys["kCGWindowOwnerPID"]))),
			App: q.string(q.value(d, keys["kCGWindowOwnerName"])), Title: q.string(q.value(d, keys["kCGWindowName"])), Frame: pointsOf(r)}
		w.Class = q.program(w.PID)
		alpha := q.part(q.value(d, keys["kCGWindowAlpha"]))
		layer := q.whole(q.value(d, keys["kCGWindowLayer"]))
		// Which windows are not opaque, or not painted yet, the system doesn't tell.
		w.Seethrough, w.Popup = true, layer != normalLayer
		w.Loose = layer == normalLayer && w.Title == "" // as sheets and dialogs are, whose window is not told
		if alpha < 1 {
			w.Clicks = []image.Rectangle{} // it may let them through
		}
		if alpha == 0 || w.Frame.Empty() {
			continue
		}
		if !focused && layer == normalLayer {
			w.Focused, focused = true, true
		}
		stack = append(stack, w)
	}
	stack.Belong(slices.Clone(stack))
	return stack, nil, nil
}

func (q quartzWindows) keys(names ...string) map[string]uintptr {
	out := map[string]uintptr{}
	for _, name := range names {
		// The keys are what they are named, as their documentation has it.
		out[name] = q.makeText(0, name, utf8Encoding)
	}
	return out
}

func (q quartzWindows) whole(number uintptr) (n int64) {
	if number != 0 {
		q.number(number, numberSInt64, unsafe.Pointer(&n))
	}
	return n
}

func (q quartzWindows) part(number uintptr) (f float64) {
	if number != 0 {
		q.number(number, numberFloat64, unsafe.Pointer(&f))
	}
	return f
}

func (q quartzWindows) string(s uintptr) string {
	var b [textBufferBytes]byte
	if s == 0 || !q.text(s, &b[0], len(b), utf8Encoding) {
		return ""
	}
	text, _, _ := strings.Cut(string(b[:]), "\x00")
	return text
}

// program is the name of the file, or of the bundle, that a process runs.
func (q quartzWindows) program(pid int) string {
	var b [4096]byte
	n := q.pidPath(int32(pid), &b[0], uint32(len(b)))
	if n <= 0 {
		return ""
	}
	path := string(b[:n])
	if bundle, _, ok := strings.Cut(path, ".app/"); ok {
		return filepath.Base(bundle)
	}
	return filepath.Base(path)
}

func (quartzWindows) focus(context.Context, space.Window, bool) error {
	return wire.Errorf(wire.CodeNotSupported, "On a Mac windows can't be brought to the front this way. Click the window instead.")
}

func (quartzWindows) close() {}
