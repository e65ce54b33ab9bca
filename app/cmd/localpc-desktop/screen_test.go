//go:build linux

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

const cardTitle = "asks for permission"

// A card comes up over the window a person types in, and what they type goes
// on to that window: no key reaches the card.
func TestCardTakesNoKeyboard(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	typed := filepath.Join(d.Home, "typed")
	d.Start("xterm", "-T", "keeper", "-geometry", "60x8+20+20", "-e", "sh", "-c", "read line; echo \"$line\" >"+typed+"; sleep 100")
	d.WaitWindow(soon, "keeper")
	if !d.Until(soon, func() bool { return d.Focused() == "keeper" }) {
		t.Fatalf("the focus is at %q", d.Focused())
	}
	for _, c := range []desklink.Card{command("a"), session("b", d.Home)} { // made, and used again
		asked := time.Now()
		d.send(desklink.Down{Card: &c})
		d.shown(c.Request.ID)
		t.Logf("card %s on the screen after %v", c.Request.ID, time.Since(asked).Round(time.Millisecond))
		d.Type(c.Digits + " ")
		time.Sleep(time.Second)
		d.Type(c.Digits + " ")
		if got := d.Focused(); got != "keeper" {
			t.Fatalf("the card took the focus from the keeper; %q has it", got)
		}
		d.Window(cardTitle).WaitSentence(soon, c.Request.Sentence)
		d.send(desklink.Down{Close: &desklink.CloseCard{ID: c.Request.ID}})
		d.WaitNoWindow(soon, cardTitle)
	}
	d.Key("Return")
	want := "47 47 82 82"
	if !d.Until(soon, func() bool { b, _ := os.ReadFile(typed); return strings.TrimSpace(string(b)) == want }) {
		b, _ := os.ReadFile(typed)
		t.Errorf("the keeper got %q, want %q", b, want)
	}
	if n := d.answers(); n != 0 {
		t.Errorf("%d answers were given by typing elsewhere", n)
	}
}

// clickAllow clicks on the button in the lower right corner of the card, the
// one that allows.
func (d *desk) clickAllow() {
	d.t.Helper()
	w := d.WaitWindow(soon, cardTitle)
	d.Click(w.Rect.Max.X-24-30, w.Rect.Max.Y-24-17)
}

// The person answers by mouse, by digits and by closing the window.
func TestAnswers(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	card := d.Window(cardTitle)
	show := func(c desklink.Card) {
		t.Helper()
		d.send(desklink.Down{Card: &c})
		d.shown(c.Request.ID)
		time.Sleep(time.Second)
	}
	show(command("mouse"))
	card.ClickText("Exactly this runs") // no control: the window takes the keyboard
	for _, k := range []string{"Tab", "Tab", "Right"} {
		d.Key(k) // the exact text, then where it runs
	}
	card.WaitSentence(soon, "it can do everything that you can do on this computer")
	d.Screenshot("full-access")
	d.clickAllow()
	if a := d.answer("mouse"); !a.Allow || a.Choice != (consent.Choice{Scope: consent.Once, Contain: consent.FullAccess}) {
		t.Errorf("clicking to allow gave %+v", a)
	}
	d.WaitNoWindow(soon, cardTitle)

	show(command("keys"))
	d.send(desklink.Down{Raise: &desklink.RaiseCard{}})
	if !d.Until(soon, func() bool { return strings.Contains(d.Focused(), cardTitle) }) {
		t.Fatalf("a raised card has no focus: %q has it", d.Focused())
	}
	d.Key("Tab") // off Deny
	d.Key("Tab")
	d.Type("47")
	if a := d.answer("keys"); !a.Allow || a.Choice.Contain != consent.Contained {
		t.Errorf("typing the digits gave %+v", a)
	}

	show(command("close"))
	w, _ := d.FindWindow(cardTitle)
	d.CloseWindow(w)
	if a := d.answer("close"); a.Allow {
		t.Error("closing the card's window allowed")
	}

	show(session("session", d.Home+"/project", d.Home))
	card.ClickText("Look only")
	card.ClickText("Remember for Claude")
	d.clickAllow()
	want := consent.Choice{Scope: consent.Session, Mode: consent.ModeLook, Folder: d.Home + "/project", Remember: true}
	if a := d.answer("session"); !a.Allow || a.Choice != want {
		t.Errorf("the session card gave %+v, want %+v", a, want)
	}
}

