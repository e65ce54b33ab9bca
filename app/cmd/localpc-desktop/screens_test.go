//go:build linux

package main_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/consent"
)

// screens is the card that asks to see two screens, the first of them chosen.
func screens(id string) desklink.Card {
	c := command(id)
	r := &c.Request
	r.Capability, r.Action, r.Exact, r.Effects, r.Containable, r.FullOffered = consent.CapabilityComputer, "see", "", nil, false, false
	r.Claims.Title, r.Sentence = "Fill in the order form", "Claude is requesting screen access."
	r.Details = []string{"Windows on your hide list are blacked out; anything else on this screen is visible."}
	r.Effects = []consent.Effect{{Kind: consent.EffectSee, Text: "sees what is on the screen"}}
	r.Scopes, r.Looks = []consent.Scope{consent.Session, consent.Minutes15}, true
	r.Screens = []consent.Screen{{Name: "DP-1", Label: "Screen 1 of 2, 2560 × 1440", Chosen: true}, {Name: "HDMI-1", Label: "Screen 2 of 2, 1080 × 1920"}}
	r.Deadline = time.Now().Add(10 * time.Minute)
	c.Waiting = 0
	return c
}

// seen is a picture of one colour with a window on it, and what is not shown: the
// first is grey, others are black.
func seen(w, h int, ground color.RGBA, covered ...image.Rectangle) []byte {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(w/8, h/6, w*6/10, h*8/10), image.White, image.Point{}, draw.Src)
	for i, r := range covered {
		c := image.NewUniform(color.RGBA{0x6b, 0x72, 0x80, 255})
		if i > 0 {
			c = image.Black
		}
		draw.Draw(img, r, c, image.Point{}, draw.Src)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// has says whether a colour is on the screen, in many pixels.
func (d *desk) has(c color.RGBA) bool {
	img, n := d.Capture(), 0
	near := func(a, b uint8) bool { return a-b < 12 || b-a < 12 }
	for i := 0; i < len(img.Pix); i += 4 {
		if near(img.Pix[i], c.R) && near(img.Pix[i+1], c.G) && near(img.Pix[i+2], c.B) {
			n++
		}
	}
	return n > 2000
}

// The person sees what would be seen, and chooses which screens by mouse and by
// keyboard, light and dark, at the usual size and at 200 %.
func TestScreenCard(t *testing.T) {
	t.Parallel()
	blue, green := color.RGBA{0x3a, 0x6e, 0xd8, 255}, color.RGBA{0x2f, 0x9e, 0x6a, 255}
	for _, c := range []struct {
		name string
		o    apptest.Options
		env  string
	}{{"light", apptest.Options{}, "FYNE_SCALE=1"}, {"dark-200", apptest.Options{Width: 1600, Height: 1500, Dark: true}, "FYNE_SCALE=2"}} {
		t.Run(c.name, func(t *testing.T) {
			d := start(t, c.o, c.env)
			card := screens("mouse")
			d.send(desklink.Down{Card: &card})
			d.shown("mouse")
			d.send(desklink.Down{Look: &consent.Look{Request: "mouse", Screen: "DP-1", Data: seen(1280, 720, blue), Note: "KeePassXC is blacked out"}})
			d.send(desklink.Down{Look: &consent.Look{Request: "mouse", Screen: "HDMI-1", Data: seen(540, 960, green)}})
			if !d.Until(soon, func() bool { return d.has(blue) }) {
				t.Error("the picture of the first screen is not shown")
			}
			a := d.Window(cardTitle)
			a.WaitSentence(soon, "Claude is requesting screen access")
			d.Screenshot("screens-" + c.name)
			time.Sleep(time.Second)
			a.ClickText("Screen 2 of 2")
			if !d.Until(soon, func() bool { return d.has(green) }) { // not faded any more
				t.Error("the second screen is not chosen")
			}
			d.Screenshot("screens-both-" + c.name)
			d.clickAllowAt(c.env)
			want := consent.Choice{Scope: consent.Session, Screens: "DP-1\nHDMI-1"}
			if got := d.answer("mouse"); !got.Allow || got.Choice != want {
				t.Errorf("the card gave %+v", got)
			}

			d.WaitNoWindow(soon, cardTitle)
			card = screens("keys")
			d.send(desklink.Down{Card: &card})
			d.shown("keys")
			time.Sleep(time.Second)
			d.send(desklink.Down{Raise: &desklink.RaiseCard{}})
			if !d.Until(soon, func() bool { return strings.Contains(d.Keyboard(), cardTitle) }) {
				t.Fatal("a raised card has no focus")
			}
			for _, key := range []string{"Tab", "Tab", // over the other denial to the first screen,
				"space", "Tab", // which is taken out; to the second,
				"space", "Tab", // which is taken in; to how long:
				"Right"} { // 15 minutes
				d.Key(key)
			}
			d.Type("47")
			want = consent.Choice{Scope: consent.Minutes15, Screens: "HDMI-1"}
			if got := d.answer("keys"); !got.Allow || got.Choice != want {
				t.Errorf("by keyboard the card gave %+v", got)
			}
		})
	}
}

// clickAllowAt is clickAllow at a scale.
func (d *desk) clickAllowAt(scale string) {
	d.t.Helper()
	k := 1
	if scale == "FYNE_SCALE=2" {
		k = 2
	}
	w := d.WaitWindow(soon, cardTitle)
	d.Click(w.Rect.Max.X-k*(24+30), w.Rect.Max.Y-k*(24+17))
}

// Where there is little room the card scrolls, and allows once all of it was
// seen.
func TestScreenCardOnASmallScreen(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{Width: 800, Height: 600})
	card := screens("small")
	card.Request.Screens = append(card.Request.Screens, consent.Screen{Name: "DP-2", Label: "Screen 3"}, consent.Screen{Name: "DP-3", Label: "Screen 4"})
	d.send(desklink.Down{Card: &card})
	d.shown("small")
	time.Sleep(time.Second)
	a := d.Window(cardTitle)
	a.WaitText(soon, "Read on")
	d.Screenshot("screens-small")
	d.clickAllow()
	if n := d.answers(); n != 0 {
		t.Fatal("it allowed before all of it was seen")
	}
	a.ClickText("Read on")
	a.WaitNoText(soon, "Read on")
	d.Screenshot("screens-small-end")
	d.clickAllow()
	if got := d.answer("small"); !got.Allow || got.Choice.Screens != "DP-1" {
		t.Errorf("the card gave %+v", got)
	}
}
