package ui

import (
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// nav is the row at the top of a window that leads to the others.
type nav struct {
	pair *kit.Button     // nil in the Pair window
	here *fyne.Container // the Pair window's own word; nil in the others
	word string          // what stands there
	root fyne.CanvasObject
}

// newNav makes the row for the window here, whose text begins left from its
// side.
func newNav(u *UI, here string, left float32, keys *kit.Keys) *nav {
	n := &nav{}
	row := kit.Row(4)
	for _, to := range []struct{ window, word string }{
		{snapshot.WindowActivity, "Activity"}, {snapshot.WindowPermissions, "Permissions"}, {snapshot.WindowSettings, "Settings"}, {snapshot.WindowPair, "Pair"}} {
		if to.window == here {
			at := kit.Row(0, kit.Here(to.word))
			if to.window == snapshot.WindowPair {
				n.here, n.word = at, to.word
			}
			row.Add(at)
			continue
		}
		b := kit.NewButton(to.word, kit.Quiet, func() { u.show(to.window) }).Slim().WithKeys(keys)
		if to.window == snapshot.WindowPair {
			n.pair = b
		}
		row.Add(b)
	}
	n.root = kit.Column(0, kit.Pad(6, 8, 6, left-12, row), kit.Rule())
	return n
}

// draw names the Pair window, and the way to it, by what is next there.
func (n *nav) draw(s snapshot.Snapshot) {
	word := strings.TrimSuffix(pairLabel(s), "…")
	if n.pair != nil {
		n.pair.SetText(word)
	}
	if n.here != nil && n.word != word {
		n.word = word
		n.here.Objects = []fyne.CanvasObject{kit.Here(word)}
		n.root.Refresh()
	}
}
