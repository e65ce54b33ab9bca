package ui

import (
	"slices"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
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
	c.Request.Hub, c.Request.HubName, c.Request.Session, c.Request.Folder = "autogpt", "AutoGPT", "folders.1", ""
	c.Request.Principal.Name, c.Request.Claims = "AutoGPT", consent.Claims{}
	c.Request.Capability, c.Request.Action, c.Request.Exact = "folders", "browse", "/home/person\n/media/person/stick"
	c.Request.Containable, c.Request.FullOffered = false, false
	c.Request.Sentence = "AutoGPT wants to see the names of your folders."
	c.Request.Details = []string{"You choose a folder for a chat on AutoGPT's page. It is shown the names of folders in these places, no files and no hidden folders.",
		"Choosing one lends nothing: the chat asks you before it does anything there."}
	c.Request.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "shows the names of folders to AutoGPT"}}
	c.Request.Scopes = []consent.Scope{consent.Once, consent.Session, consent.Always}
	c.Request.Rule = consent.Rule{Hub: "autogpt", Principal: "p", Capability: "folders", Action: "browse", Effects: "read"}
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
	for _, want := range []string{"AutoGPT wants to see the names of your folders", "Hub AutoGPT", "In these places", "Deny until Local PC quits"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	for _, not := range []string{"Deny for this session", "Reads files", "It runs", "Exactly this", "This session"} {
		if has(w, not) {
			t.Errorf("the card says %q", not)
		}
	}
	var scopes []string
	walk(s.u.card.now.body.(*actionBody).scope, func(o fyne.CanvasObject) {
		if word, ok := o.(*canvas.Text); ok {
			scopes = append(scopes, word.Text)
		}
	})
	if want := []string{"Once", "Until Local PC quits", "Always"}; !slices.Equal(scopes, want) {
		t.Errorf("it is offered for %q", scopes)
	}
	s.u.card.now.body.(*actionBody).scope.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
	if !has(w, "Remembers exactly this: See the names of folders on this computer") {
		t.Errorf("the rule reads %q", texts(w))
	}
	typeOn(w, "47")
	if got := s.answers(); len(got) != 1 || !got[0].Allow || got[0].Choice.Scope != consent.Session {
		t.Errorf("answered %+v", got)
	}
}

// What was allowed too late for its program says when it runs.
func TestAllowedForWhenItIsAskedAgain(t *testing.T) {
	s := newStage(t)
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub.Paired, n.Entries = true, s.entries(3)
		n.Entries[0].Outcome, n.Entries[0].Result = snapshot.Allowed, "allowed; runs when it is asked again"
		n.Entries[0].AllowedNext = true
	})
	w := s.window(snapshot.WindowActivity)
	w.Canvas().Focus(s.u.activity.rows)
	keyOn(w, fyne.KeyDown)
	for _, want := range []string{"● Allowed", "Runs once, when it is asked again"} {
		if !has(w, want) {
			t.Errorf("the log lacks %q: %q", want, texts(w))
		}
	}
	if has(w, "allowed by: you") || has(w, "allowed; runs") {
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
