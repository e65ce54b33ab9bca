//go:build linux

package main_test

import (
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
)

// A person pairs with an own hub by keyboard alone, on a real screen, and
// compares the number.
func TestPairByKeyboard(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	d.snapshot(func(s *snapshot.Snapshot) {
		s.Entries, s.Hub, s.State, s.Line = nil, snapshot.Hub{}, snapshot.Offline, "Not paired yet"
	})
	w := d.open(snapshot.WindowPair, "Pair this computer")
	w.WaitSentence(soon, "Who may ask for this computer")
	if !d.Until(soon, func() bool { return strings.Contains(d.Focused(), "Pair this computer") }) {
		t.Fatalf("%q has the keyboard", d.Focused())
	}
	d.Key("Down")
	w.WaitText(soon, "Address of the hub")
	d.Key("Tab")
	d.Type("hub.example")
	d.Screenshot("pair-own")
	d.Key("Return")
	pair := d.until("the wish to pair", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.Pair })
	if pair.Intent.Text != "hub.example" || pair.Intent.Way != "" {
		t.Errorf("wished for %+v", *pair.Intent)
	}

	d.snapshot(func(s *snapshot.Snapshot) {
		s.Entries, s.Hub, s.State, s.Line = nil, snapshot.Hub{}, snapshot.Offline, "Not paired yet"
		s.Connect.Pairing = true
		s.Connect.SignIn = &snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/pair?request=1", Until: time.Now().Add(10 * time.Minute)}
	})
	w = d.Window("Sign in")
	w.WaitSentence(soon, "Your browser shows a page of hub.example")
	d.Screenshot("pair-browser")
	d.Key("Tab") // the address, then the code
	d.Key("Tab")
	d.Key("Return")
	d.until("the end of the first sign-in", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.CancelPair })
	d.snapshot(func(s *snapshot.Snapshot) {
		s.Entries, s.Hub, s.State, s.Line = nil, snapshot.Hub{}, snapshot.Offline, "Not paired yet"
		s.Connect = snapshot.Connect{}
	})
	d.send(desklink.Down{Told: &desklink.Told{Intent: snapshot.CancelPair, OK: true}})
	again := d.until("the wish for a code", func(u desklink.Up) bool {
		return u.Intent != nil && u.Intent.Kind == snapshot.Pair && u.Intent.Way == "code"
	})
	if again.Intent.Text != "https://hub.example" {
		t.Errorf("wished for %+v", *again.Intent)
	}
	d.snapshot(func(s *snapshot.Snapshot) {
		s.Entries, s.State, s.Line = nil, snapshot.Online, "Online"
		s.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example", Online: true}
		s.Connect = snapshot.Connect{}
	})
	d.Window("Paired").WaitSentence(soon, "Programs reach this computer through the hub")
	d.Screenshot("paired-own")
	d.Key("Escape")
	d.WaitNoWindow(soon, "Paired")
}
