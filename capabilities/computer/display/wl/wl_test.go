//go:build linux

package wl_test

import (
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities/computer/display/waytest"
	"localpc/capabilities/computer/display/wl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (context.Context, *wl.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c, err := wl.Open(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return ctx, c
}

// Screens lie where sway says, in points and pixels, with a fractional scale,
// turned, and at a negative place; a screen that comes later is there too.
func TestOutputs(t *testing.T) {
	d := waytest.Start(t, waytest.Options{Outputs: []string{
		"resolution 1024x700 position 0,0 scale 1",
		"resolution 1200x900 position -800,0 scale 1.5",
		"resolution 800x600 position 1024,0 scale 1 transform 90",
	}})
	ctx, c := open(t)
	got, err := c.Outputs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []wl.Output{
		{Name: "HEADLESS-1", Points: image.Rect(0, 0, 1024, 700), Pixels: image.Pt(1024, 700)},
		{Name: "HEADLESS-2", Points: image.Rect(-800, 0, 0, 600), Pixels: image.Pt(1200, 900)},
		{Name: "HEADLESS-3", Points: image.Rect(1024, 0, 1624, 800), Pixels: image.Pt(600, 800), Turned: 90},
	}
	for i, w := range want {
		if i >= len(got) || got[i].Name != w.Name || got[i].Points != w.Points || got[i].Pixels != w.Pixels || got[i].Turned != w.Turned {
			t.Fatalf("screens are\n%+v, want\n%+v", got, want)
		}
	}
	d.Sway("create_output")
	d.Wait("a fourth screen", func() bool { got, err = c.Outputs(ctx); return err == nil && len(got) == 4 })
}

// A compositor that hangs holds up nobody who leaves: a call that waits for it
// ends by that, too.
func TestCloseWaitsForNoCompositor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "w")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{}) // closed when it is asked for more than a greeting
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, 24)); err != nil { // for the registry, and an answer
			return
		}
		answer := binary.NativeEndian.AppendUint32(nil, 3) // the object that answers
		answer = binary.NativeEndian.AppendUint32(answer, 12<<16)
		if _, err := conn.Write(binary.NativeEndian.AppendUint32(answer, 0)); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, make([]byte, 12)); err == nil {
			close(asked)
		}
		_, _ = io.Copy(io.Discard, conn)
	}()
	c, err := wl.Open(t.Context(), func(name string) string { return map[string]string{"WAYLAND_DISPLAY": socket}[name] })
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { _, err := c.Outputs(context.Background()); waits <- err }()
	<-asked
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v to leave", took)
	}
	if err := <-waits; err == nil || !c.Broken() {
		t.Errorf("what waited ended with %v; broken: %v", err, c.Broken())
	}
}

func TestPreparedAtMost(t *testing.T) {
	waytest.Start(t, waytest.Options{})
	ctx, c := open(t)
	syms := make([]uint32, wl.MaxPrepared+1)
	for i := range syms {
		syms[i] = 0x1004e00 + uint32(i)
	}
	if err := c.Prepare(ctx, syms); err == nil {
		t.Error("more keysyms than there may be were taken")
	}
	if err := c.Prepare(ctx, syms[1:]); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
}

// A picture is pixel for pixel that of grim, on turned screens too.
func TestPictureIsThatOfGrim(t *testing.T) {
	d := waytest.Start(t, waytest.Options{Outputs: []string{
		"resolution 320x240 position 0,0 scale 1", "resolution 320x240 position 320,0 scale 1 transform 90",
		"resolution 320x240 position 640,0 scale 1 transform 180", "resolution 320x240 position 1000,0 scale 1 transform 270"},
		Config: "output * bg " + drawing(t) + " stretch"})
	ctx, c := open(t)
	screens, err := c.Outputs(ctx)
	if err != nil || len(screens) != 4 {
		t.Fatalf("%v, %v", screens, err)
	}
	for _, s := range screens {
		d.Wait("the drawing on "+s.Name, func() bool { return uneven(d.Grim("-o", s.Name)) })
		got, err := c.Picture(ctx, s, false)
		if err != nil {
			t.Fatal(err)
		}
		want := d.Grim("-o", s.Name)
		if got.Bounds().Size() != want.Bounds().Size() {
			t.Fatalf("%s is %v, grim has %v", s.Name, got.Bounds(), want.Bounds())
		}
		for y := range got.Bounds().Dy() {
			for x := range got.Bounds().Dx() {
				if a, b := got.RGBAAt(x, y), color.RGBAModel.Convert(want.At(x, y)); a != b {
					t.Fatalf("%s, turned %d: pixel (%d, %d) is %v, grim has %v", s.Name, s.Turned, x, y, a, b)
				}
			}
		}
	}
}
