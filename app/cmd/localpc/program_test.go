//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"image"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// cardTitle is in the title of every card's window.
const cardTitle = "asks for permission"

// program is localpc as built, running in a desktop of its own, driven as a
// person drives it.
type program struct {
	t    testing.TB
	d    *apptest.Desktop
	p    *apptest.Process
	data string
	bin  string // the folder of the programs
	addr string
	args []string
}

// start builds and starts it, with its data below the desktop's home.
func start(t testing.TB, o apptest.Options, args ...string) *program {
	t.Helper()
	return startIn(t, apptest.New(t, o), args...)
}

// startIn is start in a desktop that the test has made.
func startIn(t testing.TB, d *apptest.Desktop, args ...string) *program {
	t.Helper()
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-desktop", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t), args: args}
	p.run()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		d.Screenshot("failed")
		if b, err := os.ReadFile(filepath.Join(p.data, "localpc.log")); err == nil {
			t.Logf("log of localpc:\n%s", b)
		}
	})
	return p
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (p *program) run() {
	p.t.Helper()
	p.p = p.d.Start(filepath.Join(p.bin, "localpc"), append([]string{"run", "--data", p.data, "--embedded-hub", p.addr}, p.args...)...)
	p.d.WaitOutput(p.p, 20*time.Second, "running")
}

// cli runs one command of localpc against the running one.
func (p *program) cli(args ...string) (string, error) {
	return p.d.Run(30*time.Second, filepath.Join(p.bin, "localpc"), append(args, "--data", p.data)...)
}

// must is cli that has to work.
func (p *program) must(args ...string) string {
	p.t.Helper()
	out, err := p.cli(args...)
	if err != nil {
		p.t.Fatalf("localpc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (p *program) status() snapshot.Snapshot {
	p.t.Helper()
	var s snapshot.Snapshot
	if err := json.Unmarshal([]byte(p.must("status", "--json")), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// waitStatus waits until the state is as ok wants it.
func (p *program) waitStatus(limit time.Duration, what string, ok func(snapshot.Snapshot) bool) {
	p.t.Helper()
	var s snapshot.Snapshot
	if !p.d.Until(limit, func() bool { s = p.status(); return ok(s) }) {
		p.t.Fatalf("%s: not within %s; the state is %+v", what, limit, s)
	}
}

// pair pairs by command, for tests that are about something else.
func (p *program) pair() {
	p.t.Helper()
	p.must("pair", "this")
	p.waitStatus(20*time.Second, "paired and online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
}

// key makes a key for a program, as localpc-hub does, and returns the lines of
// its environment.
func (p *program) key(name string) []string {
	p.t.Helper()
	out, err := p.d.Run(30*time.Second, filepath.Join(p.bin, "localpc-hub"), "key", "add", name, "--data", filepath.Join(p.data, "hub"))
	if err != nil {
		p.t.Fatalf("key add: %v", err)
	}
	for _, word := range strings.Fields(out) {
		if strings.HasPrefix(word, "e2b_") {
			return []string{"E2B_API_KEY=" + word, "E2B_API_URL=http://" + p.addr + "/api", "E2B_SANDBOX_URL=http://" + p.addr + "/sbx"}
		}
	}
	p.t.Fatalf("key add printed no key: %q", out)
	return nil
}

// card is the card on the screen, once it says all of these sentences.
func (p *program) card(sentences ...string) *apptest.Area {
	p.t.Helper()
	p.d.WaitWindow(20*time.Second, cardTitle)
	a := p.d.Window(cardTitle)
	for _, s := range sentences {
		a.WaitSentence(20*time.Second, s)
	}
	return a
}

// noCard waits until no card is on the screen.
func (p *program) noCard() {
	p.t.Helper()
	p.d.WaitNoWindow(15*time.Second, cardTitle)
	// What it covered is drawn again: nobody clicks on what is still on the
	// screen of a window that has gone.
	p.d.WaitNoText(10*time.Second, "or", "type")
}

// foot is the part of a card that holds its buttons.
func foot(card *apptest.Area) (image.Rectangle, error) {
	r, ok := card.Rect()
	if !ok {
		return r, fmt.Errorf("the card has gone")
	}
	r.Min.Y = r.Max.Y - 70
	return r, nil
}

// press presses a button at the foot of the card, after its arming time.
func (p *program) press(card *apptest.Area, words ...string) {
	p.t.Helper()
	time.Sleep(800 * time.Millisecond) // as long as a person reads at least; the buttons arm after 700 ms
	p.button(card, words...)
}

// button presses a button at the foot of a window.
func (p *program) button(window *apptest.Area, words ...string) {
	p.t.Helper()
	r, err := foot(window)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(words) == 1 && words[0] == "Deny" {
		r.Max.X = r.Min.X + 96 // beside it stands "Deny for this session"
	}
	p.d.In(r).ClickText(words...)
}

// choose clicks the row of Activity with these words, until the detail has
// what it must have. A slow screen may still show the card that was there, and
// the click then meets another row: a person sees that, and clicks again.
func (p *program) choose(row []string, detail ...string) {
	p.t.Helper()
	p.d.WaitWindow(20*time.Second, "Activity")
	activity := p.d.Window("Activity")
	for range 5 {
		activity.ClickText(row...)
		if p.d.Until(6*time.Second, func() bool {
			r, ok := activity.Rect()
			if !ok {
				return false
			}
			_, ok = p.d.In(image.Rect(r.Max.X-r.Dx()/3, r.Min.Y+80, r.Max.X, r.Max.Y)).FindText(detail...)
			return ok
		}) {
			return
		}
	}
	p.t.Fatalf("the detail of %q does not show %q: %s", row, detail, activity.Text())
}

// detailButton presses a button at the foot of Activity's detail.
func (p *program) detailButton(words ...string) {
	p.t.Helper()
	r, ok := p.d.Window("Activity").Rect()
	if !ok {
		p.t.Fatal("Activity is not open")
	}
	p.d.In(image.Rect(r.Max.X-r.Dx()/3, r.Max.Y-120, r.Max.X, r.Max.Y-40)).ClickText(words...)
}

// pairByMouse goes through the Pair window, which the first start opens.
func (p *program) pairByMouse() *apptest.Area {
	p.t.Helper()
	w := p.d.Window("Pair")
	w.ClickText("This", "computer", "only")
	p.button(w, "Pair")
	w = p.d.Window("Connect a program")
	w.WaitText(20*time.Second, "Connect", "a", "program")
	p.waitStatus(20*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
	return w
}

// allowSession answers the session card with one of its ways.
func (p *program) allowSession(who, way string) {
	p.t.Helper()
	c := p.card(who)
	c.ClickText(strings.Fields(way)...)
	p.press(c, "Start")
	p.noCard()
}
