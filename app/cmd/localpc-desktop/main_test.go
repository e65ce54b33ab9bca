//go:build linux

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

const soon = 20 * time.Second

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lpd")
	if err != nil {
		panic(err)
	}
	os.Chmod(dir, 0o755) // an ordinary user starts it
	binary = filepath.Join(dir, "localpc-desktop")
	build := exec.Command("go", "build", "-tags", "gles", "-o", binary, ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build localpc-desktop:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// desk is a running localpc-desktop on a private desktop, with the test in
// localpc's place.
type desk struct {
	*apptest.Desktop
	t    *testing.T
	proc *apptest.Process
	in   io.WriteCloser
	seq  uint64

	mu   sync.Mutex
	sent []desklink.Up // guarded by mu
}

func start(t *testing.T, o apptest.Options, env ...string) *desk {
	t.Helper()
	o.NoTray, o.NoKeyring, o.NoNotifications, o.Ordinary = true, true, true, true
	if o.Width == 0 {
		o.Width, o.Height = 1240, 860
	}
	d := &desk{Desktop: apptest.New(t, o), t: t}
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := d.Command(binary)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout = inR, outW
	d.proc = d.StartCmd("localpc-desktop", cmd)
	inR.Close()
	outW.Close()
	d.in = inW
	var reader sync.WaitGroup
	reader.Go(func() {
		lines := bufio.NewScanner(outR)
		lines.Buffer(nil, desklink.MaxLine)
		for lines.Scan() {
			var up desklink.Up
			if err := json.Unmarshal(lines.Bytes(), &up); err != nil {
				t.Errorf("not a message: %q", lines.Text())
				continue
			}
			d.mu.Lock()
			d.sent = append(d.sent, up)
			d.mu.Unlock()
		}
	})
	t.Cleanup(func() { inW.Close(); reader.Wait(); outR.Close() })
	d.until("Ready", func(u desklink.Up) bool { return u.Ready != nil && u.Ready.PID == d.proc.PID })
	return d
}

func (d *desk) send(m desklink.Down) {
	d.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		d.t.Fatal(err)
	}
	d.line(string(b))
}

func (d *desk) line(s string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, s+"\n"); err != nil {
		d.t.Fatalf("localpc-desktop does not listen: %v\n%s", err, d.proc.Output())
	}
}

// until waits for a message and takes it and all before it away.
func (d *desk) until(what string, is func(desklink.Up) bool) desklink.Up {
	d.t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		for i, u := range d.sent {
			if is(u) {
				d.sent = d.sent[i+1:]
				d.mu.Unlock()
				return u
			}
		}
		d.mu.Unlock()
	}
	d.Screenshot("no-" + strings.ReplaceAll(what, " ", "-"))
	d.t.Fatalf("no %s within %v; sent %+v\n%s", what, soon, d.sent, d.proc.Output())
	return desklink.Up{}
}

func (d *desk) answers() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.sent {
		if u.Answer != nil {
			n++
		}
	}
	return n
}

func (d *desk) shown(id string) {
	d.t.Helper()
	d.until("Shown of "+id, func(u desklink.Up) bool { return u.Shown != nil && u.Shown.ID == id })
}

func (d *desk) answer(id string) consent.Answer {
	d.t.Helper()
	u := d.until("Answer to "+id, func(u desklink.Up) bool { return u.Answer != nil })
	if u.Answer.ID != id {
		d.t.Fatalf("answered %q, want %q", u.Answer.ID, id)
	}
	return u.Answer.Answer
}

