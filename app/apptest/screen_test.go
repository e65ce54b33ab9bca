//go:build linux

package apptest

import (
	"image"
	"os"
	"path/filepath"
	"testing"
)

// The picture of a failure is there at once, whatever becomes of the test then;
// of all others the newest is remembered.
func TestWhichPicturesAreKept(t *testing.T) {
	t.Setenv("LOCALPC_ARTIFACTS", "")
	d := &Desktop{t: t, Artifacts: t.TempDir()}
	older, newer := image.NewRGBA(image.Rect(0, 0, 1, 1)), image.NewRGBA(image.Rect(0, 0, 2, 2))
	d.save("menu", older)
	d.save("menu", newer)
	d.save(failed, older)
	if len(d.unsaved) != 1 || d.unsaved["menu"] != image.Image(newer) {
		t.Errorf("%d pictures are remembered", len(d.unsaved))
	}
	for name, want := range map[string]bool{"menu.png": false, "failed.png": true} {
		if _, err := os.Stat(filepath.Join(d.Artifacts, name)); (err == nil) != want {
			t.Errorf("%s is written: %v", name, err == nil)
		}
	}
}
