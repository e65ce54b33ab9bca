//go:build linux

package waytest

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// Gnome is GNOME's compositor (mutter) with GNOME's own portals and their
// dialogs, without a screen of its own; and its person, who answers the dialogs
// through what mutter has for GNOME alone, by no way that the display knows.
type Gnome struct {
	*Desktop
	conn   *dbus.Conn
	person dbus.BusObject // mutter's session of mouse and keyboard
	stream string         // what the person sees
	node   uint32
}

const (
	mutterInput = "org.gnome.Mutter.RemoteDesktop"
	mutterCast  = "org.gnome.Mutter.ScreenCast"
)

// gnomeKnown is the release whose question Answers knows the colours and places
// of; others draw it otherwise.
const gnomeKnown = "mutter 43."

// NoGnome says why GNOME's questions can't be answered here; "" where they can.
func NoGnome() string {
	said, err := exec.Command("mutter", "--version").Output()
	if err != nil {
		return "mutter does not run: " + err.Error()
	}
	if release, _, _ := strings.Cut(string(said), "\n"); !strings.HasPrefix(release, gnomeKnown) {
		return "this is " + release + ", and how the person answers is known of " + gnomeKnown + "x, that of Debian 12, only"
	}
	return ""
}

// StartGnome starts it with one screen of each size ("1280x800"), beside each
// other from the left, and sets the environment of the test to it.
func StartGnome(t testing.TB, screens ...string) *Gnome {
	t.Helper()
	g := &Gnome{Desktop: bare(t)}
	run := filepath.Join(g.Dir, "run")
	bus := "unix:path=" + filepath.Join(run, "bus")
	g.env = append(g.env, "XDG_CURRENT_DESKTOP=GNOME")
	g.pipewire()
	g.env = append(g.env, "WAYLAND_DISPLAY=wayland-0", "DBUS_SESSION_BUS_ADDRESS="+bus, "DBUS_SYSTEM_BUS_ADDRESS="+bus)
	g.start("dbus-daemon", "--session", "--nofork", "--address="+bus)
	g.wait("the bus", func() bool { return listens(filepath.Join(run, "bus")) })
	args := []string{"--wayland", "--headless", "--no-x11", "--wayland-display=wayland-0"}
	for _, size := range screens {
		args = append(args, "--virtual-monitor", size)
	}
	g.start("mutter", args...)
	g.wait("mutter", func() bool { return listens(filepath.Join(run, "wayland-0")) })
	g.setenv(bus)
	conn, err := dbus.Connect(bus)
	must(t, err)
	g.conn = conn
	t.Cleanup(func() { _ = conn.Close() })
	g.arrive()
	g.portals()
	return g
}

// arrive has the person take their seat.
func (g *Gnome) arrive() {
	g.t.Helper()
	var path dbus.ObjectPath
	g.wait("mutter on the bus", func() bool {
		return g.conn.Object(mutterInput, "/org/gnome/Mutter/RemoteDesktop").Call(mutterInput+".CreateSession", 0).Store(&path) == nil
	})
	g.person = g.conn.Object(mutterInput, path)
	id, err := g.person.GetProperty(mutterInput + ".Session.SessionId")
	must(g.t, err)
	var cast, stream dbus.ObjectPath
	must(g.t, g.conn.Object(mutterCast, "/org/gnome/Mutter/ScreenCast").Call(mutterCast+".CreateSession", 0,
		map[string]dbus.Variant{"remote-desktop-session-id": id}).Store(&cast))
	must(g.t, g.conn.Object(mutterCast, cast).Call(mutterCast+".Session.RecordMonitor", 0, "Meta-0", map[string]dbus.Variant{}).Store(&stream))
	g.stream = string(stream)
	must(g.t, g.conn.AddMatchSignal(dbus.WithMatchObjectPath(stream)))
	signals := make(chan *dbus.Signal, 4)
	g.conn.Signal(signals)
	must(g.t, g.person.Call(mutterInput+".Session.Start", 0).Err)
	for late := time.After(Limit); g.node == 0; {
		select {
		case s := <-signals:
			if s.Name == mutterCast+".Stream.PipeWireStreamAdded" {
				g.node = s.Body[0].(uint32)
			}
		case <-late:
			g.t.Fatal("mutter shows its person no screen")
		}
	}
	g.conn.RemoveSignal(signals)
	// Programs that come find a mouse and a keyboard.
	g.does("NotifyPointerMotionAbsolute", g.stream, 5.0, 5.0)
	g.does("NotifyKeyboardKeysym", uint32(0xffe1), true)
	g.does("NotifyKeyboardKeysym", uint32(0xffe1), false)
}

