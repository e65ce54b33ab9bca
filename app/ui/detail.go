package ui

import (
	"slices"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// detailPane shows one entry of the log whole. Its parts stay the same while
// the entry lives on, so that a place in the output is kept.
type detailPane struct {
	of   *activityWindow
	root *fyne.Container
	body *fyne.Container
	foot *fyne.Container
	now  snapshot.Entry
	last snapshot.Detail
	poll func() // stops the next question about what runs

	sentence *kit.Flow
	where    *kit.Flow
	chip     *kit.Chip
	result   *kit.Flow
	exact    *part
	details  *part
	output   *part
	picture  *sentPicture
	notes    *kit.Flow
	reason   *kit.Flow
	under    [3]*fyne.Container // of where, reason and notes: hidden while empty
	by       *kit.Flow
	stop     *kit.Button
	next     *kit.Button
	undo     *kit.Button
	back     *fyne.Container // of undo, and of the whole session
}

// part is a heading with exact text below, hidden while there is none.
type part struct {
	head  *kit.Flow
	words *kit.Flow // sentences above it, hidden while there are none
	text  *kit.Exact
	box   *fyne.Container
}

const paneInner = paneWidth - 32

func newPart(words string, most int, keys *kit.Keys) *part {
	p := &part{head: kit.NewFlow(paneInner, kit.Small, kit.Plain(words, kit.Dim)), words: kit.NewFlow(paneInner, kit.Small), text: kit.NewExact(paneInner, most, keys, "")}
	p.words.Hide()
	p.box = kit.Pad(12, 0, 0, 0, kit.Column(4, p.head, p.words, p.text))
	p.box.Hide()
	return p
}

func (p *part) set(text string) {
	p.box.Hidden = text == ""
	p.text.Set(text)
}

func newDetailPane(a *activityWindow, keys *kit.Keys) *detailPane {
	p := &detailPane{of: a}
	p.sentence = kit.NewLine(paneInner, kit.Lead, 6)
	p.where = kit.NewLine(paneInner, kit.Small, 4)
	p.chip = kit.NewChip("", "", kit.ToneQuiet)
	p.result = kit.NewLine(paneInner, kit.Small, 3)
	p.exact = newPart("Exactly this", 8, keys)
	p.details = newPart("Details", 5, keys)
	p.output = newPart("Output", 12, keys)
	p.output.text.Follow = true
	p.picture = newSentPicture(a, keys)
	p.notes, p.reason, p.by = kit.NewFlow(paneInner, kit.Small), kit.NewFlow(paneInner, kit.Body), kit.NewLine(paneInner-110, kit.Small, 2).Right()
	p.stop = kit.NewButton("Stop this", kit.Danger, func() { a.ui.intent(snapshot.Intent{Kind: snapshot.StopOne, Entry: p.now.ID}) }).WithKeys(keys)
	p.next = kit.NewButton("Allow next time", kit.Normal, func() { a.ui.intent(snapshot.Intent{Kind: snapshot.AllowNext, Entry: p.now.ID}) }).WithKeys(keys)
	p.undo = kit.NewButton("Undo", kit.Normal, func() { a.undo(snapshot.Undo, p.now.ID) }).WithKeys(keys)
	whole := kit.NewButton("Undo this session", kit.Link, func() { a.undo(snapshot.UndoSession, p.now.ID) }).WithKeys(keys)
	p.back = kit.Row(8, p.undo, whole, kit.Space())

	p.under = [3]*fyne.Container{kit.Pad(4, 0, 0, 0, p.where), kit.Pad(8, 0, 0, 0, p.reason), kit.Pad(8, 0, 0, 0, p.notes)}
	p.body = kit.Column(0, p.sentence, p.under[0], kit.Pad(8, 0, 0, 0, kit.Wrap(paneInner, 8, p.chip, kit.Pad(3, 0, 0, 0, p.result))),
		p.under[1], p.picture.box, p.exact.box, p.output.box, p.details.box, p.under[2])
	p.foot = kit.Row(8, p.stop, p.next, kit.Space(), p.by)
	foot := kit.Pad(8, 16, 16, 16, kit.Column(8, p.back, p.foot))
	scroll := container.NewVScroll(kit.Pad(16, 16, 8, 16, p.body))
	p.root = container.NewStack(kit.Panel(kit.Pane, kit.None, 0, kit.Frame(nil, scroll, foot)).Square(), kit.LeftLine())
	return p
}

// open shows an entry and asks for what else is known of it.
func (p *detailPane) open(e snapshot.Entry) {
	p.last = snapshot.Detail{}
	p.now = snapshot.Entry{}
	p.entry(e)
	p.ask()
}

func (p *detailPane) ask() {
	if p.poll != nil {
		p.poll()
		p.poll = nil
	}
	p.of.ui.intent(snapshot.Intent{Kind: snapshot.GetDetail, Entry: p.now.ID})
}

// entry takes news of the entry that is shown.
func (p *detailPane) entry(e snapshot.Entry) {
	if e == p.now {
		return
	}
	again := p.now.ID == e.ID
	p.now = e
	p.draw()
	if again {
		p.ask() // how it ended, or how far it is
	}
}

// detail takes the answer. While the entry runs it is asked again each second.
func (p *detailPane) detail(d snapshot.Detail) {
	p.last = d
	if d.Entry.Outcome != "" {
		p.now = d.Entry
	}
	p.draw()
	if p.poll == nil && (p.now.Outcome == snapshot.Running || p.now.Outcome == snapshot.Asking) {
		p.poll = p.of.ui.o.Clock.After(time.Second, func() {
			p.poll = nil
			if p.of.chosen == p.now.ID && p.of.ui.open[p.of.win] {
				p.ask()
			}
		})
	}
}

// ran says whether what an entry asked for began.
func ran(e snapshot.Entry) bool {
	switch e.Outcome {
	case snapshot.Running, snapshot.Done, snapshot.Failed, snapshot.Halted:
		return true
	}
	return false
}

// namesFolder tells whether the line that says where something runs has this
// folder, and not one within it.
func namesFolder(where, folder string) bool {
	_, has, _ := strings.Cut(where, "older ")
	return has == folder || strings.HasPrefix(has, folder+" · ")
}

func (p *detailPane) draw() {
	e, d := p.now, p.last
	sentence := d.Sentence
	if sentence == "" || ran(e) { // it is past "wants to"
		sentence = e.What
	}
	p.sentence.Set(kit.Remote(strings.TrimSuffix(sentence, "."), kit.Bold("", kit.Ink))...)
	p.where.Set(kit.Remote(d.Where, kit.Plain("", kit.Dim))...)
	c := outcomeChip(e)
	p.chip.Set(c.shape, c.word, c.tone)
	p.result.Set(kit.Remote(resultWords(e), kit.Plain("", kit.Dim))...)
	reason := reasonWords(e, d.Reason)
	p.reason.Set(kit.Remote(reason, kit.Plain("", kit.Ink))...)
	heading := "Exactly this"
	switch {
	case e.Capability == "shell" && e.Outcome == snapshot.Running:
		heading = "Exactly this runs"
	case e.Capability == "shell" && ran(e):
		heading = "Exactly this ran"
	}
	p.exact.head.Set(kit.Plain(heading, kit.Dim))
	p.exact.set(d.Exact)
	plain, lines := sortDetails(slices.DeleteFunc(slices.Clone(d.Details), func(l string) bool {
		folder, ok := strings.CutPrefix(atHome(l), workingIn)
		return ok && namesFolder(d.Where, folder)
	}))
	p.details.box.Hidden = len(plain)+len(lines) == 0
	p.details.words.Set(sentences(plain, kit.Ink)...)
	p.details.words.Hidden = len(plain) == 0
	p.details.text.Hidden = len(lines) == 0
	p.details.text.SetList(lines)
	p.picture.set(e, d)
	out := "Output"
	if e.Outcome == snapshot.Running {
		out = "Output so far"
	}
	p.output.head.Set(kit.Plain(out, kit.Dim))
	p.output.set(d.Output)
	var notes []kit.Span
	for i, n := range d.Notes {
		if i > 0 {
			notes = append(notes, kit.Plain("\n", kit.Dim))
		}
		notes = append(notes, kit.Plain("· ", kit.Dim))
		notes = append(notes, kit.Remote(n, kit.Plain("", kit.Dim))...)
	}
	p.notes.Set(notes...)
	p.under[0].Hidden, p.under[1].Hidden, p.under[2].Hidden = d.Where == "", reason == "", len(d.Notes) == 0
	p.stop.Hidden = !e.CanStop
	p.next.Hidden = !e.CanAllowNext || e.AllowedNext
	p.back.Hidden = !e.CanUndo
	by := ""
	switch {
	case e.Outcome == snapshot.Allowed && e.AllowedNext:
		by = "Runs once, when it is asked again"
	case e.Outcome == snapshot.Allowed:
		by = "Runs when it is asked again"
	case e.AllowedNext:
		by = "Allowed once, the next time it is asked"
	case e.By == "", e.By == "paused": // the reason says it
	case e.Outcome == snapshot.Denied:
		by = "denied by: " + e.By
	case ran(e) && !strings.HasPrefix(d.Reason, "allowed "): // the reason says it
		by = "allowed by: " + e.By
	}
	p.by.Set(kit.Remote(by, kit.Plain("", kit.Dim))...)
	p.by.Hidden = by == ""
	p.foot.Refresh()
	p.root.Refresh()
	p.body.Refresh()
}
