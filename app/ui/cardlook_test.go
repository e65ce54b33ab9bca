package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// deletion is the card of a command that deletes.
func (s *stage) deletion(id string) desklink.Card {
	c := s.command(id)
	r := &c.Request
	r.Claims.Title, r.Folder, r.Risk = "Tidy up my photos", "/home/person/Pictures", consent.RiskNormal
	r.Title, r.Sentence = "Delete 214 files in Pictures", "Claude Desktop wants to delete 214 files in Pictures."
	r.Exact = "find ~/Pictures -name '*.tmp' -type f -delete"
	r.Steps = []string{"Finds files named *.tmp in Pictures and below", "Deletes them: 214 files, 1.3 GB; cannot be undone"}
	r.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "reads in Pictures"},
		{Kind: consent.EffectDelete, Text: "deletes 214 files, 1.3 GB; cannot be undone", Count: 214, Bytes: 1_300_000_000}}
	r.Details = []string{"Working in /home/person/Pictures"}
	r.Rule.Exact, r.Rule.Folder = r.Exact, r.Folder
	wide := r.Rule
	wide.Exact, wide.Wide, wide.Effects = "", true, "delete, read, run"
	r.Wide, r.WideWords = &wide, "deleting in this folder"
	return c
}

// connection is the card of a connection that a command wants to make.
func (s *stage) connection(place string) desklink.Card {
	c := s.command("connect-" + place)
	r := &c.Request
	r.Capability, r.Action, r.Exact, r.Command = capNetwork, place, "packages.example.org:443", "c1"
	r.Title, r.Sentence = "Connect to packages.example.org", "Claude Desktop: a command (npm) wants to reach packages.example.org."
	r.Effects = []consent.Effect{{Kind: consent.EffectConnect, Text: "reaches packages.example.org, a computer on the internet (port 443, encrypted web)"}}
	r.Details = []string{"At port 443, encrypted web", "Its addresses now: 104.16.3.35, 104.16.2.35"}
	r.Containable, r.FullOffered, r.Wide = false, false, nil
	r.Scopes = []consent.Scope{consent.Command, consent.Session, consent.Minutes15, consent.Always}
	if place != "internet" {
		r.Risk, r.Scopes = consent.RiskHigh, []consent.Scope{consent.Command, consent.Session}
	}
	r.Rule.Capability, r.Rule.Action, r.Rule.Exact = capNetwork, place, r.Exact
	return c
}

// replacing is a card of n files to be replaced.
func (s *stage) replacing(n int) desklink.Card {
	c := s.command("fold")
	r := &c.Request
	r.Capability, r.Action, r.Containable, r.FullOffered = "files", "write", false, false
	r.Title, r.Sentence, r.Exact = "Write notes/1.md", "Claude Desktop wants to replace notes/1.md (2 KB).", "/home/person/project/notes/1.md"
	r.Effects = []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces 1.md, 2 KB", Count: 1}}
	r.Rule.Capability, r.Rule.Action, r.Rule.Exact = "files", "write", "notes/1.md"
	for i := 2; i <= n; i++ {
		c.Folded = append(c.Folded, snapshot.Folded{ID: fmt.Sprint("f", i), Title: fmt.Sprintf("Write notes/%d.md", i),
			Exact: fmt.Sprintf("/home/person/project/notes/%d.md", i), Effects: []string{fmt.Sprintf("replaces %d.md, 3 KB", i)}})
	}
	return c
}

func manySteps(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("Changes what is in the file part-%d.txt of the folder, and then writes 12 lines to it", i+1))
	}
	return out
}

// cards are one of each kind that the layout has to hold.
func (s *stage) cards() map[string]desklink.Card {
	out := map[string]desklink.Card{
		"delete": s.deletion("delete"), "fold": s.replacing(5), "session": s.session("/home/person/website"),
		"internet": s.connection("internet"), "home": s.connection("home"), "local": s.connection("local"), "link": s.connection("link"),
	}
	long := s.deletion("long")
	long.Request.Principal.Name = strings.Repeat("Wonderful ", 12) + strings.Repeat("w", 80)
	long.Request.Sentence = long.Request.Principal.Name + " wants to delete 214 files."
	long.Request.Folder = "/home/person/" + strings.Repeat("a-long-folder-", 12)
	long.Request.Claims.Title = strings.Repeat("task ", 60)
	long.Request.WideWords = "commands that read, create, change, move and delete what is in this folder"
	long.Waiting, long.Denied = 7, 12
	out["long"] = long

	rtl := s.deletion("rtl")
	rtl.Request.Principal.Name, rtl.Request.Folder = "עוזר שולחן", "/home/person/תמונות"
	rtl.Request.Sentence = "עוזר שולחן wants to delete 3 files in תמונות"
	rtl.Request.Exact = "rm -- 'תמונה \u202egpj.exe'"
	out["rtl"] = rtl

	all := s.deletion("effects")
	all.Request.Risk, all.Denied = consent.RiskHigh, 3
	all.Request.Effects = nil
	for _, c := range effectChipsByWeight {
		all.Request.Effects = append(all.Request.Effects, consent.Effect{Kind: c.kind, Text: "does a thing of the kind " + string(c.kind)})
	}
	all.Request.Scopes = []consent.Scope{consent.Once, consent.Session, consent.Minutes15}
	out["effects"] = all

	steps := s.deletion("steps")
	steps.Request.Steps = append(manySteps(60), "Deletes 214 files, 1.3 GB; cannot be undone")
	steps.Request.Exact = strings.Repeat("sed -i s/a/b/ part.txt && echo more >> part.txt\n", 60)
	out["steps"] = steps

	huge := s.deletion("huge")
	huge.Request.Exact = strings.Repeat("echo \u202ex 世界 abcdefghijklmnop ", 128<<10/40)
	out["huge"] = huge
	full := s.deletion("full")
	full.Request.Containable, full.ContainProblem = false, "Commands can't be contained on this computer: bubblewrap is missing. Install it with apt install bubblewrap."
	out["full"] = full
	return out
}

// Cards of every kind hold their contents, light and dark, at the usual size
// and at 200 %.
func TestCardsHoldTheirContents(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			if (theme == "light") == (scale == 2) && os.Getenv("LOCALPC_ARTIFACTS") == "" {
				continue // pictures for people, no other layout
			}
			t.Setenv(kit.ThemeEnv, theme)
			s := newStage(t)
			w := s.u.card.win
			w.Canvas().(test.WindowlessCanvas).SetScale(scale)
			for name, c := range s.cards() {
				c.Request.ID = name
				s.show(c)
				s.paint()
				s.clock.run(time.Second)
				name = "card-" + name + "-" + theme
				if scale == 2 {
					name += "-200"
				}
				s.keep(w, name)
				s.inside(w)
				if scale == 1 && strings.HasPrefix(name, "card-session") {
					s.tap(w, otherWay)
					s.u.card.now.body.(*sessionBody).mode.Select(3)
					s.keep(w, name+"-trusted")
					s.inside(w)
				}
				if b, ok := s.u.card.now.body.(*actionBody); ok && scale == 1 {
					b.scope.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
					if b.wide != nil {
						b.wide.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
					}
					s.keep(w, name+"-wide")
					s.inside(w)
				}
			}
		}
	}
}
