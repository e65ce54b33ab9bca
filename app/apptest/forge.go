//go:build linux

package apptest

import (
	"context"
	"fmt"
	"image"
	"math/bits"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"
)

// Forge runs xdotool on the inner display: input that a program there makes up
// (XTEST), which no hand did.
func (d *Desktop) Forge(args ...string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "xdotool", args...)
	cmd.Env = d.Env()
	d.attributes(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("xdotool %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Veil lays a window of a program over part of the inner screen, above all
// others, which lets every click through; lift takes it away.
func (d *Desktop) Veil(r image.Rectangle) (lift func()) {
	d.t.Helper()
	ext, err := xproto.QueryExtension(d.x, 5, "SHAPE").Reply()
	must(d.t, err)
	d.x.ExtLock.Lock()
	d.x.Extensions["SHAPE"] = ext.MajorOpcode // without the table that other connections read
	d.x.ExtLock.Unlock()
	w, err := xproto.NewWindowId(d.x)
	must(d.t, err)
	must(d.t, xproto.CreateWindowChecked(d.x, 0, w, root(d.x).Root, int16(r.Min.X), int16(r.Min.Y), uint16(r.Dx()), uint16(r.Dy()), 0,
		xproto.WindowClassInputOutput, 0, xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{0xffe0b0, 1}).Check())
	must(d.t, shape.RectanglesChecked(d.x, shape.SoSet, shape.SkInput, xproto.ClipOrderingUnsorted, w, 0, 0, nil).Check())
	must(d.t, xproto.MapWindowChecked(d.x, w).Check())
	return func() {
		d.t.Helper()
		must(d.t, xproto.DestroyWindowChecked(d.x, w).Check())
	}
}

// Monitors divides the inner screen into monitors, as a person does who plugs
// them in, in place of those before: their names are "screen-1" and so on.
func (d *Desktop) Monitors(parts ...image.Rectangle) {
	d.t.Helper()
	same := 0 // these stay, and are never gone meanwhile
	for same < min(len(parts), len(d.monitors)) && parts[same] == d.monitors[same] {
		same++
	}
	for n := len(d.monitors); n > same; n-- {
		d.NoMonitor(fmt.Sprintf("screen-%d", n))
	}
	d.monitors = slices.Clone(parts)
	for i, r := range parts {
		if i < same {
			continue
		}
		output := "none"
		if i == 0 {
			output = "default"
		}
		at := fmt.Sprintf("%d/%dx%d/%d+%d+%d", r.Dx(), r.Dx()/4, r.Dy(), r.Dy()/4, r.Min.X, r.Min.Y)
		cmd := d.Command("xrandr", "--setmonitor", fmt.Sprintf("screen-%d", i+1), at, output)
		if out, err := cmd.CombinedOutput(); err != nil {
			d.t.Fatalf("xrandr: %v: %s", err, out)
		}
	}
}

// NoMonitor takes one away again.
func (d *Desktop) NoMonitor(name string) {
	d.t.Helper()
	if out, err := d.Command("xrandr", "--delmonitor", name).CombinedOutput(); err != nil {
		d.t.Fatalf("xrandr: %v: %s", err, out)
	}
}

// Held is how many keys and mouse buttons are down on the inner display,
// whoever holds them.
func (d *Desktop) Held() int {
	d.t.Helper()
	keys, err := xproto.QueryKeymap(d.x).Reply()
	must(d.t, err)
	pointer, err := xproto.QueryPointer(d.x, root(d.x).Root).Reply()
	must(d.t, err)
	n := bits.OnesCount16(pointer.Mask & (xproto.ButtonMask1 | xproto.ButtonMask2 | xproto.ButtonMask3))
	for _, b := range keys.Keys {
		n += bits.OnesCount8(b)
	}
	return n
}

// Pointer is where the mouse pointer is on the inner screen.
func (d *Desktop) Pointer() image.Point {
	d.t.Helper()
	p, err := xproto.QueryPointer(d.x, root(d.x).Root).Reply()
	must(d.t, err)
	return image.Pt(int(p.RootX), int(p.RootY))
}
