package ui

import (
	"fmt"
	"slices"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

const (
	activityWidth = 1120
	paneWidth     = 320
	rowHeight     = 37
	// findPause is how long typing rests before a search is sent.
	findPause = 250 * time.Millisecond
)

// filters of the log: a word and the capability.
var filters = []struct{ word, capability string }{
	{"All", ""}, {"Files", "files"}, {"Commands", "shell"}, {"Screen", consent.CapabilityComputer}, {"Sessions", "session"},
}

// activityWindow is the live log.
type activityWindow struct {
	ui      *UI
	win     fyne.Window
	banners *banners
	nav     *nav
	head    *logHead
	foot    *logFoot

	search  *kit.Field
	filter  *kit.Segments
	rows    *kit.Rows
	pane    *detailPane
	table   *fyne.Container
	empty   *fyne.Container
	loud    *fyne.Container // the banners
	root    *fyne.Container
	split   *fyne.Container
	entries []snapshot.Entry // what the list shows
	results []snapshot.Entry // of the last search
	newest  string           // the entry on whose account a search was repeated
	chosen  string           // the entry whose detail is open
	emptied string           // what the empty state says now
	stop    func()           // stops the timer of a search
	tick    func()           // stops the clock of what runs
}

func newActivityWindow(u *UI) *activityWindow {
	a := &activityWindow{ui: u}
	a.win = u.window("Activity", fyne.NewSize(activityWidth, 660))
	a.banners = newBanners(u, 700)
	a.banners.sessions = true
	a.banners.changed = func() { a.draw(); a.root.Refresh() }
	a.banners.again = func(in snapshot.Intent) { u.ask(a, in) }
	a.banners.undoAll = func(session string) { a.undo(snapshot.UndoSession, session) }
	keys := &kit.Keys{Key: a.keyed}
	a.banners.keys = keys
	a.head, a.foot = newLogHead(u, keys), newLogFoot(u, keys)
	a.nav = newNav(u, snapshot.WindowActivity, 16, keys)

	a.search = kit.NewField("Search actions, files, commands")
	a.search.OnChanged = func(string) { a.find() }
	a.search.OnEscape = func() { a.keyed(&fyne.KeyEvent{Name: fyne.KeyEscape}) }
	a.search.OnDown = func() { a.win.Canvas().Focus(a.rows) }
	var words []string
	for _, f := range filters {
		words = append(words, f.word)
	}
	a.filter = kit.NewSegments(words, keys, func(int) { a.find() })
	export := kit.NewButton("Export…", kit.Normal, func() { showExport(a) }).Slim().WithKeys(keys)
	bar := kit.Ends(kit.Wrap(560, 8, kit.Width(224, a.search), a.filter), export)

	a.rows = kit.NewRows(rowHeight)
	a.rows.Keys = keys
	a.rows.Count = func() int { return len(a.entries) }
	a.rows.New = newLogRow
	a.rows.Update = a.fill
	a.rows.OnSelect = func(i int) { a.choose(a.entries[i].ID) }
	titles := kit.NewCellsOf(kit.Small, logColumns).Lined()
	var spans [][]kit.Span
	for _, t := range []string{"Time", "Who", "What", "Outcome", "Took", "Sent", "Received"} {
		spans = append(spans, []kit.Span{kit.Bold(t, kit.Dim)})
	}
	titles.Set(false, spans...)
	a.table = kit.Frame(kit.Height(32, titles), a.rows, nil)
	a.empty = kit.Middle(420, kit.Column(0))
	a.pane = newDetailPane(a, keys)
	a.split = kit.Beside(paneWidth, 800, kit.Layers(a.table, a.empty), a.pane.root)

	a.loud = a.banners.loud(a.win, 0, 16, 12)
	top := kit.Column(0, a.nav.root, kit.Pad(12, 16, 12, 16, a.head.root), a.loud,
		kit.Pad(0, 16, 12, 16, bar), kit.Rule())
	bottom := kit.Column(0, kit.Rule(), kit.Pad(8, 16, 8, 16, a.foot.root))
	a.root = kit.Frame(top, a.split, bottom)
	a.win.SetContent(kit.AtLeast(fyne.NewSize(480, 320), a.root))
	a.win.Canvas().SetOnTypedKey(a.keyed)
	a.win.Canvas().AddShortcut(&desktop.CustomShortcut{KeyName: fyne.KeyF, Modifier: fyne.KeyModifierControl}, func(fyne.Shortcut) {
		a.win.Canvas().Focus(a.search)
	})
	a.pane.root.Hide()
	return a
}

// keyed takes the keys that no control has used.
func (a *activityWindow) keyed(e *fyne.KeyEvent) {
	switch {
	case (e.Name == fyne.KeyDown || e.Name == fyne.KeyUp) && a.win.Canvas().Focused() == nil:
		a.win.Canvas().Focus(a.rows)
		a.rows.TypedKey(e)
	case e.Name != fyne.KeyEscape:
	case a.chosen != "":
		a.choose("")
	case a.search.Text != "":
		a.search.SetText("")
	default:
		a.ui.hide(a.win)
	}
}

// logColumns are the widths of the list's cells in a list that is w wide.
func logColumns(w float32) []float32 {
	switch {
	case w < 560:
		return []float32{92, -1, 0, 140, -1, -1, -1}
	case w < 700:
		return []float32{92, 96, 0, 140, 52, -1, -1}
	}
	return []float32{92, 104, 0, 140, 52, 60, 64}
}

func newLogRow() fyne.CanvasObject {
	return kit.NewCellsOf(kit.Body, logColumns).Lined().With(3, kit.NewChip("", "", kit.ToneQuiet))
}

func (a *activityWindow) fill(i int, chosen bool, o fyne.CanvasObject) {
	e, row := a.entries[i], o.(*kit.Cells)
	c := outcomeChip(e)
	took := e.Took
	if e.Outcome == snapshot.Running {
		took += a.ui.o.Clock.Now().Sub(a.ui.snapAt)
	}
	row.Over().(*kit.Chip).Set(c.shape, c.word, c.tone)
	plain := kit.Plain("", kit.Ink)
	dim := func(s string) []kit.Span { return []kit.Span{kit.Plain(s, kit.Dim)} }
	row.Set(chosen, dim(timeWord(e.Time, a.ui.o.Clock.Now())), kit.Remote(e.Who, plain), kit.Remote(e.What, plain), nil,
		dim(tookWord(took)), dim(dataWord(e.Sent)), dim(dataWord(e.Received)))
}

// searching says whether the list shows a search's results.
func (a *activityWindow) searching() bool {
	return a.search.Text != "" || filters[a.filter.Selected()].capability != ""
}

// find sends the search that is in the bar, a moment later.
func (a *activityWindow) find() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
	if !a.searching() {
		a.results = nil
		a.rows.Top()
		a.draw()
		return
	}
	a.results = nil
	a.draw()
	a.sendFind(findPause)
}

