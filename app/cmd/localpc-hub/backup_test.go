//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"localpc/tunnel"
)

// A backup is taken while the hub works, and put back with the hub stopped:
// keys, computers and open sandboxes are what they were.
func TestBackupAndRestore(t *testing.T) {
	dir, safe := t.TempDir(), filepath.Join(t.TempDir(), "hub.backup")
	c, address := serve(t, dir, "127.0.0.1:0")
	m := pair(t, dir, "m-1", nil)
	key := newKey(t, dir)
	_, box := create(t, http.DefaultClient, address, key, plain)
	if code, _, errs := cmd(t, "backup", safe, "--data", dir); code != 0 {
		t.Fatalf("backup: %s", errs)
	}
	if info, err := os.Stat(safe); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	if code, _, errs := cmd(t, "backup", safe, "--data", dir); code != 1 || !strings.Contains(errs, "overwrites nothing") {
		t.Errorf("backup onto a backup: %d %s", code, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(safe), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	later := newKey(t, dir)
	if code, _, errs := cmd(t, "restore", safe, "--data", dir); code != 1 || !strings.Contains(errs, "running") {
		t.Errorf("restore under a running hub: %d %s", code, errs)
	}
	if code, _, errs := cmd(t, "serve", "--listen", "127.0.0.1:0", "--data", dir); code != 1 || !strings.Contains(errs, "another hub") {
		t.Errorf("a second hub: %d %s", code, errs)
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	m.wait(t, tunnel.Offline)

	junk := filepath.Join(t.TempDir(), "junk")
	for what, data := range map[string]string{"is not a backup": strings.Repeat("no database ", 1000), "not a backup": ""} {
		if err := os.WriteFile(junk, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := cmd(t, "restore", junk, "--data", dir); code != 1 || !strings.Contains(errs, what) {
			t.Errorf("restore of junk: %d %s", code, errs)
		}
	}
	code, _, errs := cmd(t, "restore", safe, "--data", dir)
	if code != 0 {
		t.Fatalf("restore: %s", errs)
	}
	_, _ = serve(t, dir, strings.TrimPrefix(address, "http://"))
	m.wait(t, tunnel.Online)
	if status, text := file(t, http.DefaultClient, address, box, "POST", "a.txt", "x"); status != 200 {
		t.Errorf("the sandbox from the backup: %d %s", status, text)
	}
	if status, _ := create(t, http.DefaultClient, address, key, plain); status != 201 {
		t.Errorf("the key from the backup: %d", status)
	}
	if status, _ := create(t, http.DefaultClient, address, later, plain); status != 401 {
		t.Errorf("a key made after the backup: %d", status)
	}
	// What was there before the restore is kept, and is a hub's data too.
	_, aside, ok := strings.Cut(errs, "before is in ")
	aside, _, _ = strings.Cut(aside, ".\n")
	if code, out, _ := cmd(t, "key", "list", "--data", aside); !ok || code != 0 || strings.Count(out, "\n") != 3 {
		t.Errorf("what was there before, in %q: %d %s", aside, code, out)
	}
	// On another computer, where there was nothing.
	fresh := filepath.Join(t.TempDir(), "fresh")
	if code, _, errs := cmd(t, "restore", safe, "--data", fresh); code != 0 {
		t.Fatalf("restore to a new place: %s", errs)
	}
	if code, out, _ := cmd(t, "key", "list", "--data", fresh); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("restored to a new place: %d %s", code, out)
	}
}
