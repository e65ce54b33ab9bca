package ui

import (
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"localpc/app/ui/kit"
	"localpc/consent"
	"localpc/consent/policy"
)

// modes are the ways that a session card offers. The one that asks least is
// shown only to who wants to see it: nobody chooses it by accident.
var modes = []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk, consent.ModeTrusted}

// modeSigns stand in front of them.
var modeSigns = map[consent.Mode]kit.Option{consent.ModeLook: {Icon: theme.IconNameVisibility}, consent.ModeWork: {Icon: theme.IconNameDocumentCreate},
	consent.ModeAsk: {Icon: theme.IconNameQuestion}, consent.ModeTrusted: {Sign: "15"}}

// sessionBody is the body of the card that opens a session: which folder, and
// how.
type sessionBody struct {
	o        *openCard
	folder   string
	field    *kit.Flow
	mode     *kit.Options
	remember *kit.Check
	// tail is what depends on the way: Remember, or the warning.
	tail    *fyne.Container
	picking bool
	more    bool // ModeTrusted is shown, too
}

func newSessionBody(o *openCard) *sessionBody {
	b := &sessionBody{o: o}
	if f := o.card.Folders; len(f) > 0 {
		b.folder = f[0]
	} else {
		b.folder = o.card.Request.Folder
	}
	return b
}

func (b *sessionBody) content() fyne.CanvasObject {
	r, w := b.o.card.Request, b.o.width
	sentence := r.Sentence
	if sentence == "" {
		sentence = "Let " + r.Principal.Name + " work on this computer?"
	}
	col := kit.Column(0,
		title(w, sentence),
		kit.Pad(4, 0, 16, 0, kit.NewFlow(w, kit.Body, kit.Plain("It gets one folder. Everything else stays closed.", kit.Dim))))

	if b.o.card.FolderOnly { // whole: it is what is answered about
		col.Add(kit.Pad(0, 0, 16, 0, kit.Row(8, caption("Folder"), kit.Grow(kit.NewFlow(w-64, kit.Body, kit.Remote(shortPath(b.folder), kit.Bold("", kit.Ink))...)))))
	} else {
		col.Add(b.chooser(w))
	}
	b.addModes(col, w)
	return col
}

// chooser is the folder, with a button that changes it.
func (b *sessionBody) chooser(w float32) fyne.CanvasObject {
	choose := kit.NewButton("Choose…", kit.Normal, b.pick).WithKeys(b.o.keys)
	fieldW := w - 56 - 8 - choose.MinSize().Width - 8 - 24
	b.field = kit.NewLine(fieldW, kit.Body, 2)
	b.drawFolder()
	field := kit.Panel(kit.Pane, kit.Edge, 8, kit.Pad(0, 4, 0, 4, b.field))
	return kit.Pad(0, 0, 16, 0, kit.Row(8, caption("Folder"), kit.Grow(field), choose))
}

// addModes asks how.
func (b *sessionBody) addModes(col *fyne.Container, w float32) {
	r := b.o.card.Request
	var items []kit.Option
	for _, m := range b.ways() {
		it := modeSigns[m]
		it.Name, it.Line = policy.ModeWords(m), modeLine(m, b.o.card.ContainProblem != "")
		items = append(items, it)
	}
	on := 1
	for i, m := range b.ways() {
		if m == r.Mode && m != consent.ModeTrusted { // that is only ever chosen by hand
			on = i
		}
	}
	if b.mode == nil {
		b.mode = kit.NewOptions(w, items, on, b.o.keys, func(int) { b.changed() })
	}
	if b.remember == nil {
		spans := []kit.Span{kit.Plain("Remember for ", kit.Ink)}
		spans = append(spans, kit.Remote(r.Principal.Name, kit.Plain("", kit.Ink))...)
		spans = append(spans, kit.Plain(" and this folder", kit.Ink))
		b.remember = kit.NewCheck(w, b.o.keys, nil, spans...)
	}
	b.tail = kit.Column(0)
	b.draw()
	col.Add(b.mode)
	if !b.more {
		more := kit.NewButton("Another way: trusted for 15 minutes", kit.Link, b.showMore).WithKeys(b.o.keys)
		col.Add(kit.Pad(6, 0, 0, -2, kit.Row(0, more, kit.Space())))
	}
	col.Add(b.tail)
	if p := b.o.card.ContainProblem; p != "" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneWarn, kit.Remote(p, kit.Plain("", kit.Ink))...)))
	}
	b.o.addDetails(col, r)
}

