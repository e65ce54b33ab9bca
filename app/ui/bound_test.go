package ui

import (
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// bound is the card of a chat that names its folder.
func (s *stage) bound(folder string) desklink.Card {
	c := s.session(folder)
	c.FolderOnly = true
	c.Request.Hub, c.Request.HubName = "autogpt", "AutoGPT"
	c.Request.Principal.Name, c.Request.Claims = "AutoGPT", consent.Claims{Title: "Build my website"}
	c.Request.Sentence = "Let AutoGPT work on this computer?"
	return c
}

// browse is the card that lets a hub see the names of folders.
func (s *stage) browse() desklink.Card {
	c := s.command("browse")
	c.Request.Hub, c.Request.HubName, c.Request.Session, c.Request.Folder = "autogpt", "AutoGPT", "", ""
	c.Request.Principal.Name, c.Request.Claims = "AutoGPT", consent.Claims{}
	c.Request.Capability, c.Request.Action, c.Request.Exact = "folders", "browse", ""
	c.Request.Containable, c.Request.FullOffered = false, false
	c.Request.Sentence = "AutoGPT wants to see the names of your folders."
	c.Request.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "shows AutoGPT the names of folders, so that you can choose one there; nothing that is in them"}}
	c.Request.Scopes = []consent.Scope{consent.Once, consent.Minutes15, consent.Always}
	c.Request.Rule = consent.Rule{Hub: "autogpt", Principal: "p", Capability: "folders", Action: "browse"}
	return c
}

// A folder that was chosen elsewhere is shown whole, and is the only one.
func TestCardOfABoundFolder(t *testing.T) {
	s := newStage(t)
	long := "/srv/projects/a-folder-with-a-name-that-goes-on/and-another-one-below-it-that-is-as-long/and-the-last-of-them/website"
	o := s.card(s.bound(long))
	w := s.u.card.win
	if !has(w, long) || has(w, "Choose…") {
		t.Fatalf("the card says %q", texts(w))
	}
	typeOn(w, "47")
	got := s.answers()
	if len(got) != 1 || !got[0].Allow || got[0].Choice.Folder != long || got[0].Choice.Mode != consent.ModeWork {
		t.Fatalf("answered %+v", got)
	}
	if o.body.(*sessionBody).picking {
		t.Error("another folder can be chosen")
	}
}

func TestCardOfBrowsing(t *testing.T) {
	s := newStage(t)
	s.card(s.browse())
	w := s.u.card.win
	for _, want := range []string{"AutoGPT wants to see the names of your folders", "Shows AutoGPT the names of folders", "Hub AutoGPT"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	for _, not := range []string{"Deny for this session", "Reads files", "It runs", "Exactly this"} {
		if has(w, not) {
			t.Errorf("the card says %q", not)
		}
	}
	typeOn(w, "47")
	if got := s.answers(); len(got) != 1 || !got[0].Allow || got[0].Choice.Scope != consent.Once {
		t.Errorf("answered %+v", got)
	}
}

// What was allowed too late for its program says when it runs.
func TestAllowedForWhenItIsAskedAgain(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired, n.Entries = true, s.entries(3)
		n.Entries[0].Outcome = snapshot.Allowed
	})
	w := s.window(snapshot.WindowActivity)
	w.Canvas().Focus(s.u.activity.rows)
	keyOn(w, fyne.KeyDown)
	for _, want := range []string{"● Allowed", "Runs when it is asked again"} {
		if !has(w, want) {
			t.Errorf("the log lacks %q: %q", want, texts(w))
		}
	}
	if has(w, "allowed by: you") {
		t.Errorf("it is told as one that ran: %q", texts(w))
	}
}

// The cards of a platform's chats, light and dark, at the usual size and at
// 200 %.
func TestBoundCardsFit(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			t.Setenv(kit.ThemeEnv, theme)
			s := newStage(t)
			w := s.u.card.win
			w.Canvas().(test.WindowlessCanvas).SetScale(scale)
			for name, c := range map[string]desklink.Card{
				"card-bound":      s.bound("/home/person/website"),
				"card-bound-long": s.bound("/srv/" + longHost + "/" + longHost + "/website"),
				"card-browse":     s.browse(),
			} {
				c.Request.ID = name
				s.show(c)
				s.paint()
				s.clock.run(time.Second)
				name += "-" + theme
				if scale == 2 {
					name += "-200"
				}
				s.keep(w, name)
				s.inside(w)
			}
		}
	}
}