// A click on Allow while it is not armed does nothing; the same one later does.
func TestUnarmedClick(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	for arm := 4 * time.Second; ; arm *= 2 {
		id := "slow" + arm.String()
		c := command(id)
		c.ArmMS = int(arm.Milliseconds())
		began := time.Now()
		d.send(desklink.Down{Card: &c})
		d.shown(id)
		d.Window(cardTitle).WaitText(soon, "Deny for this session")
		d.clickAllow()
		d.Screenshot("unarmed")
		time.Sleep(300 * time.Millisecond)
		if d.answers() == 0 {
			time.Sleep(arm)
			d.clickAllow()
			if a := d.answer(id); !a.Allow {
				t.Error("an armed click denied")
			}
			return
		}
		if time.Since(began) < arm || arm > 30*time.Second {
			t.Fatal("a click allowed before the card was armed")
		}
		// The computer was so slow that the card was armed by then.
		d.answer(id)
		d.send(desklink.Down{Close: &desklink.CloseCard{ID: id}})
		d.WaitNoWindow(soon, cardTitle)
	}
}

// The link may carry nonsense; its end is the end of the program.
func TestLink(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	for _, bad := range []string{"", "nonsense", "{}", `{"quit":true,"show":{"window":"pair"}}`, `{"show":{"window":"no such"}}`,
		`{"close":{"id":"none"}}`, `{"raise":{}}`, `{"detail":{}}`, `{"found":{}}`, `{"told":{}}`, `{"card":{}}`, strings.Repeat("x", desklink.MaxLine+10)} {
		d.line(bad)
	}
	c := command("after")
	d.send(desklink.Down{Card: &c})
	d.shown("after")
	d.in.Close()
	if code := d.proc.ExitCode(10 * time.Second); code != 0 {
		t.Errorf("exit code %d after the link's end: %s", code, d.proc.Output())
	}
	d.WaitNoWindow(soon, cardTitle)
}

func TestQuit(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{NoBus: true}, "LOCALPC_THEME=dark")
	d.snapshot(nil)
	d.open(snapshot.WindowActivity, "Activity")
	d.send(desklink.Down{Quit: true})
	if code := d.proc.ExitCode(10 * time.Second); code != 0 {
		t.Errorf("exit code %d: %s", code, d.proc.Output())
	}
}

func TestStartedByHand(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoBus: true})
	p := d.Start(binary)
	if code := p.ExitCode(10 * time.Second); code != 2 || !strings.Contains(p.Output(), "Run localpc instead") {
		t.Errorf("code %d and %q", code, p.Output())
	}
}

// The person's theme is taken, and followed when it changes.
func TestTheme(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{Dark: true})
	d.snapshot(nil)
	d.open(snapshot.WindowActivity, "Activity")
	w := d.WaitWindow(soon, "Activity")
	bright := func() uint32 {
		r := w.Rect
		c := d.Capture().RGBAAt(r.Min.X+r.Dx()/2, r.Min.Y+12) // the head, between words
		return uint32(c.R)
	}
	if !d.Until(soon, func() bool { return bright() < 60 }) {
		t.Fatalf("a dark desktop has a window of %d", bright())
	}
	d.SetDark(false)
	if !d.Until(soon, func() bool { return bright() > 240 }) {
		t.Fatalf("the window stays dark: %d", bright())
	}
	d.Screenshot("turned-light")
}

