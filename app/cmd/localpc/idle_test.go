//go:build linux

package main

import (
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// What an idle program costs with its tray icon shown and no window open. The
// aim is under 30 MB and one wake-up a second; the test prints what it is and
// fails only where something is plainly wrong.
func TestIdle(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{})
	p.d.WaitTrayIcon(20 * time.Second)
	p.pair()
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
	time.Sleep(5 * time.Second)
	cost, err := apptest.Idle(p.p.PID, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("idle with tray, tunnel and the hub inside: %s", cost)
	if cost.Resident > 120<<20 || cost.Wakeups > 20 {
		t.Errorf("that is far from the aim: %s", cost)
	}
}
