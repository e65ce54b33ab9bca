package ui

import (
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// advanced is where an AutoGPT platform is, for those whose platform is not
// the public one.
type advanced struct {
	of     *pairWindow
	open   bool
	toggle *kit.Button
	reset  *kit.Button
	fields []advancedField
	// shown is what the settings had when the fields last held just that.
	shown snapshot.AutoGPT
}

type advancedField struct {
	name  string
	field *kit.Field
	of    func(*snapshot.AutoGPT) *string
}

func newAdvanced(p *pairWindow, submit func()) *advanced {
	a := &advanced{of: p}
	add := func(name, hint string, of func(*snapshot.AutoGPT) *string) {
		f := kit.NewField(hint)
		f.OnEscape = p.leave
		f.OnSubmitted = func(string) { submit() }
		a.fields = append(a.fields, advancedField{name, f, of})
	}
	add("Client ID", "autogpt-local-executor", func(g *snapshot.AutoGPT) *string { return &g.ClientID })
	add("Scope", "USE_TOOLS", func(g *snapshot.AutoGPT) *string { return &g.Scope })
	add("Redirect ports", "41899-41910", func(g *snapshot.AutoGPT) *string { return &g.Ports })
	add("Web address", "https://…", func(g *snapshot.AutoGPT) *string { return &g.Web })
	add("API address", "https://…", func(g *snapshot.AutoGPT) *string { return &g.API })
	add("WebSocket address", "wss://…", func(g *snapshot.AutoGPT) *string { return &g.WS })
	a.toggle = kit.NewButton("▸ Advanced", kit.Link, func() {
		a.open = !a.open
		p.draw()
	}).WithKeys(p.keys())
	a.reset = kit.NewButton("Reset to defaults", kit.Link, func() { a.fill(p.ui.snap.Connect.AutoGPTUsual) }).WithKeys(p.keys())
	return a
}

// fill puts values into the fields.
func (a *advanced) fill(g snapshot.AutoGPT) {
	for _, f := range a.fields {
		f.field.SetText(*f.of(&g))
	}
}

// typed is what the fields hold.
func (a *advanced) typed() snapshot.AutoGPT {
	var g snapshot.AutoGPT
	for _, f := range a.fields {
		*f.of(&g) = strings.TrimSpace(f.field.Text)
	}
	return g
}

// changed is what the fields hold if that is not what the settings have.
func (a *advanced) changed() *snapshot.AutoGPT {
	if g := a.typed(); g != a.of.ui.snap.Connect.AutoGPT {
		return &g
	}
	return nil
}

func (a *advanced) draw() fyne.CanvasObject {
	now := a.of.ui.snap.Connect.AutoGPT
	switch typed := a.typed(); {
	case typed == now:
		a.shown = now
	case typed == a.shown: // nothing was typed over it
		a.shown = now
		a.fill(now)
	}
	if !a.open {
		a.toggle.SetText("▸ Advanced")
		return kit.Row(0, a.toggle, kit.Space())
	}
	a.toggle.SetText("▾ Advanced")
	col := kit.Column(8, kit.Row(0, a.toggle, kit.Space(), a.reset),
		kit.NewFlow(pairWidth, kit.Small, kit.Plain("Only for an AutoGPT at another address. Whoever runs it knows what belongs here.", kit.Dim)))
	for _, f := range a.fields {
		name := kit.NewFlow(120, kit.Small, kit.Plain(f.name, kit.Dim))
		col.Add(kit.Row(8, kit.Width(120, name), kit.Grow(f.field)))
	}
	return col
}

func (a *advanced) kept() []fyne.Focusable {
	kept := []fyne.Focusable{a.toggle}
	if a.open {
		kept = append(kept, a.reset)
		for _, f := range a.fields {
			kept = append(kept, f.field)
		}
	}
	return kept
}
