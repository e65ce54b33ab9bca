//go:build linux

package apptest

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// Window is one top-level window of the inner display.
type Window struct {
	ID    uint32
	Title string
	Class string // of WM_CLASS
	PID   int    // as the program says; 0 unknown
	// Rect is what the program draws, without the frame, in screen pixels.
	Rect image.Rectangle
	// Override says that the window manager leaves it alone: a menu, a
	// notification.
	Override bool
}

// The X library's chatter about closed connections goes nowhere. What there is
// keeps its place: connections read it.
func init() { xgb.Logger.SetOutput(io.Discard) }

// connect opens a connection to a display.
func connect(display string) (*xgb.Conn, error) {
	return xgb.NewConnDisplay(display)
}

func root(x *xgb.Conn) *xproto.ScreenInfo { return xproto.Setup(x).DefaultScreen(x) }

func atom(x *xgb.Conn, name string) xproto.Atom {
	r, err := xproto.InternAtom(x, true, uint16(len(name)), name).Reply()
	if err != nil {
		return 0
	}
	return r.Atom
}

func property(x *xgb.Conn, w xproto.Window, name string) []byte {
	a := atom(x, name)
	if a == 0 {
		return nil
	}
	r, err := xproto.GetProperty(x, false, w, a, xproto.GetPropertyTypeAny, 0, 1<<16).Reply()
	if err != nil {
		return nil
	}
	return r.Value
}

func words32(b []byte) []uint32 {
	var out []uint32
	for ; len(b) >= 4; b = b[4:] {
		out = append(out, xgb.Get32(b))
	}
	return out
}

// managed says whether a window manager runs on the inner display.
func (d *Desktop) managed() bool {
	w := words32(property(d.x, root(d.x).Root, "_NET_SUPPORTING_WM_CHECK"))
	return len(w) == 1 && w[0] != 0
}

// findOffset finds where on the outer screen Xephyr's window is.
func (d *Desktop) findOffset() {
	d.t.Helper()
	x, err := connect(d.Outer)
	if err != nil {
		d.t.Fatalf("connect to the outer display: %v", err)
	}
	defer x.Close()
	d.waitFor(startLimit, "the inner display is shown on the outer", func() bool {
		tree, err := xproto.QueryTree(x, root(x).Root).Reply()
		if err != nil {
			return false
		}
		for _, w := range tree.Children {
			a, err := xproto.GetWindowAttributes(x, w).Reply()
			if err != nil || a.MapState != xproto.MapStateViewable {
				continue
			}
			g, err := xproto.GetGeometry(x, xproto.Drawable(w)).Reply()
			if err == nil && int(g.Width) == d.opts.Width && int(g.Height) == d.opts.Height {
				d.offset.x, d.offset.y = int(g.X), int(g.Y)
				return true
			}
		}
		return false
	})
}

// paint gives the inner screen a plain ground: black would be hard to read
// windows off, and to look at.
func (d *Desktop) paint() {
	d.t.Helper()
	ground := uint32(0xd5dbe3)
	if d.opts.Dark {
		ground = 0x30353c
	}
	r := root(d.x).Root
	must(d.t, xproto.ChangeWindowAttributesChecked(d.x, r, xproto.CwBackPixel, []uint32{ground}).Check())
	must(d.t, xproto.ClearAreaChecked(d.x, false, r, 0, 0, 0, 0).Check())
}

