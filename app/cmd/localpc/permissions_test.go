//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/control"
	"localpc/app/snapshot"
)

// What the windows of Permissions and Settings ask for, at the real hub inside:
// it has the new name, and a program that was disconnected gets no further.
func TestPermissionsAtTheHubInside(t *testing.T) {
	t.Parallel()
	p := start(t, apptest.Options{NoNotifications: true, NoTray: true})
	p.pair()
	hub := func(args ...string) string {
		t.Helper()
		out, err := p.d.Run(30*time.Second, filepath.Join(p.bin, "localpc-hub"), append(args, "--data", filepath.Join(p.data, "hub"))...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	c, err := control.Dial(filepath.Join(p.data, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := "Anna's workshop"
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Name: &name}}); err != nil {
		t.Fatal(err)
	}
	if !p.d.Until(20*time.Second, func() bool { return strings.Contains(hub("machine", "list"), name) }) {
		t.Errorf("the hub does not know the new name:\n%s", hub("machine", "list"))
	}
	p.waitStatus(20*time.Second, "online again", func(s snapshot.Snapshot) bool { return s.Hub.Online && s.Machine == name })

	s, other := newSDK(t, p.key("Research agent")), newSDK(t, p.key("Other"))
	made := s.start("create", nil)
	p.allowSession("Research agent", "Work in this folder")
	made.ok(30 * time.Second)
	var id string
	p.waitStatus(20*time.Second, "both programs", func(s snapshot.Snapshot) bool {
		i := slices.IndexFunc(s.Programs, func(p snapshot.Program) bool { return p.Name == "Research agent" && p.Sessions == 1 })
		if i >= 0 {
			id = s.Programs[i].ID
		}
		return i >= 0 && len(s.Programs) == 2
	})
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.Disconnect, Text: id}); err != nil {
		t.Fatal(err)
	}
	p.waitStatus(20*time.Second, "one program", func(s snapshot.Snapshot) bool { return len(s.Programs) == 1 && len(s.Sessions) == 0 })
	if out := hub("key", "list"); strings.Contains(out, "Research agent") || !strings.Contains(out, "Other") {
		t.Errorf("the hub's keys:\n%s", out)
	}
	s.start("create", nil).failed(20*time.Second, "A key is needed")
	made = other.start("create", nil)
	p.allowSession("Other", "Work in this folder")
	made.ok(30 * time.Second)

	// The window's self-test finds what doctor finds.
	if _, err := c.Intend(snapshot.Intent{Kind: snapshot.SelfTest}); err != nil {
		t.Fatal(err)
	}
	p.waitStatus(40*time.Second, "the self-test", func(s snapshot.Snapshot) bool { return len(s.Settings.Checks) > 0 && !s.Settings.Checking })
	doctor := p.must("doctor")
	for _, k := range p.status().Settings.Checks {
		if !strings.Contains(doctor, k.Name) || !strings.Contains(doctor, k.Text) {
			t.Errorf("doctor does not say %+v:\n%s", k, doctor)
		}
	}
}
