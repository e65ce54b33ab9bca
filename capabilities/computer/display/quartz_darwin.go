package display

import (
	"errors"
	"strconv"
	"unsafe"

	"github.com/ebitengine/purego"
)

// quartz is CoreGraphics and its neighbours, called without cgo.
type quartz struct {
	getDisplays func(most uint32, ids *uint32, count *uint32) int32
	bounds      func(id uint32) cgRect
	mainDisplay func() uint32
	maySee      func() bool
	mayAct      func() bool
	copyWindows func(options, relativeTo uint32) uintptr
	count       func(array uintptr) int
	at          func(array uintptr, i int) uintptr
	value       func(dictionary, key uintptr) uintptr
	number      func(number uintptr, kind int, to unsafe.Pointer) bool
	rect        func(dictionary uintptr, to *cgRect) bool
	text        func(s uintptr, to *byte, size int, encoding uint32) bool
	makeText    func(allocator uintptr, s string, encoding uint32) uintptr
	release     func(object uintptr)
	makeKey     func(source uintptr, key uint16, down bool) uintptr
	setText     func(event uintptr, n int, units *uint16)
	post        func(tap uint32, event uintptr)
	makeScroll  func(source uintptr, units, wheels uint32, up, left, in int32) uintptr
	makeMouse   func(source uintptr, kind uint32, p cgPoint, button uint32) uintptr
	setField    func(event uintptr, field uint32, value int64)
	makeEvent   func(source uintptr) uintptr
	eventPlace  func(event uintptr) cgPoint
	pidPath     func(pid int32, path *byte, size uint32) int32
}

// cgPoint and cgRect are CGPoint and CGRect.
type (
	cgPoint struct{ X, Y float64 }
	cgRect  struct{ X, Y, Width, Height float64 }
)

const utf8Encoding = 0x08000100

func newQuartz() (q *quartz, err error) {
	defer func() {
		// purego panics over a name that this system does not have.
		if r := recover(); r != nil {
			q, err = nil, errors.New("this version of macOS lacks something that is needed")
		}
	}()
	lib := func(name string) uintptr {
		h, openErr := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if openErr != nil {
			panic(openErr)
		}
		return h
	}
	q = &quartz{}
	const frameworks = "/System/Library/Frameworks/"
	graphics := lib(frameworks + "CoreGraphics.framework/CoreGraphics")
	core := lib(frameworks + "CoreFoundation.framework/CoreFoundation")
	services := lib(frameworks + "ApplicationServices.framework/ApplicationServices")
	system := lib("/usr/lib/libSystem.B.dylib")
	for name, fn := range map[string]any{
		"CGGetActiveDisplayList": &q.getDisplays, "CGDisplayBounds": &q.bounds, "CGMainDisplayID": &q.mainDisplay,
		"CGPreflightScreenCaptureAccess": &q.maySee, "CGWindowListCopyWindowInfo": &q.copyWindows, "CGRectMakeWithDictionaryRepresentation": &q.rect,
		"CGEventCreateKeyboardEvent": &q.makeKey, "CGEventKeyboardSetUnicodeString": &q.setText, "CGEventPost": &q.post,
		"CGEventCreateScrollWheelEvent2": &q.makeScroll, "CGEventCreateMouseEvent": &q.makeMouse,
		"CGEventSetIntegerValueField": &q.setField, "CGEventCreate": &q.makeEvent, "CGEventGetLocation": &q.eventPlace,
	} {
		purego.RegisterLibFunc(fn, graphics, name)
	}
	for name, fn := range map[string]any{
		"CFArrayGetCount": &q.count, "CFArrayGetValueAtIndex": &q.at, "CFDictionaryGetValue": &q.value, "CFNumberGetValue": &q.number,
		"CFStringGetCString": &q.text, "CFStringCreateWithCString": &q.makeText, "CFRelease": &q.release,
	} {
		purego.RegisterLibFunc(fn, core, name)
	}
	purego.RegisterLibFunc(&q.mayAct, services, "AXIsProcessTrusted")
	purego.RegisterLibFunc(&q.pidPath, system, "proc_pidpath")
	return q, nil
}

func (q *quartz) displays() []uint32 {
	ids := make([]uint32, 32)
	var n uint32
	if q.getDisplays(uint32(len(ids)), &ids[0], &n) != 0 {
		return nil
	}
	return ids[:min(int(n), len(ids))]
}

func (q *quartz) name(id uint32) string { return "Display " + strconv.FormatUint(uint64(id), 10) }