// window reads one window; ok is false when it is not on the screen.
func (d *Desktop) window(w xproto.Window) (Window, bool) {
	a, err := xproto.GetWindowAttributes(d.x, w).Reply()
	if err != nil || a.MapState != xproto.MapStateViewable || a.Class == xproto.WindowClassInputOnly {
		return Window{}, false
	}
	g, err := xproto.GetGeometry(d.x, xproto.Drawable(w)).Reply()
	if err != nil {
		return Window{}, false
	}
	p, err := xproto.TranslateCoordinates(d.x, w, root(d.x).Root, 0, 0).Reply()
	if err != nil {
		return Window{}, false
	}
	out := Window{ID: uint32(w), Override: a.OverrideRedirect}
	out.Rect = image.Rect(int(p.DstX), int(p.DstY), int(p.DstX)+int(g.Width), int(p.DstY)+int(g.Height))
	out.Title = string(property(d.x, w, "_NET_WM_NAME"))
	if out.Title == "" {
		out.Title = string(property(d.x, w, "WM_NAME"))
	}
	class := strings.Split(strings.TrimRight(string(property(d.x, w, "WM_CLASS")), "\x00"), "\x00")
	out.Class = class[len(class)-1]
	if pid := words32(property(d.x, w, "_NET_WM_PID")); len(pid) == 1 {
		out.PID = int(pid[0])
	}
	return out, true
}

// Windows lists the windows that the window manager manages and shows, in the
// order in which they appeared. The panel is among them.
func (d *Desktop) Windows() []Window {
	var out []Window
	for _, id := range words32(property(d.x, root(d.x).Root, "_NET_CLIENT_LIST")) {
		if w, ok := d.window(xproto.Window(id)); ok {
			out = append(out, w)
		}
	}
	return out
}

// Popups lists the windows that nobody manages, the topmost last: menus,
// tooltips, notifications.
func (d *Desktop) Popups() []Window {
	tree, err := xproto.QueryTree(d.x, root(d.x).Root).Reply()
	if err != nil {
		return nil
	}
	var out []Window
	for _, c := range tree.Children {
		if w, ok := d.window(c); ok && w.Override && w.Rect.Dx() > 8 && w.Rect.Dy() > 8 {
			out = append(out, w)
		}
	}
	return out
}

// FindWindow is the newest window whose title contains title, in any case: of
// those that are managed, or else of those that nobody manages.
func (d *Desktop) FindWindow(title string) (Window, bool) {
	all := append(d.Popups(), d.Windows()...)
	for i := len(all) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(all[i].Title), strings.ToLower(title)) {
			return all[i], true
		}
	}
	return Window{}, false
}

// WaitWindow waits up to limit for a window whose title contains title.
func (d *Desktop) WaitWindow(limit time.Duration, title string) Window {
	d.t.Helper()
	var w Window
	if !until(limit, func() (ok bool) { w, ok = d.FindWindow(title); return ok }) {
		d.fail("no window titled %q within %v; there are %s", title, limit, titles(d.Windows()))
	}
	return w
}

// WaitNoWindow waits up to limit until no window's title contains title.
func (d *Desktop) WaitNoWindow(limit time.Duration, title string) {
	d.t.Helper()
	if !until(limit, func() bool { _, ok := d.FindWindow(title); return !ok }) {
		d.fail("a window titled %q is still there after %v", title, limit)
	}
}

func titles(ws []Window) string {
	var out []string
	for _, w := range ws {
		out = append(out, fmt.Sprintf("%q", w.Title))
	}
	return strings.Join(out, ", ")
}

// Focused is the window that has the keyboard, as the window manager says; ""
// when none has.
func (d *Desktop) Focused() string {
	id := words32(property(d.x, root(d.x).Root, "_NET_ACTIVE_WINDOW"))
	if len(id) == 0 || id[0] == 0 {
		return ""
	}
	w, _ := d.window(xproto.Window(id[0]))
	return w.Title
}

// Keyboard is the title of the window that keys go to, as the X server says: it
// knows earlier, and more surely, than the window manager tells.
func (d *Desktop) Keyboard() string {
	f, err := xproto.GetInputFocus(d.x).Reply()
	if err != nil {
		return ""
	}
	for at := f.Focus; at > 1 && at != root(d.x).Root; { // 0 and 1 stand for none and the pointer's
		if w, ok := d.window(at); ok && w.Title != "" {
			return w.Title
		}
		tree, err := xproto.QueryTree(d.x, at).Reply()
		if err != nil {
			return ""
		}
		at = tree.Parent
	}
	return ""
}

