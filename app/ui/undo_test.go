package ui

import (
	"strings"
	"testing"
	"time"

	"localpc/app/desklink"
	"localpc/app/snapshot"
)

func (s *stage) undoable() {
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired = true
		n.Entries = s.entries(4)
		n.Entries[1].Capability, n.Entries[1].What, n.Entries[1].CanUndo = "files", "Write notes/plan.md", true
		n.Entries[2].Undone = true
	})
}

func TestUndoOfAnEntry(t *testing.T) {
	s := newStage(t)
	s.undoable()
	w := s.window(snapshot.WindowActivity)
	if !has(w, "Done · undo") || !has(w, "Undone") {
		t.Fatalf("the list says %q", texts(w))
	}
	s.u.activity.choose("e4")
	if s.u.activity.pane.back.Visible() {
		t.Error("what can't be undone has an Undo")
	}
	s.u.activity.choose("e3")
	s.intents()
	s.tap(w, "Undo")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Undo, Entry: "e3"})
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Undo, OK: true, Text: "Undone: Write notes/plan.md."}})
	if !has(w, "Undone: Write notes/plan.md.") {
		t.Errorf("the answer is not shown: %q", texts(w))
	}
}

// Newer work is asked about, in words, and nothing is sent without a yes.
func TestUndoAsks(t *testing.T) {
	const question = "notes/plan.md changed after this, by you or another program. Undo it all the same? What is there now is kept, too."
	s := newStage(t)
	s.undoable()
	w := s.window(snapshot.WindowActivity)
	s.u.activity.choose("e3")
	for _, c := range []struct {
		button string
		sends  []snapshot.Intent
	}{
		{"Leave it", nil},
		{"Undo all the same", []snapshot.Intent{{Kind: snapshot.UndoSession, Entry: "e3", Way: "anyway"}}},
	} {
		s.tap(w, "Undo this session")
		s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.UndoSession, OK: true, Question: question}})
		if !has(w, question) {
			t.Fatalf("the question is not shown: %q", texts(w))
		}
		s.keep(w, "undo question")
		s.intents()
		s.tap(w, c.button)
		var sent []snapshot.Intent
		for _, in := range s.intents() {
			if in.Kind == snapshot.UndoSession || in.Kind == snapshot.Undo {
				sent = append(sent, in)
			}
		}
		if len(sent) != len(c.sends) || len(sent) > 0 && sent[0] != c.sends[0] {
			t.Errorf("%s sent %+v", c.button, sent)
		}
		if has(w, question) {
			t.Errorf("after %s the question stays", c.button)
		}
	}
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.UndoSession, OK: true, Text: "Undone: 3 requests of a session."}})
	if !has(w, "Undone: 3 requests of a session.") {
		t.Errorf("the answer is not shown: %q", texts(w))
	}
}

// After Stop everything the one session that changed something can be undone.
func TestUndoAfterStop(t *testing.T) {
	s := newStage(t)
	w := s.window(snapshot.WindowActivity)
	stop := func(sessions ...snapshot.Session) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Stopped, n.Sessions = &snapshot.Stopped{Commands: 2, At: time.Unix(1, 0)}, sessions
		})
	}
	stop(snapshot.Session{ID: "s1"}, snapshot.Session{ID: "s2"})
	if has(w, "Undo this session") {
		t.Error("nothing was changed, and can be undone")
	}
	stop(snapshot.Session{ID: "s1"}, snapshot.Session{ID: "s2", CanUndo: 2})
	s.keep(w, "undo after stop")
	s.intents()
	s.tap(w, "Undo this session")
	s.wantIntent(snapshot.Intent{Kind: snapshot.UndoSession, Entry: "s2"})
	stop(snapshot.Session{ID: "s1", CanUndo: 1}, snapshot.Session{ID: "s2", CanUndo: 2})
	if has(w, "Undo this session") {
		t.Error("it is not said which session would be undone")
	}
}

func TestOldVersionsSetting(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	s.snapshot(func(n *snapshot.Snapshot) { n.Settings.KeepGB, n.Settings.KeptBytes = 2, 1_300_000 })
	keep := s.u.settings.data.keep
	if keep.field.Text != "2" || !has(w, "GB at most, for 7 days · now 1.3 MB") {
		t.Fatalf("it shows %q: %q", keep.field.Text, texts(w))
	}
	for typed, want := range map[string]int{"5": 5, "0": -1, "-3": 0, "much": 0} {
		s.intents()
		keep.field.SetText(typed)
		keep.save()
		var got *int
		for _, in := range s.intents() {
			if in.Changes != nil {
				got = in.Changes.KeepGB
			}
		}
		if want == 0 && (got != nil || !strings.Contains(keep.note.Text(), "Type a number")) || want != 0 && (got == nil || *got != want) {
			t.Errorf("%q asks for %v; it says %q", typed, got, keep.note.Text())
		}
		if got != nil {
			s.told(snapshot.Change, true, "Saved.")
		}
	}
}
