package display

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode/utf16"
	"unsafe"

	win "golang.org/x/sys/windows"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

var (
	procOpenClipboard  = user32.NewProc("OpenClipboard")
	procCloseClipboard = user32.NewProc("CloseClipboard")
	procEmptyClipboard = user32.NewProc("EmptyClipboard")
	procGetClipboard   = user32.NewProc("GetClipboardData")
	procSetClipboard   = user32.NewProc("SetClipboardData")
	procHasFormat      = user32.NewProc("IsClipboardFormatAvailable")
	procFormatNamed    = user32.NewProc("RegisterClipboardFormatW")
	procClipSequence   = user32.NewProc("GetClipboardSequenceNumber")
	procGlobalAlloc    = kernel32.NewProc("GlobalAlloc")
	procGlobalFree     = kernel32.NewProc("GlobalFree")
	procGlobalLock     = kernel32.NewProc("GlobalLock")
	procGlobalUnlock   = kernel32.NewProc("GlobalUnlock")
	procGlobalSize     = kernel32.NewProc("GlobalSize")
	procMoveMemory     = kernel32.NewProc("RtlMoveMemory")
)

const unicodeText = 13 // CF_UNICODETEXT

// secretFormats mark what password managers copy.
var secretFormats = []string{"ExcludeClipboardContentFromMonitorProcessing", "Clipboard Viewer Ignore"}

// keepFormats say with a zero that what was copied is not to be kept anywhere.
var keepFormats = []string{"CanIncludeInClipboardHistory", "CanUploadToCloudClipboard"}

type win32Clipboard struct {
	mu  sync.Mutex
	own uintptr // the sequence number of what was put there
}

// with opens the clipboard, which another program may have open for a moment.
func (c *win32Clipboard) with(ctx context.Context, fn func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for try := 0; ; try++ {
		if ok, _, _ := procOpenClipboard.Call(0); ok != 0 {
			defer func() { _, _, _ = procCloseClipboard.Call() }()
			return fn()
		}
		if try == 40 {
			return wire.Errorf(wire.CodeNotSupported, "Another program keeps the clipboard open. Try again.")
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func formatNamed(name string) uintptr {
	n, _, _ := procFormatNamed.Call(uintptr(unsafe.Pointer(win.StringToUTF16Ptr(name))))
	return n
}

func hasFormat(format uintptr) bool {
	ok, _, _ := procHasFormat.Call(format)
	return ok != 0
}

// clipData is the bytes of a format, most at most, and how many there are.
func clipData(format uintptr, most int) (data []byte, size int, err error) {
	h, _, _ := procGetClipboard.Call(format)
	if h == 0 {
		return nil, 0, errors.New("the clipboard has no such data")
	}
	n, _, _ := procGlobalSize.Call(h)
	at, _, _ := procGlobalLock.Call(h)
	if at == 0 {
		return nil, 0, errors.New("the clipboard's data can't be read")
	}
	defer func() { _, _, _ = procGlobalUnlock.Call(h) }()
	data = make([]byte, min(int(n), most))
	if len(data) > 0 {
		_, _, _ = procMoveMemory.Call(uintptr(unsafe.Pointer(&data[0])), at, uintptr(len(data)))
	}
	return data, int(n), nil
}

// concealed tells whether the owner marked what it copied as a secret.
func concealed() bool {
	for _, name := range secretFormats {
		if hasFormat(formatNamed(name)) {
			return true
		}
	}
	for _, name := range keepFormats {
		if f := formatNamed(name); hasFormat(f) {
			if data, _, err := clipData(f, 4); err == nil && len(data) == 4 && data[0]|data[1]|data[2]|data[3] == 0 {
				return true
			}
		}
	}
	return false
}

func (c *win32Clipboard) read(ctx context.Context, most int) (out hands.Clip, err error) {
	err = c.with(ctx, func() error {
		if concealed() {
			return wire.Errorf(wire.CodeConcealed, "What is on the clipboard was marked as a secret by the program that copied it, so it is not read.")
		}
		if !hasFormat(unicodeText) {
			return wire.Errorf(wire.CodeNotSupported, "What is on the clipboard is no text.")
		}
		data, _, err := clipData(unicodeText, 2*most+4)
		if err != nil {
			return err
		}
		var text []uint16
		for i := 0; i+1 < len(data); i += 2 {
			u := uint16(data[i]) | uint16(data[i+1])<<8
			if u == 0 {
				break
			}
			text = append(text, u)
		}
		out.Text = string(utf16.Decode(text))
		if len(out.Text) > most {
			out.Text = ""
			return wire.Errorf(wire.CodeTooLarge, "The text on the clipboard is larger than %d bytes.", most)
		}
		now, _, _ := procClipSequence.Call()
		out.Owned = c.own != 0 && now == c.own
		return nil
	})
	return out, err
}

func (c *win32Clipboard) write(ctx context.Context, text string) error {
	return c.with(ctx, func() error {
		units := append(utf16.Encode([]rune(text)), 0)
		const moveable = 2
		h, _, err := procGlobalAlloc.Call(moveable, uintptr(2*len(units)))
		if h == 0 {
			return err
		}
		at, _, err := procGlobalLock.Call(h)
		if at == 0 {
			_, _, _ = procGlobalFree.Call(h)
			return err
		}
		_, _, _ = procMoveMemory.Call(at, uintptr(unsafe.Pointer(&units[0])), uintptr(2*len(units)))
		_, _, _ = procGlobalUnlock.Call(h)
		_, _, _ = procEmptyClipboard.Call()
		if ok, _, err := procSetClipboard.Call(unicodeText, h); ok == 0 { // the system owns h now, but where this fails
			_, _, _ = procGlobalFree.Call(h)
			return err
		}
		c.own, _, _ = procClipSequence.Call()
		return nil
	})
}

func (c *win32Clipboard) close() {}
