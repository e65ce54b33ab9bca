//go:build linux

package wl_test

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// drawing makes a picture that looks different whichever way it is turned.
func drawing(t *testing.T) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			m.SetRGBA(x, y, color.RGBA{R: uint8(x * 255 / 320), G: uint8(y * 255 / 240), B: 80, A: 255})
		}
	}
	dir, err := os.MkdirTemp("", "drawing")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "drawing.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, m); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// uneven tells that m is not of one colour.
func uneven(m image.Image) bool {
	b := m.Bounds()
	return m.At(b.Min.X, b.Min.Y) != m.At(b.Max.X-1, b.Max.Y-1)
}
