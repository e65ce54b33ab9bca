package ui

import (
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
	"localpc/consent/policy"
)

// grantColumns are the widths of the table's cells in a table that is w wide.
// Until and Last used have their columns, or else one line below the rule.
func grantColumns(w float32) []float32 {
	if w < 640 {
		return []float32{96, 0, kit.Out, kit.Out, 76, kit.Below}
	}
	return []float32{112, 0, 172, 88, 76, kit.Out}
}

// ruleLines are drawn of a rule until the rest is asked for.
const ruleLines = 4

// grantRow is one remembered decision.
type grantRow struct {
	of     *permissionsWindow
	place  int
	id     string
	who    *kit.Flow
	may    *kit.Flow
	more   *kit.Button
	until  *kit.Flow
	used   *kit.Flow
	both   *kit.Flow // until and used in one
	revoke *kit.Button
	root   fyne.CanvasObject
}

func newGrantRow(p *permissionsWindow) *grantRow {
	r := &grantRow{of: p, who: kit.NewLine(112, kit.Body, 2), may: kit.NewLine(300, kit.Body, ruleLines), until: kit.NewFlow(172, kit.Body), used: kit.NewFlow(88, kit.Body), both: kit.NewFlow(300, kit.Small)}
	more, line := p.link("Show all", func() {
		r.may.Most(0)
		r.more.Hide()
		p.refresh()
		p.ui.settle(p.win, r.revoke)
	})
	r.more = more
	r.revoke = p.button("Revoke", kit.Normal, func() {
		r.revoke.Enable(false)
		p.send(p, snapshot.Intent{Kind: snapshot.Revoke, Text: r.id})
	}).Slim()
	r.more.Hide()
	r.root = kit.Pad(6, 0, 6, 0, kit.Cols(31, grantColumns, r.who, kit.Column(2, r.may, line), r.until, r.used, r.revoke, r.both))
	return r
}

// set brings it up to date and tells whether it may have become higher.
func (r *grantRow) set(g snapshot.Grant, now time.Time) (changed bool) {
	before := r.may.Text() + r.until.Text()
	r.id = g.ID
	r.who.Set(kit.Remote(g.Who, kit.Plain("", kit.Ink))...)
	var may []kit.Span
	if g.Deny {
		may = append(may, kit.Plain("■ ", kit.Risk), kit.Bold("May not: ", kit.Risk))
	}
	r.may.Set(append(may, kit.Remote(g.May, kit.Plain("", kit.Ink))...)...)
	first, second := untilWords(g, now)
	until := kit.Remote(first, kit.Plain("", kit.Ink))
	if ticks(g, now) {
		until = []kit.Span{kit.Bold(first, kit.Ink)}
	}
	if second != "" {
		until = append(until, kit.Plain("\n"+second, kit.Dim))
	}
	r.until.Set(until...)
	line := kit.Remote(first, kit.Plain("", kit.Dim))
	if ticks(g, now) {
		line = []kit.Span{kit.Bold(first, kit.Ink)}
	}
	if second != "" {
		line = append(line, kit.Plain(", "+second, kit.Dim))
	}
	used := "last used " + agoWord(g.LastUsed, now)
	if g.LastUsed.IsZero() {
		used = "never used"
	}
	r.both.Set(append(line, kit.Plain(" · "+used, kit.Dim))...)
	r.used.Set(kit.Plain(agoWord(g.LastUsed, now), kit.Dim))
	if cut := r.may.Cut(); r.more.Hidden == cut {
		r.more.Hidden = !cut
		changed = true
	}
	return changed || before != r.may.Text()+r.until.Text()
}

// sessionModes are the ways a session may work, in words for where there is
// room, and where there is not.
var (
	sessionModes      = []string{string(consent.ModeLook), string(consent.ModeWork), string(consent.ModeAsk), string(consent.ModeTrusted)}
	sessionModeWords  = []string{"Look only", "Work in this folder", "Ask each time", "Trusted for 15 minutes"}
	sessionModeShorts = []string{"Look", "Work", "Ask", "Trusted"}
)

// sessionRow is one open session.
type sessionRow struct {
	of      *permissionsWindow
	now     snapshot.Session
	who     *kit.Flow
	where   *kit.Flow
	mode    *chooser
	left    *kit.Flow
	end     *kit.Button
	sure    *fyne.Container // the question that is asked in place
	trust   bool            // Trusted was chosen: really?
	ending  bool            // End session was clicked while something runs
	root    fyne.CanvasObject
	drawn   string
	leaving bool
}

