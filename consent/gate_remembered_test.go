package consent_test

import (
	"testing"
	"time"

	"localpc/consent"
)

func TestWhatIsRemembered(t *testing.T) {
	wideCommand, wish := command(), sessionCard()
	broad(&wideCommand)
	wish.Folder, wish.Rule.Folder = "/wish", "/wish"
	onlyWish := wish
	onlyWish.FolderOnly = true
	cases := []struct {
		name   string
		r      consent.Request
		answer consent.Answer
		check  func(*testing.T, consent.Stored, time.Time)
	}{
		{"session", command(), yes(consent.Session, consent.FullAccess), func(t *testing.T, s consent.Stored, _ time.Time) {
			if s.Session != "s1" || s.Rule.Contain != consent.FullAccess || s.Rule.Looked != command().Fingerprint || s.Rule.Looked == "" || s.Deny || !s.Expires.IsZero() {
				t.Errorf("%+v", s)
			}
		}},
		{"15 minutes", command(), yes(consent.Minutes15, consent.Contained), func(t *testing.T, s consent.Stored, now time.Time) {
			if !s.Expires.Equal(now.Add(15*time.Minute)) || s.Session != "" {
				t.Errorf("%+v", s)
			}
		}},
		{"always", command(), yes(consent.Always, consent.Contained), func(t *testing.T, s consent.Stored, _ time.Time) {
			if s.Rule.Exact != "npm test" || s.Rule.Contain != consent.Contained || s.Name != "Claude" || !s.Expires.IsZero() {
				t.Errorf("%+v", s)
			}
		}},
		{"a denial for the session", command(), consent.Answer{Choice: consent.Choice{Scope: consent.Session, Contain: consent.Contained}}, func(t *testing.T, s consent.Stored, _ time.Time) {
			if !s.Deny || s.Session != "s1" || s.Rule.Contain != "" || s.Rule.Effects != "" {
				t.Errorf("%+v", s)
			}
		}},
		{"for a command", connection(), yes(consent.Command, ""), func(t *testing.T, s consent.Stored, _ time.Time) {
			if s.Scope != consent.Command || s.Session != "r1" || s.Rule.Exact != "example.org:443" || !s.Expires.IsZero() {
				t.Errorf("%+v", s)
			}
		}},
		{"the broader rule", wideCommand, widely(consent.Minutes15, consent.Contained), func(t *testing.T, s consent.Stored, now time.Time) {
			if !s.Rule.Wide || s.Rule.Exact != "" || s.Rule.Effects != "own read, read" || s.Rule.Contain != consent.Contained || !s.Expires.Equal(now.Add(15*time.Minute)) {
				t.Errorf("%+v", s)
			}
			if wideCommand.Wide.Contain != "" {
				t.Error("the request's own rule was changed")
			}
		}},
		{"trust, as work", sessionCard(), consent.Answer{Allow: true, Choice: consent.Choice{Mode: consent.ModeTrusted, Folder: "/photos", Remember: true}}, func(t *testing.T, s consent.Stored, _ time.Time) {
			if s.Choice.Mode != consent.ModeWork {
				t.Errorf("%+v", s)
			}
		}},
		{"a declined session card, for 15 minutes", wish, consent.Answer{Choice: consent.Choice{Scope: consent.Minutes15}}, func(t *testing.T, s consent.Stored, now time.Time) {
			if !s.Deny || s.Scope != consent.Minutes15 || !s.Expires.Equal(now.Add(15*time.Minute)) || s.Rule.Folder != "" || s.Rule.Principal != "p1" {
				t.Errorf("%+v", s)
			}
		}},
		{"a declined session card for one folder only", onlyWish, consent.Answer{Choice: consent.Choice{Scope: consent.Minutes15}}, func(t *testing.T, s consent.Stored, _ time.Time) {
			if !s.Deny || s.Rule.Folder != "/wish" {
				t.Errorf("%+v", s)
			}
		}},
		{"nothing for a denial for 15 minutes", command(), consent.Answer{Choice: consent.Choice{Scope: consent.Minutes15}}, nil},
		{"a session card", sessionCard(), consent.Answer{Allow: true, Choice: consent.Choice{Mode: consent.ModeLook, Folder: "/photos", Remember: true}}, func(t *testing.T, s consent.Stored, _ time.Time) {
			if s.Scope != consent.Always || s.Rule.Folder != "/photos" || s.Choice.Mode != consent.ModeLook {
				t.Errorf("%+v", s)
			}
		}},
		{"nothing for once", command(), yes(consent.Once, consent.Contained), nil},
		{"nothing for a denial once", command(), consent.Answer{Choice: consent.Choice{Scope: consent.Once}}, nil},
		{"nothing for a declined session card", sessionCard(), consent.Answer{Choice: consent.Choice{Scope: consent.Session, Remember: true}}, nil},
		{"nothing for a session card without the tick", sessionCard(), consent.Answer{Allow: true, Choice: consent.Choice{Mode: consent.ModeWork, Folder: "/project"}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &parts{prompt: says(c.answer)}
			_, err := newGate(p).Authorize(t.Context(), c.r)
			if c.answer.Allow && err != nil {
				t.Fatal(err)
			}
			if !c.answer.Allow {
				refused(t, err, consent.Denied)
			}
			if c.check == nil {
				if len(p.stored) != 0 {
					t.Errorf("remembered %+v", p.stored)
				}
				return
			}
			if len(p.stored) != 1 {
				t.Fatalf("remembered %d", len(p.stored))
			}
			c.check(t, p.stored[0], p.now)
		})
	}
}

// Trust holds for the session it was given to, and a denial that ends the
// session is a denial.
func TestTrustAndEnd(t *testing.T) {
	p := &parts{prompt: says(consent.Answer{Allow: true, Choice: consent.Choice{Mode: consent.ModeTrusted, Folder: "/photos", Remember: true}})}
	if g, err := newGate(p).Authorize(t.Context(), sessionCard()); err != nil || g.Choice().Mode != consent.ModeTrusted {
		t.Errorf("%v, %+v", err, g.Choice())
	}
	p = &parts{prompt: says(consent.Answer{Choice: consent.Choice{Scope: consent.Once, End: true}})}
	_, err := newGate(p).Authorize(t.Context(), command())
	refused(t, err, consent.Denied)
	if len(p.recorded) != 1 || !p.recorded[0].Choice.End {
		t.Errorf("recorded %+v", p.recorded)
	}
}
