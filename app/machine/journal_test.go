package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

func command(id, exact string) consent.Request {
	return consent.Request{ID: id, Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1", Folder: "/project", Capability: "shell", Action: "run",
		Title: "Run " + exact, Sentence: "Claude wants to run a command on this computer.", Exact: exact, Effects: []consent.Effect{{Kind: consent.EffectRun}}, Arrived: time.Now()}
}

// runs takes a request the way dispatch does, to its end.
func runs(t *testing.T, m *Machine, r consent.Request, output string) {
	t.Helper()
	m.journal.asking(r)
	must(t, m.o.Record.Decided(t.Context(), r, consent.Decision{Outcome: consent.Allowed, By: "you", Choice: consent.Choice{Contain: consent.Contained}}))
	m.journal.running(r, consent.Choice{Contain: consent.Contained}, "you")
	name, err := m.o.Store.KeepOutput([]byte(output))
	must(t, err)
	o := record.Outcome{State: "done", Result: "exit code 0", Sent: int64(len(output)), Received: 2, Output: name, Took: time.Second}
	must(t, m.o.Record.Finished(t.Context(), r.ID, o))
	m.journal.finished(r, o, 0)
}

func none(string) int { return 0 }

func idsOf(entries []snapshot.Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

func TestJournalAfterARestart(t *testing.T) {
	m := newMachine(t)
	runs(t, m, command("r1", "npm test"), "hello")
	denied := command("r2", "rm -rf .")
	must(t, m.o.Record.Decided(t.Context(), denied, consent.Decision{Outcome: consent.Denied, By: "you", Reason: "The person at this computer declined: Run rm -rf .."}))
	m.journal.refused(denied, consent.Denied, "you", "declined")
	// Allowed, and then the program was killed.
	must(t, m.o.Record.Decided(t.Context(), command("r3", "make"), consent.Decision{Outcome: consent.Allowed, By: "mode"}))
	// Asked a second time, since what it would do had changed, and declined.
	runs(t, m, command("r4", "ls"), "")
	must(t, m.o.Record.Decided(t.Context(), command("r4", "ls"), consent.Decision{Outcome: consent.Denied, By: "you"}))
	must(t, m.o.Store.Close())

	m = openMachine(t, m.o.Paths)
	must(t, m.journal.load(t.Context()))
	entries, today := m.journal.entries(none)
	if got := idsOf(entries); got != "r4 r3 r2 r1" {
		t.Fatalf("entries %s", got)
	}
	for i, want := range []snapshot.Outcome{snapshot.Denied, snapshot.Halted, snapshot.Denied, snapshot.Done} {
		if entries[i].Outcome != want || entries[i].CanStop || entries[i].CanAllowNext {
			t.Errorf("%+v, want %s", entries[i], want)
		}
	}
	if e := entries[3]; e.Who != "Claude" || e.What != "Run npm test" || e.Result != "exit code 0" || e.By != "you" || e.Sent != 5 || e.Took != time.Second {
		t.Errorf("%+v", e)
	}
	if today != (snapshot.Traffic{Sent: 5, Received: 4}) {
		t.Errorf("today %+v", today)
	}
	d, err := m.journal.detail(t.Context(), "r1")
	if err != nil || d.Output != "hello" || d.Exact != "npm test" || !strings.HasPrefix(d.Where, "Kept inside its folder /project") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := m.journal.detail(t.Context(), "r3"); err != nil || !strings.Contains(d.Entry.Result, "ended before") {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := m.journal.detail(t.Context(), "nothing"); err == nil {
		t.Errorf("%+v", d)
	}
}

// The list and the detail tell the same of an entry, while it runs and after:
// a window that compares them would ask again and again.
func TestListAndDetailAgree(t *testing.T) {
	m := newMachine(t)
	r := command("r1", "sleep 9 &")
	agree := func(what, by string) {
		t.Helper()
		entries, _ := m.journal.entries(func(string) int { return 2 })
		d, err := m.journal.detail(t.Context(), "r1")
		if err != nil || entries[0].By != by || d.Entry.By != by {
			t.Errorf("%s: by %q in the list, %q in the detail, %v", what, entries[0].By, d.Entry.By, err)
		}
		d.Entry.Took, entries[0].Took = 0, 0 // the clock goes on
		if d.Entry != entries[0] {
			t.Errorf("%s: the list has %+v, the detail %+v", what, entries[0], d.Entry)
		}
	}
	m.journal.asking(r)
	agree("asked", "")
	must(t, m.o.Record.Decided(t.Context(), r, consent.Decision{Outcome: consent.Allowed, By: "mode"}))
	m.journal.running(r, consent.Choice{}, "mode")
	agree("runs", "session card")
	o := record.Outcome{State: "done", Result: "exit code 0"}
	must(t, m.o.Record.Finished(t.Context(), r.ID, o))
	m.journal.finished(r, o, 2)
	agree("ended", "session card")
}

func TestDetailWithItsOutputGone(t *testing.T) {
	m := newMachine(t)
	runs(t, m, command("r1", "npm test"), "hello")
	files, err := filepath.Glob(filepath.Join(m.o.Paths.Data, "outputs", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	must(t, os.WriteFile(files[0], []byte("HELLO"), 0o600))
	d, err := m.journal.detail(t.Context(), "r1")
	if err != nil || d.Output != "" || !slices.Contains(d.Notes, "The output could not be read.") {
		t.Errorf("changed: %+v, %v", d, err)
	}
	must(t, os.Remove(files[0]))
	d, err = m.journal.detail(t.Context(), "r1")
	if err != nil || d.Output != "" || !slices.Contains(d.Notes, "The output is not kept any more.") {
		t.Errorf("gone: %+v, %v", d, err)
	}
}

func TestFind(t *testing.T) {
	m := newMachine(t)
	texts := []string{"make a && make b", `echo "quoted" 'too'`, "printf 100%", "ls <dir> | wc", "touch größe_世界", "cat a\nb\tc", `back\slash`, "plain"}
	begin := time.Now().Add(-time.Hour)
	for i, text := range texts {
		r := command(fmt.Sprint("r", i), text)
		r.Arrived = begin.Add(time.Duration(i) * time.Minute)
		runs(t, m, r, "")
	}
	// One that nobody answered is in memory; it is older than the finished ones.
	expired := command("old", "expired && gone")
	expired.Arrived = begin.Add(-time.Minute)
	must(t, m.o.Record.Decided(t.Context(), expired, consent.Decision{Outcome: consent.Expired}))
	m.journal.refused(expired, consent.Expired, "limit", "Nobody answered in time.")
	bad := command("bad", "")
	bad.Title, bad.Arrived = "Read ../../etc/passwd", begin.Add(-2*time.Minute)
	m.journal.failed(bad, wire.Errorf(wire.CodePathOutside, "That is outside."))
	file := command("file", "")
	file.Capability, file.Title, file.Arrived = "files", "Write plain.txt", begin.Add(-3*time.Minute)
	runs(t, m, file, "")

	check := func(when string) {
		t.Helper()
		for text, want := range map[string]string{
			"a && make": "r0", "&&": "r0 old", `"quoted" 'too'`: "r1", "100%": "r2", "%": "r2", "_": "r4", "<dir> |": "r3", "GRÖSSE": "", "größe_世": "r4",
			"a\nb\tc": "r5", `back\slash`: "r6", `\`: "r6", "PLAIN": "r7 file", "exit code": "r7 r6 r5 r4 r3 r2 r1 r0 file", "nowhere": "",
			// Names of the record's own fields find nothing.
			"principal": "", "fingerprint": "", "u0026": "", `{"`: "",
		} {
			got, err := m.journal.find(t.Context(), text, "")
			if err != nil || idsOf(got) != want {
				t.Errorf("%s: %q finds %q, %v, want %q", when, text, idsOf(got), err, want)
			}
		}
		if got, err := m.journal.find(t.Context(), "plain", "files"); err != nil || idsOf(got) != "file" {
			t.Errorf("%s: in files: %q, %v", when, idsOf(got), err)
		}
	}
	check("in this run")
	if got, _ := m.journal.find(t.Context(), "passwd", ""); idsOf(got) != "bad" {
		t.Errorf("one that could not be described: %q", idsOf(got))
	}
	if got, _ := m.journal.find(t.Context(), "", ""); idsOf(got) != "r7 r6 r5 r4 r3 r2 r1 r0 old bad file" {
		t.Errorf("everything: %q", idsOf(got))
	}
	must(t, m.o.Store.Close())
	m = openMachine(t, m.o.Paths)
	must(t, m.journal.load(t.Context()))
	check("after a restart")
	must(t, m.o.Store.Close())
	if _, err := m.journal.find(t.Context(), "x", ""); err == nil || !strings.HasSuffix(err.Error(), ".") {
		t.Errorf("without a database: %v", err)
	}
}

func TestJournalIsBounded(t *testing.T) {
	m := newMachine(t)
	running := command("running", "sleep 1h")
	m.journal.asking(running)
	live := m.journal.running(running, consent.Choice{}, "mode")
	live.sent(&wire.ProcessOutput{Data: []byte("so far")})
	for i := range snapshot.MaxEntries + 50 {
		m.journal.refused(command(fmt.Sprint("r", i), "ls"), consent.Denied, "mode", "No.")
	}
	entries, _ := m.journal.entries(none)
	if len(entries) != snapshot.MaxEntries || entries[0].ID != fmt.Sprint("r", snapshot.MaxEntries+49) {
		t.Errorf("%d entries, the first %s", len(entries), entries[0].ID)
	}
	m.journal.mu.Lock()
	n, byID := len(m.journal.items), len(m.journal.byID)
	m.journal.mu.Unlock()
	if n > snapshot.MaxEntries+1 || byID != n {
		t.Errorf("%d items and %d names are kept", n, byID)
	}
	// What runs is still known, however old it is.
	d, err := m.journal.detail(t.Context(), "running")
	if err != nil || d.Output != "so far" || d.Entry.Outcome != snapshot.Running || d.Entry.Sent != 6 {
		t.Errorf("%+v, %v", d, err)
	}
	m.journal.finished(running, record.Outcome{State: "done"}, 0)
	m.journal.refused(command("last", "ls"), consent.Denied, "mode", "No.")
	m.journal.mu.Lock()
	n = len(m.journal.items)
	m.journal.mu.Unlock()
	if n > snapshot.MaxEntries {
		t.Errorf("%d items are kept after the old one ended", n)
	}
}

func TestTrafficOfToday(t *testing.T) {
	m := newMachine(t)
	yesterday := time.Now().AddDate(0, 0, -1)
	runs(t, m, command("r1", "ls"), "12345")
	m.journal.mu.Lock()
	m.journal.day = yesterday.Format(time.DateOnly) // midnight passes
	m.journal.mu.Unlock()
	if _, today := m.journal.entries(none); today != (snapshot.Traffic{}) {
		t.Errorf("yesterday's traffic is told as today's: %+v", today)
	}
	runs(t, m, command("r2", "ls"), "123")
	if _, today := m.journal.entries(none); today != (snapshot.Traffic{Sent: 3, Received: 2}) {
		t.Errorf("today %+v", today)
	}
}

func TestAllowNextIsOfferedOnce(t *testing.T) {
	m := newMachine(t)
	for outcome, ok := range map[consent.Outcome]bool{consent.Expired: true, consent.Undelivered: true, consent.Denied: false, consent.Cancelled: false} {
		r := command("r-"+string(outcome), "ls")
		m.journal.refused(r, outcome, "limit", "No.")
		got, err := m.journal.unanswered(r.ID)
		if (err == nil) != ok || ok && got.ID != r.ID {
			t.Errorf("%s: %v", outcome, err)
		}
		m.journal.allowedNext(r.ID)
		if _, err := m.journal.unanswered(r.ID); err == nil {
			t.Errorf("%s: allowed twice", outcome)
		}
	}
	if _, err := m.journal.unanswered("nothing"); err == nil {
		t.Error("nothing is allowed")
	}
}

func TestLeftBehind(t *testing.T) {
	m := newMachine(t)
	r := command("r1", "sleep 9 &")
	m.journal.running(r, consent.Choice{}, "you")
	m.journal.finished(r, record.Outcome{State: "done"}, 3)
	for _, c := range []struct{ now, want int }{{5, 3}, {2, 2}, {4, 2}, {0, 0}} {
		entries, _ := m.journal.entries(func(session string) int {
			if session != "s1" {
				t.Errorf("asked about the session %q", session)
			}
			return c.now
		})
		if entries[0].Left != c.want {
			t.Errorf("with %d running: %d left, want %d", c.now, entries[0].Left, c.want)
		}
	}
}

func TestLoadStopsWithTheCaller(t *testing.T) {
	m := newMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.journal.load(ctx); err == nil {
		t.Error("it loads all the same")
	}
}
