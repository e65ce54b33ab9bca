//go:build linux

package portal_test

import (
	"context"
	"errors"
	"image/color"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/capabilities/computer/display/portal"
	"localpc/capabilities/computer/display/waytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (context.Context, *portal.Portal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	p, err := portal.Open(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return ctx, p
}

// On sway, the portals give pictures one by one; there is no mouse and keyboard,
// and no global key, and that is said.
func TestPortalsOfSway(t *testing.T) {
	if waytest.AsPerson(t) {
		return
	}
	waytest.Start(t, waytest.Options{Outputs: []string{"resolution 640x480 position 0,0 scale 1"}, Portals: true})
	ctx, p := open(t)
	blue := color.RGBA{R: 0x33, G: 0x66, B: 0x99, A: 255}
	m, err := p.Picture(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := color.RGBAModel.Convert(m.At(300, 200)); m.Bounds().Dx() != 640 || got != blue {
		t.Errorf("the picture is %v and %v in the middle", m.Bounds(), got)
	}
	// This one shares screens that a graphics card draws, and there is none here:
	// it says so, and does not hang.
	if _, err := p.Share(ctx, false, ""); !errors.Is(err, portal.ErrRefused) {
		t.Errorf("sharing the screen: %v", err)
	}
	if _, err := p.Share(ctx, true, ""); !errors.Is(err, portal.ErrMissing) {
		t.Errorf("sharing mouse and keyboard: %v", err)
	}
	if _, err := p.Bind(ctx, "stop", "Stop everything", "CTRL+ALT+Escape", func() {}); !errors.Is(err, portal.ErrMissing) {
		t.Errorf("a global key: %v", err)
	}
}

// Without a bus, and with one that has no portals, the error says which.
func TestNoPortal(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if _, err := portal.Open(context.Background(), nil); !errors.Is(err, portal.ErrNoBus) {
		t.Errorf("without a bus: %v", err)
	}
}
