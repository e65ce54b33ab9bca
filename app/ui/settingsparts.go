package ui

import (
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// section is a heading and the settings below it.
func (s *settingsWindow) section(title, line string, settings ...fyne.CanvasObject) *fyne.Container {
	col := kit.Column(12, s.heading(title, line, nil))
	for _, o := range settings {
		col.Add(o)
	}
	return col
}

// generalPart is the name, the folder and the start.
type generalPart struct {
	of     *settingsWindow
	name   *textSetting
	folder *setting
	path   *kit.Flow
	fresh  *kit.Button // offers a new folder each time
	start  *setting
	check  *kit.Check
	why    *kit.Flow
	root   fyne.CanvasObject
}

func newGeneralPart(s *settingsWindow) *generalPart {
	g := &generalPart{of: s, path: kit.NewLine(300, kit.Body, 3), why: kit.NewFlow(400, kit.Small)}
	g.name = newTextSetting(s, "Name of this computer", "Workshop PC", func(f *kit.Field) fyne.CanvasObject { return f },
		func(typed string) (snapshot.Changes, string) {
			if typed == "" {
				return snapshot.Changes{}, "Give this computer a name: cards and hubs show it."
			}
			return snapshot.Changes{Name: &typed}, ""
		})
	choose := s.button("Choose…", kit.Normal, func() { g.choose() }).Slim()
	fresh, line := s.link("Offer a new folder instead", func() { g.set("") })
	g.fresh = fresh
	g.folder = newSetting(s, "Folder offered first", kit.Column(4, kit.Row(12, kit.Grow(g.path), choose), line))
	g.check = kit.NewCheck(400, s.keys, func(on bool) { s.change(g.start, snapshot.Changes{Autostart: &on}) }, kit.Plain("Start "+Name+" when you log in", kit.Ink))
	g.start = newSetting(s, "Start", kit.Column(4, g.check, g.why))
	g.root = s.section("General", "", g.name.root, g.folder.root, g.start.root)
	return g
}

func (g *generalPart) set(folder string) {
	g.of.change(g.folder, snapshot.Changes{Folder: &folder})
}

// choose asks for a folder, over the window.
func (g *generalPart) choose() {
	const w = 440
	var hide func()
	keys := &kit.Keys{Key: func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape {
			hide()
		}
	}}
	start := g.of.ui.snap.Settings.Folder
	if start == "" {
		start = homeDir()
	}
	p := newPicker(g.of.ui, w, keys, nil, start, func(folder string) {
		hide()
		if folder != "" {
			g.set(folder)
		}
	})
	body := kit.Column(12, kit.NewFlow(w, kit.Title, kit.Bold("Folder offered first", kit.Ink)),
		kit.NewFlow(w, kit.Body, kit.Plain("It is offered on the card of a new session. You can choose another one there.", kit.Dim)),
		kit.Height(pickerRoom(g.of.win, 210), kit.Width(w, p.view("Folder"))), p.buttons())
	hide = kit.Ask(g.of.win.Canvas(), w+48, body)
	g.of.win.Canvas().Focus(p.rows)
}

func (g *generalPart) draw(s snapshot.Snapshot) (changed bool) {
	g.name.set(s.Settings.Name)
	before := g.path.Text() + g.why.Text()
	if f := s.Settings.Folder; f != "" {
		g.path.Set(kit.Remote(shortPath(f), kit.Plain("", kit.Ink))...)
	} else {
		g.path.Set(kit.Plain("A new folder for each program", kit.Ink))
	}
	g.fresh.Hidden = s.Settings.Folder == ""
	if g.of.asking == nil || g.of.asking.of != g.start {
		g.check.Set(s.Settings.Autostart)
	}
	problem := s.Settings.AutostartProblem
	g.check.Enable(problem == "")
	g.why.Set(kit.Remote(problem, kit.Plain("", kit.Dim))...)
	g.why.Hidden = problem == ""
	return before != g.path.Text()+g.why.Text()
}

// capabilitiesPart is what may be asked for at all.
type capabilitiesPart struct {
	of   *settingsWindow
	list *fyne.Container
	rows []*chooser
	key  string
	root fyne.CanvasObject
}

