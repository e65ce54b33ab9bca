package ui

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// matches is a first guess at a search until its answer comes.
func matches(e snapshot.Entry, text string) bool {
	return text == "" || strings.Contains(strings.ToLower(e.What+"\x00"+e.Who), strings.ToLower(text))
}

// logHead is the state and the two buttons that end work.
type logHead struct {
	ui    *UI
	key   string
	card  *kit.Button
	pause *kit.Button // or Resume
	stop  *kit.Button
	root  *fyne.Container
}

// newLogHead makes its buttons once: who presses one by the keyboard keeps it.
func newLogHead(u *UI, keys *kit.Keys) *logHead {
	h := &logHead{ui: u, root: kit.Column(0)}
	button := func(text string, kind kit.Kind, tap func() snapshot.IntentKind) *kit.Button {
		return kit.NewButton(text, kind, func() { u.intent(snapshot.Intent{Kind: tap()}) }).Slim().WithKeys(keys)
	}
	h.card = button("", kit.Primary, func() snapshot.IntentKind { return snapshot.ShowCard })
	h.pause = button("", kit.Normal, func() snapshot.IntentKind {
		if u.snap.Paused {
			return snapshot.Resume
		}
		return snapshot.Pause
	})
	h.stop = button("Stop everything", kit.Danger, func() snapshot.IntentKind { return snapshot.StopAll })
	return h
}

func (h *logHead) draw() (changed bool) {
	s := h.ui.snap
	key := fmt.Sprint(s.State, s.Line, s.Connect.SignIn != nil, s.Machine, s.Waiting, s.Paused, s.Stopped != nil)
	if key == h.key {
		return false
	}
	h.key = key
	buttons := kit.Row(8)
	if s.Waiting > 0 {
		h.card.SetText(itoa(s.Waiting) + " waiting: show")
		buttons.Add(h.card)
	}
	if s.Stopped == nil { // the banner has its Resume
		word := "Pause"
		if s.Paused {
			word = "Resume"
		}
		h.pause.SetText(word)
		buttons.Add(h.pause)
		buttons.Add(h.stop)
	}
	h.root.Objects = []fyne.CanvasObject{kit.Ends(stateLine(s, 480), buttons)}
	h.root.Refresh()
	return true
}

// logFoot says whether the record is whole, and today's traffic.
type logFoot struct {
	ui      *UI
	record  *kit.Flow
	traffic *kit.Flow
	again   *kit.Button
	root    *fyne.Container
}

func newLogFoot(u *UI, keys *kit.Keys) *logFoot {
	f := &logFoot{ui: u, record: kit.NewLine(420, kit.Small, 2), traffic: kit.NewLine(280, kit.Small, 1)}
	f.again = kit.NewButton("Check again", kit.Link, func() { u.intent(snapshot.Intent{Kind: snapshot.VerifyAgain}) }).WithKeys(keys)
	f.root = kit.Ends(kit.Row(12, f.record, f.again), f.traffic)
	return f
}

func (f *logFoot) draw() {
	s := f.ui.snap
	switch {
	case s.Record.Problem != "":
		f.record.Set(append([]kit.Span{kit.Bold("◆ ", kit.Risk)}, kit.Remote(s.Record.Problem, kit.Bold("", kit.Risk))...)...)
	case s.Record.OK && !s.Record.Since.IsZero():
		f.record.Set(kit.Bold("✓ Record complete since "+sinceWord(s.Record.Since, f.ui.o.Clock.Now()), kit.OK))
	default:
		f.record.Set(kit.Plain("The record has not been checked yet", kit.Dim))
	}
	f.traffic.Set(kit.Plain("Today: "+bytesWord(s.Today.Received)+" received · "+bytesWord(s.Today.Sent)+" sent", kit.Dim))
	f.root.Refresh()
}
