//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"localpc/consent"
)

// Kill -9 of each program at random points, a hundred times, while files are
// written, commands run and cards are open: no file is half written, nothing
// runs on, and the grants, the settings and the record are what they were.
func TestKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	when := "at the start"
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(k.p.data, "localpc.log")); t.Failed() && err == nil {
			t.Logf("%s; log of localpc:\n%s", when, b)
		}
	})
	// In a mixed order, so that each meets what the others left.
	var rounds []string
	for what, n := range map[string]int{"localpc": 20, "localpc-hub": 12, "localpc-desktop": 18, "localpc-spawn": 40, "command": 10} {
		rounds = append(rounds, slices.Repeat([]string{what}, n)...)
	}
	rand.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	for i, what := range rounds {
		when = fmt.Sprintf("round %d, %s killed", i, what)
		k.round(when, what)
		if t.Failed() {
			return
		}
	}
	k.whole("at the end")
	for _, dir := range []string{filepath.Join(k.p.data, "spool"), filepath.Join(k.p.data, "journal")} {
		left, err := os.ReadDir(dir)
		if err == nil && len(left) > 0 {
			t.Errorf("%s keeps %d leftovers", dir, len(left))
		}
	}
}

// killing is a hub, a computer and a program at work, to be killed.
type killing struct {
	t              testing.TB
	p              *program
	hub            *apptest.Process
	hubData        string
	folder         string
	env            []string
	s              *sdk
	marker         string
	sums           map[string]bool // of every whole version of a file
	grants, config string          // as they have to stay
	n              int
}

// killedSize is that of each file, so that a write takes a while.
const killedSize = 3 << 20

func newKilling(t testing.TB) *killing {
	d := apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-desktop", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	k := &killing{t: t, hubData: filepath.Join(d.Home, "hub"), marker: "87" + strconv.Itoa(os.Getpid()), sums: map[string]bool{},
		p: &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}}
	k.folder = workFolder(t, d, map[string]string{"mine.txt": "mine"})
	d.Give(k.folder)
	for l := 'a'; l <= 'z'; l++ {
		sum := sha256.Sum256([]byte(strings.Repeat(string(l), killedSize)))
		k.sums[hex.EncodeToString(sum[:])] = true
	}
	k.startHub()
	line, err := d.Run(20*time.Second, filepath.Join(bin, "localpc-hub"), "machine", "add", "this", "--data", k.hubData, "--public-url", "http://"+k.p.addr)
	if err != nil {
		t.Fatal(err)
	}
	k.startMachine()
	k.p.must("pair", pairingLine(t, line))
	k.online()
	key, err := d.Run(20*time.Second, filepath.Join(bin, "localpc-hub"), "key", "add", "Research agent", "--data", k.hubData)
	if err != nil {
		t.Fatal(err)
	}
	k.env = []string{"E2B_API_KEY=" + keyIn(key), "E2B_API_URL=http://" + k.p.addr + "/api", "E2B_SANDBOX_URL=http://" + k.p.addr + "/sbx"}

	// The person settles it once: how the program may work, and one command.
	k.s = newSDK(t, k.env)
	made := k.s.start("create", map[string]any{"timeoutMs": 3600_000})
	card := k.p.card("Research agent")
	card.ClickText("Work", "in", "this", "folder")
	card.ClickText("Remember", "for")
	k.p.press(card, "Start")
	made.ok(20 * time.Second)
	k.p.noCard()
	run := k.s.start("run", map[string]any{"cmd": "cp mine.txt kept.txt && mv mine.txt kept.txt && chmod 640 kept.txt"})
	card = k.p.card("mine.txt")
	card.ClickText("Always")
	k.p.press(card, "Allow")
	run.ok(20 * time.Second)
	k.p.noCard()
	k.grants, k.config = k.remembered(), string(fileOf(t, filepath.Join(k.p.data, "settings.toml")))
	if n := strings.Count(k.grants, "\n"); n != 2 {
		t.Fatalf("there are %d grants: %s", n, k.grants)
	}
	return k
}

func (k *killing) startHub() {
	k.t.Helper()
	k.hub = k.p.d.Start(filepath.Join(k.p.bin, "localpc-hub"), "serve", "--listen", k.p.addr, "--data", k.hubData)
	k.p.d.WaitOutput(k.hub, 20*time.Second, k.p.addr)
}

func (k *killing) startMachine() {
	k.t.Helper()
	k.p.p = k.p.d.Start(filepath.Join(k.p.bin, "localpc"), "run", "--data", k.p.data, "--folder", k.folder)
	k.p.d.WaitOutput(k.p.p, 20*time.Second, "running")
}