func newCapabilitiesPart(s *settingsWindow) *capabilitiesPart {
	c := &capabilitiesPart{of: s, list: kit.Column(12)}
	c.root = kit.Column(12, s.heading("What programs may ask for", "Each request is still asked about, or covered by an answer you gave.", nil), c.list)
	return c
}

func (c *capabilitiesPart) draw(s snapshot.Snapshot) (changed bool) {
	key := ""
	for _, o := range s.Capabilities {
		key += fmt.Sprintf("%q %q %q\x00", o.Name, o.Label, o.Extents)
	}
	if key != c.key || c.list.Objects == nil {
		c.key, changed = key, true
		c.rows, c.list.Objects = nil, nil
		for _, o := range s.Capabilities {
			var words, values []string
			for _, e := range o.Extents {
				words, values = append(words, visible(e.Label)), append(values, e.Value)
			}
			if len(values) == 0 {
				continue
			}
			row := newChooser(c.of.ui, c.of.keys, words, values, func(v string) {
				c.of.send(c.of, snapshot.Intent{Kind: snapshot.SetCapability, Text: o.Name, Way: v})
			})
			c.rows = append(c.rows, row)
			c.list.Add(newSetting(c.of, visible(o.Label), kit.Row(0, row.Segments, kit.Space())).root)
		}
		if len(c.rows) == 0 {
			c.list.Add(empty("What programs may ask for is listed here once the program has started."))
		}
	}
	i := 0
	for _, o := range s.Capabilities {
		if len(o.Extents) > 0 {
			c.rows[i].set(o.Extent)
			i++
		}
	}
	return changed
}

func (c *capabilitiesPart) told(t desklink.Told) {
	for _, r := range c.rows {
		r.told(t.OK)
	}
}

// limitsPart is how many requests a session may make.
type limitsPart struct {
	of    *settingsWindow
	list  *fyne.Container
	rows  []*textSetting
	usual []*kit.Flow
	reset *setting
	key   string
	root  fyne.CanvasObject
}

// mostKeep bounds what can be typed, in GB.
const mostKeep = 10_000

// mostRate bounds what can be typed.
const mostRate = 100_000

func newLimitsPart(s *settingsWindow) *limitsPart {
	l := &limitsPart{of: s, list: kit.Column(8)}
	_, back := s.link("Reset to defaults", func() {
		to := snapshot.Changes{Rates: map[string]int{}}
		for i, r := range s.ui.snap.Settings.Rates {
			to.Rates[r.Capability] = 0
			if i < len(l.rows) { // whatever is typed there
				l.rows[i].field.SetText(l.rows[i].shown)
				l.rows[i].sent = l.rows[i].shown
				l.rows[i].say("", true)
			}
		}
		s.change(l.reset, to)
	})
	l.reset = newSetting(s, "", back)
	l.root = kit.Column(12, s.heading("Limits", "How many requests one session may make in a minute. What goes beyond that is refused without asking you.", nil), l.list, l.reset.root)
	return l
}

func (l *limitsPart) draw(s snapshot.Snapshot) (changed bool) {
	key := ""
	for _, r := range s.Settings.Rates {
		key += fmt.Sprintf("%q %q\x00", r.Capability, r.Label)
	}
	if key != l.key {
		l.key, changed = key, true
		l.rows, l.usual, l.list.Objects = nil, nil, nil
		for _, r := range s.Settings.Rates {
			usual := kit.NewFlow(240, kit.Body)
			row := newTextSetting(l.of, visible(r.Label), "", func(f *kit.Field) fyne.CanvasObject {
				return kit.Row(12, kit.Width(88, f), usual, kit.Space())
			}, func(typed string) (snapshot.Changes, string) {
				n, err := strconv.Atoi(typed)
				if err != nil || n < 1 || n > mostRate {
					return snapshot.Changes{}, fmt.Sprintf("Type a number from 1 to %d.", mostRate)
				}
				return snapshot.Changes{Rates: map[string]int{r.Capability: n}}, ""
			})
			l.rows, l.usual = append(l.rows, row), append(l.usual, usual)
			l.list.Add(row.root)
		}
	}
	l.root.(*fyne.Container).Hidden = len(l.rows) == 0
	for i, r := range s.Settings.Rates {
		l.rows[i].set(itoa(r.PerMinute))
		l.usual[i].Set(kit.Plain("a minute · usually "+itoa(r.Usual), kit.Dim))
	}
	return changed
}

