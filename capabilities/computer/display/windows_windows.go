package display

import (
	"context"
	"image"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	win "golang.org/x/sys/windows"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

var (
	procWindowText    = user32.NewProc("GetWindowTextW")
	procWindowRect    = user32.NewProc("GetWindowRect")
	procIsIconic      = user32.NewProc("IsIconic")
	procGetWindowLong = user32.NewProc("GetWindowLongW")
	procShowWindow    = user32.NewProc("ShowWindow")
	procSetForeground = user32.NewProc("SetForegroundWindow")
	procAttachInput   = user32.NewProc("AttachThreadInput")
	procBringToTop    = user32.NewProc("BringWindowToTop")
	procGetWindow     = user32.NewProc("GetWindow")
)

// win32Windows lists the windows of the person's session.
type win32Windows struct{}

var windowFound = win.NewCallback(func(hwnd win.HWND, list *[]win.HWND) uintptr {
	*list = append(*list, hwnd)
	return 1
})

const (
	styleExLayered     = 0x80000
	styleExNoBitmap    = 0x200000
	styleExTransparent = 0x20
	gwlExStyle         = ^uintptr(19) // -20
	dwmFrameBounds     = 9
	dwmCloaked         = 14
)

// list has those that let clicks through (WS_EX_TRANSPARENT) in over.
func (win32Windows) list(_ context.Context, _ time.Time) (stack, over space.Stack, err error) {
	var all []win.HWND
	if err := win.EnumWindows(windowFound, unsafe.Pointer(&all)); err != nil {
		return nil, nil, err
	}
	front := win.GetForegroundWindow()
	var minimised space.Stack
	for _, h := range all { // the topmost first
		w, style, ok := win32Window(h)
		if !ok {
			continue
		}
		w.Focused = h == front
		switch {
		case style&styleExTransparent != 0:
			over = append(over, w)
		case w.Minimized:
			minimised = append(minimised, w)
		default:
			stack = append(stack, w)
		}
	}
	stack = append(stack, minimised...)
	among := slices.Concat(stack, over)
	stack.Belong(among)
	over.Belong(among)
	return stack, over, nil
}

func win32Window(h win.HWND) (w space.Window, style uint32, ok bool) {
	if !win.IsWindowVisible(h) {
		return w, 0, false
	}
	var cloaked uint32 // on another desktop, or an app that sleeps
	if win.DwmGetWindowAttribute(h, dwmCloaked, unsafe.Pointer(&cloaked), 4) == nil && cloaked != 0 {
		return w, 0, false
	}
	var r win32Rect
	// Without the shadow where the compositor says so.
	if win.DwmGetWindowAttribute(h, dwmFrameBounds, unsafe.Pointer(&r), uint32(unsafe.Sizeof(r))) != nil {
		if got, _, _ := procWindowRect.Call(uintptr(h), uintptr(unsafe.Pointer(&r))); got == 0 {
			return w, 0, false
		}
	}
	iconic, _, _ := procIsIconic.Call(uintptr(h))
	w = space.Window{ID: uint64(h), Frame: r.image(), Minimized: iconic != 0}
	if w.Frame.Empty() && !w.Minimized {
		return w, 0, false
	}
	var class, title [512]uint16
	if n, err := win.GetClassName(h, &class[0], int32(len(class))); err == nil {
		w.Class = win.UTF16ToString(class[:n])
	}
	switch w.Class {
	case "#32768", "tooltips_class32": // menus and tooltips, which often have no owner
		w.Popup = true
	}
	const owner = 4
	of, _, _ := procGetWindow.Call(uintptr(h), owner)
	w.Owner = uint64(of)
	n, _, _ := procWindowText.Call(uintptr(h), uintptr(unsafe.Pointer(&title[0])), uintptr(len(title)))
	w.Title = win.UTF16ToString(title[:n])
	var pid uint32
	_, _ = win.GetWindowThreadProcessId(h, &pid)
	w.PID = int(pid)
	w.App, w.Started = win32Process(pid)
	long, _, _ := procGetWindowLong.Call(uintptr(h), gwlExStyle)
	style = uint32(long)
	w.Seethrough = style&(styleExLayered|styleExNoBitmap) != 0
	if style&styleExLayered != 0 {
		w.Clicks = []image.Rectangle{} // it may let them through
	}
	if l, err := screensOfWindows(); err == nil {
		for _, s := range l.Screens {
			w.Full = w.Full || w.Frame == s.Device
		}
	}
	return w, style, true
}

// win32Process is the program's name, and when it began in 100 ns.
func win32Process(pid uint32) (name string, started int64) {
	h, err := win.OpenProcess(win.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return "", 0
	}
	defer func() { _ = win.CloseHandle(h) }()
	var path [1024]uint16
	size := uint32(len(path))
	if win.QueryFullProcessImageName(h, 0, &path[0], &size) == nil {
		name = strings.TrimSuffix(filepath.Base(win.UTF16ToString(path[:size])), ".exe")
	}
	var created, exited, kernel, user win.Filetime
	if win.GetProcessTimes(h, &created, &exited, &kernel, &user) == nil {
		started = int64(created.HighDateTime)<<32 | int64(created.LowDateTime)
	}
	return name, started
}

// focus joins the input of the window that is in front for a moment: the system
// lets nobody else say which one is.
func (win32Windows) focus(_ context.Context, w space.Window, raise bool) error {
	h := uintptr(w.ID)
	if w.Minimized {
		const restore = 9
		_, _, _ = procShowWindow.Call(h, restore)
	}
	front := win.GetForegroundWindow()
	theirs, _ := win.GetWindowThreadProcessId(front, nil)
	ours := win.GetCurrentThreadId()
	if theirs != 0 && theirs != ours {
		_, _, _ = procAttachInput.Call(uintptr(ours), uintptr(theirs), 1)
		defer func() { _, _, _ = procAttachInput.Call(uintptr(ours), uintptr(theirs), 0) }()
	}
	if raise {
		_, _, _ = procBringToTop.Call(h)
	}
	_, _, _ = procSetForeground.Call(h)
	if win.GetForegroundWindow() != win.HWND(h) {
		return wire.Errorf(wire.CodeNotSupported, "Windows did not bring that window to the front: it may be blocked by a dialog, or belong to an administrator's program.")
	}
	return nil
}

func (win32Windows) close() {}

// win32Point is POINT.
type win32Point struct{ X, Y int32 }

func (p win32Point) image() image.Point { return image.Pt(int(p.X), int(p.Y)) }
