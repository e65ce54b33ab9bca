package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// window opens one and gives it a size, as a screen would.
func (s *stage) window(name string) fyne.Window {
	s.t.Helper()
	s.u.Handle(desklink.Down{Show: &desklink.Show{Window: name}})
	var w fyne.Window
	switch name {
	case snapshot.WindowPair:
		w = s.u.pair.win
	case snapshot.WindowActivity:
		w = s.u.activity.win
	case snapshot.WindowMain:
		w = s.u.main.win
	case snapshot.WindowPermissions:
		w = s.u.permits.win
	case snapshot.WindowSettings:
		w = s.u.settings.win
	}
	if !s.u.open[w] {
		s.t.Fatalf("window %s is not open", name)
	}
	w.Canvas().Capture()
	return w
}

func (s *stage) snapshot(change func(*snapshot.Snapshot)) {
	snap := s.u.snap
	snap.Seq++
	change(&snap)
	s.u.Handle(desklink.Down{Snapshot: &snap})
}

func (s *stage) entries(n int) []snapshot.Entry {
	var out []snapshot.Entry
	for i := n; i > 0; i-- {
		out = append(out, snapshot.Entry{ID: fmt.Sprint("e", i), Time: s.clock.now.Add(time.Duration(i-n) * time.Second), Who: "Claude",
			What: fmt.Sprint("Run step ", i), Capability: []string{"shell", "files"}[i%2], Outcome: snapshot.Done, By: "you", Took: 20 * time.Millisecond, Sent: 4100})
	}
	return out
}

func TestWindowsAreCounted(t *testing.T) {
	s := newStage(t)
	s.window(snapshot.WindowPair)
	a := s.window(snapshot.WindowActivity)
	s.u.Handle(desklink.Down{Show: &desklink.Show{Window: snapshot.WindowActivity}}) // raised, not opened
	s.u.Handle(desklink.Down{Show: &desklink.Show{Window: "no such"}})
	s.u.hide(a)
	s.u.hide(a)
	var counts []int
	for _, m := range s.sent {
		if m.Windows != nil {
			counts = append(counts, *m.Windows)
		}
	}
	if !slices.Equal(counts, []int{1, 2, 1}) {
		t.Fatalf("counts %v", counts)
	}
}

func TestOlderSnapshotIsDropped(t *testing.T) {
	s := newStage(t)
	s.u.Handle(desklink.Down{Snapshot: &snapshot.Snapshot{Seq: 5, Line: "new"}})
	s.u.Handle(desklink.Down{Snapshot: &snapshot.Snapshot{Seq: 4, Line: "old"}})
	if s.u.snap.Line != "new" {
		t.Fatalf("line %q", s.u.snap.Line)
	}
}

func TestPairing(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowPair)
	s.intents()
	s.tap(w, "Pair")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair})
	if b := s.button(w, "Pairing…"); !b.Disabled() {
		t.Fatal("Pair can be pressed twice")
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.PairError = "The port is taken by another program." })
	if !has(w, "The port is taken by another program.") {
		t.Fatalf("the error is not shown: %q", texts(w))
	}
	s.tap(w, "Try again")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pair})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Pair, Text: "It did not work."}})
	if !has(w, "It did not work.") || s.button(w, "Try again").Disabled() {
		t.Fatalf("the answer is not shown: %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.PairError = ""; n.Hub.Paired = true })
	if !has(w, "Connect a program") {
		t.Fatalf("paired, the window says %q", texts(w))
	}
}

func TestConnect(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired = true })
	w := s.window(snapshot.WindowPair)
	if !s.button(w, "Make a key").Disabled() {
		t.Fatal("a key can be made without a name")
	}
	s.u.pair.name.SetText("  Research agent ")
	s.tap(w, "Make a key")
	s.wantIntent(snapshot.Intent{Kind: snapshot.MakeKey, Text: "Research agent"})
	lines := []string{"E2B_API_KEY=e2b_1", "E2B_API_URL=http://127.0.0.1:4417/api"}
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Name, n.Connect.Lines = "Research agent", lines })
	s.tap(w, "Copy")
	if got := s.u.o.App.Clipboard().Content(); got != strings.Join(lines, "\n")+"\n" {
		t.Fatalf("copied %q", got)
	}
	s.u.pair.leave()
	s.wantIntent(snapshot.Intent{Kind: snapshot.ForgetKey})
	if s.u.open[w] {
		t.Fatal("the window is still open")
	}
}

