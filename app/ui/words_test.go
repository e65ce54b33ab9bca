package ui

import (
	"strings"
	"testing"
	"time"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// What a program is told about the person is told to the person as what it is:
// about them.
func TestReasonsSpeakToThePerson(t *testing.T) {
	for _, c := range []struct {
		e            snapshot.Entry
		reason, want string
	}{
		{snapshot.Entry{Outcome: snapshot.Denied, By: "paused"}, "The person paused this computer; nothing new is run until they resume.",
			"You paused this computer; nothing new is run until you resume."},
		{snapshot.Entry{Outcome: snapshot.Denied, By: "you"}, "The person at this computer declined: Write plan.md.", ""},
		{snapshot.Entry{Outcome: snapshot.Denied, By: "a remembered answer"}, "The person at this computer declined this for the whole session.", "You denied this for the whole session."},
		{snapshot.Entry{Outcome: snapshot.Denied, By: "a remembered answer"}, "The person at this computer declined, and is not to be asked again for 15 minutes.",
			"You denied, and are not to be asked again for 15 minutes."},
		{snapshot.Entry{Outcome: snapshot.Undelivered}, `The person declined this program 5 times in a row, so they are not asked again before 14:05. They can choose "Allow next time" in Activity.`,
			"You denied this program 5 times in a row, so you are not asked again before 14:05."},
		{snapshot.Entry{Outcome: snapshot.Undelivered}, `The question could not be shown to the person, since no window opened: Run ls. They can choose "Allow next time" in Activity.`,
			"The question could not be shown to you, since no window opened: Run ls."},
		{snapshot.Entry{Outcome: snapshot.Expired, CanAllowNext: true}, "Nobody answered in time: Run ls. Ask the person to be at the computer.",
			"You did not answer in time, so nothing ran. If it may run, choose Allow next time: the same request then runs once without asking."},
		{snapshot.Entry{Outcome: snapshot.Expired, CanAllowNext: true, AllowedNext: true}, "Nobody answered in time: Run ls.", "You did not answer in time, so nothing ran."},
		{snapshot.Entry{Outcome: snapshot.Done, By: "session card"}, `allowed by "Work in this folder"`, `Allowed by "Work in this folder"`},
	} {
		if got := reasonWords(c.e, c.reason); got != c.want {
			t.Errorf("%q became %q, want %q", c.reason, got, c.want)
		}
	}
	for result, want := range map[string]string{"exit code 0": "", "exit code 3": "ended with error code 3", "12 bytes written": "12 bytes written"} {
		if got := resultWords(snapshot.Entry{Outcome: snapshot.Done, Result: result}); got != want {
			t.Errorf("%q became %q, want %q", result, got, want)
		}
	}
}

// A kit's name is not the name of a program; anything else stands in quotes.
func TestKitsNameIsNoName(t *testing.T) {
	for agent, shown := range map[string]bool{"e2b-js-sdk/2.51.0": false, "e2b-python-sdk/2.0.0": false, "Claude": true, "e2b-js-sdk/2.51.0 of Microsoft": true, "my e2b-js-sdk/2": true} {
		var b strings.Builder
		for _, span := range claimSpans(consent.Claims{Agent: agent, Title: "Tidy up"}) {
			b.WriteString(span.Text)
		}
		want := "task “Tidy up”"
		if shown {
			want = "calls itself “" + agent + "” · " + want
		}
		if b.String() != want {
			t.Errorf("%q: %q, want %q", agent, b.String(), want)
		}
	}
}

// What all requests of one card have in common stands there once.
func TestFoldedCardSharesDetails(t *testing.T) {
	s := newStage(t)
	c := s.command("rm a.tmp")
	c.Request.Details = []string{"Working in /home/person/project", "Ends after 60 seconds at the latest", "A=1"}
	c.Folded = []snapshot.Folded{
		{ID: "f2", Title: "Delete b.tmp", Exact: "rm b.tmp", Details: []string{"Working in /home/person/project", "Ends after 60 seconds at the latest"}},
		{ID: "f3", Title: "Delete c.tmp", Exact: "rm c.tmp", Details: []string{"Working in /home/person/project", "Ends after 5 seconds at the latest"}},
	}
	count := func(want string) int { return strings.Count(strings.Join(texts(s.u.card.win), "\n"), want) }
	s.card(c)
	for text, n := range map[string]int{"/home/person/project": 1, "Ends after 60 seconds": 2, "Ends after 5 seconds": 1} {
		if got := count(text); got != n {
			t.Errorf("%q stands %d times, not %d: %q", text, got, n, texts(s.u.card.win))
		}
	}
	if got := exactLines(s.u.card.win); len(got) == 0 || got[0] != "A=1" {
		t.Errorf("what only the first has is not with it: %q", got)
	}
}

// The folder of a command stands once in its detail, and so does what it is
// refused for.
func TestDetailSaysThingsOnce(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) { n.Hub.Paired, n.Entries = true, s.entries(1) })
	w := s.window(snapshot.WindowActivity)
	s.u.activity.choose("e1")
	e := s.u.snap.Entries[0]
	e.Outcome, e.By, e.Capability = snapshot.Denied, "paused", "shell"
	s.u.Handle(desklink.Down{Detail: &snapshot.Detail{Entry: e, Sentence: "Claude wants to run a command.", Where: "Folder /home/person/project", Exact: "ls",
		Details: []string{"Working in /home/person/project", "Ends after 60 seconds at the latest"}, Reason: "The person paused this computer; nothing new is run until they resume."}})
	all := strings.Join(texts(w), "\n")
	if strings.Count(all, "/home/person/project") != 1 || !strings.Contains(all, "Ends after 60 seconds") {
		t.Errorf("the detail says %q", texts(w))
	}
	// A folder that is not that one stands there too, be it above it.
	t.Setenv("HOME", "/home/person")
	for where, c := range map[string]struct {
		folder, says string
		once         bool
	}{
		"Folder ~/project":                                             {"/home/person", "Working in ~\n", false},
		"Full access · folder ~/project/one":                           {"/home/person/project", "Working in ~/project\n", false},
		"Full access · folder ~":                                       {"/home/person", "Working in ~\n", true},
		"Kept inside its folder ~/project · network only as you allow": {"/home/person/project", "Working in ~/project\n", true},
	} {
		s.u.Handle(desklink.Down{Detail: &snapshot.Detail{Entry: e, Where: where, Exact: "ls", Details: []string{"Working in " + c.folder, "Ends after 60 seconds at the latest"}}})
		if said := strings.Join(texts(w), "\n"); strings.Contains(said, c.says) == c.once || !strings.Contains(said, "Ends after 60 seconds") {
			t.Errorf("in %s, with the folder %s, the detail says %q", where, c.folder, texts(w))
		}
	}
	if !strings.Contains(all, "You paused this computer") || strings.Contains(all, "denied by") || strings.Contains(all, "command.") {
		t.Errorf("the detail says %q", texts(w))
	}
}

// The log's times are whole, those of other days too.
func TestTimesFitTheirColumn(t *testing.T) {
	newStage(t) // its fonts
	now := time.Date(2026, 12, 30, 23, 58, 58, 0, time.Local)
	for _, at := range []time.Time{now, time.Date(2026, 11, 30, 23, 51, 0, 0, time.Local), time.Date(2026, 5, 28, 20, 48, 0, 0, time.Local)} {
		l := kit.NewLine(480, kit.Body, 1)
		l.Set(kit.Plain(timeWord(at, now), kit.Dim))
		for _, w := range []float32{400, 600, 800, 1200} {
			if has, wants := logColumns(w)[0], l.MinSize().Width; has < wants {
				t.Errorf("in a list %v wide %q has %v of %v", w, timeWord(at, now), has, wants)
			}
		}
	}
}
