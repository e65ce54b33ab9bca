package ui

import (
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// connect is the last page for the hub inside: the programs on this computer, a
// key for any other, and a sample to try.
func (p *pairWindow) connect(c snapshot.Connect) {
	keys := p.keys()
	col := kit.Column(0, p.banners.box, p.spaced(),
		kit.NewFlow(pairWidth, kit.Title, kit.Bold("Connect a program", kit.Ink)))
	var first fyne.Focusable
	if len(c.Clients) > 0 {
		col.Add(kit.Pad(4, 0, 8, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain("A program that is connected can ask to work on this computer. What it asks for comes to you first.", kit.Dim))))
		first = p.clientList(col, c, keys)
		col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Lead, kit.Bold("A program with the E2B SDK", kit.Ink))))
	}
	col.Add(kit.Pad(4, 0, 16, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain("Any program that uses the E2B SDK, a kit for AI agents, can work here unchanged. It needs three settings, one of them a key of its own.", kit.Dim))))
	if len(c.Lines) == 0 {
		col.Add(p.naming(keys, ""))
		if first == nil {
			first = p.name
		}
	} else {
		first = p.lines(col, c, "Put these lines into the settings of ", ": its environment, or a file called .env beside it. The key is shown only now.", keys)
	}
	col.Add(kit.Pad(12, 0, 0, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("You are asked only about what a program does with these settings. What it does on this computer by other means does not pass through "+Name+".", kit.Dim))))
	col.Add(kit.Pad(20, 0, 20, 0, kit.Rule()))
	col.Add(p.practice(c, keys))
	p.set(pageConnect, col, kit.Row(8, kit.Space(), kit.NewButton("Close", kit.Normal, p.leave).WithKeys(keys)), first)
}

// lines adds a new key's lines, with a button that copies them.
func (p *pairWindow) lines(col *fyne.Container, c snapshot.Connect, before, after string, keys *kit.Keys) fyne.Focusable {
	done := kit.NewButton("Done", kit.Normal, func() { p.ui.intent(snapshot.Intent{Kind: snapshot.ForgetKey}) }).WithKeys(keys)
	copied := kit.NewFlow(120, kit.Small)
	text := strings.Join(c.Lines, "\n") + "\n"
	copyLines := p.copier("Copy", kit.Primary, text, copied, keys)
	about := []kit.Span{kit.Plain(before, kit.Ink)}
	about = append(about, kit.Remote(c.Name, kit.Bold("", kit.Ink))...)
	about = append(about, kit.Plain(after, kit.Ink))
	col.Add(kit.Pad(0, 0, 8, 0, kit.NewFlow(pairWidth, kit.Body, about...)))
	col.Add(kit.NewExact(pairWidth, 10, keys, strings.Join(c.Lines, "\n")))
	col.Add(kit.Pad(12, 0, 0, 0, kit.Row(8, copyLines, done, copied)))
	return copyLines
}

// naming asks for the program's name; way is MakeKey's.
func (p *pairWindow) naming(keys *kit.Keys, way string) fyne.CanvasObject {
	old := ""
	if p.name != nil {
		old = p.name.Text
	}
	var button *kit.Button
	p.name = kit.NewField("Its name, such as Research agent")
	p.name.OnEscape = p.leave
	p.name.Resume(old)
	ask := func() {
		if n := strings.TrimSpace(p.name.Text); n != "" {
			p.name.SetText("")
			p.ui.intent(snapshot.Intent{Kind: snapshot.MakeKey, Text: n, Way: way})
		}
	}
	button = kit.NewButton("Make a key", kit.Primary, ask).WithKeys(keys)
	button.Enable(strings.TrimSpace(old) != "")
	p.name.OnChanged = func(s string) { button.Enable(strings.TrimSpace(s) != "") }
	p.name.OnSubmitted = func(string) { ask() }
	return kit.Row(8, kit.Grow(p.name), button)
}

// practice offers the built-in sample and says how it goes.
func (p *pairWindow) practice(c snapshot.Connect, keys *kit.Keys) fyne.CanvasObject {
	words := kit.Column(4, kit.NewFlow(pairWidth-140, kit.Lead, kit.Bold("Try it safely", kit.Ink)),
		kit.NewFlow(pairWidth-140, kit.Body, kit.Plain("A built-in sample writes three practice files and counts to twenty, so that you see a card, the log and Stop once.", kit.Dim)))
	try := kit.NewButton("Try it safely", kit.Normal, func() { p.ui.intent(snapshot.Intent{Kind: snapshot.Practice}) }).WithKeys(keys)
	log := kit.NewButton("Show Activity", kit.Link, func() { p.ui.show(snapshot.WindowActivity) }).WithKeys(keys)
	col := kit.Column(12)
	switch c.Practice {
	case "":
	case "running":
		try.Enable(false)
		words := "Running: watch it in the log, and stop it there"
		if p.ui.snap.Waiting > 0 {
			words = "Running: answer its card"
		}
		col.Add(kit.Row(8, kit.NewChip("◌", words, kit.ToneQuiet), log))
	case "done":
		try.SetText("Try again")
		col.Add(kit.Row(8, kit.NewChip("●", "Done: it is in the log", kit.ToneOK), log))
	default:
		try.SetText("Try again")
		col.Add(kit.Note(pairWidth, kit.ToneWarn, kit.Remote(c.Practice, kit.Plain("", kit.Ink))...))
	}
	col.Objects = append([]fyne.CanvasObject{kit.Row(16, kit.Grow(words), try)}, col.Objects...)
	return col
}