func (a *activityWindow) sendFind(wait time.Duration) {
	a.stop = a.ui.o.Clock.After(wait, func() {
		a.stop = nil
		a.ui.intent(snapshot.Intent{Kind: snapshot.Find, Text: a.search.Text, Filter: filters[a.filter.Selected()].capability})
	})
}

// found takes the results of a search, if it is still the one in the bar.
func (a *activityWindow) found(f desklink.Found) {
	if f.Text != a.search.Text || f.Filter != filters[a.filter.Selected()].capability {
		return
	}
	a.results = append([]snapshot.Entry{}, f.Entries...)
	a.draw()
}

// draw brings the window up to date with the snapshot.
func (a *activityWindow) draw() {
	s := a.ui.snap
	a.nav.draw(s)
	changed := a.banners.draw()
	a.loud.Hidden = len(a.banners.box.Objects) == 0
	changed = a.head.draw() || changed
	a.foot.draw()

	old := a.entries
	a.entries = s.Entries
	if a.searching() {
		a.entries = a.current()
	}
	if len(old) > 0 {
		for i := range a.entries {
			if a.entries[i].ID == old[0].ID {
				a.rows.Shift(i)
				break
			}
		}
	}
	mark := -1
	for i := range a.entries {
		if a.entries[i].ID == a.chosen {
			mark = i
			a.pane.entry(a.entries[i])
		}
	}
	a.rows.Reload()
	a.rows.Mark(mark)
	a.count()
	if a.drawEmpty() || changed {
		a.root.Refresh()
	}
	a.settle()
}

// settle gives the keyboard to what is next where the control that had it is
// gone: to the question that stands, or the list.
func (a *activityWindow) settle() {
	switch {
	case a.banners.stay != nil:
		a.ui.settle(a.win, a.banners.stay)
	case !a.table.Hidden:
		a.ui.settle(a.win, a.rows)
	default:
		a.ui.settle(a.win, nil)
	}
}

// count goes on telling how long what runs has taken, each second.
func (a *activityWindow) count() {
	if a.tick != nil {
		a.tick()
		a.tick = nil
	}
	if !slices.ContainsFunc(a.entries, func(e snapshot.Entry) bool { return e.Outcome == snapshot.Running }) {
		return
	}
	a.tick = a.ui.o.Clock.After(time.Second, func() {
		a.tick = nil
		if a.ui.open[a.win] {
			a.rows.Reload()
			a.count()
		}
	})
}

