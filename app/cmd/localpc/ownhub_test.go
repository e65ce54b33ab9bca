//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// The whole path over a hub of one's own, on real parts: set-up and pairing in
// a browser, sign-in kept in the keychain, a program's command, and Disconnect
// on the hub's page in the middle of another.
func TestOwnHub(t *testing.T) {
	p := start(t, apptest.Options{Width: 1280, Height: 800})
	d := p.d
	opened := catchBrowser(t, d)
	hub := startHub(t, d, p.bin)
	hub.sees("No computer is connected yet")

	// Pair, My own hub, by mouse and keyboard.
	w := d.Window("Pair")
	w.ClickText("My", "own", "hub")
	w.WaitText(10*time.Second, "Address", "of", "the", "hub")
	d.Type(hub.address)
	d.Screenshot("own-hub")
	p.button(w, "Pair")
	page := opened()
	p.waitStatus(10*time.Second, "the sign-in waits for the browser", func(s snapshot.Snapshot) bool {
		return s.Connect.SignIn != nil && s.Connect.SignIn.Stage == snapshot.SignInBrowser
	})
	match := p.status().Connect.SignIn.Match
	d.Window("Sign in").WaitText(10*time.Second, match)
	d.Screenshot("sign-in")

	// The page names the computer and shows the same code.
	hub.open(page).sees("Connect this computer?", p.status().Machine, "127.0.0.1", match)
	hub.click("Yes, connect this computer").sees("You can close this page")
	p.waitStatus(20*time.Second, "paired and online", func(s snapshot.Snapshot) bool { return s.Hub.Online && s.Hub.Kind == "own" })
	d.Window("Paired").WaitText(10*time.Second, "through", "the", "hub")
	d.Screenshot("paired")
	hub.open("/").sees(p.status().Machine, "Online")

	// Both tokens are in the keychain, and in no file.
	id := strings.TrimSpace(settingOf(t, p, "machine_id"))
	kept, err := d.Run(20*time.Second, "secret-tool", "lookup", "service", "localpc", "username", "hub-token "+hub.address+"@"+id)
	if err != nil {
		t.Fatalf("the sign-in is not in the keychain: %v\n%s", err, kept)
	}
	for _, prefix := range []string{"lpa_", "lpr_"} {
		i := strings.Index(kept, prefix)
		if i < 0 {
			t.Fatalf("the keychain holds no %s token", prefix)
		}
		token, _, _ := strings.Cut(kept[i:], `"`)
		noFileHolds(t, d.Home, token)
	}

	// A program with a key of the hub works on this computer.
	s := newSDK(t, hub.key("Research agent"))
	made := s.start("create", nil)
	p.allowSession("Research agent", "Work in this folder")
	made.ok(20 * time.Second)
	if r := resultOf(t, s.start("run", map[string]any{"cmd": "echo hello-$((40+2))"}).ok(20*time.Second)); r.Stdout != "hello-42\n" {
		t.Errorf("the command gave %+v", r)
	}

	// A restart of this program needs no person, and neither does one of the hub.
	p.must("quit")
	p.p.ExitCode(20 * time.Second)
	p.run()
	p.waitStatus(20*time.Second, "online again", func(s snapshot.Snapshot) bool { return s.Hub.Online })

	// Disconnect, in the middle of a command, ends all of it within a second.
	made = s.start("create", nil)
	p.allowSession("Research agent", "Work in this folder")
	made.ok(20 * time.Second)
	const marker = "86399.31"
	running := s.start("run", map[string]any{"cmd": "sleep " + marker})
	if !d.Until(20*time.Second, func() bool { return len(sleepers(marker)) == 1 }) {
		t.Fatal("the command does not run")
	}
	hub.open("/").click("Disconnect " + p.status().Machine).sees("Disconnect")
	before := time.Now()
	hub.click("Disconnect").sees("is disconnected")
	p.waitStatus(20*time.Second, "offline", func(s snapshot.Snapshot) bool { return !s.Hub.Online })
	if took := time.Since(before); took > 3*time.Second { // a page and a status come on top of the second
		t.Errorf("the computer was disconnected after %s", took)
	}
	running.failed(20*time.Second, "")
	if !d.Until(10*time.Second, func() bool { return len(sleepers(marker)) == 0 }) {
		t.Error("the command runs on")
	}
	p.waitStatus(20*time.Second, "asks to sign in again", func(s snapshot.Snapshot) bool {
		return s.State == snapshot.SignIn && s.Fix == snapshot.Pair
	})
	p.must("record", "verify")
}

// A computer without a display signs in with a code that is typed on another
// device, here one of a phone's size; a wrong code connects nothing.
func TestOwnHubByCode(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{Ordinary: true})
	d := p.d
	hub := startHub(t, d, p.bin)
	hub.phone()
	pairing := d.Start(filepath.Join(p.bin, "localpc"), "pair", hub.address, "--code", "--data", p.data)
	d.WaitOutput(pairing, 20*time.Second, "type this code")
	code := p.status().Connect.SignIn.UserCode
	if code == "" || !strings.Contains(pairing.Output(), code) {
		t.Fatalf("the code %q is not in %q", code, pairing.Output())
	}
	wrong := strings.Map(func(r rune) rune {
		if r == rune(code[0]) {
			return rune(code[1])
		}
		return r
	}, code)
	if wrong == code {
		wrong = strings.Repeat("B", 4) + "-" + strings.Repeat("C", 4)
	}
	hub.open("/pair").fill("Code", wrong).click("Go on").sees("No computer shows that code")
	if p.status().Hub.Paired {
		t.Fatal("a wrong code has paired the computer")
	}
	hub.open("/pair").fill("Code", strings.ToLower(code)).click("Go on").sees("I started this on that computer", p.status().Machine)
	hub.tick("I started this on that computer").click("Yes, connect this computer").sees("connected")
	d.WaitOutput(pairing, 20*time.Second, "Paired")
	if exit := pairing.ExitCode(10 * time.Second); exit != 0 {
		t.Errorf("pair ended with %d", exit)
	}
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })

	// Unpair gives the tokens back: the hub knows no computer any more.
	p.must("unpair")
	hub.open("/account").sees("Log out")
	out, err := d.Run(20*time.Second, filepath.Join(p.bin, "localpc-hub"), "machine", "list", "--data", hub.data)
	if err != nil || strings.Contains(out, "online") {
		t.Errorf("after unpair: %s, %v", out, err)
	}
}