func (k *killing) online() {
	k.t.Helper()
	k.p.waitStatus(60*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
}

// open makes a sandbox; the remembered answer stands in for the card.
func (k *killing) open() {
	k.t.Helper()
	k.s.kill()
	k.s = newSDK(k.t, k.env)
	k.s.start("create", map[string]any{"timeoutMs": 3600_000}).ok(30 * time.Second)
}

// remembered is every grant that holds for more than a session, but for when
// it was last used.
func (k *killing) remembered() string {
	k.t.Helper()
	var all []consent.Stored
	if err := json.Unmarshal([]byte(k.p.must("grants", "--json")), &all); err != nil {
		k.t.Fatal(err)
	}
	var out strings.Builder
	for _, g := range all {
		g.LastUsed = time.Time{}
		b, err := json.Marshal(g)
		if err != nil {
			k.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", b)
	}
	return out.String()
}

// round does some work, and kills a program in the middle of it.
func (k *killing) round(when, what string) {
	k.t.Helper()
	k.n++
	// A file that the session made, and makes anew, and a command that leaves
	// a child behind.
	name := fmt.Sprintf("file-%d.txt", k.n)
	cmd := k.s.start("run", map[string]any{"cmd": "(setsid sleep " + k.marker + " &); exec sleep " + k.marker, "timeoutMs": 0})
	if !k.p.d.Until(20*time.Second, func() bool { return len(sleepers(k.marker)) >= 2 }) {
		k.t.Fatalf("%s: the command does not run", when)
	}
	k.s.start("write", map[string]any{"path": name, "data": strings.Repeat("a", killedSize)}).ok(20 * time.Second)
	write := k.s.start("write", map[string]any{"path": name, "data": strings.Repeat(string(rune('b'+k.n%25)), killedSize)})
	time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
	switch what {
	case "localpc":
		k.p.p.Kill()
		k.quiet(when)
		k.startMachine()
		k.online()
		k.open()
	case "localpc-hub":
		k.hub.Kill()
		k.quiet(when)
		k.startHub()
		k.online()
		k.open()
	case "localpc-desktop":
		k.card(when)
		write.ok(20 * time.Second)
		k.endCommand()
	case "localpc-spawn":
		// Its environment is empty, so it is found by whose child it is.
		starters := below(k.p.p.PID, "localpc-spawn")
		if len(starters) == 0 {
			k.t.Fatalf("%s: none runs", when)
		}
		for _, pid := range starters {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		cmd.wait(20 * time.Second)
		write.ok(20 * time.Second)
	case "command":
		k.endCommand()
		cmd.wait(20 * time.Second)
		write.ok(20 * time.Second)
	}
	k.quiet(when)
	if what == "localpc" || what == "localpc-hub" || k.n%10 == 0 {
		k.whole(when)
	}
}

// card kills the window while a card is asked for, or open: nothing is allowed
// by that, and the next card works.
func (k *killing) card(when string) {
	k.t.Helper()
	asked := k.s.start("write", map[string]any{"path": ".husky/asked", "data": "x"})
	kill := func() (killed bool) {
		for _, p := range k.p.d.Processes() {
			if strings.Contains(p.Command, "localpc-desktop") {
				killed = true
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
		return killed
	}
	if k.n%2 == 0 { // after it was shown: that card is gone
		k.p.d.Until(20*time.Second, func() bool {
			select {
			case <-asked.done:
				k.t.Fatalf("%s: no card, but %q", when, asked.Error)
			default:
			}
			_, ok := k.p.d.Window(cardTitle).FindText("other", "programs")
			return ok
		})
		k.p.card("other programs")
		kill()
		asked.failed(20*time.Second, "could not be shown")
	} else { // at any moment: it may be shown once more
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		kill()
		again := k.p.d.Until(20*time.Second, func() bool {
			select {
			case <-asked.done:
				return true
			default:
			}
			_, ok := k.p.d.Window(cardTitle).FindText("other", "programs")
			return ok
		})
		if !again {
			k.t.Fatalf("%s: the question is lost", when)
		}
		select {
		case <-asked.done:
			asked.failed(time.Second, "could not be shown")
		default:
			k.p.press(k.p.d.Window(cardTitle), "Deny")
			asked.failed(20*time.Second, "declined")
		}
	}
	k.p.noCard()
	if _, err := os.Stat(filepath.Join(k.folder, ".husky")); err == nil || string(fileOf(k.t, filepath.Join(k.folder, "kept.txt"))) != "mine" {
		k.t.Fatalf("%s: what was not allowed was done", when)
	}
}

func (k *killing) endCommand() {
	for _, pid := range sleepers(k.marker) {
		n, _ := strconv.Atoi(pid)
		_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended already
	}
}

// quiet waits until nothing of the command runs on.
func (k *killing) quiet(when string) {
	k.t.Helper()
	if !k.p.d.Until(15*time.Second, func() bool { return len(sleepers(k.marker)) == 0 }) {
		k.t.Fatalf("%s: %v run on", when, sleepers(k.marker))
	}
}

// whole wants whole versions of the files and nothing else, the same grants
// and settings, and an unbroken record.
func (k *killing) whole(when string) {
	k.t.Helper()
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		b := fileOf(k.t, filepath.Join(k.folder, e.Name()))
		sum := sha256.Sum256(b)
		if e.Name() != "kept.txt" && (!strings.HasPrefix(e.Name(), "file-") || !k.sums[hex.EncodeToString(sum[:])]) {
			k.t.Errorf("%s: %s has %d bytes and is no whole version", when, e.Name(), len(b))
		}
		if e.Name() != "kept.txt" { // each was looked at once
			_ = os.Remove(filepath.Join(k.folder, e.Name()))
		}
	}
	if got := k.remembered(); got != k.grants {
		k.t.Errorf("%s: the grants are\n%swant\n%s", when, got, k.grants)
	}
	if got := string(fileOf(k.t, filepath.Join(k.p.data, "settings.toml"))); got != k.config {
		k.t.Errorf("%s: the settings are\n%swant\n%s", when, got, k.config)
	}
	if out := k.p.must("record", "verify"); !strings.Contains(out, "whole") {
		k.t.Errorf("%s: record verify says %q", when, out)
	}
}

// below are the processes below one whose command line has a word in it.
func below(root int, word string) []int {
	children := map[int][]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue // it has ended
		}
		// The name may hold blanks and parentheses: count from its last one.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], pid)
	}
	var out []int
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, pid := range children[todo[0]] {
			todo = append(todo, pid)
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(b), word) {
				out = append(out, pid)
			}
		}
	}
	return out
}

func pairingLine(t testing.TB, out string) string {
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
