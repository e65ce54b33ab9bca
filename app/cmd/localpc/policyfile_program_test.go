//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// A policy file answers everything beforehand on a machine that nobody sits at:
// what it allows runs, the rest is refused at once, and status and doctor say
// that it holds.
func TestPolicyFileWithoutAnybody(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true, NoBus: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder, file := filepath.Join(d.Home, "work"), filepath.Join(d.Home, "policy.toml")
	policy := "folder = '" + folder + "'\nmode = 'look'\n[[allow]]\ncapability = 'files'\neffects = ['read', 'create', 'overwrite']\n" +
		"[[allow]]\nprogram = 'nightly'\ncapability = 'shell'\nexact = 'cat mine.txt'\n[[deny]]\ncapability = 'files'\nexact = 'secret.txt'\n"
	for _, err := range []error{os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "mine.txt"), []byte("mine"), 0o644),
		os.WriteFile(filepath.Join(folder, "secret.txt"), []byte("secret"), 0o644), os.WriteFile(file, []byte(policy), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Give(folder)
	d.Give(file)
	cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", file)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	p.p = d.StartCmd("localpc", cmd)
	d.WaitOutput(p.p, 20*time.Second, "refused")
	p.waitStatus(20*time.Second, "the policy", func(s snapshot.Snapshot) bool { return strings.Contains(s.Policy, file) })
	p.pair()
	s := newSDK(t, p.key("nightly"))
	s.start("create", nil).ok(20 * time.Second)
	if r := resultOf(t, s.start("run", map[string]any{"cmd": "cat mine.txt"}).ok(20*time.Second)); r.Stdout != "mine" {
		t.Errorf("the command gave %+v", r)
	}
	s.start("write", map[string]any{"path": "mine.txt", "data": "theirs"}).ok(20 * time.Second)
	s.start("run", map[string]any{"cmd": "rm mine.txt"}).failed(20*time.Second, "policy file does not allow")
	s.start("read", map[string]any{"path": "secret.txt"}).failed(20*time.Second, "policy file denies this (line 10)")
	if b, err := os.ReadFile(filepath.Join(folder, "mine.txt")); err != nil || string(b) != "theirs" {
		t.Errorf("the file is %q, %v", b, err)
	}
	p.says("answered beforehand by the policy file "+file, "doctor")
	p.says("Answered beforehand by the policy file "+file, "status")
	p.says(`"by":"policy"`, "record", "tail", "--json")
}
