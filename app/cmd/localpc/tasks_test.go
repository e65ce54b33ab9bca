//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/consent"
	"localpc/consent/record"

	"golang.org/x/sys/unix"
)

// Whole tasks as an agent does them and a person answers them: how many cards
// each costs is printed, and bounded.

// cards counts what the person was asked and answered, as the record has it.
func (p *program) cards() int {
	p.t.Helper()
	file := filepath.Join(p.d.Home, "export.jsonl")
	p.must("record", "export", file)
	data, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		var e struct {
			Kind string `json:"kind"`
			Body struct {
				Decision consent.Decision `json:"decision"`
			} `json:"body"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == record.KindDecision && e.Body.Decision.By == "you" {
			n++
		}
	}
	return n
}

// atMost prints what a task cost, and fails when it is more.
func (p *program) atMost(task string, most int) {
	p.t.Helper()
	n := p.cards()
	// What a test writes is not shown when it passes: make test prints this file.
	const build = "../../../build"
	line := fmt.Sprintf("%s: %d cards (at most %d)\n", task, n, most)
	err := os.MkdirAll(build, 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(build, "cards.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, err = f.WriteString(line)
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		p.t.Error(err)
	}
	if n > most || n == 0 {
		p.t.Errorf("%s took %d cards; at most %d are bearable", task, n, most)
	}
}

// lend pairs, and opens a session in folder with "Work in this folder".
func (p *program) lend(folder string) *sdk {
	p.t.Helper()
	p.d.Give(folder)
	p.pair()
	s := newSDK(p.t, p.key("Research agent"))
	made := s.start("create", map[string]any{"timeoutMs": 3600_000})
	p.allowSession("Research agent", "Work in this folder")
	made.ok(20 * time.Second)
	return s
}

// works runs a command that has to work, and be silent.
func (s *sdk) works(cmd string) string {
	s.t.Helper()
	r := resultOf(s.t, s.start("run", map[string]any{"cmd": cmd}).ok(50*time.Second))
	if r.ExitCode != 0 {
		s.t.Fatalf("%s gave %+v", cmd, r)
	}
	return r.Stdout
}

func workFolder(t testing.TB, d *apptest.Desktop, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(d.Home, "work")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Write a small project, run its tests, fix a file: the session card, and no
// other.
func TestTaskProject(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{})
	folder := workFolder(t, d, map[string]string{"notes.txt": "write a sum\n"})
	p := startIn(t, d, "--folder", folder)
	s := p.lend(folder)
	write := func(path, data string) {
		s.start("write", map[string]any{"path": path, "data": data}).ok(20 * time.Second)
	}
	s.works("ls -la && cat notes.txt")
	write("sum/package.json", `{"name":"sum","version":"1.0.0","scripts":{"test":"node --test"}}`)
	write("sum/sum.js", "exports.sum = (a, b) => a - b\n")
	write("sum/sum.test.js", "const test = require('node:test'), assert = require('assert')\ntest('sum', () => assert.equal(require('./sum').sum(2, 3), 5))\n")
	if r := resultOf(t, mustFail(t, s.start("run", map[string]any{"cmd": "cd sum && npm test"}))); r.ExitCode == 0 {
		t.Errorf("the wrong sum passes: %+v", r)
	}
	s.works("grep -n 'a - b' sum/*.js")
	s.works(`sed -i 's/a - b/a + b/' sum/sum.js`)
	if out := s.works("cd sum && npm test 2>&1 | tail -20"); !strings.Contains(out, "pass 1") {
		t.Errorf("the tests say %q", out)
	}
	s.works("cd sum && mkdir -p docs && printf '# Sum\\n' > docs/README.md && cat docs/README.md")
	// The person's own file is kept.
	write("notes.txt", "a sum is written\n")
	if b, err := os.ReadFile(filepath.Join(folder, "notes.txt")); err != nil || string(b) != "a sum is written\n" {
		t.Errorf("the notes are %q, %v", b, err)
	}
	p.atMost("write a small project, run its tests, fix a file", 1)
}

// Tidy a folder of 500 files: the session card, the deletion with the right
// count, and the move.
func TestTaskTidy(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 500 {
		switch {
		case i < 214:
			files[fmt.Sprintf("scratch-%03d.tmp", i)] = strings.Repeat("x", 1000)
		case i < 364:
			files[fmt.Sprintf("photo-%03d.jpg", i)] = "picture"
		default:
			files[fmt.Sprintf("letter-%03d.txt", i)] = "letter"
		}
	}
	d := apptest.New(t, apptest.Options{})
	folder := workFolder(t, d, files)
	p := startIn(t, d, "--folder", folder)
	s := p.lend(folder)
	if n := strings.TrimSpace(s.works("ls | wc -l")); n != "500" {
		t.Errorf("there are %s files", n)
	}
	s.works("find . -name '*.tmp' -type f | wc -l && du -sh . && ls | sed 's/.*\\.//' | sort | uniq -c")

	gone := s.start("run", map[string]any{"cmd": "find . -name '*.tmp' -type f -delete"})
	card := p.card("delete 214 files", "can be undone")
	d.Screenshot("deletion-card")
	p.press(card, "Allow")
	gone.ok(20 * time.Second)
	p.noCard()
	moved := s.start("run", map[string]any{"cmd": "mkdir -p photos && mv *.jpg photos/"})
	card = p.card("150 files")
	d.Screenshot("move-card")
	p.press(card, "Allow")
	moved.ok(20 * time.Second)
	p.noCard()
	if out := s.works("ls | wc -l; ls photos | wc -l; ls *.tmp 2>/dev/null | wc -l"); strings.Join(strings.Fields(out), " ") != "137 150 0" {
		t.Errorf("it is tidied to %q", out)
	}
	p.atMost("tidy a folder of 500 files", 3)
}

// Fetch something from the network: the session card, and one for the host.
func TestTaskFetch(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{})
	host := elsewhere(t)
	folder := workFolder(t, d, nil)
	p := startIn(t, d, "--folder", folder)
	s := p.lend(folder)
	fetch := s.start("run", map[string]any{"cmd": "curl -fsS http://" + host + "/data.csv -o data.csv && wc -l data.csv", "timeoutMs": 60_000})
	card := p.card("wants to reach", host[:strings.Index(host, ":")])
	d.Screenshot("connection-card")
	card.ClickText("This", "session")
	p.press(card, "Allow")
	if r := resultOf(t, fetch.ok(30*time.Second)); r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, "3 ") {
		t.Errorf("the fetch gave %+v", r)
	}
	p.noCard()
	// For this session the host is settled; another one is not.
	s.works("curl -fsS http://" + host + "/data.csv | head -1")
	p.atMost("fetch something from the network", 3)
}

const csv = "name,count\none,1\ntwo,2\n"

// elsewhere is a web server in a network of its own, which this computer has a
// route to: an address of the internet, as far as anybody here can tell.
func elsewhere(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a network of its own takes root to make")
	}
	id := os.Getpid() % 60000
	name, near, far := fmt.Sprint("lpt", id), fmt.Sprint("lpn", id), fmt.Sprint("lpf", id)
	block := fmt.Sprintf("10.213.%d.%d", id/256%256, id%64*4)
	dot := strings.LastIndex(block, ".")
	base, _ := strconv.Atoi(block[dot+1:])
	at := func(n int) string { return block[:dot+1] + strconv.Itoa(base+n) }
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// Of the block 198.18.0.0/15, for tests of networks (RFC 2544).
	there := fmt.Sprintf("198.18.%d.%d", id/250%250+1, id%250+1)
	ip("netns", "add", name)
	t.Cleanup(func() { ip("netns", "del", name) })
	ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
	ip("addr", "add", at(1)+"/30", "dev", near)
	ip("link", "set", near, "up")
	ip("-n", name, "addr", "add", at(2)+"/30", "dev", far)
	ip("-n", name, "link", "set", far, "up")
	ip("-n", name, "link", "set", "lo", "up")
	ip("-n", name, "addr", "add", there+"/32", "dev", "lo")
	ip("-n", name, "route", "add", "default", "via", at(1))
	ip("route", "add", there+"/32", "via", at(2))
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/data.csv" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, csv)
	})}
	l := listenIn(t, name, there+":8000")
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return there + ":8000"
}

// listenIn listens in a named network: a socket stays in the one that it was
// made in, whoever uses it.
func listenIn(t *testing.T, network, address string) net.Listener {
	t.Helper()
	type made struct {
		l   net.Listener
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		f, err := os.Open("/run/netns/" + network)
		if err == nil {
			defer f.Close()
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- made{err: err}
			return
		}
		l, err := net.Listen("tcp", address)
		done <- made{l, err}
	}()
	m := <-done
	if m.err != nil {
		t.Fatal(m.err)
	}
	return m.l
}

// mustFail waits for a call that fails, such as a command that exits with
// something else than 0, and returns its result as far as it has one.
func mustFail(t testing.TB, r *reply) string {
	t.Helper()
	r.wait(60 * time.Second)
	if r.Error == "" {
		t.Fatalf("%s worked with %s", r.what, r.Value)
	}
	if r.ExitCode == nil {
		t.Fatalf("%s failed with %s", r.what, r.Error)
	}
	return fmt.Sprintf(`{"exitCode":%d}`, *r.ExitCode)
}
