// Package ui is what a person sees of step 4 (cards) and step 7 (windows), in
// Fyne. It draws what comes down the link and sends answers and intents up; it
// decides nothing and keeps nothing that the other end needs. Everything in it
// belongs to Fyne's goroutine.
package ui

import (
	"log/slog"
	"net/url"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// Name is what windows and notifications call the program.
const Name = "Local PC"

// Clock is time as the windows need it. After calls f on Fyne's goroutine,
// once, unless stop was called before.
type Clock interface {
	Now() time.Time
	After(d time.Duration, f func()) (stop func())
}

// Screen is what is asked of the window system beyond Fyne.
type Screen interface {
	// ShowCalm shows a window above the others and without the keyboard.
	ShowCalm(w fyne.Window)
	// Calm readies a window for that; it does nothing to one that has not
	// been made yet.
	Calm(w fyne.Window)
	// Visible says whether a window that has been shown is on the screen.
	Visible(w fyne.Window) bool
	// Room is the largest size a window may have, in Fyne's units.
	Room(w fyne.Window) fyne.Size

	// ShowBare shows a window above all others that no window manager touches
	// and that never gets the keyboard; Bare readies it for that.
	ShowBare(w fyne.Window)
	Bare(w fyne.Window)
	// PlaceTop puts a bare window of this size at the top middle of the first
	// screen; again where it was put there before, and nothing of it has changed.
	// Raise puts it above the others again. OnScreen says whether it is on one:
	// screens go, and become smaller.
	PlaceTop(w fyne.Window, size fyne.Size, again bool)
	Raise(w fyne.Window)
	OnScreen(w fyne.Window) bool
	// Guard asks pass about each press in a window; it is not heard of unless it
	// passes.
	Guard(w fyne.Window, pass func(Press) bool)

	// Drag puts a bare window where the pointer is at this place of it.
	Drag(w fyne.Window, at fyne.Position)
}

// Press is one of a key, or else of a button. Mine: the person's own hand made
// it. Through: it came through another window, which lies over what it reached.
type Press struct{ Key, Mine, Through bool }

// Options build a UI. All fields are needed.
type Options struct {
	App   fyne.App
	Clock Clock
	// Screen is nil under a driver without a screen.
	Screen Screen
	// Send takes a message for localpc. It must not block.
	Send func(desklink.Up)
	// Open shows a page in the person's browser.
	Open func(*url.URL) error
	// Background runs work off Fyne's goroutine, then what it returns on it.
	Background func(work func() (then func()))
}

// UI is every window of the program.
type UI struct {
	o        Options
	snap     snapshot.Snapshot
	snapAt   time.Time // when it came
	card     *cardWindow
	pair     *pairWindow
	activity *activityWindow
	main     *mainWindow
	permits  *permissionsWindow
	settings *settingsWindow
	strip    *stripWindow
	viewer   fyne.Window // of a picture; nil until one was opened
	open     map[fyne.Window]bool
	asked    map[snapshot.IntentKind]shown // which window an intent came from last
	kept     map[string]int                // denials in a row after which the person kept a session, by its id
}

// shown is a window that show opens.
type shown interface {
	window() fyne.Window
	draw()
	// told takes the answer to an intent that came from here.
	told(desklink.Told)
	// rest stops its timers: it has been hidden.
	rest()
}

// windows are those that were made.
func (u *UI) windows() (all []shown) {
	if u.pair != nil {
		all = append(all, u.pair)
	}
	if u.activity != nil {
		all = append(all, u.activity)
	}
	if u.main != nil {
		all = append(all, u.main)
	}
	if u.permits != nil {
		all = append(all, u.permits)
	}
	if u.settings != nil {
		all = append(all, u.settings)
	}
	return all
}

// New makes the windows, all hidden, and says Ready through o.Send.
func New(o Options) *UI {
	o.App.Settings().SetTheme(kit.NewTheme())
	u := &UI{o: o, open: map[fyne.Window]bool{}, asked: map[snapshot.IntentKind]shown{}, kept: map[string]int{}}
	u.card, u.strip = newCardWindow(u), &stripWindow{ui: u}
	return u
}

// Handle does what a message asks for.
func (u *UI) Handle(d desklink.Down) {
	switch {
	case d.Snapshot != nil:
		u.snapshot(*d.Snapshot)
	case d.Show != nil:
		u.show(d.Show.Window)
	case d.Card != nil:
		u.card.show(*d.Card)
	case d.Close != nil:
		u.card.close(d.Close.ID)
	case d.Raise != nil:
		u.card.raise()
	case d.Look != nil:
		u.card.look(*d.Look)
	case d.Detail != nil:
		if u.activity != nil {
			u.activity.detail(*d.Detail)
		}
	case d.Found != nil:
		if u.activity != nil {
			u.activity.found(*d.Found)
		}
	case d.Told != nil:
		u.told(*d.Told)
	case d.Removed != nil:
		if u.settings != nil {
			u.settings.remove.end(*d.Removed)
		}
	case d.Quit:
		u.o.App.Quit()
	}
}

func (u *UI) snapshot(s snapshot.Snapshot) {
	if s.Seq < u.snap.Seq {
		return // an older one that came late
	}
	u.snap, u.snapAt = s, u.o.Clock.Now()
	u.card.waiting(s.Waiting)
	u.strip.draw(s)
	u.redraw()
}

// redraw brings the windows that are open up to date.
func (u *UI) redraw() {
	for _, w := range u.windows() {
		if u.open[w.window()] {
			w.draw()
		}
	}
}

// show opens a window, or raises it.
func (u *UI) show(name string) {
	var w fyne.Window
	switch name {
	case snapshot.WindowPair:
		if u.pair == nil {
			u.pair = newPairWindow(u)
		}
		u.pair.opened()
		w = u.pair.win
	case snapshot.WindowActivity:
		if u.activity == nil {
			u.activity = newActivityWindow(u)
		}
		w = u.activity.win
	case snapshot.WindowMain:
		if u.main == nil {
			u.main = newMainWindow(u)
		}
		w = u.main.win
	case snapshot.WindowPermissions:
		if u.permits == nil {
			u.permits = newPermissionsWindow(u)
		}
		w = u.permits.win
	case snapshot.WindowSettings:
		if u.settings == nil {
			u.settings = newSettingsWindow(u)
		}
		w = u.settings.win
	default:
		slog.Warn("A window that does not exist was asked for")
		return
	}
	if u.open[w] {
		u.unpoint(w)
		w.RequestFocus()
		return
	}
	u.unpoint(w)
	u.open[w] = true
	u.redraw()
	w.Show()
	u.guard(w, func(line string) { u.refused(w, line) })
	u.settleSize(w, fyne.Size{}, 6)
	switch {
	case name != snapshot.WindowMain:
		w.RequestFocus() // it was asked for: a window manager may open it behind another
	case u.pair != nil && u.open[u.pair.win]:
		u.pair.win.RequestFocus() // what the person is at stays in front
	}
	u.count()
}

// hide closes a window that show opened; it is kept for the next time.
func (u *UI) hide(w fyne.Window) {
	if u.open[w] {
		delete(u.open, w)
		w.Hide()
		kit.Unpoint(w.Content())
		for _, s := range u.windows() {
			if s.window() == w {
				s.rest()
			}
		}
		u.count()
	}
}

// unpoint takes the mouse's mark off what is in the windows that w comes before.
func (u *UI) unpoint(w fyne.Window) {
	for under := range u.open {
		if under != w {
			kit.Unpoint(under.Content())
		}
	}
}

func (u *UI) count() {
	n := len(u.open)
	u.o.Send(desklink.Up{Windows: &n})
}

// seen are the intents whose success shows in the windows by itself: it is not
// said once more.
var seen = map[snapshot.IntentKind]bool{
	snapshot.StopOne: true, snapshot.StopAll: true, snapshot.Pause: true, snapshot.Resume: true,
	snapshot.Revoke: true, snapshot.SetMode: true, snapshot.SetCapability: true, snapshot.EndSession: true, snapshot.SelfTest: true,
	snapshot.Dismiss: true, snapshot.TestScreens: true,
}

// told gives a sentence to the window that its intent came from.
func (u *UI) told(t desklink.Told) {
	from := u.asked[t.Intent]
	switch {
	case from != nil && u.open[from.window()]:
		from.told(t)
		return
	case from != nil && t.Intent == snapshot.Change:
		u.settings.saved(t) // the next field's turn
	}
	if t.OK && seen[t.Intent] {
		return
	}
	switch t.Intent {
	case snapshot.Pair, snapshot.CancelPair, snapshot.MakeKey, snapshot.ForgetKey, snapshot.Practice:
		if u.pair != nil {
			u.pair.told(t)
			return
		}
	}
	switch {
	case u.activity != nil && u.open[u.activity.win]:
		u.activity.told(t)
	case u.main != nil && u.open[u.main.win]:
		u.main.told(t)
	case u.pair != nil && u.open[u.pair.win]:
		u.pair.told(t)
	}
}

func (u *UI) intent(i snapshot.Intent) {
	delete(u.asked, i.Kind)
	u.o.Send(desklink.Up{Intent: &i})
}

// ask sends an intent whose answer belongs to one window.
func (u *UI) ask(w shown, i snapshot.Intent) {
	u.intent(i)
	u.asked[i.Kind] = w
}

// settle gives the keyboard to first, where the control that had it is no
// longer there.
func (u *UI) settle(w fyne.Window, first fyne.Focusable) {
	c := w.Canvas()
	focused, _ := c.Focused().(fyne.CanvasObject)
	if focused == nil || c.Overlays().Top() != nil || kit.Holds(c.Content(), focused) {
		return
	}
	c.Unfocus()
	if first != nil {
		c.Focus(first)
	}
}

// window makes a hidden window that hides when it is closed.
func (u *UI) window(title string, size fyne.Size) fyne.Window {
	w := u.o.App.NewWindow(title)
	w.SetPadded(false)
	w.Resize(u.fit(w, size))
	w.CenterOnScreen()
	w.SetCloseIntercept(func() { u.hide(w) })
	return w
}

// settleSize brings a window that has just been shown onto the screen, and looks
// again some times. The scale is known only now; sizes asked for while the
// window manager maps the window may be lost; and a picture drawn then may be of
// the size before, so that everything stands beside where a click finds it.
func (u *UI) settleSize(w fyne.Window, was fyne.Size, more int) {
	if u.o.Screen == nil || !u.open[w] {
		return
	}
	size := w.Canvas().Size()
	if fit := u.fit(w, size); size.Width > fit.Width+1 || size.Height > fit.Height+1 {
		w.Resize(fit)
	}
	if more == 0 {
		return
	}
	if size != was || more == 1 {
		w.Content().Refresh()
	}
	u.o.Clock.After(sizeAgain, func() { u.settleSize(w, size, more-1) })
}

// sizeAgain is how long a window manager is given for a new size.
const sizeAgain = 200 * time.Millisecond

// fit makes a size no larger than the screen.
func (u *UI) fit(w fyne.Window, s fyne.Size) fyne.Size {
	if u.o.Screen == nil {
		return s
	}
	room := u.o.Screen.Room(w)
	return fyne.NewSize(min(s.Width, room.Width), min(s.Height, room.Height))
}
