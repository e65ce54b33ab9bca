package ui

import (
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// farName is what a hub is called.
func farName(h snapshot.Hub) string {
	if h.Name == "" {
		return host(h.Address)
	}
	return h.Name
}

// pairedWith says with whom this computer is paired, and as whose: somebody
// else may have agreed on the hub's page. A long name leaves room for that.
func pairedWith(h snapshot.Hub, like kit.Span) []kit.Span {
	say := func(text string) kit.Span { s := like; s.Text = text; return s }
	name := farName(h)
	if h.Kind == "this" {
		name = "this computer only"
	}
	if r := []rune(name); len(r) > 60 {
		name = string(r[:59]) + "…"
	}
	out := append([]kit.Span{say("Paired with ")}, kit.Remote(name, like)...)
	if h.Account != "" {
		out = append(append(out, say(" as ")), kit.Remote(h.Account, like)...)
	}
	return out
}

// keysPage is where an own hub makes keys, autoGPTPage where AutoGPT is.
func keysPage(h snapshot.Hub) string { return strings.TrimSuffix(h.Address, "/") + "/keys" }

func autoGPTPage(s snapshot.Snapshot) string {
	if s.Connect.AutoGPT.Web != "" {
		return s.Connect.AutoGPT.Web
	}
	return s.Hub.Address
}

// paired is the last page for a hub that is not inside this program: what is
// next.
func (p *pairWindow) paired(s snapshot.Snapshot) {
	keys := p.keys()
	name := farName(s.Hub)
	col := p.head(pairedWith(s.Hub, kit.Bold("", kit.Ink)), "")
	if s.Hub.Address != "" && name != s.Hub.Address {
		col.Add(kit.Pad(4, 0, 0, 0, kit.NewLine(pairWidth, kit.Small, 2, kit.Remote(s.Hub.Address, kit.Plain("", kit.Dim))...)))
	}
	col.Add(kit.Pad(16, 0, 16, 0, stateLine(s, pairWidth)))
	col.Add(kit.Rule())

	title, line, label, page := "Make a key for a program", "Programs reach this computer through the hub, each with a key of its own. The hub's Keys page makes one.",
		"Open the Keys page", keysPage(s.Hub)
	if s.Hub.Kind == "autogpt" {
		title, line, label, page = "Choose this computer in a chat", "Open a chat in AutoGPT, and choose this computer and a folder there. You are asked here before anything happens.",
			"Open AutoGPT", autoGPTPage(s)
	}
	note := kit.NewFlow(80, kit.Small)
	open := kit.NewButton(label, kit.Primary, func() { p.visit(page) }).WithKeys(keys)
	col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Lead, kit.Bold(title, kit.Ink))))
	col.Add(kit.Pad(4, 0, 0, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain(line, kit.Dim))))
	col.Add(kit.Pad(12, 0, 0, 0, kit.Row(8, open, p.copier("Copy the address", kit.Normal, page, note, keys), note)))

	var first fyne.Focusable = open
	if len(s.Connect.Clients) > 0 {
		col.Add(kit.Pad(16, 0, 12, 0, kit.Rule()))
		col.Add(kit.Pad(0, 0, 8, 0, kit.NewFlow(pairWidth, kit.Lead, kit.Bold("Connect a program on this computer", kit.Ink))))
		p.clientList(col, s.Connect, keys)
	}
	unpair := kit.NewButton("Unpair", kit.Normal, func() { p.sure = true; p.draw() }).WithKeys(keys)
	if p.sure {
		unpair.Hide()
		stay := kit.NewButton("Keep it paired", kit.Normal, func() { p.sure = false; p.draw() }).WithKeys(keys)
		really := kit.NewButton("Unpair", kit.Danger, func() { p.ui.intent(snapshot.Intent{Kind: snapshot.Unpair}) }).WithKeys(keys)
		words := kit.NewFlow(pairWidth-24, kit.Body, kit.Bold("Unpair this computer? ", kit.Ink), kit.Plain("What programs run here ends, and to pair again you sign in again.", kit.Ink))
		col.Add(kit.Pad(16, 0, 0, 0, kit.Panel(kit.WarnBG, kit.None, 12, kit.Column(12, words, kit.Row(8, kit.Space(), really, stay)))))
		first = stay
	}
	p.set(pagePaired+word(p.sure), col, kit.Row(8, unpair, kit.Space(), kit.NewButton("Close", kit.Normal, p.leave).WithKeys(keys)), first)
}
