package ui

import (
	"cmp"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// anyClient is the page for a program that is not known here.
const anyClient = "any"

// showClient opens a program's page, or with "" the list again.
func (p *pairWindow) showClient(id string) {
	if len(p.ui.snap.Connect.Lines) > 0 {
		p.ui.intent(snapshot.Intent{Kind: snapshot.ForgetKey}) // a key is shown where it was made, once
	}
	p.client = id
	p.draw()
}

// clientList adds a row for each program that is here, and one for any other.
// It returns the first one's button.
func (p *pairWindow) clientList(col *fyne.Container, c snapshot.Connect, keys *kit.Keys) (first fyne.Focusable) {
	var missing []string
	add := func(name string, chip *kit.Chip, word, id string) {
		b := kit.NewButton(word, kit.Normal, func() { p.showClient(id) }).Slim().WithKeys(keys)
		row := kit.Row(8, kit.Grow(kit.NewLine(pairWidth-260, kit.Body, 1, kit.Bold(name, kit.Ink))))
		if chip != nil {
			row.Add(chip)
		}
		row.Add(b)
		col.Add(kit.Pad(4, 0, 4, 0, row))
		if first == nil {
			first = b
		}
	}
	for _, s := range c.Clients {
		switch {
		case s.Connected:
			add(s.Name, kit.NewChip("●", "Connected", kit.ToneOK), "Disconnect…", s.ID)
		case s.Found:
			add(s.Name, nil, "Connect…", s.ID)
		default:
			missing = append(missing, s.Name)
		}
	}
	if len(missing) == len(c.Clients) {
		col.Add(kit.Pad(4, 0, 4, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain("None of the programs that are known here is on this computer yet. Once you have installed one, open this window again.", kit.Ink))))
	}
	add("Another MCP client", nil, "Show the lines…", anyClient)
	if len(missing) > 0 {
		col.Add(kit.Pad(4, 0, 0, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("Not found here: "+strings.Join(missing, ", ")+".", kit.Dim))))
	}
	return first
}

// clientPage is one program: what is written where, what to do next, and which
// of its own tools never ask.
func (p *pairWindow) clientPage(c snapshot.Connect) {
	keys := p.keys()
	back := kit.NewButton("Back", kit.Normal, func() { p.showClient("") }).WithKeys(keys)
	if p.client == anyClient {
		p.anyPage(c, back, keys)
		return
	}
	var s snapshot.Client
	for _, one := range c.Clients {
		if one.ID == p.client {
			s = one
		}
	}
	if s.ID == "" { // not known any more
		p.client = ""
		p.draw()
		return
	}
	title := "Connect " + s.Name
	if s.Connected {
		title = s.Name
	}
	col := p.head([]kit.Span{kit.Bold(title, kit.Ink)}, "")
	para := func(top float32, spans ...kit.Span) {
		col.Add(kit.Pad(top, 0, 0, 0, kit.NewFlow(pairWidth, kit.Body, spans...)))
	}
	lines := strings.Join(s.Lines, "\n")
	copied := kit.NewFlow(120, kit.Small)
	var act, first *kit.Button
	switch {
	case s.Connected:
		col.Add(kit.Pad(8, 0, 0, 0, kit.Row(8, kit.NewChip("●", "Connected", kit.ToneOK))))
		para(8, kit.Plain(s.Next, kit.Ink))
		para(16, append([]kit.Span{kit.Plain("These lines stand in ", kit.Dim)}, kit.Remote(s.File, kit.Plain("", kit.Dim))...)...)
		act = kit.NewButton("Disconnect", kit.Danger, func() { p.ui.ask(p, snapshot.Intent{Kind: snapshot.DisconnectClient, Text: s.ID}) }).WithKeys(keys)
		first = back
	case s.Problem != "":
		col.Add(kit.Pad(8, 0, 0, 0, kit.Note(pairWidth, kit.ToneWarn, kit.Plain(s.Problem, kit.Ink))))
		if s.File != "" {
			para(8, append([]kit.Span{kit.Plain("Its file is ", kit.Dim)}, kit.Remote(s.File, kit.Plain("", kit.Dim))...)...)
		}
		act = p.copier("Copy", kit.Primary, lines, copied, keys)
		first = act
	default:
		para(8, append(append([]kit.Span{kit.Plain("This is put into ", kit.Ink)}, kit.Remote(s.File, kit.Bold("", kit.Ink))...),
			kit.Plain(" beside what is there. There is no key in it, and it is taken out again when you disconnect the program or remove "+Name+".", kit.Ink))...)
		act = kit.NewButton("Connect", kit.Primary, func() { p.ui.ask(p, snapshot.Intent{Kind: snapshot.ConnectClient, Text: s.ID}) }).WithKeys(keys)
		first = act
	}
	col.Add(kit.Pad(8, 0, 0, 0, kit.NewExact(pairWidth, 12, keys, lines)))
	if !s.Connected && s.Problem == "" {
		para(8, kit.Plain("Then: "+s.Next, kit.Dim))
	}
	col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Lead, kit.Bold("Its own tools", kit.Ink))))
	para(4, kit.Plain(strings.TrimSpace(s.Around+" "+s.Off), kit.Ink))
	if len(s.OffLines) > 0 {
		off := strings.Join(s.OffLines, "\n")
		noted := kit.NewFlow(120, kit.Small)
		col.Add(kit.Pad(8, 0, 0, 0, kit.NewExact(pairWidth, 4, keys, off)))
		col.Add(kit.Pad(8, 0, 0, 0, kit.Row(8, p.copier("Copy this", kit.Normal, off, noted, keys), noted)))
	}
	p.set(pageClient+s.ID+word(s.Connected), col, kit.Row(8, act, copied, kit.Space(), back), first)
}