// hubPart is the other end.
type hubPart struct {
	of   *settingsWindow
	sure bool // Unpair was clicked: really?
	box  *fyne.Container
	key  string
	root fyne.CanvasObject
}

func newHubPart(s *settingsWindow) *hubPart {
	h := &hubPart{of: s, box: kit.Column(8)}
	h.root = kit.Column(12, s.heading("Hub", "The other end: programs reach this computer through it.", nil), h.box)
	return h
}

func (h *hubPart) draw(s snapshot.Snapshot) (changed bool) {
	h.sure = h.sure && s.Hub.Paired
	key := fmt.Sprintf("%q %v %s", fmt.Sprint(s.Hub), h.sure, pairLabel(s))
	if key == h.key {
		return false
	}
	h.key = key
	h.box.Objects = nil
	pair := h.of.button(pairLabel(s), kit.Normal, func() { h.of.ui.show(snapshot.WindowPair) }).Slim()
	if !s.Hub.Paired {
		h.box.Add(kit.NewFlow(500, kit.Body, kit.Plain("This computer is not paired: no program can ask for it.", kit.Ink)))
		h.box.Add(kit.Row(8, pair, kit.Space()))
		return true
	}
	state := kit.NewChip("●", "Online", kit.ToneOK)
	if !s.Hub.Online {
		state = kit.NewChip("○", "Offline", kit.ToneQuiet)
	}
	h.box.Add(kit.Row(12, kit.Grow(kit.NewLine(400, kit.Body, 3, pairedWith(s.Hub, kit.Bold("", kit.Ink))...)), state))
	var facts []string
	if s.Hub.Address != "" && s.Hub.Address != farName(s.Hub) {
		facts = append(facts, s.Hub.Address)
	}
	if s.Hub.SignIn != "" {
		facts = append(facts, "sign-in "+s.Hub.SignIn)
	}
	if s.Hub.Proxy != "" {
		facts = append(facts, "through the proxy "+s.Hub.Proxy)
	}
	if len(facts) > 0 {
		h.box.Add(kit.NewLine(500, kit.Small, 4, kit.Remote(strings.Join(facts, " · "), kit.Plain("", kit.Dim))...))
	}
	if h.sure {
		words := []kit.Span{kit.Bold("Unpair this computer? ", kit.Ink), kit.Plain("What programs run here ends, and to pair again you sign in again.", kit.Ink)}
		box, stay := h.of.sure(words, "Unpair", func() {
			h.sure = false
			h.of.send(h.of, snapshot.Intent{Kind: snapshot.Unpair})
			h.of.draw()
		}, "Keep it paired", func() { h.sure = false; h.of.draw() })
		h.box.Add(box)
		h.of.focus = stay
		return true
	}
	h.box.Add(kit.Row(8, pair, h.of.button("Unpair…", kit.Normal, func() { h.sure = true; h.of.draw() }).Slim(), kit.Space()))
	return true
}

// checkPart is the self-test.
type checkPart struct {
	of    *settingsWindow
	run   *kit.Button
	asked bool
	state *kit.Chip
	list  *fyne.Container
	key   string
	root  fyne.CanvasObject
}

func newCheckPart(s *settingsWindow) *checkPart {
	c := &checkPart{of: s, state: kit.NewChip("", "", kit.ToneQuiet), list: kit.Column(0)}
	c.run = s.button("Run the self-test", kit.Normal, func() {
		c.asked = true
		s.send(s, snapshot.Intent{Kind: snapshot.SelfTest})
		s.draw()
	}).Slim()
	c.root = kit.Column(12, s.heading("Self-test", "Checks whether all that is needed works on this computer, and says what helps.", nil), kit.Row(12, c.run, c.state, kit.Space()), c.list)
	return c
}