// current are a search's results, as the snapshot knows them now, with what
// has come since and fits the filter.
func (a *activityWindow) current() []snapshot.Entry {
	now := map[string]snapshot.Entry{}
	for _, e := range a.ui.snap.Entries {
		now[e.ID] = e
	}
	if a.results == nil { // not answered yet
		var out []snapshot.Entry
		want := filters[a.filter.Selected()].capability
		for _, e := range a.ui.snap.Entries {
			if (want == "" || e.Capability == want) && matches(e, a.search.Text) {
				out = append(out, e)
			}
		}
		return out
	}
	out := make([]snapshot.Entry, 0, len(a.results))
	for _, e := range a.results {
		if fresh, ok := now[e.ID]; ok {
			e = fresh
		}
		out = append(out, e)
	}
	if len(a.ui.snap.Entries) > 0 && a.stop == nil && (len(out) == 0 || a.ui.snap.Entries[0].Time.After(out[0].Time)) {
		a.again()
	}
	return out
}

// again repeats the search after something new has happened.
func (a *activityWindow) again() {
	if newest := a.ui.snap.Entries[0].ID; newest != a.newest {
		a.newest = newest
		a.sendFind(time.Second)
	}
}

// drawEmpty shows what to do in place of an empty list.
func (a *activityWindow) drawEmpty() (changed bool) {
	state := ""
	switch {
	case len(a.entries) > 0:
	case a.searching():
		state = "none:" + a.search.Text
	default:
		state = fmt.Sprint("nothing:", a.ui.snap.Hub.Paired, pairLabel(a.ui.snap))
	}
	if state == a.emptied {
		return false
	}
	a.emptied = state
	a.table.Hidden = state != ""
	a.empty.Hidden = state == ""
	a.empty.Objects = []fyne.CanvasObject{a.emptyState()}
	return true
}

func (a *activityWindow) emptyState() fyne.CanvasObject {
	w := float32(400)
	title, line := "Nothing has happened yet", "When a program asks for this computer, you see it here, live. Try it once with a harmless example."
	var buttons []fyne.CanvasObject
	switch {
	case a.searching():
		title, line = "Nothing found", "No entry of the log fits what you search for."
		buttons = append(buttons, kit.NewButton("Show everything", kit.Normal, func() {
			a.filter.Select(0)
			a.search.SetText("")
			a.find()
		}))
	case !a.ui.snap.Hub.Paired:
		line = "No program can ask for this computer before it is paired."
		buttons = append(buttons, kit.NewButton("Pair…", kit.Primary, func() { a.ui.show(snapshot.WindowPair) }))
	case a.ui.snap.Hub.Kind == "own" || a.ui.snap.Hub.Kind == "autogpt": // the sample is the hub inside's
		line = "When a program asks for this computer, you see it here, live."
		buttons = append(buttons, kit.NewButton(pairLabel(a.ui.snap), kit.Normal, func() { a.ui.show(snapshot.WindowPair) }))
	default:
		buttons = append(buttons,
			kit.NewButton("Connect a program", kit.Normal, func() { a.ui.show(snapshot.WindowPair) }),
			kit.NewButton("Try it safely", kit.Primary, func() { a.ui.intent(snapshot.Intent{Kind: snapshot.Practice}) }))
	}
	row := kit.Row(8, append(append([]fyne.CanvasObject{kit.Space()}, buttons...), kit.Space())...)
	return kit.Column(0, kit.NewFlow(w, kit.Title, kit.Bold(title, kit.Ink)).Centre(),
		kit.Pad(8, 0, 24, 0, kit.NewFlow(w, kit.Body, kit.Plain(line, kit.Dim)).Centre()), row)
}

// choose opens the detail of an entry; "" closes it.
func (a *activityWindow) choose(id string) {
	if id == a.chosen {
		return
	}
	a.chosen = id
	if id == "" {
		a.rows.Mark(-1)
		a.pane.root.Hide()
		a.split.Refresh()
		a.settle()
		return
	}
	for _, e := range a.entries {
		if e.ID == id {
			a.pane.open(e)
		}
	}
	a.pane.root.Show()
	a.split.Refresh()
}

func (a *activityWindow) detail(d snapshot.Detail) {
	if d.Entry.ID == a.chosen {
		a.pane.detail(d)
		a.settle()
	}
}

func (a *activityWindow) window() fyne.Window { return a.win }

func (a *activityWindow) rest() {
	a.banners.rest()
	if a.tick != nil {
		a.tick()
		a.tick = nil
	}
}

func (a *activityWindow) told(t desklink.Told) {
	asked := a.undone(t)
	if !asked {
		a.banners.tell(t)
	}
	a.draw()
	a.root.Refresh()
	if asked && a.banners.stay != nil {
		a.win.Canvas().Focus(a.banners.stay)
	}
}