func newSessionRow(p *permissionsWindow) *sessionRow {
	r := &sessionRow{of: p, who: kit.NewLine(500, kit.Body, 2), where: kit.NewLine(500, kit.Small, 3), left: kit.NewFlow(90, kit.Body), sure: kit.Column(0)}
	r.mode = newChooser(p.ui, p.keys, sessionModeWords, sessionModes, r.choose)
	r.mode.Short(sessionModeShorts)
	r.end = p.button("End session", kit.Normal, func() {
		if r.now.Running > 0 {
			r.ending = true
			p.draw()
			return
		}
		r.finish()
	}).Slim()
	r.root = kit.Pad(10, 0, 12, 0, kit.Column(8,
		kit.Row(16, kit.Grow(kit.Column(1, r.who, r.where)), r.end),
		kit.Trail(12, r.mode.Segments, r.left), r.sure))
	r.sure.Hide()
	return r
}

// choose asks once before a session may delete without asking.
func (r *sessionRow) choose(mode string) {
	if mode == string(consent.ModeTrusted) {
		r.trust = true
		r.of.draw()
		return
	}
	r.trust = false
	r.send(mode)
	r.of.draw()
}

func (r *sessionRow) send(mode string) {
	r.of.send(r.of, snapshot.Intent{Kind: snapshot.SetMode, Entry: r.now.ID, Text: mode})
}

func (r *sessionRow) finish() {
	r.ending, r.leaving = false, true
	r.end.Enable(false)
	r.of.send(r.of, snapshot.Intent{Kind: snapshot.EndSession, Entry: r.now.ID})
	r.of.draw()
}

// calm takes its questions back and tells whether there was one.
func (r *sessionRow) calm() (asked bool) {
	if r.trust {
		r.mode.back()
	}
	asked = r.trust || r.ending
	r.trust, r.ending = false, false
	return asked
}

func (r *sessionRow) told(t desklink.Told) {
	switch t.Intent {
	case snapshot.SetMode:
		r.mode.told(t.OK)
	case snapshot.EndSession:
		r.leaving = r.leaving && t.OK
		r.end.Enable(!r.leaving)
	}
}

func (r *sessionRow) set(o snapshot.Session, now time.Time) (changed bool) {
	r.now = o
	who := kit.Remote(o.Principal, kit.Bold("", kit.Ink))
	if o.Title != "" {
		who = append(who, kit.Plain("  task “", kit.Dim))
		who = append(append(who, kit.Remote(o.Title, kit.Plain("", kit.Dim))...), kit.Plain("”", kit.Dim))
	} else if agent := ownName(o.Agent); agent != "" {
		who = append(who, kit.Plain("  calls itself “", kit.Dim))
		who = append(append(who, kit.Remote(agent, kit.Plain("", kit.Dim))...), kit.Plain("”", kit.Dim))
	}
	r.who.Set(who...)
	where := kit.Remote(shortPath(o.Folder), kit.Plain("", kit.Dim))
	if !o.Since.IsZero() {
		where = append(where, kit.Plain(" · since "+timeShort(o.Since, now), kit.Dim))
	}
	if o.Running > 0 {
		where = append(where, kit.Plain(fmt.Sprintf(" · %d running", o.Running), kit.Dim))
	}
	r.where.Set(where...)
	r.mode.set(modeOf(o))
	trusted := o.TrustedUntil.After(now)
	if trusted {
		r.left.Set(kit.Bold(leftWord(o.TrustedUntil, now), kit.Ink))
	}
	changed = r.left.Hidden == trusted
	r.left.Hidden = !trusted
	if o.Running == 0 {
		r.ending = false
	}
	asks := ""
	switch {
	case r.ending:
		asks = "end"
	case r.trust:
		asks = "trust"
	}
	if asks == r.drawn {
		return changed
	}
	r.drawn = asks
	r.sure.Objects, r.sure.Hidden = nil, asks == ""
	var box fyne.CanvasObject
	var stay *kit.Button
	switch asks {
	case "end":
		words := []kit.Span{kit.Bold("End this session? ", kit.Ink), kit.Plain("What it runs now ends, too.", kit.Ink)}
		box, stay = r.of.sure(words, "End session", r.finish, "Let it go on", func() { r.ending = false; r.of.draw() })
	case "trust":
		words := []kit.Span{kit.Bold("Trust it for 15 minutes? ", kit.Ink),
			kit.Plain("Until then it also changes, moves and deletes in its folder without asking. Risky things are asked about all the same.", kit.Ink)}
		box, stay = r.of.sure(words, "Trust for 15 minutes", func() { r.trust = false; r.send(string(consent.ModeTrusted)); r.of.draw() },
			"Not now", func() { r.calm(); r.of.draw() })
	}
	if box != nil {
		r.sure.Objects = []fyne.CanvasObject{box}
		r.of.focus = stay
	}
	return true
}