// An open window that nothing happens in is not drawn again and again.
func TestIdle(t *testing.T) {
	d := start(t, apptest.Options{})
	d.snapshot(nil)
	d.open(snapshot.WindowActivity, "Activity").WaitText(soon, "Run npm test")
	time.Sleep(2 * time.Second)
	before := cpu(t, d.proc.PID)
	cost, err := apptest.Idle(d.proc.PID, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	used := cpu(t, d.proc.PID) - before
	t.Logf("Activity open and idle: %v, %v of CPU in 4 s", cost, used)
	// The toolkit's loop alone: some 500 wake-ups, 1 % of CPU. A frame drawn
	// each 60th of a second by llvmpipe costs 30 % and more.
	if used > 600*time.Millisecond || cost.Wakeups > 1500 {
		t.Errorf("an idle window costs too much")
	}
}

// TestPictures keeps a picture of each window and card, light and dark, and
// reads a sentence off each light one.
func TestPictures(t *testing.T) {
	t.Parallel()
	for _, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			t.Parallel()
			d := start(t, apptest.Options{Dark: theme == "dark"}, "LOCALPC_THEME="+theme)
			shot := func(name, window, sentence string) {
				t.Helper()
				d.Move(4, 4)
				if theme == "light" { // reading takes long, and the words are the same
					d.Window(window).WaitSentence(soon, sentence)
				} else {
					d.WaitWindow(soon, window)
					time.Sleep(700 * time.Millisecond)
				}
				d.Screenshot(name)
			}
			card := func(name string, c desklink.Card, armed time.Duration) {
				t.Helper()
				d.send(desklink.Down{Card: &c})
				d.shown(c.Request.ID)
				time.Sleep(armed)
				shot(name, cardTitle, c.Request.Sentence)
			}
			card("card-command", command("command"), time.Second)
			card("card-session", session("session", d.Home+"/Documents/website", d.Home+"/Documents"), time.Second)
			noBox := command("no-container")
			noBox.Request.Containable, noBox.ContainProblem = false, "Commands can't be contained here: bubblewrap is not installed."
			card("card-no-container", noBox, time.Second)
			odd := command("odd")
			odd.Request.Principal.Name = "Evil\n\u202ename" + strings.Repeat("w", 300)
			odd.Request.Claims = consent.Claims{Agent: strings.Repeat("A", 300), Title: "two\nlines"}
			odd.Request.Exact = strings.Repeat("echo \u202ehidden \x1b[31m\ttab 世界\n", 4000)
			odd.ArmMS = 60_000
			card("card-odd", odd, 0)
			d.send(desklink.Down{Close: &desklink.CloseCard{ID: "odd"}})
			huge := command("huge")
			huge.Request.Exact = strings.Repeat("echo one line of many, which is not short at all\n", 1<<20/49)
			asked := time.Now()
			d.send(desklink.Down{Card: &huge})
			d.shown("huge")
			took := time.Since(asked)
			t.Logf("a card with a mebibyte of text is on the screen after %v", took.Round(time.Millisecond))
			if took > 5*time.Second {
				t.Errorf("a card with a mebibyte of text took %v", took)
			}
			d.send(desklink.Down{Close: &desklink.CloseCard{ID: "huge"}})
			d.WaitNoWindow(soon, cardTitle)

			d.snapshot(func(s *snapshot.Snapshot) {
				s.Entries, s.Hub.Paired, s.State, s.Line = nil, false, snapshot.Offline, "Not paired"
			})
			d.open(snapshot.WindowPair, "Pair this computer")
			shot("pair", "Pair this computer", "Who may ask for this computer")
			d.snapshot(func(s *snapshot.Snapshot) { s.Entries, s.Line = nil, "Ready" })
			shot("connect", "Connect a program", "It needs three settings, one of them a key of its own")
			d.snapshot(func(s *snapshot.Snapshot) {
				s.Entries = nil
				s.Connect = snapshot.Connect{Name: "Research agent", Practice: "running", Lines: []string{
					"E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567", "E2B_API_URL=http://127.0.0.1:4417/api", "E2B_SANDBOX_URL=http://127.0.0.1:4417/sbx"}}
			})
			shot("connect-key", "Connect a program", "The key is shown only now")
			w, _ := d.FindWindow("Connect a program")
			d.CloseWindow(w)
			d.WaitNoWindow(soon, "Connect a program")

			d.open(snapshot.WindowMain, "Local PC")
			shot("main", "Local PC", "Workshop PC")
			w, _ = d.FindWindow("Local PC")
			d.CloseWindow(w)
			shot("main-quit", "Local PC", "Programs can't reach this computer then")
			d.Key("Escape")

			log := d.open(snapshot.WindowActivity, "Activity")
			shot("activity-empty", "Activity", "Nothing has happened yet")
			d.snapshot(nil)
			log.WaitText(soon, "Run npm test")
			log.ClickText("Run npm test")
			d.until("GetDetail", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.GetDetail })
			d.send(desklink.Down{Detail: &snapshot.Detail{Entry: snapshot.Entry{ID: "1", What: "Run npm test", Capability: "shell", Outcome: snapshot.Running, By: "session card", CanStop: true},
				Sentence: "Claude Desktop runs npm test", Where: "Kept inside its folder ~/project · network only as you allow", Exact: "npm test",
				Output: "> project@1.0.0 test\n✓ parses dates (4 ms)\n✓ keeps order (1 ms)\n"}})
			shot("activity", "Activity", "Claude Desktop runs npm test")
			d.snapshot(func(s *snapshot.Snapshot) {
				s.State, s.Line, s.Stopped = snapshot.Paused, "Everything stopped", &snapshot.Stopped{Commands: 2, Sessions: 1}
				s.Warnings = []string{"Commands run with full access: nothing can be contained here."}
				s.Record = snapshot.Record{Problem: "The record was changed at entry 7."}
			})
			shot("activity-stopped", "Activity", "2 commands ended. Nothing runs until you resume")
			log.ClickText("Export")
			shot("activity-export", "Activity", "Everything that was asked for")
		})
	}
}

