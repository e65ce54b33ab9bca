package machine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/record"
)

func readEvent(t *testing.T, e consent.Entry) (ev record.Event) {
	t.Helper()
	must(t, json.Unmarshal(e.Body, &ev))
	return ev
}

// logIn is whether a system starts this program, in the test's hands.
type logIn struct {
	on  bool
	err error
}

func (l *logIn) State() (bool, string) { return l.on, "" }

func (l *logIn) Set(on bool) error {
	if l.err != nil {
		return l.err
	}
	l.on = on
	return nil
}

func changes(fn func(*snapshot.Changes)) snapshot.Intent {
	c := &snapshot.Changes{}
	fn(c)
	return snapshot.Intent{Kind: snapshot.Change, Changes: c}
}

func named(name string) snapshot.Intent {
	return changes(func(c *snapshot.Changes) { c.Name = &name })
}

func lent(folder string) snapshot.Intent {
	return changes(func(c *snapshot.Changes) { c.Folder = &folder })
}

func rated(capability string, n int) snapshot.Intent {
	return changes(func(c *snapshot.Changes) { c.Rates = map[string]int{capability: n} })
}

func TestSettingsAreChanged(t *testing.T) {
	r := newRig(t)
	start := &logIn{}
	r.m.o.Autostart, r.m.o.Version = start, "1.2.3"
	r.m.lookAtAutostart()
	usual := r.m.Snapshot().Settings
	if usual.Data != r.m.o.Paths.Data || usual.Version != "1.2.3" || usual.Autostart || usual.AutostartProblem != "" || len(usual.Rates) != 4 {
		t.Errorf("at first: %+v", usual)
	}
	for _, rate := range usual.Rates {
		if rate.PerMinute != rate.Usual || rate.Usual == 0 || rate.Label == "" {
			t.Errorf("the usual rate is %+v", rate)
		}
	}
	on := true
	r.intend(named("  Anna's PC "))
	r.intend(lent(r.folder + "/"))
	r.intend(rated("shell", 12))
	r.intend(changes(func(c *snapshot.Changes) { c.Autostart = &on }))
	now := r.m.Snapshot()
	if now.Machine != "Anna's PC" || now.Settings.Name != "Anna's PC" || now.Settings.Folder != r.folder || !now.Settings.Autostart || !start.on {
		t.Errorf("afterwards: %q, %+v", now.Machine, now.Settings)
	}
	if i := slices.IndexFunc(now.Settings.Rates, func(s snapshot.Rate) bool { return s.Capability == "shell" }); now.Settings.Rates[i].PerMinute != 12 || now.Settings.Rates[i].Usual != settings.UsualRates.Shell {
		t.Errorf("the rate is %+v", now.Settings.Rates[i])
	}
	r.intend(rated("shell", 0))
	r.intend(lent(""))
	now = r.m.Snapshot()
	if i := slices.IndexFunc(now.Settings.Rates, func(s snapshot.Rate) bool { return s.Capability == "shell" }); now.Settings.Rates[i].PerMinute != settings.UsualRates.Shell || now.Settings.Folder != "" {
		t.Errorf("back at the usual: %+v", now.Settings)
	}
	if got := happened(t, r.m, "rates set"); len(got) != 2 {
		t.Errorf("the record has %v", got)
	}
}

// What is not fit is refused in a sentence, and nothing of it is done.
func TestSettingsThatAreNotFit(t *testing.T) {
	r := newRig(t)
	r.m.o.Autostart = &logIn{err: errors.New("systemd is away")}
	before := r.m.o.Settings.Get()
	home, err := os.UserHomeDir()
	must(t, err)
	on := true
	for _, c := range []struct {
		in   snapshot.Intent
		want string
	}{
		{named(" "), "1 to 60"},
		{named(strings.Repeat("長", 61)), "1 to 60"},
		{named("a\u202eb"), "can't be seen"},
		{lent("project"), "absolute"},
		{lent(filepath.Join(home, "nowhere")), "not there"},
		{lent(home), "home"},
		{lent("/"), "whole computer"},
		{rated("shell", -1), "from 1 to"},
		{rated("shell", settings.MaxRate+1), "from 1 to"},
		{rated("camera", 5), "camera"},
		{changes(func(c *snapshot.Changes) { c.Autostart = &on }), "Systemd is away."},
		{changes(func(c *snapshot.Changes) {
			name := "New"
			c.Name, c.Rates = &name, map[string]int{"files": -1}
		}), "from 1 to"},
		{snapshot.Intent{Kind: snapshot.Change}, "Nothing"},
	} {
		refused(t, r.m, c.in, c.want)
	}
	if now := r.m.o.Settings.Get(); now != before {
		t.Errorf("they are %+v", now)
	}
}

