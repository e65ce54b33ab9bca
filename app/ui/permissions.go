package ui

import (
	"slices"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

const (
	permissionsWidth = 880
	// mostGrants are listed at first; the rest is a click away.
	mostGrants = 100
)

// permissionsWindow lists what is remembered, who works here now, and which
// programs are connected; all of it can be ended here. Its rows live as long
// as what they show, so that the keyboard stays where it is.
type permissionsWindow struct {
	*page
	grants   map[string]*grantRow
	sessions map[string]*sessionRow
	programs map[string]*programRow
	all      bool   // more than mostGrants are listed
	revoking bool   // Revoke all was clicked: really?
	key      string // which rows stand there
	focus    fyne.Focusable
}

func newPermissionsWindow(u *UI) *permissionsWindow {
	p := &permissionsWindow{grants: map[string]*grantRow{}, sessions: map[string]*sessionRow{}, programs: map[string]*programRow{}}
	p.page = newPage(u, snapshot.WindowPermissions, "Permissions", permissionsWidth, 640, p.escape)
	return p
}

// escape takes a question back, or else closes the window.
func (p *permissionsWindow) escape() {
	asked := p.revoking
	p.revoking = false
	for _, r := range p.sessions {
		asked = r.calm() || asked
	}
	for _, r := range p.programs {
		asked = asked || r.sure
		r.sure = false
	}
	if asked {
		p.draw()
		return
	}
	p.ui.hide(p.win)
}

// rest forgets what was under way, too.
func (p *permissionsWindow) rest() {
	p.page.rest()
	p.revoking = false
	for _, r := range p.grants {
		r.revoke.Enable(true)
	}
	for _, r := range p.sessions {
		r.calm()
		r.leaving = false
		r.end.Enable(true)
	}
	for _, r := range p.programs {
		r.sure, r.gone = false, false
	}
}

func (p *permissionsWindow) told(t desklink.Told) {
	for _, r := range p.grants {
		r.revoke.Enable(true)
	}
	for _, r := range p.sessions {
		r.told(t)
	}
	for _, r := range p.programs {
		r.gone = r.gone && t.OK
	}
	p.tell(t)
	p.draw()
}

// draw brings the rows up to date, and makes those that are new.
func (p *permissionsWindow) draw() {
	s, now := p.ui.snap, p.ui.o.Clock.Now()
	changed := p.top()
	key := word(p.revoking) + word(p.all) + s.Hub.Kind + "\x00" + s.Hub.Address + word(s.Hub.Paired)
	for i, g := range s.Grants {
		r := p.grants[g.ID]
		if r == nil {
			r = newGrantRow(p)
			p.grants[g.ID] = r
		}
		if i < mostGrants || p.all {
			changed = r.set(g, now) || changed
		}
		key += "\x00g" + g.ID
	}
	for _, o := range s.Sessions {
		r := p.sessions[o.ID]
		if r == nil {
			r = newSessionRow(p)
			p.sessions[o.ID] = r
		}
		changed = r.set(o, now) || changed
		key += "\x00s" + o.ID
	}
	for _, o := range s.Programs {
		r := p.programs[o.ID]
		if r == nil {
			r = newProgramRow(p)
			p.programs[o.ID] = r
		}
		changed = r.set(o, now) || changed
		key += "\x00p" + o.ID
	}
	if key != p.key {
		at := p.revokeAt()
		p.key, changed = key, true
		p.forget(s)
		p.build(s)
		p.refresh()
		p.ui.settle(p.win, p.after(s, at))
	} else if changed {
		p.refresh()
		p.ui.settle(p.win, nil)
	}
	if p.focus != nil {
		p.attend(p.focus)
		p.focus = nil
	}
	p.count()
}

// forget drops the rows of what is no more.
func (p *permissionsWindow) forget(s snapshot.Snapshot) {
	for id := range p.grants {
		if !slices.ContainsFunc(s.Grants, func(g snapshot.Grant) bool { return g.ID == id }) {
			delete(p.grants, id)
		}
	}
	for id, r := range p.sessions {
		if !slices.ContainsFunc(s.Sessions, func(o snapshot.Session) bool { return o.ID == id }) {
			r.mode.back()
			delete(p.sessions, id)
		}
	}
	for id := range p.programs {
		if !slices.ContainsFunc(s.Programs, func(o snapshot.Program) bool { return o.ID == id }) {
			delete(p.programs, id)
		}
	}
}

// revokeAt is the place of the Revoke button that has the keyboard, -1 for
// none; after puts the keyboard on the one that has come there.
func (p *permissionsWindow) revokeAt() int {
	focused := p.win.Canvas().Focused()
	for _, r := range p.grants {
		if focused == fyne.Focusable(r.revoke) {
			return r.place
		}
	}
	return -1
}

func (p *permissionsWindow) after(s snapshot.Snapshot, at int) fyne.Focusable {
	if at < 0 || len(s.Grants) == 0 {
		return nil
	}
	return p.grants[s.Grants[min(at, len(s.Grants)-1)].ID].revoke
}

// count draws what tells a time again: each second while something is counted
// down, each half minute while something says how long ago it was.
func (p *permissionsWindow) count() {
	s, now := p.ui.snap, p.ui.o.Clock.Now()
	wait := time.Duration(0)
	if len(s.Grants)+len(s.Sessions)+len(s.Programs) > 0 {
		wait = 30 * time.Second
	}
	if slices.ContainsFunc(s.Grants, func(g snapshot.Grant) bool { return ticks(g, now) }) ||
		slices.ContainsFunc(s.Sessions, func(o snapshot.Session) bool { return o.TrustedUntil.After(now) }) {
		wait = time.Second
	}
	if wait == 0 {
		p.clock(0, nil)
		return
	}
	p.clock(wait, p.draw)
}

// build puts the rows into their order.
func (p *permissionsWindow) build(s snapshot.Snapshot) {
	b := p.body
	b.Objects = nil
	p.buildGrants(s)
	b.Add(kit.Height(36, kit.Space()))
	b.Add(p.heading("Open sessions", "Who works here now, in which folder, and how freely.", nil))
	b.Add(kit.Height(8, kit.Space()))
	b.Add(kit.Rule())
	if len(s.Sessions) == 0 {
		b.Add(empty("No session is open. A program that you let work here is listed here until it ends."))
	}
	for _, o := range s.Sessions {
		b.Add(p.sessions[o.ID].root)
		b.Add(kit.Rule())
	}
	b.Add(kit.Height(36, kit.Space()))
	p.buildPrograms(s)
}

func (p *permissionsWindow) buildGrants(s snapshot.Snapshot) {
	b := p.body
	var all *kit.Button
	if len(s.Grants) > 1 {
		all = p.button("Revoke all…", kit.Normal, func() { p.revoking = true; p.draw() }).Slim()
	}
	head := p.heading("Remembered answers", "What you allowed or denied for longer than once. After Revoke it is asked about again.", nil)
	if all != nil && !p.revoking {
		head = p.heading("Remembered answers", "What you allowed or denied for longer than once. After Revoke it is asked about again.", all)
	}
	b.Add(head)
	if p.revoking && len(s.Grants) > 0 {
		words := []kit.Span{kit.Bold("Revoke all "+count(len(s.Grants), "answer", "answers")+"? ", kit.Ink),
			kit.Plain("What was allowed is asked about again, and what was denied may be asked again.", kit.Ink)}
		box, stay := p.sure(words, "Revoke all", func() {
			p.revoking = false
			p.send(p, snapshot.Intent{Kind: snapshot.Revoke})
			p.draw()
		}, "Keep them", func() { p.revoking = false; p.draw() })
		b.Add(kit.Pad(8, 0, 0, 0, box))
		p.focus = stay
	} else {
		p.revoking = false
	}
	b.Add(kit.Height(12, kit.Space()))
	if len(s.Grants) == 0 {
		b.Add(kit.Rule())
		b.Add(empty("Nothing is remembered. What you allow on a card for longer than once is listed here, and can be revoked."))
		return
	}
	var titles []fyne.CanvasObject
	for _, t := range []string{"Who", "May", "Until", "Last used", "", ""} {
		titles = append(titles, kit.NewLine(100, kit.Small, 1, kit.Bold(t, kit.Dim)))
	}
	b.Add(kit.Pad(0, 0, 6, 0, kit.Cols(17, func(w float32) []float32 {
		cols := grantColumns(w)
		cols[5] = kit.Out // it is in two columns, or has no title
		return cols
	}, titles...)))
	b.Add(kit.Rule())
	for i, g := range s.Grants {
		if i == mostGrants && !p.all {
			_, more := p.link("Show all "+itoa(len(s.Grants)), func() { p.all = true; p.draw() })
			b.Add(kit.Pad(8, 0, 0, 0, more))
			break
		}
		r := p.grants[g.ID]
		r.place = i
		b.Add(r.root)
		b.Add(kit.Rule())
	}
}

func (p *permissionsWindow) buildPrograms(s snapshot.Snapshot) {
	b := p.body
	b.Add(p.heading("Connected programs", "What has a key to ask for this computer. Each thing it asks for still needs your answer.", nil))
	b.Add(kit.Height(8, kit.Space()))
	b.Add(kit.Rule())
	for _, o := range s.Programs {
		b.Add(p.programs[o.ID].root)
		b.Add(kit.Rule())
	}
	line, label, tap := "", "", func() { p.ui.show(snapshot.WindowPair) }
	switch {
	case !s.Hub.Paired:
		line, label = "This computer is not paired, so no program can ask for it.", pairLabel(s)
	case s.Hub.Kind == "own":
		line, label = "Programs are connected and disconnected on the Keys page of "+farName(s.Hub)+".", "Open the Keys page"
		tap = func() { p.visit(keysPage(s.Hub)) }
	case s.Hub.Kind == "autogpt":
		line, label = "Programs are connected and disconnected in AutoGPT. To keep all of them out, unpair this computer in Settings.", "Open AutoGPT"
		tap = func() { p.visit(autoGPTPage(s)) }
	case len(s.Programs) == 0:
		line, label = "No program is connected yet. Once you make a key for one, it is listed here.", pairLabel(s)
	}
	if line == "" {
		return
	}
	words := kit.NewFlow(500, kit.Body, kit.Remote(line, kit.Plain("", kit.Dim))...)
	b.Add(kit.Pad(12, 0, 0, 0, kit.Row(16, kit.Grow(words), p.button(label, kit.Normal, tap).Slim())))
}

// empty says what will stand where nothing is yet.
func empty(line string) fyne.CanvasObject {
	return kit.Pad(12, 0, 12, 0, kit.NewFlow(600, kit.Body, kit.Plain(line, kit.Dim)))
}