func TestPractice(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired = true })
	w := s.window(snapshot.WindowPair)
	s.tap(w, "Try it safely")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Practice})
	s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Practice, n.Waiting = "running", 1 })
	if !has(w, "Running: answer its card") {
		t.Errorf("window says %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Waiting = 0 })
	for state, want := range map[string]string{"running": "Running: watch it in the log", "done": "Done: it is in the log", "The folder is full.": "The folder is full."} {
		s.snapshot(func(n *snapshot.Snapshot) { n.Connect.Practice = state })
		if !has(w, want) {
			t.Errorf("practice %q: window says %q", state, texts(w))
		}
	}
}

func TestActivityEmpty(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	if !has(w, "Nothing has happened yet") || !has(w, "before it is paired") {
		t.Fatalf("window says %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired = true })
	s.intents()
	s.tap(w, "Try it safely")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Practice})
	s.snapshot(func(n *snapshot.Snapshot) { n.Entries = s.entries(1) })
	if has(w, "Nothing has happened yet") || !has(w, "Run step 1") {
		t.Fatalf("window says %q", texts(w))
	}
}

func TestActivityListsAndKeepsItsPlace(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, s.entries(200) })
	w := s.window(snapshot.WindowActivity)
	rows := 0
	walk(w.Content(), func(o fyne.CanvasObject) {
		if _, ok := o.(*kit.Cells); ok {
			rows++
		}
	})
	if rows < 5 || rows > 40 {
		t.Fatalf("%d rows are drawn of 200", rows)
	}
	a := s.u.activity
	w.Canvas().Focus(a.rows)
	keyOn(w, fyne.KeyDown, fyne.KeyPageDown, fyne.KeyPageDown)
	chosen, offset := a.chosen, a.rows.Offset()
	if chosen == "" || offset == 0 {
		t.Fatalf("chosen %q at %v", chosen, offset)
	}
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Entries = append([]snapshot.Entry{{ID: "new", What: "New"}}, n.Entries...)
	})
	if a.chosen != chosen || a.entries[a.rows.Selected()].ID != chosen {
		t.Fatal("a new entry moved the selection")
	}
	if got := a.rows.Offset(); got != offset+rowHeight {
		t.Fatalf("offset %v, want %v: the list jumped", got, offset+rowHeight)
	}
}

