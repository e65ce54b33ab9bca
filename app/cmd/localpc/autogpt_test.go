//go:build linux

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// The platform's own protocol, both ends: this program pairs with a hub as it
// does with AutoGPT, and an agent's requests come over wire 1.1 and through
// the same cards.
func TestAutoGPTsWire(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{Width: 1280, Height: 800})
	d := p.d
	opened := catchBrowser(t, d)
	hub := startHub(t, d, p.bin)
	pairing := d.Start(filepath.Join(p.bin, "localpc"), "pair", "autogpt", "--web", hub.address, "--api", hub.address, "--ws", strings.Replace(hub.address, "http", "ws", 1), "--data", p.data)
	page := opened()
	if u, err := url.Parse(page); err != nil || u.Path != "/auth/authorize" || u.Query().Get("scope") != "USE_TOOLS" {
		t.Errorf("the page is %s", page)
	}
	hub.open(page).sees("Connect this computer?").click("Yes, connect this computer").sees("You can close this page")
	d.WaitOutput(pairing, 20*time.Second, "Paired")
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online && s.Hub.Kind == "autogpt" })

	// The folder that programs get is chosen on the hub, from names that this
	// computer gives only when its person has allowed it.
	folder := filepath.Join(d.Home, "Project")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	machine := p.status().Machine
	hub.open("/").sees(machine).click("Choose a folder for " + machine)
	card := p.card("names of your folders")
	d.Screenshot("browse-card")
	card.ClickText("Always")
	p.press(card, "Allow")
	p.noCard()
	hub.open("/").click("Choose a folder for " + machine).click("Open " + filepath.Base(d.Home)).click("Open Project").sees("There is no folder in here").click("Use this folder").sees("Programs work in " + folder)

	s := newSDK(t, hub.key("Research agent"))
	made := s.start("create", nil)
	made.ok(30 * time.Second) // binding a folder grants nothing, and asks nothing
	write := s.start("write", map[string]any{"path": filepath.Join(folder, "plan.md"), "data": "one\n"})
	card = p.card("Project")
	d.Screenshot("bound-session-card")
	card.ClickText("Work", "in", "this", "folder")
	p.press(card, "Start")
	write.ok(30 * time.Second)
	p.noCard()
	if b, err := os.ReadFile(filepath.Join(folder, "plan.md")); err != nil || string(b) != "one\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if r := resultOf(t, s.start("run", map[string]any{"cmd": "cat plan.md"}).ok(30*time.Second)); r.Stdout != "one\n" {
		t.Errorf("the command gave %+v", r)
	}
	s.start("run", map[string]any{"cmd": "exit 3"}).failed(30*time.Second, "exit status 3")
	p.must("record", "verify")
}
