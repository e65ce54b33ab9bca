//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/apptest"
)

// The whole path as an ordinary user: continuous integration is root, people
// are not.
func TestWholePathAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{Ordinary: true})
	if os.Getuid() == 0 && p.d.UID() == 0 {
		t.Fatal("the desktop runs as root")
	}
	p.d.WaitTrayIcon(20 * time.Second)
	p.pairByMouse()
	s := newSDK(t, p.key("Research agent"))
	made := s.start("create", nil)
	p.allowSession("Research agent", "Work in this folder")
	made.ok(20 * time.Second)

	// Contained commands and files in the folder run without another card.
	r := resultOf(t, s.start("run", map[string]any{"cmd": "id -u; pwd; cat /etc/shadow 2>&1; echo made > made.txt", "envs": map[string]string{"COLOUR": "blue"}}).ok(20*time.Second))
	if r.ExitCode != 0 || !strings.Contains(r.Stdout, "/home/user") || strings.Contains(r.Stdout, "root:") {
		t.Errorf("the command gave %+v", r)
	}
	if got := text(t, s.start("read", map[string]any{"path": "made.txt"}).ok(20*time.Second)); got != "made\n" {
		t.Errorf("read gave %q", got)
	}
	s.start("write", map[string]any{"path": "/home/user/new.txt", "data": "new"}).ok(20 * time.Second)
	folder := p.status().Sessions[0].Folder
	fi, err := os.Stat(filepath.Join(folder, "new.txt"))
	if err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != p.d.UID() {
		t.Errorf("the file is not the person's: %v, %v", fi, err)
	}

	// What was not made here is asked for before it goes.
	if err := os.WriteFile(filepath.Join(folder, "mine.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.d.Give(filepath.Join(folder, "mine.txt"))
	gone := s.start("remove", map[string]any{"path": "mine.txt"})
	p.press(p.card("mine.txt"), "Deny")
	gone.failed(20*time.Second, "declined")
	if b, err := os.ReadFile(filepath.Join(folder, "mine.txt")); err != nil || string(b) != "mine" {
		t.Errorf("the person's file is %q, %v", b, err)
	}
	p.noCard()

	p.must("record", "verify")
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("quit ended with %d", code)
	}
}