func TestActivityDetail(t *testing.T) {
	s := newStage(t)
	entries := s.entries(3)
	entries[0].Outcome, entries[0].CanStop, entries[0].Capability = snapshot.Running, true, "shell"
	entries[1].Outcome, entries[1].CanAllowNext = snapshot.Expired, true
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, entries })
	w := s.window(snapshot.WindowActivity)
	s.intents()
	w.Canvas().Focus(s.u.activity.rows)
	keyOn(w, fyne.KeyDown)
	ask := snapshot.Intent{Kind: snapshot.GetDetail, Entry: "e3"}
	s.wantIntent(ask)
	d := snapshot.Detail{Entry: entries[0], Sentence: "Claude runs step 3", Where: "Contained", Exact: "step\u202e 3", Output: "one\n", Notes: []string{"A note"}, Reason: "A reason"}
	s.u.Handle(desklink.Down{Detail: &d})
	for _, want := range []string{"Contained", "Exactly this runs", "Output so far", "A note", "A reason", "allowed by: you", "◌ Running"} {
		if !has(w, want) {
			t.Errorf("detail lacks %q: %q", want, texts(w))
		}
	}
	if got := s.u.activity.pane.sentence.Text(); got != "Run step 3" {
		t.Errorf("what runs is told as %q", got)
	}
	if got := s.u.activity.pane.exact.text.Lines(); !slices.Equal(got, []string{`step\u202e 3`}) {
		t.Errorf("exact lines %q", got)
	}
	s.clock.run(time.Second)
	s.wantIntent(ask) // it runs: asked again
	d.Output = "one\ntwo\n"
	s.u.Handle(desklink.Down{Detail: &d})
	if got := s.u.activity.pane.output.text.Lines(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("output lines %q", got)
	}
	s.tap(w, "Stop this")
	s.wantIntent(snapshot.Intent{Kind: snapshot.StopOne, Entry: "e3"})

	done := slices.Clone(entries)
	done[0].Outcome, done[0].CanStop = snapshot.Halted, false
	s.snapshot(func(n *snapshot.Snapshot) { n.Entries = done })
	s.wantIntent(ask) // it ended: asked once more
	d.Entry = done[0]
	s.u.Handle(desklink.Down{Detail: &d})
	s.clock.run(time.Minute)
	if got := s.intents(); len(got) != 0 {
		t.Fatalf("an ended entry is asked for again: %+v", got)
	}

	keyOn(w, fyne.KeyDown)
	s.intents()
	s.tap(w, "Allow next time")
	s.wantIntent(snapshot.Intent{Kind: snapshot.AllowNext, Entry: "e2"})
	keyOn(w, fyne.KeyEscape)
	if has(w, "Allow next time") {
		t.Fatal("Escape does not close the detail")
	}
}

func TestActivitySearch(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, s.entries(9) })
	w := s.window(snapshot.WindowActivity)
	a := s.u.activity
	s.intents()
	a.search.SetText("step 7")
	if len(a.entries) != 1 {
		t.Fatalf("%d entries before the answer, want the one that fits", len(a.entries))
	}
	a.search.SetText("step 8")
	s.clock.run(time.Second)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Find, Text: "step 8"}) // one question for both
	found := snapshot.Entry{ID: "old", What: "Run step 80", Time: s.clock.now}
	s.u.Handle(desklink.Down{Found: &desklink.Found{Text: "step 7", Entries: nil}}) // late
	s.u.Handle(desklink.Down{Found: &desklink.Found{Text: "step 8", Entries: []snapshot.Entry{found}}})
	if len(a.entries) != 1 || a.entries[0].ID != "old" || !has(w, "Run step 80") {
		t.Fatalf("entries %+v", a.entries)
	}
	s.u.Handle(desklink.Down{Found: &desklink.Found{Text: "step 8"}})
	if !has(w, "Nothing found") {
		t.Fatalf("window says %q", texts(w))
	}
	s.tap(w, "Show everything")
	if len(a.entries) != 9 {
		t.Fatalf("%d entries", len(a.entries))
	}
	s.intents()
	a.filter.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
	s.clock.run(time.Second)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Find, Filter: "files"})
}