func (c *checkPart) told(desklink.Told) { c.asked = false }

func (c *checkPart) draw(s snapshot.Snapshot) (changed bool) {
	set := s.Settings
	c.asked = c.asked && !set.Checking
	key := fmt.Sprintf("%+v %v %v", set.Checks, set.Checking, c.asked)
	if key == c.key {
		return false
	}
	c.key = key
	bad := 0
	for _, k := range set.Checks {
		if !k.OK {
			bad++
		}
	}
	busy := set.Checking || c.asked
	c.run.Enable(!busy)
	c.state.Hidden = false
	switch {
	case busy:
		c.state.Set("◌", "Checking…", kit.ToneQuiet)
	case len(set.Checks) == 0:
		c.state.Hidden = true
	case bad == 0:
		c.state.Set("✓", "Everything works", kit.ToneOK)
	default:
		c.state.Set("▲", fmt.Sprintf("%d of %d need a look", bad, len(set.Checks)), kit.ToneWarn)
	}
	c.list.Objects = nil
	for _, k := range set.Checks {
		c.list.Add(kit.Rule())
		c.list.Add(kit.Pad(6, 0, 6, 0, checkLine(k)))
	}
	c.list.Hidden = len(set.Checks) == 0
	return true
}

// dataPart says where everything is kept, and which version this is.
type dataPart struct {
	of      *settingsWindow
	path    *kit.Flow
	copied  *kit.Flow
	keep    *textSetting
	used    *kit.Flow // beside keep
	secrets *kit.Flow
	version *kit.Flow
	root    fyne.CanvasObject
}

func newDataPart(s *settingsWindow) *dataPart {
	d := &dataPart{of: s, path: kit.NewLine(400, kit.Body, 4), copied: kit.NewFlow(80, kit.Small), secrets: kit.NewFlow(400, kit.Body), version: kit.NewFlow(400, kit.Body)}
	copy := s.button("Copy", kit.Normal, func() {
		s.ui.o.App.Clipboard().SetContent(s.ui.snap.Settings.Data)
		d.copied.Set(kit.Plain("● Copied", kit.OK))
		s.refresh()
	}).Slim()
	d.used = kit.NewFlow(320, kit.Body)
	d.keep = newTextSetting(s, "Old versions, for Undo", "", func(f *kit.Field) fyne.CanvasObject {
		return kit.Row(12, kit.Width(88, f), d.used, kit.Space())
	}, func(typed string) (snapshot.Changes, string) {
		n, err := strconv.Atoi(typed)
		if err != nil || n < 0 || n > mostKeep {
			return snapshot.Changes{}, fmt.Sprintf("Type a number from 1 to %d, or 0 to keep none.", mostKeep)
		}
		if n == 0 {
			n = -1
		}
		return snapshot.Changes{KeepGB: &n}, ""
	})
	d.root = s.section("Data", "",
		newSetting(s, "Everything is kept in", kit.Row(12, kit.Grow(d.path), d.copied, copy)).root,
		d.keep.root,
		newSetting(s, "Sign-in and keys", d.secrets).root,
		newSetting(s, "Version", d.version).root)
	return d
}

func (d *dataPart) draw(s snapshot.Snapshot) (changed bool) {
	before := d.path.Text() + d.used.Text() + d.secrets.Text() + d.version.Text()
	d.keep.set(itoa(max(s.Settings.KeepGB, 0)))
	d.used.Set(kit.Plain("GB at most, for 7 days · now "+bytesWord(s.Settings.KeptBytes), kit.Dim))
	say := func(f *kit.Flow, text string) {
		if text == "" {
			text = "not known yet"
		}
		f.Set(kit.Remote(text, kit.Plain("", kit.Ink))...)
	}
	say(d.path, s.Settings.Data)
	say(d.secrets, capital(s.Secrets))
	say(d.version, s.Settings.Version)
	return before != d.path.Text()+d.used.Text()+d.secrets.Text()+d.version.Text()
}
