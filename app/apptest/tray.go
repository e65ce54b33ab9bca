//go:build linux

package apptest

import (
	"image"
	"image/color"
	"slices"
	"strings"
	"time"
)

// trayIconSize is the height of an icon in the panel, pixels.
const trayIconSize = 22

// TrayIcon is where the panel shows an icon; ok is false when it shows none,
// or when there is no panel.
func (d *Desktop) TrayIcon() (where image.Rectangle, ok bool) {
	d.t.Helper()
	panel, ok := d.FindWindow("xfce4-panel")
	if !ok {
		return image.Rectangle{}, false
	}
	img := d.Capture()
	where = drawn(img, panel.Rect.Intersect(img.Bounds()).Inset(3)) // without the panel's border
	return where, where.Dx() >= 6 && where.Dy() >= 6
}

// drawn is the part of r that is not of the colour in its middle.
//
//go:norace
func drawn(img *image.RGBA, r image.Rectangle) (where image.Rectangle) {
	ground := img.RGBAAt(r.Min.X+r.Dx()/2, r.Min.Y+r.Dy()/2)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if differs(img.RGBAAt(x, y), ground) {
				where = where.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return where
}

func differs(a, b color.RGBA) bool {
	far := func(x, y uint8) bool { return max(x, y)-min(x, y) > 24 }
	return far(a.R, b.R) || far(a.G, b.G) || far(a.B, b.B)
}

// WaitTrayIcon waits up to limit until the panel shows an icon.
func (d *Desktop) WaitTrayIcon(limit time.Duration) image.Rectangle {
	d.t.Helper()
	var r image.Rectangle
	if !until(limit, func() (ok bool) { r, ok = d.TrayIcon(); return ok }) {
		d.fail("no icon in the panel within %v", limit)
	}
	return r
}

// OpenTrayMenu clicks the icon in the panel and returns the menu that opens.
func (d *Desktop) OpenTrayMenu() *Area {
	d.t.Helper()
	icon := d.WaitTrayIcon(10 * time.Second)
	var before []uint32
	for _, w := range d.Popups() {
		before = append(before, w.ID)
	}
	d.Click((icon.Min.X+icon.Max.X)/2, (icon.Min.Y+icon.Max.Y)/2)
	var menu Window
	if !until(10*time.Second, func() bool {
		for _, w := range d.Popups() {
			if !slices.Contains(before, w.ID) && w.Rect.Dy() > 40 {
				same := w.Rect == menu.Rect // it has its size when it has it twice
				menu = w
				return same
			}
		}
		return false
	}) {
		d.fail("a click on the tray icon opens no menu within 10 s")
	}
	// The pointer must not rest on an entry, or that one is drawn in another
	// colour and read less well.
	d.Move(d.opts.Width/2, d.opts.Height-40)
	id := menu.ID
	return &Area{d, func() (image.Rectangle, bool) {
		for _, w := range d.Popups() {
			if w.ID == id {
				return w.Rect, true
			}
		}
		return image.Rectangle{}, false
	}}
}

// TrayMenu opens the tray menu, reads its entries from top to bottom, and
// closes it again.
func (d *Desktop) TrayMenu() []string {
	d.t.Helper()
	return d.ReadAndClose(d.OpenTrayMenu())
}

// ReadAndClose reads the entries of an open menu and closes it.
func (d *Desktop) ReadAndClose(menu *Area) []string {
	d.t.Helper()
	text := menu.Text()
	d.Key("Escape")
	d.waitGone(menu)
	return strings.Split(strings.TrimSpace(text), "\n")
}

// ClickTray opens the tray menu and clicks the entry with these words.
func (d *Desktop) ClickTray(words ...string) {
	d.t.Helper()
	menu := d.OpenTrayMenu()
	menu.ClickText(words...)
	d.waitGone(menu)
}

func (d *Desktop) waitGone(menu *Area) {
	d.t.Helper()
	if !until(10*time.Second, func() bool { _, there := menu.Rect(); return !there }) {
		d.fail("the tray menu does not close within 10 s")
	}
}
