//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// Kill -9 of localpc, of a hub that is a process of its own, and of a command,
// at random points while files are written and commands run: no file is half
// written, the record verifies, and nothing runs on.
func TestKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	hubData, folder := filepath.Join(d.Home, "hub"), filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	startHub := func() *apptest.Process {
		h := d.Start(filepath.Join(bin, "localpc-hub"), "serve", "--listen", p.addr, "--data", hubData)
		d.WaitOutput(h, 20*time.Second, p.addr)
		return h
	}
	startMachine := func() {
		cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--policy", "contained", "--folder", folder)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
		p.p = d.StartCmd("localpc", cmd)
		d.WaitOutput(p.p, 20*time.Second, "running")
	}
	hub := startHub()
	line, err := d.Run(20*time.Second, filepath.Join(bin, "localpc-hub"), "machine", "add", "this", "--data", hubData, "--public-url", "http://"+p.addr)
	if err != nil {
		t.Fatal(err)
	}
	startMachine()
	p.must("pair", pairingLine(t, line))
	online := func() {
		t.Helper()
		p.waitStatus(40*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
	}
	online()
	key, err := d.Run(20*time.Second, filepath.Join(bin, "localpc-hub"), "key", "add", "Research agent", "--data", hubData)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"E2B_API_KEY=" + keyIn(key), "E2B_API_URL=http://" + p.addr + "/api", "E2B_SANDBOX_URL=http://" + p.addr + "/sbx"}

	// Every version of a file is one letter, many times.
	const size = 3 << 20
	sums := map[string]bool{}
	for l := 'a'; l <= 'z'; l++ {
		sum := sha256.Sum256([]byte(strings.Repeat(string(l), size)))
		sums[hex.EncodeToString(sum[:])] = true
	}
	marker := "87" + strconv.Itoa(os.Getpid())
	kills := []string{"localpc", "hub", "command"}
	for round := range 20 {
		what := kills[round%len(kills)]
		s := newSDK(t, env)
		s.start("create", nil).ok(30 * time.Second)
		cmd := s.start("run", map[string]any{"cmd": "(setsid sleep " + marker + " &); exec sleep " + marker, "timeoutMs": 0})
		if !d.Until(20*time.Second, func() bool { return len(sleepers(marker)) >= 2 }) {
			t.Fatalf("round %d: the command does not run", round)
		}
		// A file that the session made, and makes anew.
		name := fmt.Sprintf("file-%d.txt", round)
		s.start("write", map[string]any{"path": name, "data": strings.Repeat("a", size)}).ok(20 * time.Second)
		write := s.start("write", map[string]any{"path": name, "data": strings.Repeat(string(rune('b'+round)), size)})
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		switch what {
		case "localpc":
			p.p.Kill()
		case "hub":
			hub.Kill()
		case "command":
			for _, pid := range sleepers(marker) {
				n, _ := strconv.Atoi(pid)
				_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended already
			}
			cmd.wait(20 * time.Second)
			write.ok(20 * time.Second)
		}
		if !d.Until(15*time.Second, func() bool { return len(sleepers(marker)) == 0 }) {
			t.Fatalf("round %d, %s killed: %v run on", round, what, sleepers(marker))
		}
		switch what {
		case "localpc":
			startMachine()
		case "hub":
			hub = startHub()
		}
		online()
		checkWhole(t, fmt.Sprintf("round %d, %s killed", round, what), folder, sums)
		if out := p.must("record", "verify"); !strings.Contains(out, "whole") {
			t.Fatalf("round %d, %s killed: record verify says %q", round, what, out)
		}
	}
	for _, dir := range []string{filepath.Join(p.data, "spool"), filepath.Join(p.data, "journal")} {
		left, err := os.ReadDir(dir)
		if err == nil && len(left) > 0 {
			t.Errorf("%s keeps %d leftovers", dir, len(left))
		}
	}
}

// checkWhole wants whole versions of the files, and nothing else.
func checkWhole(t *testing.T, when, folder string, sums map[string]bool) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if !strings.HasPrefix(e.Name(), "file-") || !sums[hex.EncodeToString(sum[:])] {
			t.Errorf("%s: %s has %d bytes and is no whole version", when, e.Name(), len(b))
		}
	}
}

func pairingLine(t *testing.T, out string) string {
	t.Helper()
	for _, w := range strings.Fields(out) {
		if strings.HasPrefix(w, "http") && strings.Contains(w, "#") {
			return w
		}
	}
	t.Fatalf("machine add printed no pairing line: %q", out)
	return ""
}

func keyIn(out string) string {
	for _, w := range strings.Fields(out) {
		if strings.HasPrefix(w, "e2b_") {
			return w
		}
	}
	return ""
}