// modeOf is the consent.Mode of a session, which a snapshot has in words.
func modeOf(o snapshot.Session) string {
	for _, m := range sessionModes {
		if o.Mode == m || o.Mode == policy.ModeWords(consent.Mode(m)) {
			return m
		}
	}
	return o.Mode
}

// timeShort is a moment of today, or a day.
func timeShort(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2 Jan 15:04")
}

// programRow is one connected program.
type programRow struct {
	of    *permissionsWindow
	now   snapshot.Program
	name  *kit.Flow
	seen  *kit.Flow
	end   *kit.Button
	box   *fyne.Container // the question
	sure  bool
	gone  bool // Disconnect was sent
	drawn string
	root  fyne.CanvasObject
}

func newProgramRow(p *permissionsWindow) *programRow {
	r := &programRow{of: p, name: kit.NewLine(500, kit.Body, 2), seen: kit.NewFlow(500, kit.Small), box: kit.Column(0)}
	r.end = p.button("Disconnect…", kit.Normal, func() { r.sure = true; p.draw() }).Slim()
	r.root = kit.Pad(10, 0, 12, 0, kit.Column(8, kit.Row(16, kit.Grow(kit.Column(1, r.name, r.seen)), r.end), r.box))
	r.box.Hide()
	return r
}

func (r *programRow) set(o snapshot.Program, now time.Time) (changed bool) {
	r.now = o
	r.name.Set(kit.Remote(o.Name, kit.Bold("", kit.Ink))...)
	var seen []string
	switch {
	case o.Sessions > 0:
		seen = append(seen, count(o.Sessions, "open session", "open sessions"))
	default:
		seen = append(seen, "no open session")
	}
	seen = append(seen, "last seen "+agoWord(o.LastSeen, now))
	if o.LastSeen.IsZero() {
		seen[1] = "not seen yet"
	}
	if !o.Since.IsZero() {
		seen = append(seen, "connected since "+sinceWord(o.Since, now))
	}
	r.seen.Set(kit.Plain(capital(strings.Join(seen, " · ")), kit.Dim))
	r.end.Hidden = !o.CanDisconnect
	r.end.Enable(!r.gone)
	sure := r.sure && o.CanDisconnect && !r.gone
	asks := word(sure) + itoa(o.Sessions)
	if !sure {
		asks = ""
	}
	if asks == r.drawn {
		return false
	}
	fresh := r.drawn == ""
	r.drawn = asks
	r.box.Objects, r.box.Hidden = nil, !sure
	if !sure {
		return true
	}
	words := append([]kit.Span{kit.Bold("Disconnect ", kit.Ink)}, kit.Remote(o.Name, kit.Bold("", kit.Ink))...)
	line := "Its key stops working, and what it was allowed is forgotten."
	if o.Sessions > 0 {
		line = fmt.Sprintf("Its key stops working, its %s with all that runs there, and what it was allowed is forgotten.", count(o.Sessions, "open session ends", "open sessions end"))
	}
	words = append(words, kit.Bold("? ", kit.Ink), kit.Plain(line, kit.Ink))
	box, stay := r.of.sure(words, "Disconnect", func() {
		r.sure, r.gone = false, true
		r.of.send(r.of, snapshot.Intent{Kind: snapshot.Disconnect, Text: r.now.ID})
		r.of.draw()
	}, "Keep it", func() { r.sure = false; r.of.draw() })
	r.box.Objects = []fyne.CanvasObject{box}
	if fresh {
		r.of.focus = stay
	}
	return true
}
