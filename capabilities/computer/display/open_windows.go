package display

import (
	"context"
	"image"
	"unsafe"

	win "golang.org/x/sys/windows"

	"localpc/capabilities/computer/space"
)

var (
	user32   = win.NewLazySystemDLL("user32.dll")
	kernel32 = win.NewLazySystemDLL("kernel32.dll")
	shcore   = win.NewLazySystemDLL("shcore.dll")

	procSetAware      = user32.NewProc("SetProcessDpiAwarenessContext")
	procEnumMonitors  = user32.NewProc("EnumDisplayMonitors")
	procMonitorInfo   = user32.NewProc("GetMonitorInfoW")
	procDpiForMonitor = shcore.NewProc("GetDpiForMonitor")
)

// open makes the parts of Windows. Pixels are the screens' own: without
// awareness of each monitor's scale the system would lie about them.
func open(_ context.Context, o Options) (*parts, error) {
	if procSetAware.Find() == nil {
		const perMonitorV2 = ^uintptr(3) // -4
		// It fails where a manifest has set it already.
		_, _, _ = procSetAware.Call(perMonitorV2)
	}
	if _, err := screensOfWindows(); err != nil {
		return nil, err
	}
	p := &parts{system: "windows", why: map[string]string{}}
	p.pictures = newCapture(screensOfWindows, func() string { return "" })
	p.windows = win32Windows{}
	p.clipboard = &win32Clipboard{}
	p.newInput = newWin32Input
	return p, nil
}

type win32Rect struct{ Left, Top, Right, Bottom int32 }

func (r win32Rect) image() image.Rectangle {
	return image.Rect(int(r.Left), int(r.Top), int(r.Right), int(r.Bottom))
}

// monitorInfo is MONITORINFOEXW.
type monitorInfo struct {
	size    uint32
	monitor win32Rect
	work    win32Rect
	flags   uint32
	device  [32]uint16
}

var monitorFound = win.NewCallback(func(monitor, _, _ uintptr, list *[]uintptr) uintptr {
	*list = append(*list, monitor)
	return 1
})

func screensOfWindows() (space.Layout, error) {
	var monitors []uintptr
	_, _, _ = procEnumMonitors.Call(0, 0, monitorFound, uintptr(unsafe.Pointer(&monitors)))
	var l space.Layout
	for _, m := range monitors {
		var info monitorInfo
		info.size = uint32(unsafe.Sizeof(info))
		if ok, _, _ := procMonitorInfo.Call(m, uintptr(unsafe.Pointer(&info))); ok == 0 {
			continue
		}
		dpi, other := uint32(96), uint32(96)
		if procDpiForMonitor.Find() == nil {
			_, _, _ = procDpiForMonitor.Call(m, 0, uintptr(unsafe.Pointer(&dpi)), uintptr(unsafe.Pointer(&other)))
		}
		scale := float64(dpi) / 96
		r := info.monitor.image()
		points := image.Rectangle{Min: r.Min, Max: r.Min.Add(image.Pt(int(float64(r.Dx())/scale+0.5), int(float64(r.Dy())/scale+0.5)))}
		l.Screens = append(l.Screens, space.Screen{Index: len(l.Screens), Name: win.UTF16ToString(info.device[:]),
			Device: r, Points: points, Scale: scale, Primary: info.flags&1 != 0})
	}
	if len(l.Screens) == 0 {
		return l, lacks("This computer has no screen that Local PC Executor can reach: nobody is logged in to a desktop here.")
	}
	return l, nil
}
