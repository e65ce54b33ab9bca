//go:build linux

package apptest

import (
	"bytes"
	"image"
	"strings"
	"time"
)

// Area is a part of the screen in which a person looks for words: all of it, a
// window wherever it is moved, or a menu. Small areas are read faster.
type Area struct {
	d    *Desktop
	rect func() (image.Rectangle, bool)
}

// Screen is the whole inner screen.
func (d *Desktop) Screen() *Area {
	return &Area{d, func() (image.Rectangle, bool) { return image.Rect(0, 0, d.opts.Width, d.opts.Height), true }}
}

// In is the area of a rectangle.
func (d *Desktop) In(r image.Rectangle) *Area {
	return &Area{d, func() (image.Rectangle, bool) { return r, true }}
}

// Window is the area of the newest window whose title contains title; it need
// not be there yet.
func (d *Desktop) Window(title string) *Area {
	return &Area{d, func() (image.Rectangle, bool) { w, ok := d.FindWindow(title); return w.Rect, ok }}
}

// Rect is where the area is now; ok is false when its window is gone.
func (a *Area) Rect() (r image.Rectangle, ok bool) { return a.rect() }

// Words reads all words in the area, in reading order.
func (a *Area) Words() []Word {
	a.d.t.Helper()
	return a.read(0)
}

// Closely reads all words as the most thorough look does.
func (a *Area) Closely() []Word {
	a.d.t.Helper()
	return a.read(looks - 1)
}

// Text is everything written in the area, one line for each line seen.
func (a *Area) Text() string {
	a.d.t.Helper()
	var b strings.Builder
	for _, l := range lines(a.Words()) {
		for i, w := range l {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// read recognises the area now.
func (a *Area) read(look int) []Word {
	a.d.t.Helper()
	r, ok := a.rect()
	if !ok {
		return nil
	}
	img := a.d.Capture()
	r = r.Intersect(img.Bounds())
	if r.Dx() < 4 || r.Dy() < 4 {
		return nil
	}
	words, err := a.d.recognise(img.SubImage(r).(*image.RGBA), look)
	if err != nil {
		a.d.t.Fatalf("read the screen: %v", err)
	}
	return words
}

// FindText looks once for words that stand next to each other on one line, in
// any case, with the small errors that reading a picture makes. It returns
// where they are on the screen.
func (a *Area) FindText(words ...string) (image.Rectangle, bool) {
	a.d.t.Helper()
	want := strings.Join(words, " ")
	for look := range looks {
		if r, ok := find(a.read(look), want); ok {
			return r, true
		}
	}
	return image.Rectangle{}, false
}

// Contains looks once for a sentence that may wrap over several lines of the
// area, and may be in one column only.
func (a *Area) Contains(sentence string) bool {
	a.d.t.Helper()
	for look := range looks {
		if contains(a.read(look), sentence) {
			return true
		}
	}
	return false
}

// WaitText waits until FindText finds, at most for limit, and returns where.
func (a *Area) WaitText(limit time.Duration, words ...string) image.Rectangle {
	a.d.t.Helper()
	var r image.Rectangle
	if !until(limit, func() (ok bool) { r, ok = a.FindText(words...); return ok }) {
		a.d.fail("%q does not appear within %v", strings.Join(words, " "), limit)
	}
	return r
}

// WaitSentence waits until Contains is true, at most for limit.
func (a *Area) WaitSentence(limit time.Duration, sentence string) {
	a.d.t.Helper()
	if !until(limit, func() bool { return a.Contains(sentence) }) {
		a.d.fail("%q does not appear within %v", sentence, limit)
	}
}

// WaitNoText waits until FindText no longer finds, at most for limit.
func (a *Area) WaitNoText(limit time.Duration, words ...string) {
	a.d.t.Helper()
	if !until(limit, func() bool { _, ok := a.FindText(words...); return !ok }) {
		a.d.fail("%q is still there after %v", strings.Join(words, " "), limit)
	}
}

// ClickText waits up to 10 s for the words, and to stand still: a person does not
// click where something was before its window grew. It clicks in their middle.
func (a *Area) ClickText(words ...string) {
	a.d.t.Helper()
	var r image.Rectangle
	if !until(10*time.Second, func() bool {
		before := a.d.Capture()
		at, ok := a.FindText(words...)
		if ok {
			r = at
		}
		return ok && same(before, a.d.Capture(), r)
	}) && r.Empty() {
		a.d.fail("%q does not appear within 10 s", strings.Join(words, " "))
	}
	c := r.Min.Add(r.Max).Div(2)
	a.d.Click(c.X, c.Y)
}

// same tells whether two pictures have the same pixels in r.
func same(a, b *image.RGBA, r image.Rectangle) bool {
	r = r.Intersect(a.Rect).Intersect(b.Rect)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		i, j := a.PixOffset(r.Min.X, y), b.PixOffset(r.Min.X, y)
		if !bytes.Equal(a.Pix[i:i+4*r.Dx()], b.Pix[j:j+4*r.Dx()]) {
			return false
		}
	}
	return true
}

// FindText is Screen().FindText; the others likewise.
func (d *Desktop) FindText(words ...string) (image.Rectangle, bool) {
	d.t.Helper()
	return d.Screen().FindText(words...)
}

func (d *Desktop) WaitText(limit time.Duration, words ...string) image.Rectangle {
	d.t.Helper()
	return d.Screen().WaitText(limit, words...)
}

func (d *Desktop) WaitNoText(limit time.Duration, words ...string) {
	d.t.Helper()
	d.Screen().WaitNoText(limit, words...)
}

func (d *Desktop) ClickText(words ...string) {
	d.t.Helper()
	d.Screen().ClickText(words...)
}