// CloseWindow presses the window's close button, by way of the window manager.
func (d *Desktop) CloseWindow(w Window) {
	d.t.Helper()
	data := xproto.ClientMessageDataUnionData32New([]uint32{0, 2, 0, 0, 0})
	ev := xproto.ClientMessageEvent{Format: 32, Window: xproto.Window(w.ID), Type: atom(d.x, "_NET_CLOSE_WINDOW"), Data: data}
	mask := uint32(xproto.EventMaskSubstructureNotify | xproto.EventMaskSubstructureRedirect)
	must(d.t, xproto.SendEventChecked(d.x, false, root(d.x).Root, mask, string(ev.Bytes())).Check())
}

// Capture is a picture of the inner screen as the person sees it, without the
// mouse pointer.
func (d *Desktop) Capture() *image.RGBA {
	d.t.Helper()
	img, err := d.capture()
	if err != nil {
		d.t.Fatalf("capture the screen: %v", err)
	}
	return img
}

func (d *Desktop) capture() (*image.RGBA, error) {
	s := root(d.x)
	w, h := int(s.WidthInPixels), int(s.HeightInPixels)
	r, err := xproto.GetImage(d.x, xproto.ImageFormatZPixmap, xproto.Drawable(s.Root), 0, 0, uint16(w), uint16(h), ^uint32(0)).Reply()
	if err != nil {
		return nil, err
	}
	if len(r.Data) < w*h*4 {
		return nil, errors.New("the screen has fewer than 32 bits a pixel")
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	fromBGR(img.Pix, r.Data)
	return img, nil
}

// fromBGR turns the X server's pixels into those of an image.
//
//go:norace
func fromBGR(pix, data []byte) {
	for i := 0; i < len(pix); i += 4 {
		pix[i], pix[i+1], pix[i+2], pix[i+3] = data[i+2], data[i+1], data[i], 255
	}
}

// Screenshot captures the inner screen and keeps it as NAME.png in Artifacts.
func (d *Desktop) Screenshot(name string) *image.RGBA {
	d.t.Helper()
	img := d.Capture()
	d.save(name, img)
	return img
}

// Picture keeps a part of the screen as NAME.png in Artifacts and returns its
// pixels, four bytes each.
func (d *Desktop) Picture(name string, part image.Rectangle) []byte {
	d.t.Helper()
	out := image.NewRGBA(image.Rect(0, 0, part.Dx(), part.Dy()))
	draw.Draw(out, out.Rect, d.Capture(), part.Min, draw.Src)
	d.save(name, out)
	return out.Pix
}

// Keep keeps a picture as NAME.png in Artifacts.
func (d *Desktop) Keep(name string, img image.Image) { d.t.Helper(); d.save(name, img) }

// failed is the picture of the screen as it is when a test fails.
const failed = "failed"

// save writes a picture where somebody will look at it. Of a test that passes
// nobody does, unless $LOCALPC_ARTIFACTS says so: until then it only remembers.
func (d *Desktop) save(name string, img image.Image) {
	d.t.Helper()
	if name != failed && os.Getenv("LOCALPC_ARTIFACTS") == "" && !d.t.Failed() {
		if d.unsaved == nil {
			d.unsaved = map[string]image.Image{}
		}
		d.unsaved[name] = img
		return
	}
	file := filepath.Join(d.Artifacts, strings.ReplaceAll(name, "/", "-")+".png")
	f, err := os.Create(file)
	if err != nil {
		d.t.Errorf("keep a picture: %v", err)
		return
	}
	defer f.Close()
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(f, img); err != nil {
		d.t.Errorf("keep a picture: %v", err)
	}
}

// fail ends the test with a picture of the screen and what is written on it.
func (d *Desktop) fail(format string, args ...any) {
	d.t.Helper()
	what := fmt.Sprintf(format, args...)
	d.Screenshot(failed)
	d.t.Fatalf("%s\non the screen: %s\n(picture: %s/failed.png)\n%s", what, d.Screen().Text(), d.Artifacts, d.logs())
}
