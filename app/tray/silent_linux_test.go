package tray

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bus that takes the connection and never says a word must not hold up
// anything.
func TestSilentBus(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+socket)
	began := time.Now()
	if HostPresent(t.Context()) {
		t.Error("a silent bus shows tray icons")
	}

	ctx, cancel := context.WithCancel(t.Context())
	host := make(chan bool, 1)
	tr := New(Options{Intent: func(snapshot.Intent) {}, Host: func(present bool) { host <- present }})
	ended := make(chan struct{})
	go func() { defer close(ended); tr.Run(ctx) }()
	if <-host {
		t.Error("Run says that a silent bus shows tray icons")
	}
	tr.Update(snapshot.Snapshot{State: snapshot.NeedsYou})
	cancel()
	<-ended

	n := NewNotifier(NotifierOptions{Show: func() { t.Error("nobody clicked") }})
	n.Show("Claude waits for you", "It wants to run a command")
	n.Show("Claude waits for you", "Two things wait")
	n.Hide()
	n.Close()
	if took := time.Since(began); took > 5*busLimit {
		t.Errorf("it took %v", took)
	}
}

func TestEscape(t *testing.T) {
	got := escape(`<a href="x">Tom & 'Jerry'</a>`)
	if want := "&lt;a href=&quot;x&quot;&gt;Tom &amp; &apos;Jerry&apos;&lt;/a&gt;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