func TestActivityBanners(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired, n.Entries, n.Line = true, s.entries(3), "Everything stopped"
		n.Stopped = &snapshot.Stopped{Commands: 2, Sessions: 1}
		n.Problem, n.Fix, n.FixLabel = "Another copy took over.", snapshot.Reconnect, "Connect here"
		n.Warnings = []string{"Everything runs with full access."}
		n.Record = snapshot.Record{Problem: "The record was changed at entry 7."}
	})
	w := s.window(snapshot.WindowActivity)
	s.intents()
	for _, want := range []string{"Everything stopped", "2 commands ended. Nothing runs until you resume.", "Another copy took over.", "Everything runs with full access.", "The record was changed at entry 7."} {
		if !has(w, want) {
			t.Errorf("window lacks %q: %q", want, texts(w))
		}
	}
	s.tap(w, "Resume")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Resume})
	s.tap(w, "Connect here")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Reconnect})
	s.tap(w, "Check again")
	s.wantIntent(snapshot.Intent{Kind: snapshot.VerifyAgain})
	if has(w, "Stop everything") { // nothing is left to stop
		t.Errorf("what is stopped can be stopped: %q", texts(w))
	}
	if n := strings.Count(strings.Join(texts(w), "\n"), "Everything stopped"); n != 1 {
		t.Errorf("it is said %d times that everything stopped: %q", n, texts(w))
	}

	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.AllowNext, OK: true, Text: "It runs once."}})
	if !has(w, "It runs once.") {
		t.Fatalf("the answer is not shown: %q", texts(w))
	}
	s.clock.run(time.Minute)
	if has(w, "It runs once.") {
		t.Fatal("the answer does not go away")
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Stopped, n.Problem, n.Warnings, n.Line = nil, "", nil, "Online" })
	if has(w, "Everything stopped") || has(w, "Another copy") {
		t.Fatal("what is over is still said")
	}
	s.tap(w, "Pause")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pause})
	s.tap(w, "Stop everything")
	s.wantIntent(snapshot.Intent{Kind: snapshot.StopAll})
}

func TestExport(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, "Documents"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, s.entries(3) })
	w := s.window(snapshot.WindowActivity)
	s.intents()
	s.tap(w, "Export…")
	var export *kit.Button
	walk(w.Canvas().Overlays().Top(), func(o fyne.CanvasObject) {
		if b, ok := o.(*kit.Button); ok && b.Text() == "Export" {
			export = b
		}
	})
	test.Tap(export)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Export, Text: filepath.Join(home, "local-pc-record-2026-03-03.jsonl")})
	if w.Canvas().Overlays().Top() != nil {
		t.Fatal("the question is still there")
	}
}

func TestMainWindow(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.State, n.Line, n.Machine, n.Waiting, n.Hub.Paired = snapshot.NeedsYou, "Claude asks for something", "Workshop PC", 2, true
		n.Hub.Kind, n.Hub.Name, n.Hub.Account = "own", "Home", "An\na"
	})
	w := s.window(snapshot.WindowMain)
	if !has(w, `Paired with Home as An\na`) {
		t.Errorf("the window says %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Account = "Mallory" })
	if !has(w, "Paired with Home as Mallory") {
		t.Errorf("the window says %q", texts(w))
	}
	s.intents()
	for word, kind := range map[string]snapshot.IntentKind{"2 waiting: show": snapshot.ShowCard, "Pause": snapshot.Pause, "Stop everything": snapshot.StopAll, "Unpair": snapshot.Unpair} {
		s.tap(w, word)
		s.wantIntent(snapshot.Intent{Kind: kind})
	}
	s.tap(w, "Quit")
	if got := s.intents(); len(got) != 0 || !has(w, "Quit Local PC?") {
		t.Fatalf("Quit is not asked for: %+v", got)
	}
	s.tap(w, "Keep it running")
	if has(w, "Quit Local PC?") {
		t.Fatal("the question is still there")
	}
}

func TestHostileTextInTheLog(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired = true
		n.Entries = []snapshot.Entry{{ID: "a", Who: "a\u202eb\nc", What: strings.Repeat("w", 300) + "\x1b", Time: s.clock.now}}
		n.Machine, n.Line = "my\nPC", "on\u2028line"
	})
	w := s.window(snapshot.WindowActivity)
	for _, text := range texts(w) {
		if strings.ContainsAny(text, "\u202e\x1b\u2028") || contains(text, "a\n") {
			t.Errorf("drawn raw: %q", text)
		}
	}
	if !has(w, `my\nPC`) || !has(w, `on\u2028line`) {
		t.Fatalf("window says %q", texts(w))
	}
}

