package store_test

import (
	"strings"
	"testing"
	"time"

	"localpc/consent"
)

// What holds always ends when it was not used for 30 days; what was used, or
// given, since then stays.
func TestUnusedGrantsEnd(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, now := t.Context(), time.Now()
	day := 24 * time.Hour
	remember := func(id string, scope consent.Scope, created, used time.Duration) {
		g := grant(id, "run "+id, scope)
		g.Created, g.LastUsed = now.Add(-created), now.Add(-used)
		if scope == consent.Session {
			g.Session = "s1"
		}
		must(t, s.Remember(ctx, g))
	}
	remember("used", consent.Always, 90*day, 29*day)
	remember("forgotten", consent.Always, 90*day, 31*day)
	remember("new", consent.Always, 29*day, 29*day)
	remember("session", consent.Session, 31*day, 31*day)
	never := grant("never", "make", consent.Always)
	never.Created, never.LastUsed = now.Add(-31*day), time.Time{}
	must(t, s.Remember(ctx, never))

	if got := ids(t, s, "this", "p1"); got != "used session new" {
		t.Errorf("in force: %s", got)
	}
	if n, err := s.Expire(ctx, now); n != 2 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	must(t, s.Used(ctx, "used", now))
	if n, err := s.Expire(ctx, now.Add(28*day)); n != 1 || err != nil {
		t.Errorf("%d expired four weeks later, %v", n, err)
	}
	if got := ids(t, s, "this", "p1"); got != "used session" {
		t.Errorf("left: %s", got)
	}
}

// A grant that was given or used while the clock was ahead does not live until
// then.
func TestClockSetRight(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, now := t.Context(), time.Now()
	ahead := now.AddDate(4, 0, 0)
	given, used, soon := grant("given", "ls", consent.Always), grant("used", "make", consent.Always), grant("soon", "id", consent.Minutes15)
	given.Created, given.LastUsed = ahead, ahead
	used.Created, used.LastUsed = now.AddDate(0, -6, 0), ahead
	soon.Created, soon.Expires = ahead, ahead.Add(15*time.Minute)
	for _, g := range []consent.Stored{given, used, soon} {
		must(t, s.Remember(ctx, g))
	}
	if n, err := s.Expire(ctx, now); n != 1 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	list, err := s.Remembered(ctx, "", "")
	must(t, err)
	for _, g := range list {
		if g.LastUsed.After(now) || g.Created.After(now) {
			t.Errorf("%s was used %v and given %v, which is still to come", g.ID, g.LastUsed, g.Created)
		}
	}
	if got := ids(t, s, "", ""); strings.Contains(got, "soon") || !strings.Contains(got, "given") || !strings.Contains(got, "used") {
		t.Errorf("left: %s", got)
	}
	if n, err := s.Expire(ctx, now.Add(consent.UnusedFor)); n != 2 || err != nil {
		t.Errorf("%d expired 30 days later, %v", n, err)
	}
}

// What held for a command goes with it, and with nothing else.
func TestEndOfACommand(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	for _, id := range []string{"c1", "c2"} {
		g := grant("of-"+id, "example.org:443", consent.Command)
		g.Session = id
		must(t, s.Remember(ctx, g))
	}
	wide := grant("wide", "", consent.Always)
	wide.Rule.Wide, wide.Rule.Effects = true, "own read, read"
	must(t, s.Remember(ctx, wide))
	must(t, s.EndSession(ctx, "c1"))
	if got := ids(t, s, "this", "p1"); got != "of-c2 wide" {
		t.Errorf("after the first command: %s", got)
	}
	must(t, s.EndSession(ctx, ""))
	list, err := s.Remembered(ctx, "", "")
	must(t, err)
	if len(list) != 1 || list[0].Rule != wide.Rule {
		t.Errorf("after a restart: %+v", list)
	}
}