func (b *sessionBody) changed() {
	b.draw()
	b.o.grown()
}

// ways are the modes that are shown.
func (b *sessionBody) ways() []consent.Mode {
	if b.more {
		return modes
	}
	return modes[:len(modes)-1]
}

// showMore shows the last way. It is not chosen by that.
func (b *sessionBody) showMore() {
	on := b.mode.Selected()
	b.more, b.mode = true, nil
	b.o.build()
	b.mode.Select(on)
	b.o.grown()
	b.o.of.win.Canvas().Focus(b.mode)
}

// last is the way that is chosen; of trust, its warning.
func (b *sessionBody) last() (string, fyne.CanvasObject) {
	if b.trusted() {
		return "card, trusted", b.tail
	}
	return "card", b.mode.Chosen()
}

func (b *sessionBody) trusted() bool { return modes[b.mode.Selected()] == consent.ModeTrusted }

// draw shows what belongs to the chosen way. Trust is never remembered.
func (b *sessionBody) draw() {
	tail := fyne.CanvasObject(b.remember)
	if b.trusted() {
		tail = kit.Note(b.o.width, kit.ToneWarn, kit.Plain("What it deletes or replaces meanwhile can be undone in Activity, as far as it is kept.", kit.Ink))
	}
	b.tail.Objects = []fyne.CanvasObject{kit.Pad(8, 0, 0, 0, tail)}
	b.tail.Refresh()
}

// modeLine explains a mode in one line.
func modeLine(m consent.Mode, noContainer bool) string {
	switch {
	case m == consent.ModeLook:
		return "Read what is in it, change nothing. Commands are asked about."
	case m == consent.ModeWork && noContainer:
		return "Read and change files in it. You are asked before more than 10 files are deleted or moved, and before each command, because this computer can't keep programs inside a folder."
	case m == consent.ModeWork:
		return "Read and change files, run programs. Your other files stay closed, and the network until you allow it. You are asked before more than 10 files are deleted or moved, but programs may do so on their own."
	case m == consent.ModeTrusted && noContainer:
		return "Work in this folder, but delete, move, replace without asking. You are asked before each command all the same."
	case m == consent.ModeTrusted:
		return "Work in this folder, but delete, move, replace without asking."
	}
	return "Nothing happens before you have seen it."
}

func (b *sessionBody) drawFolder() {
	if b.folder == "" {
		b.field.Set(kit.Plain("No folder chosen yet", kit.Dim))
		return
	}
	b.field.Set(kit.Remote(shortPath(b.folder), kit.Plain("", kit.Ink))...)
}

func (b *sessionBody) choice() (consent.Choice, bool) {
	c := consent.Choice{Scope: consent.Session, Mode: modes[b.mode.Selected()], Folder: b.folder, Remember: b.remember.On() && !b.trusted()}
	return c, b.folder != "" && !b.picking
}

func (b *sessionBody) allowWord() string {
	if b.trusted() {
		return "Start, trusted"
	}
	return "Start"
}

// pick shows the folders in place of the card.
func (b *sessionBody) pick() {
	b.picking = true
	start := b.folder
	if _, err := os.Stat(start); err != nil { // none yet, or one that is still to be made
		start, _ = os.UserHomeDir()
	}
	done := func(folder string) {
		b.picking = false
		if folder != "" {
			b.folder = folder
			// The home may be reached through a link; the machine takes none.
			if real, err := filepath.EvalSymlinks(folder); err == nil {
				b.folder = real
			}
		}
		b.o.build()
		b.o.changed()
	}
	p := newPicker(b.o.of.ui, b.o.width, b.o.keys, b.o.card.Folders, start, done)
	b.o.set(kit.Pad(cardPad, cardPad, 8, cardPad, p.view("Folder to work in")), kit.Pad(8, cardPad, cardPad, cardPad, p.buttons()), func() float32 { return 480 })
	b.o.of.win.Canvas().Focus(p.rows)
	b.o.changed()
}

// shortPath writes the home folder as ~.
func shortPath(p string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rel, err := filepath.Rel(home, p); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			if rel == "." {
				return "Home folder"
			}
			return "~/" + rel
		}
	}
	return p
}