// Seen is what the person sees on the first screen.
func (g *Gnome) Seen() *image.RGBA {
	g.t.Helper()
	file := filepath.Join(g.Dir, "seen.png")
	g.Output("gst-launch-1.0", "-q", "pipewiresrc", "path="+strconv.Itoa(int(g.node)), "num-buffers=1", "always-copy=true",
		"!", "videoconvert", "!", "pngenc", "!", "filesink", "location="+file)
	f, err := os.Open(file)
	must(g.t, err)
	defer f.Close()
	img, err := png.Decode(f)
	must(g.t, err)
	m := image.NewRGBA(img.Bounds())
	draw.Draw(m, m.Rect, img, img.Bounds().Min, draw.Src)
	return m
}

// Answer is what the person does with the desktop's question about sharing.
type Answer int

// What they may do: choose the screen and share it; switch mouse and keyboard on,
// and share those; share what is chosen already; cancel.
const (
	ShareScreen Answer = iota
	ShareInput
	ShareAsIs
	Cancel
)

// Answers waits for the desktop's question, and has the person answer it.
func (g *Gnome) Answers(a Answer) {
	g.t.Helper()
	var box image.Rectangle
	var rows []image.Rectangle
	g.wait("the desktop's question", func() bool {
		was := box
		box, rows = question(g.Seen())
		return !box.Empty() && box == was && len(rows) > 0 // it has come to rest
	})
	yes := image.Pt(box.Max.X-48, box.Min.Y-23) // in the title
	row := rows[len(rows)-1]
	// blue tells whether a line has what is switched on, or can be pressed.
	blue := func(m *image.RGBA, y, from, to int) bool {
		n := 0
		for x := from; x < to; x++ {
			if c := m.RGBAAt(x, y); c.R < 0x60 && c.B > 0xc8 { // what can't be pressed is paler
				n++
			}
		}
		return n > 8
	}
	middle := (row.Min.Y + row.Max.Y) / 2
	switch a {
	case ShareScreen:
		g.clicks("the screen to be chosen", image.Pt((row.Min.X+row.Max.X)/2, middle), func(m *image.RGBA) bool { return blue(m, yes.Y, yes.X-40, yes.X+40) })
	case ShareInput:
		g.clicks("the switch to be on", image.Pt(row.Max.X-32, middle), func(m *image.RGBA) bool { return blue(m, middle, row.Max.X-80, row.Max.X) })
	case Cancel:
		yes.X = box.Min.X + 50
	}
	g.clicks("the question to go", yes, func(m *image.RGBA) bool { box, _ := question(m); return box.Empty() })
}

// clicks has the person click there until it has had its effect: a program that
// has just come may miss a click.
func (g *Gnome) clicks(what string, at image.Point, ok func(*image.RGBA) bool) {
	g.t.Helper()
	for end := time.Now().Add(Limit); time.Now().Before(end); {
		g.Click(at.X, at.Y)
		for again := time.Now().Add(6 * time.Second); time.Now().Before(again); {
			if ok(g.Seen()) {
				return
			}
		}
	}
	g.t.Fatalf("waited in vain for %s", what)
}

// question is where GNOME's question is, without its title, and its rows that
// are not chosen yet, by their colours.
func question(m *image.RGBA) (box image.Rectangle, rows []image.Rectangle) {
	inside, row := color.RGBA{0xfa, 0xfa, 0xfa, 255}, color.RGBA{0xff, 0xff, 0xff, 255}
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		if r := run(m, y, inside); r.Dx() > 400 {
			box = box.Union(r)
		}
		r := run(m, y, row)
		switch last := len(rows) - 1; {
		case r.Dx() < 300:
		case last >= 0 && y-rows[last].Max.Y < 30: // its words lie between
			rows[last] = rows[last].Union(r)
		default:
			rows = append(rows, r)
		}
	}
	return box, rows
}

// run is the longest run of one colour in a line.
func run(m *image.RGBA, y int, of color.RGBA) (longest image.Rectangle) {
	line := m.Pix[m.PixOffset(m.Rect.Min.X, y):][:4*m.Rect.Dx()]
	start, want := 0, []byte{of.R, of.G, of.B, of.A}
	for x := 0; x <= m.Rect.Dx(); x++ {
		if x < m.Rect.Dx() && bytes.Equal(line[4*x:4*x+4], want) {
			continue
		}
		if x-start > longest.Dx() {
			longest = image.Rect(start, y, x, y+1).Add(image.Pt(m.Rect.Min.X, 0))
		}
		start = x + 1
	}
	return longest
}

// Click has the person click a pixel of the first screen.
func (g *Gnome) Click(x, y int) {
	g.t.Helper()
	g.does("NotifyPointerMotionAbsolute", g.stream, float64(x), float64(y))
	time.Sleep(100 * time.Millisecond) // a person does not do it all at once
	g.does("NotifyPointerButton", int32(0x110), true)
	time.Sleep(100 * time.Millisecond)
	g.does("NotifyPointerButton", int32(0x110), false)
}

func (g *Gnome) does(what string, args ...any) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	must(g.t, g.person.CallWithContext(ctx, mutterInput+".Session."+what, 0, args...).Err)
}
