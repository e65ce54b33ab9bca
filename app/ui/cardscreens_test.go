package ui

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"os"
	"slices"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// desktopPicture is what a screen might look like: a slope of colours, with
// windows on it.
func desktopPicture(w, h int, windows ...image.Rectangle) []byte {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			k := float64(x+y) / float64(w+h)
			img.SetRGBA(x, y, color.RGBA{R: uint8(0x8f + k*100), G: uint8(0xb1 + k*40), B: uint8(0xff - k*60), A: 255})
		}
	}
	for i, r := range windows {
		c := color.RGBA{255, 255, 255, 255}
		if i%2 == 1 {
			c = color.RGBA{0x15, 0x18, 0x1d, 255}
		}
		draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func onScreen(w, h int) []byte {
	return desktopPicture(w, h, image.Rect(w/8, h/6, w*6/10, h*8/10), image.Rect(w/2, h/3, w*9/10, h*9/10))
}

// screens is the card that asks to see n screens, the first of them chosen.
func (s *stage) screens(n int) desklink.Card {
	c := s.command("see")
	r := &c.Request
	r.Claims.Title = "Fill in the order form"
	r.Capability, r.Action, r.Exact, r.Containable, r.FullOffered, r.Wide = consent.CapabilityComputer, "see", "", false, false, nil
	r.Title, r.Sentence = "See the screen", "Claude is requesting screen access"
	r.Effects = []consent.Effect{{Kind: consent.EffectSee, Text: "sees what is on the screen"}}
	r.Details = []string{"Windows on your hide list are blacked out; anything else on this screen is visible."}
	r.Scopes, r.Looks = []consent.Scope{consent.Once, consent.Session, consent.Minutes15}, true
	for i := range n {
		name := []string{"DP-1", "HDMI-1", "DP-2", "DP-3", "DP-4"}[i]
		label := "Screen " + itoa(i+1) + " of " + itoa(n) + ", 2560 × 1440"
		r.Screens = append(r.Screens, consent.Screen{Name: name, Label: label, Chosen: i == 0})
	}
	r.Rule = consent.Rule{Hub: "this", Principal: "p", Folder: r.Folder, Capability: r.Capability, Action: "see"}
	return c
}

// clicking is the card of one action, with a picture of where it goes.
func (s *stage) clicking() desklink.Card {
	c := s.screens(0)
	r := &c.Request
	r.ID, r.Action, r.Title, r.Sentence = "click", "act", "Click in Firefox", "Claude wants to click in the window Order form"
	r.Exact = "left click at 812, 440 of screen 1"
	r.Effects = []consent.Effect{{Kind: consent.EffectControl, Text: "clicks once in the window Order form"}}
	r.Details = []string{"The picture shows where it goes."}
	r.Scopes = []consent.Scope{consent.Once}
	r.Rule.Action, r.Rule.Exact = "act", r.Exact
	return c
}

func (s *stage) look(l consent.Look) { s.u.Handle(desklink.Down{Look: &l}) }

// pictures are those that a window shows.
func pictures(w fyne.Window) (all []*kit.Picture) {
	walk(w.Content(), func(o fyne.CanvasObject) {
		if p, ok := o.(*kit.Picture); ok {
			all = append(all, p)
		}
	})
	return all
}

// The picture says which of its parts nobody gets to see, where there is room for
// words: this program's own windows, and those that are hidden.
func TestWhatAPictureDoesNotShowIsNamed(t *testing.T) {
	s := newStage(t)
	o := s.card(s.screens(1))
	at := func(x0, y0, x1, y1 int, own bool, name string) consent.Cover {
		return consent.Cover{Min: [2]int{x0, y0}, Max: [2]int{x1, y1}, Own: own, Name: name}
	}
	s.look(consent.Look{Request: o.card.Request.ID, Screen: "DP-1", Data: onScreen(480, 270), Covers: []consent.Cover{
		at(100, 20, 300, 250, true, ""), at(310, 20, 470, 100, false, "KeePassXC"), at(310, 120, 390, 160, false, "a-program-with-a-name-as-long-as-this"),
		at(310, 200, 320, 210, false, "xterm")}})
	pic := pictures(s.u.card.win)[0]
	if got, want := pic.LabelTexts(), []string{Name + " – never shown", "Hidden: KeePassXC", "Hidden"}; !slices.Equal(got, want) {
		t.Errorf("the picture says %q, want %q", got, want)
	}
	if !has(s.u.card.win, ownWords) {
		t.Errorf("the card does not explain the grey: %q", texts(s.u.card.win))
	}
	s.look(consent.Look{Request: o.card.Request.ID, Screen: "DP-1", Data: onScreen(480, 270)})
	if got := pic.LabelTexts(); len(got) != 0 {
		t.Errorf("with nothing hidden the picture says %q", got)
	}
}

// The person chooses which screens may be seen; with none there is nothing to
// allow, and the card says why.
func TestChoiceOfScreens(t *testing.T) {
	s := newStage(t)
	o := s.card(s.screens(3))
	w := s.u.card.win
	if got := pictures(w); len(got) != 3 || got[0].Has() || got[0].Text() != waiting {
		t.Fatalf("%d pictures: %q", len(got), texts(w))
	}
	parts := o.body.(*actionBody).screens
	test.Tap(parts.thumbs[0].pic) // off
	if o.allow.Armed() || !has(w, "Choose at least one screen") {
		t.Fatalf("nothing is chosen, and the card says %q", texts(w))
	}
	typeOn(w, "47")
	click(o.allow)
	if a := s.answers(); len(a) != 0 {
		t.Fatalf("answered %+v with no screen chosen", a)
	}
	w.Canvas().Focus(parts.thumbs[2].check)
	keyOn(w, fyne.KeySpace)
	test.Tap(parts.thumbs[1].check)
	if !has(w, "2 of 3 screens chosen") || o.allow.Text() != "Allow for this session" {
		t.Fatalf("the card says %q", texts(w))
	}
	typeOn(w, "47")
	want := consent.Choice{Scope: consent.Session, Screens: "DP-2\nHDMI-1"}
	if a := s.answers(); len(a) != 1 || !a[0].Allow || a[0].Choice != want {
		t.Fatalf("answers %+v, want %+v", a, want)
	}
}

// One screen needs no choice.
func TestOneScreen(t *testing.T) {
	s := newStage(t)
	c := s.screens(1)
	c.Request.Screens[0].Chosen = false
	o := s.card(c)
	if !has(s.u.card.win, "anything else on this screen is visible") {
		t.Errorf("the card says %q", texts(s.u.card.win))
	}
	click(o.allow)
	if a := s.answers(); len(a) != 1 || a[0].Choice.Screens != "DP-1" {
		t.Fatalf("answers %+v", a)
	}
}

// Pictures come to the card that they are for, the newest stays, and the card
// keeps its size and what was chosen.
func TestLooks(t *testing.T) {
	s := newStage(t)
	s.look(consent.Look{Request: "see", Screen: "DP-1", Data: onScreen(320, 180)}) // no card yet
	c := s.screens(2)
	o := s.card(c)
	w := s.u.card.win
	before := o.want()
	s.look(consent.Look{Request: "other", Screen: "DP-1", Data: onScreen(320, 180)})
	s.look(consent.Look{Request: "see", Screen: "no such", Data: onScreen(320, 180)})
	if pictures(w)[0].Has() {
		t.Fatal("a picture for another card was shown")
	}
	s.look(consent.Look{Request: "see", Screen: "DP-1", Data: onScreen(320, 180), Note: "KeePassXC is blacked out"})
	s.look(consent.Look{Request: "see", Screen: "HDMI-1", Note: "This screen is switched off."})
	p := pictures(w)
	if !p[0].Has() || p[0].Text() != "KeePassXC is blacked out" || p[1].Has() || p[1].Text() != "This screen is switched off." {
		t.Fatalf("shows %q and %q", p[0].Text(), p[1].Text())
	}
	s.look(consent.Look{Request: "see", Screen: "HDMI-1", Data: []byte("no picture")})
	if p[1].Text() != "The picture could not be read." {
		t.Errorf("of what is no picture it says %q", p[1].Text())
	}
	s.look(consent.Look{Request: "see", Screen: "DP-1", Data: onScreen(1200, 1000)}) // no look is that large
	if p[0].Has() || p[0].Text() != "The picture could not be read." {
		t.Errorf("of what is too large for a look it says %q", p[0].Text())
	}
	s.look(consent.Look{Request: "see", Screen: "DP-1", Data: onScreen(320, 180)})
	if o.want() != before || !o.allow.Armed() {
		t.Errorf("the card was %v high and is %v; armed %v", before, o.want(), o.allow.Armed())
	}
	c.Update = true
	s.show(c)
	if p := pictures(w); !p[0].Has() {
		t.Error("an update lost the picture")
	}
}

// A picture that takes long to read does not overwrite a newer one.
func TestSlowLook(t *testing.T) {
	s := newStage(t)
	var late []func()
	s.u.o.Background = func(work func() func()) { late = append(late, work()) }
	s.card(s.clicking())
	s.look(consent.Look{Request: "click", Data: onScreen(160, 90), Note: "old"})
	s.look(consent.Look{Request: "click", Data: onScreen(160, 90), Note: "new"})
	late[1]()
	late[0]()
	if p := pictures(s.u.card.win); len(p) != 1 || p[0].Text() != "new" {
		t.Fatalf("shows %q", p[0].Text())
	}
	s.u.Handle(desklink.Down{Close: &desklink.CloseCard{ID: "click"}})
	late[0]() // the card has gone
}

// Cards about the screen hold their contents, in both themes and sizes.
func TestScreenCardsHoldTheirContents(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			if (theme == "light") == (scale == 2) && os.Getenv("LOCALPC_ARTIFACTS") == "" {
				continue // pictures for people, no other layout
			}
			t.Setenv(kit.ThemeEnv, theme)
			s := newStage(t)
			w := s.u.card.win
			w.Canvas().(test.WindowlessCanvas).SetScale(scale)
			wayland := s.screens(1)
			wayland.Request.Details = []string{"Windows can't be told apart on this display, so none is blacked out: everything on this screen is visible. GNOME on Wayland tells no program which windows there are."}
			for name, c := range map[string]desklink.Card{"one": s.screens(1), "two": s.screens(2), "three": s.screens(3), "five": s.screens(5), "click": s.clicking(), "wayland": wayland} {
				c.Request.ID = name
				s.show(c)
				s.paint()
				s.clock.run(time.Second)
				for i, sc := range c.Request.Screens {
					l := consent.Look{Request: name, Screen: sc.Name, Data: onScreen(640, 360)}
					switch i {
					case 1:
						l.Data = onScreen(300, 480)
					case 2:
						l.Data, l.Note = nil, "This screen can't be seen now: it is switched off."
					case 0:
						l.Note = "KeePassXC is blacked out"
					}
					s.look(l)
				}
				if name == "click" {
					s.look(consent.Look{Request: name, Data: onScreen(640, 360)})
				}
				file := "screens-" + name + "-" + theme
				if scale == 2 {
					file += "-200"
				}
				s.keep(w, file)
				s.inside(w)
			}
		}
	}
}