func TestSelfTest(t *testing.T) {
	r := newRig(t)
	refused(t, r.m, snapshot.Intent{Kind: snapshot.SelfTest}, "no self-test")
	found, calls := make(chan []snapshot.Check), 0
	r.m.o.SelfTest = func(ctx context.Context) []snapshot.Check {
		calls++
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it may take for ever")
		}
		return <-found
	}
	r.intend(snapshot.Intent{Kind: snapshot.SelfTest})
	r.intend(snapshot.Intent{Kind: snapshot.SelfTest}) // one at a time
	if s := r.m.Snapshot().Settings; !s.Checking || len(s.Checks) != 0 {
		t.Errorf("while it looks: %+v", s)
	}
	found <- []snapshot.Check{{Name: "contain", OK: true}}
	for end := time.Now().Add(20 * time.Second); r.m.Snapshot().Settings.Checking; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
	}
	if s := r.m.Snapshot().Settings; len(s.Checks) != 1 || s.Checks[0].Name != "contain" || calls != 1 {
		t.Errorf("afterwards: %+v, looked %d times", s, calls)
	}
}

// A window is the one that was asked for, or what there is to be seen.
func TestWhichWindow(t *testing.T) {
	r := newRig(t)
	refused(t, r.m, snapshot.Intent{Kind: snapshot.ShowWindow}, "no display")
	var shown []string
	r.m.o.Hooks.ShowWindow = func(w string) { shown = append(shown, w) }
	r.m.o.Hooks.RaiseCard = func() { shown = append(shown, "card") }
	show := func(window string) { r.intend(snapshot.Intent{Kind: snapshot.ShowWindow, Text: window}) }
	show("") // not paired
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.Hub = settings.HubThis }))
	show("")
	r.m.window = ""
	show("")
	show(snapshot.WindowSettings)
	show("")
	r.person.mu.Lock()
	r.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false }
	r.person.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := r.m.asks.Prompt(ctx, consent.Request{ID: "1", Deadline: time.Now().Add(time.Minute)})
		asked <- err
	}()
	for r.m.asks.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	show("")
	cancel()
	<-asked
	if want := []string{"pair", "pair", "activity", "settings", "settings", "card"}; !slices.Equal(shown, want) {
		t.Errorf("shown: %v, want %v", shown, want)
	}
}

func TestRemoveBegins(t *testing.T) {
	r := newRig(t)
	var removed, quit []bool
	refused(t, r.m, snapshot.Intent{Kind: snapshot.Remove, Text: "keep"}, "can't remove")
	r.m.o.Hooks.Remove = func(keep bool) { removed = append(removed, keep) }
	r.m.o.Hooks.Quit = func() { quit = append(quit, true) }
	refused(t, r.m, snapshot.Intent{Kind: snapshot.Remove}, "keep the record")
	r.open("s1", 0)
	r.intend(snapshot.Intent{Kind: snapshot.Remove, Text: "keep"})
	if len(r.m.Snapshot().Sessions) != 0 {
		t.Error("a session is open still")
	}
	r.intend(snapshot.Intent{Kind: snapshot.Remove, Text: "erase"})
	r.intend(snapshot.Intent{Kind: snapshot.Remove, Text: "erase", Way: "quit"})
	if !slices.Equal(removed, []bool{true, false}) || len(quit) != 1 {
		t.Errorf("removed %v, quit %v", removed, quit)
	}
	if got := happened(t, r.m, "removed"); !slices.Equal(got, []string{"keep", "erase", "erase"}) {
		t.Errorf("the record has %v", got)
	}
}