func command(id string) desklink.Card {
	r := consent.Request{
		ID: id, Hub: "this", HubName: "This computer only", Principal: consent.Principal{ID: "p", Name: "Claude Desktop"},
		Claims: consent.Claims{Agent: "Claude", Title: "Tidy up my photos"}, Session: "s", Mode: consent.ModeWork,
		Folder: "/home/person/Pictures", Capability: "shell", Action: "run", Title: "Delete 214 files",
		Sentence: "Claude Desktop wants to delete 214 files in Pictures", Exact: "find ~/Pictures -name '*.tmp' -type f -delete",
		Details: []string{"Working in /home/user"}, Risk: consent.RiskNormal,
		Effects: []consent.Effect{
			{Kind: consent.EffectRun, Text: "Finds files named *.tmp in Pictures and below"},
			{Kind: consent.EffectDelete, Text: "Deletes them: 214 files, 1.3 GB. Can't be undone.", Count: 214, Bytes: 1_300_000_000},
		},
		Containable: true, FullOffered: true, Scopes: []consent.Scope{consent.Once, consent.Session, consent.Minutes15, consent.Always},
		Arrived: time.Now(), Deadline: time.Now().Add(50 * time.Second),
	}
	r.Rule = consent.Rule{Hub: "this", Principal: "p", Folder: r.Folder, Capability: "shell", Action: "run", Exact: r.Exact}
	return desklink.Card{Request: r, Waiting: 1, Digits: "47", ArmMS: 700}
}

func session(id string, folders ...string) desklink.Card {
	c := command(id)
	r := &c.Request
	r.Capability, r.Action, r.Exact, r.Mode, r.Details, r.Effects, r.Scopes = consent.CapabilitySession, "open", "", "", nil, nil, nil
	r.Claims.Title, r.Sentence = "Write a small website", "Let Claude Desktop work on this computer?"
	c.Folders, c.Waiting, c.Digits = folders, 0, "82"
	return c
}

func (d *desk) snapshot(change func(*snapshot.Snapshot)) {
	d.t.Helper()
	d.seq++
	now := time.Now()
	s := snapshot.Snapshot{Seq: d.seq, Machine: "Workshop PC", State: snapshot.Working, Line: "Claude Desktop is working",
		Hub:    snapshot.Hub{Paired: true, Kind: "this", Name: "This computer only", Online: true},
		Record: snapshot.Record{OK: true, Since: time.Date(now.Year(), 3, 3, 9, 0, 0, 0, time.Local)},
		Today:  snapshot.Traffic{Sent: 1_200_000, Received: 18_000}}
	at := func(sec int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day(), 14, 2, 14-sec, 0, time.Local)
	}
	const claude = "Claude Desktop"
	s.Entries = []snapshot.Entry{
		{ID: "1", Time: at(0), Who: claude, What: "Run npm test", Capability: "shell", Outcome: snapshot.Running, By: "session card", Took: 6400 * time.Millisecond, Sent: 12_000, CanStop: true},
		{ID: "2", Time: at(3), Who: claude, What: "Read package.json", Capability: "files", Outcome: snapshot.Done, By: "session card", Took: 20 * time.Millisecond, Sent: 4100},
		{ID: "3", Time: at(5), Who: claude, What: "List the folder src", Capability: "files", Outcome: snapshot.Done, By: "session card", Took: 10 * time.Millisecond, Sent: 1400},
		{ID: "4", Time: at(16), Who: claude, What: "Delete 214 files in Pictures", Capability: "shell", Outcome: snapshot.Denied, By: "you"},
		{ID: "5", Time: at(34), Who: "Research agent", What: "Run make flash", Capability: "shell", Outcome: snapshot.Expired, CanAllowNext: true},
		{ID: "6", Time: at(62), Who: claude, What: "Write notes/plan.md", Capability: "files", Outcome: snapshot.Done, By: "session card", Took: 10 * time.Millisecond, Received: 2200},
		{ID: "7", Time: at(71), Who: claude, What: "Run python3 -m http.server", Capability: "shell", Outcome: snapshot.Done, By: "you", Took: time.Second, Left: 1},
		{ID: "8", Time: at(90), Who: claude, What: "Run npm run lint", Capability: "shell", Outcome: snapshot.Failed, Result: "exit code 1", By: "session card", Took: 2300 * time.Millisecond, Sent: 900},
		{ID: "9", Time: at(102), Who: claude, What: "Work in project", Capability: "session", Outcome: snapshot.Done, By: "you", Took: 4 * time.Second},
	}
	if change != nil {
		change(&s)
	}
	d.send(desklink.Down{Snapshot: &s})
}

func (d *desk) open(window, title string) *apptest.Area {
	d.t.Helper()
	d.send(desklink.Down{Show: &desklink.Show{Window: window}})
	d.WaitWindow(soon, title)
	return d.Window(title)
}
