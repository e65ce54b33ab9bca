//go:build linux

package main

import (
	"fmt"
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

	// What was not made here is kept, or, where it is more, asked for before it goes.
	if err := os.Mkdir(filepath.Join(folder, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.d.Give(filepath.Join(folder, "mine"))
	for i := range 12 {
		name := filepath.Join(folder, "mine", fmt.Sprint(i))
		if err := os.WriteFile(name, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		p.d.Give(name)
	}
	mine := func() string {
		b, _ := os.ReadFile(filepath.Join(folder, "mine", "0"))
		return string(b)
	}
	s.start("write", map[string]any{"path": "mine/0", "data": "theirs"}).ok(20 * time.Second)
	s.works("rm mine/0")
	if mine() != "" {
		t.Error("the file is there still")
	}
	p.must("undo", "session", p.status().Sessions[0].ID)
	if mine() != "mine" {
		t.Errorf("undone, the person's file is %q", mine())
	}
	gone := s.start("remove", map[string]any{"path": "mine"})
	p.press(p.card("12 files"), "Deny")
	gone.failed(20*time.Second, "declined")
	if mine() != "mine" {
		t.Errorf("declined, the person's file is %q", mine())
	}
	p.noCard()

	p.must("record", "verify")
	p.must("quit")
	if code := p.p.ExitCode(20 * time.Second); code != 0 {
		t.Errorf("quit ended with %d", code)
	}
}
