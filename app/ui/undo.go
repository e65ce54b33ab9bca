package ui

import (
	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// undoing is what stands between a click on Undo and its end: the question that
// newer work raises.
type undoing struct {
	wish     snapshot.Intent // the last one sent
	question string          // "" while nothing is asked
}

// undo sends a wish to have something put back.
func (a *activityWindow) undo(kind snapshot.IntentKind, entry string) {
	a.banners.undo = undoing{wish: snapshot.Intent{Kind: kind, Entry: entry}}
	a.ui.ask(a, a.banners.undo.wish)
	a.draw()
}

// undone takes the answer; false when it is none to an Undo.
func (a *activityWindow) undone(t desklink.Told) bool {
	u := &a.banners.undo
	if t.Intent != u.wish.Kind || u.wish.Kind == "" {
		return false
	}
	u.question = t.Question
	if t.Question == "" {
		*u = undoing{}
	}
	return t.Question != ""
}

// ask is the line with the question. Nothing was done yet.
func (b *banners) ask() {
	answer := func(yes bool) func() {
		return func() {
			wish := b.undo.wish
			b.undo = undoing{}
			if yes {
				wish.Way = "anyway"
				b.undo.wish = wish
				b.again(wish)
			}
			b.redraw()
		}
	}
	keys := &kit.Keys{Key: func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape {
			answer(false)()
		}
	}}
	yes := kit.NewButton("Undo all the same", kit.Danger, answer(true)).Slim().WithKeys(keys)
	no := kit.NewButton("Leave it", kit.Normal, answer(false)).Slim().WithKeys(keys)
	b.stay = no
	b.add(kit.ToneWarn, 320, kit.Remote(b.undo.question, kit.Plain("", kit.Ink)), no, yes)
}

// toUndo is the session that "Undo this session" is about after everything was
// stopped; ok is false where it could be several, or there is nothing to undo.
func toUndo(s snapshot.Snapshot) (session string, ok bool) {
	for _, open := range s.Sessions {
		if open.CanUndo == 0 {
			continue
		}
		if session != "" {
			return "", false
		}
		session = open.ID
	}
	return session, session != ""
}
