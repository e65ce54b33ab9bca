package machine

import (
	"image"
	"log/slog"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/computer"
	realdisplay "localpc/capabilities/computer/display"
)

// On a real X server of two screens what is drawn is seen, and what is clicked
// arrives.
func TestScreenTestOnAServer(t *testing.T) {
	d := apptest.New(t, apptest.Options{Width: 1000, Height: 500, NoBus: true})
	d.Monitors(image.Rect(0, 0, 600, 500), image.Rect(600, 0, 1000, 500))
	h, err := realdisplay.Open(t.Context(), realdisplay.Options{Log: slog.New(slog.DiscardHandler), Env: func(name string) string {
		if name == "DISPLAY" {
			return d.Inner
		}
		return ""
	}})
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	m := newMachine(t)
	must(t, m.o.Store.Close())
	m = openMachine(t, m.o.Paths, func(o *Options) {
		o.Hands, o.Executors = h, []capabilities.Capability{computer.New(computer.Options{Hands: h, Log: o.Log})}
	})
	t.Cleanup(func() {
		m.cancel()
		m.wg.Wait()
		must(t, m.o.Executors[0].Close())
	})
	// The test moved the mouse itself, a moment ago.
	time.Sleep(100 * time.Millisecond)
	_, err = m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.TestScreens})
	must(t, err)
	for end := time.Now().Add(90 * time.Second); m.Snapshot().Settings.Computer.Testing; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the screen test does not end")
		}
	}
	if got := m.Snapshot().Settings.Computer.Test; !got.OK || got.Text != "2 screens OK" {
		t.Errorf("%+v", got)
	}
}