// What runs goes on counting between snapshots.
func TestRunningTimeGoesOn(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(snap *snapshot.Snapshot) {
		snap.Entries = []snapshot.Entry{{ID: "r", Time: s.clock.now, Who: "Claude", What: "Run make", Capability: "shell", Outcome: snapshot.Running, Took: 2 * time.Second}}
	})
	w := s.window(snapshot.WindowActivity)
	for _, want := range []string{"2.0 s", "7.0 s"} {
		if got := texts(w); !slices.Contains(got, want) {
			t.Errorf("the list does not say %s: %q", want, got)
		}
		s.clock.run(5 * time.Second)
	}
	s.u.hide(w)
	s.clock.run(5 * time.Second)
	if n := len(s.clock.timers); n > 0 {
		t.Errorf("%d timers go on behind a hidden window", n)
	}
}

// What was stopped or paused shows by itself; only a failure is said besides.
func TestSuccessThatShowsIsNotSaidAgain(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, s.entries(3) })
	w := s.window(snapshot.WindowActivity)
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.StopOne, OK: true, Text: "Stopped."}})
	if has(w, "Stopped.") {
		t.Error("what the list shows is said once more")
	}
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.StopOne, Text: "It has ended already."}})
	if !has(w, "It has ended already.") {
		t.Error("a failure is not said")
	}
}

// Words give way to the width that there is: nothing is cut off at the right
// in a narrow window, nor beside a long result.
func TestNothingIsCutOff(t *testing.T) {
	s := newStage(t)
	entries := s.entries(3)
	entries[0].Outcome, entries[0].Capability, entries[0].CanStop = snapshot.Running, "shell", true
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired, n.Entries = true, entries
		n.Warnings = []string{strings.Repeat("a warning that is rather long ", 5)}
	})
	w := s.window(snapshot.WindowActivity)
	inside := func(when string) {
		t.Helper()
		w.Canvas().Capture()
		width := w.Canvas().Size().Width
		walk(w.Content(), func(o fyne.CanvasObject) {
			f, ok := o.(*kit.Flow)
			if !ok || f.Text() == "" {
				return
			}
			if end := s.u.o.App.Driver().AbsolutePositionForObject(f).X + f.Widest(); end > width {
				t.Errorf("%s, %q ends at %v of %v", when, f.Text(), end, width)
			}
		})
	}
	w.Canvas().Focus(s.u.activity.rows)
	keyOn(w, fyne.KeyDown)
	w.Resize(fyne.NewSize(1120, 660))
	inside("while it runs")
	entries = slices.Clone(entries)
	entries[0].Outcome, entries[0].Result = snapshot.Halted, "The person at this computer stopped this."
	s.snapshot(func(n *snapshot.Snapshot) { n.Entries = entries })
	s.u.Handle(desklink.Down{Detail: &snapshot.Detail{Entry: entries[0], Where: "Kept inside its folder /home/person/a/long/way/down · network only as you allow"}})
	inside("stopped")
	w.Resize(fyne.NewSize(520, 500))
	inside("in a narrow window")
}

// Where Stop everything has its banner, one Resume is enough.
func TestMainWindowStopped(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Paused, n.Stopped = true, true, &snapshot.Stopped{} })
	w := s.window(snapshot.WindowMain)
	resumes := 0
	for _, text := range texts(w) {
		if text == "Resume" {
			resumes++
		}
	}
	if resumes != 1 || !has(w, "No command was running. Nothing runs until you resume.") {
		t.Fatalf("window says %q", texts(w))
	}
}

// A window manager may give a window, while it maps it, more than the screen
// has room for: it is made smaller after that, and then nothing wakes any more.
func TestAWindowIsBroughtOntoTheScreen(t *testing.T) {
	s := newStage(t)
	s.u.o.Screen = small{height: 480}
	for _, name := range []string{snapshot.WindowActivity, snapshot.WindowPermissions, snapshot.WindowSettings} {
		s.u.show(name)
		for w := range s.u.open {
			w.Resize(fyne.NewSize(1200, 700))
			s.clock.run(2 * time.Second)
			if size := w.Canvas().Size(); size.Width > 1000 || size.Height > 480 {
				t.Errorf("%s has %v on a screen with 1000 by 480", name, size)
			}
			s.u.hide(w)
		}
	}
}