// On a small screen, and at twice the size, a session card with all its ways is
// whole on the screen, and its buttons are in sight.
func TestSessionCardOnASmallScreen(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]string{"small": "FYNE_SCALE=1", "twice": "FYNE_SCALE=2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := apptest.Options{Width: 1024, Height: 700}
			d := start(t, o, env, "LOCALPC_THEME=light")
			c := session("session", d.Home+"/Documents/website", d.Home+"/Documents")
			d.send(desklink.Down{Card: &c})
			d.shown("session")
			time.Sleep(time.Second)
			card := d.Window(cardTitle)
			if name == "small" { // at twice the size one scrolls to it
				card.ClickText("Another way")
				card.WaitText(soon, "Trusted for 15 minutes")
				card.ClickText("Trusted for 15 minutes")
				card.WaitText(soon, "What it deletes or replaces")
			}
			d.Screenshot("session-" + name)
			r, ok := card.Rect()
			if !ok || r.Min.Y < 0 || r.Max.Y > o.Height || r.Max.X > o.Width {
				t.Errorf("the card takes %v of a screen of %d by %d", r, o.Width, o.Height)
			}
			if name == "small" { // nothing is left to scroll to
				card.WaitText(soon, "Start, trusted")
				card.WaitNoText(soon, "Read on")
			}
			for _, word := range []string{"Deny", "Not for the next 15 minutes"} {
				if !d.Until(soon, func() bool { at, ok := card.FindText(word); return ok && at.Max.Y <= o.Height }) {
					t.Errorf("%q is not in sight", word)
				}
			}
		})
	}
}

// At twice the size the windows are larger than a small screen: each is made as
// small as it, and what is drawn is where a click finds it.
func TestWindowsOnASmallScreen(t *testing.T) {
	t.Parallel()
	o := apptest.Options{Width: 1500, Height: 1000}
	d := start(t, o, "FYNE_SCALE=2", "LOCALPC_THEME=light")
	d.send(desklink.Down{Show: &desklink.Show{Window: snapshot.WindowPermissions}})
	d.WaitWindow(soon, "Permissions")
	for _, step := range []struct{ title, next string }{{"Permissions", "Settings"}, {"Settings", "Activity"}, {"Activity", "Permissions"}} {
		w := d.Window(step.title)
		w.WaitText(soon, step.next)
		time.Sleep(2 * time.Second)
		d.Screenshot("twice-" + step.title)
		r, ok := w.Rect()
		if !ok || r.Max.Y > o.Height || r.Max.X > o.Width {
			t.Errorf("%s takes %v of a screen of %d by %d", step.title, r, o.Width, o.Height)
		}
		w.ClickText(step.next)
		if !d.Until(10*time.Second, func() bool { return d.Focused() == step.next }) {
			t.Fatalf("a click on %q in %s does not open it", step.next, step.title)
		}
	}
}

// cpu is the time a process has used, in ticks of a hundredth of a second.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