// anyPage has the lines for an MCP client that is not known here.
func (p *pairWindow) anyPage(c snapshot.Connect, back *kit.Button, keys *kit.Keys) {
	col := p.head([]kit.Span{kit.Bold("Another MCP client", kit.Ink)}, "Put its lines where the program keeps its MCP servers. Most take them as they are.")
	var first fyne.Focusable
	if p.ui.snap.Hub.Kind == "this" {
		row, field := p.calling(c, keys)
		first = field
		col.Add(kit.Pad(8, 0, 6, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("What cards and the log call it:", kit.Dim))))
		col.Add(row)
	}
	if len(c.Any) > 0 {
		text := strings.Join(c.Any, "\n")
		copied := kit.NewFlow(120, kit.Small)
		copyLines := p.copier("Copy the lines", kit.Primary, text, copied, keys)
		first = copyLines
		col.Add(kit.Pad(8, 0, 0, 0, kit.NewExact(pairWidth, 10, keys, text)))
		col.Add(kit.Pad(8, 0, 0, 0, kit.Row(8, copyLines, copied)))
	}
	if p.ui.snap.Hub.Kind == "this" {
		col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Lead, kit.Bold("One that takes an address only", kit.Ink))))
		if len(c.Lines) == 0 {
			col.Add(kit.Pad(4, 0, 8, 0, kit.NewFlow(pairWidth, kit.Body, kit.Plain("It needs a key of its own, which then stands in its settings: whoever can read them can use it.", kit.Dim))))
			col.Add(p.naming(keys, "mcp"))
		} else {
			first = p.lines(col, c, "Put these lines into the settings of ", ", in a file that only you can read. The key is shown only now.", keys)
		}
	}
	col.Add(kit.Pad(16, 0, 0, 0, kit.NewFlow(pairWidth, kit.Small, kit.Plain("You are asked only about what it does with these tools. Its own tools, if it has any for files and commands, never ask here.", kit.Dim))))
	p.set(pageClient+anyClient, col, kit.Row(8, kit.Space(), back), first)
}

// calling asks what a program is called that is not known here. Its key is made
// as its lines are shown.
func (p *pairWindow) calling(c snapshot.Connect, keys *kit.Keys) (fyne.CanvasObject, fyne.Focusable) {
	field := kit.NewField("Its name, such as Research agent")
	field.OnEscape = p.leave
	if name := cmp.Or(c.AnyName, snapshot.AnyProgram); p.called == nil || p.called.Text == name {
		field.Offer(name)
	} else {
		field.Resume(p.called.Text)
	}
	p.called = field
	ask := func() {
		if n := strings.TrimSpace(p.called.Text); n != "" {
			p.ui.intent(snapshot.Intent{Kind: snapshot.MakeKey, Text: n, Way: "bridge"})
		}
	}
	button := kit.NewButton("Show its lines", kit.Normal, ask).WithKeys(keys)
	can := func(s string) { button.Enable(strings.TrimSpace(s) != "") }
	can(field.Text)
	p.called.OnChanged, p.called.OnSubmitted = can, func(string) { ask() }
	return kit.Row(8, kit.Grow(p.called), button), p.called
}
