package ui

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// sees puts an entry of a picture into the log and opens it.
func (s *stage) sees(file []byte) {
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Entries = []snapshot.Entry{{ID: "p1", Time: s.clock.now, Who: "Claude", What: "See screen 1", Capability: "computer", Outcome: snapshot.Done, By: "you", Sent: int64(len(file))}}
	})
	s.u.activity.choose("p1")
	s.u.Handle(desklink.Down{Detail: &snapshot.Detail{Entry: s.u.snap.Entries[0], Sentence: "Claude is requesting screen access", Exact: "See screen 1",
		Picture: file, PictureType: "image/jpeg", Notes: []string{"KeePassXC was blacked out."}}})
}

// Activity shows the picture that was sent, opens it, and saves it to the byte.
func TestPictureThatWasSent(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	file := onScreen(1280, 800)
	s.sees(file)
	p := pictures(w)
	if len(p) != 1 || !p[0].Has() || !has(w, "1280 × 800") || !has(w, "KeePassXC was blacked out.") {
		t.Fatalf("%d pictures; it says %q", len(p), texts(w))
	}
	s.keep(w, "activity-picture")
	test.Tap(p[0])
	if s.u.viewer == nil || !s.u.open[s.u.viewer] || s.u.viewer.Canvas().Size().Width < 1280 {
		t.Fatal("a click does not open it in full")
	}
	s.u.hide(s.u.viewer)

	home := t.TempDir()
	t.Setenv("HOME", home)
	s.intents()
	save := func(name string) {
		t.Helper()
		s.tap(w, "Save as…")
		walk(w.Canvas().Overlays().Top(), func(o fyne.CanvasObject) {
			if f, ok := o.(*kit.Field); ok {
				f.SetText(name)
				f.OnSubmitted(name)
			}
		})
	}
	save("seen.jpg")
	got, err := os.ReadFile(filepath.Join(home, "seen.jpg"))
	if err != nil || !bytes.Equal(got, file) {
		t.Fatalf("the saved file has %d bytes, %v; it was %d", len(got), err, len(file))
	}
	save("seen.jpg")
	if !has(w, "There is a file of that name already") {
		t.Errorf("over a file that is there it says %q", texts(w))
	}

	s.sees([]byte("no picture"))
	if p := pictures(w); p[0].Has() || p[0].Text() != "It can't be shown here. Save it to look at it." {
		t.Errorf("of what is no picture it says %q", p[0].Text())
	}
	s.u.activity.choose("")
	s.u.Handle(desklink.Down{Detail: &snapshot.Detail{Entry: snapshot.Entry{ID: "p2"}}})
	if len(pictures(w)) != 0 {
		t.Error("an entry without a picture shows one")
	}
}

// A small picture is not made larger than it is.
func TestSmallPicture(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	s.sees(desktopPicture(60, 40, image.Rect(10, 10, 30, 30)))
	w.Canvas().Capture()
	if size := pictures(w)[0].Drawn(); size.Width > 60.5 || size.Height > 40.5 {
		t.Errorf("60 × 40 pixels are drawn at %v", size)
	}
}

// In a narrow window the log's filters stand below the search, whole, and go
// back when there is room again.
func TestNarrowLogBar(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	a := s.u.activity
	at := s.u.o.App.Driver().AbsolutePositionForObject
	for _, c := range []struct {
		width float32
		below bool
	}{{1120, false}, {480, true}, {1120, false}} {
		w.Resize(fyne.NewSize(c.width, 660))
		s.snapshot(func(*snapshot.Snapshot) {})
		w.Canvas().Capture()
		end := at(a.filter).X + a.filter.MinSize().Width
		if below := at(a.filter).Y > at(a.search).Y+8; below != c.below || end > c.width-16 {
			t.Errorf("%v wide: the filters end at %v, below the search: %v", c.width, end, below)
		}
		s.keep(w, "activity-"+itoa(int(c.width)))
	}
}
