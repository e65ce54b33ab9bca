package ui

/*
#cgo LDFLAGS: -lX11 -lXi
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <X11/Xlib.h>
#include <X11/extensions/XInput2.h>

static Display *gateOpen(int *opcode) {
	Display *d = XOpenDisplay(NULL);
	if (!d) return NULL;
	int event, error, major = 2, minor = 2;
	if (!XQueryExtension(d, "XInputExtension", opcode, &event, &error) || XIQueryVersion(d, &major, &minor) != Success || major * 10 + minor < 22) {
		XCloseDisplay(d);
		return NULL;
	}
	unsigned char raw[XIMaskLen(XI_LASTEVENT)] = {0}, changed[XIMaskLen(XI_LASTEVENT)] = {0};
	XISetMask(raw, XI_RawButtonPress);
	XISetMask(raw, XI_RawKeyPress);
	XISetMask(raw, XI_RawTouchBegin);
	XISetMask(changed, XI_HierarchyChanged);
	XIEventMask masks[2] = {{XIAllMasterDevices, sizeof raw, raw}, {XIAllDevices, sizeof changed, changed}};
	XISelectEvents(d, DefaultRootWindow(d), masks, 2);
	XSync(d, False);
	return d;
}

// gateNext reads the next event, 0 when there is none.
static int gateNext(Display *d, int opcode, int *type, int *detail, int *source) {
	while (XPending(d)) {
		XEvent e;
		XNextEvent(d, &e);
		if (e.xcookie.type != GenericEvent || e.xcookie.extension != opcode || !XGetEventData(d, &e.xcookie)) continue;
		*type = e.xcookie.evtype;
		*detail = *source = 0;
		if (*type != XI_HierarchyChanged) {
			XIRawEvent *r = e.xcookie.data;
			*detail = r->detail;
			*source = r->sourceid;
		}
		XFreeEventData(d, &e.xcookie);
		return 1;
	}
	return 0;
}

static int endsWith(const char *s, const char *end) {
	size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

// gateDevices writes the ids of the devices that programs press, at most most.
static int gateDevices(Display *d, int *ids, int most) {
	int n = 0, found = 0;
	XIDeviceInfo *all = XIQueryDevice(d, XIAllDevices, &n);
	for (int i = 0; all && i < n && found < most; i++)
		if (endsWith(all[i].name, " XTEST pointer") || endsWith(all[i].name, " XTEST keyboard")) ids[found++] = all[i].deviceid;
	if (all) XIFreeDeviceInfo(all);
	return found;
}

// gateWait waits until there is something to read, or stop can be read: then 0.
static int gateWait(int fd, int stop) {
	struct pollfd p[2] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
	poll(p, 2, -1);
	return !p[1].revents && !(p[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}
*/
import "C"

import (
	"image"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"
)

// gate tells the person's own presses from those of programs (XTEST, or events
// that were only sent to a window), over a connection of its own. A program that
// forges the events of a device comes through: it is a hurdle, not a wall.
type gate struct {
	opcode  C.int
	conn    *xgb.Conn // not the gate's; asks what is under the pointer
	root    xproto.Window
	shapes  bool // the server knows of windows that are no rectangles
	stop    *os.File
	reading sync.WaitGroup

	mu      sync.Mutex
	display *C.Display    // guarded by mu
	robots  map[int]bool  // guarded by mu: the devices of programs
	presses []devicePress // guarded by mu: those that no window has had yet, oldest first
}

// devicePress is a press of a button or a key anywhere on the display.
type devicePress struct {
	key    int // the keycode; 0 for a button or a touch
	robot  bool
	at     time.Time
	device int
	window xproto.Window // under the pointer or with the keyboard then; 0: none
	// through: what lies over it there let the press through.
	through bool
}

const (
	// pressAge is how long a press waits for a window that is slow to take it.
	pressAge = 5 * time.Second
	// robotNear is how near in time a program's press spoils the person's: which
	// of the two a window got can't be told.
	robotNear = time.Second
	mostHeld  = 256
)

// newGate is nil where the X server can't tell.
func newGate(conn *xgb.Conn, shapes bool) *gate {
	g := &gate{conn: conn, shapes: shapes, root: xproto.Setup(conn).DefaultScreen(conn).Root}
	g.display = C.gateOpen(&g.opcode)
	if g.display == nil {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		C.XCloseDisplay(g.display)
		return nil
	}
	g.stop = w
	g.devices()
	fd, stop := C.XConnectionNumber(g.display), C.int(r.Fd())
	g.reading.Go(func() {
		defer r.Close()
		for C.gateWait(fd, stop) != 0 {
			g.mu.Lock()
			g.read()
			g.mu.Unlock()
		}
	})
	return g
}

// close ends the gate; nothing may ask it after that.
func (g *gate) close() {
	g.stop.Close()
	g.reading.Wait()
	C.XCloseDisplay(g.display)
}

// devices looks which devices are those of programs. g.mu is held.
func (g *gate) devices() {
	var ids [64]C.int
	n := int(C.gateDevices(g.display, &ids[0], C.int(len(ids))))
	g.robots = map[int]bool{}
	for _, id := range ids[:n] {
		g.robots[int(id)] = true
	}
}

// read takes what the server has sent. g.mu is held.
func (g *gate) read() {
	var kind, detail, source C.int
	for C.gateNext(g.display, g.opcode, &kind, &detail, &source) != 0 {
		p := devicePress{at: time.Now(), device: int(source)}
		switch kind {
		case C.XI_HierarchyChanged:
			g.devices()
			continue
		case C.XI_RawKeyPress:
			p.key = int(detail)
		case C.XI_RawButtonPress:
			if detail >= 4 && detail <= 7 { // the wheel
				continue
			}
		}
		p.robot = g.robots[p.device]
		p.window = g.goesTo(p.key != 0)
		p.through = p.key == 0 && !p.robot && g.through()
		g.presses = append(g.presses, p)
	}
	if n := len(g.presses) - mostHeld; n > 0 {
		g.presses = g.presses[n:]
	}
}

// goesTo is the window that a press of a key, or else of a button, goes to now.
func (g *gate) goesTo(key bool) xproto.Window {
	if key {
		if f, err := xproto.GetInputFocus(g.conn).Reply(); err != nil || f.Focus != xproto.InputFocusPointerRoot {
			if err != nil {
				return 0
			}
			return f.Focus
		}
	}
	at := g.root
	for range 16 { // in frames of a window manager
		p, err := xproto.QueryPointer(g.conn, at).Reply()
		if err != nil {
			return 0
		}
		if p.Child == 0 {
			break
		}
		at = p.Child
	}
	return at
}

// hairline is how wide what hides nothing is at most, such as the frame on the screens.
const hairline = 4

// through says whether a window shows at the pointer above the one that presses
// there go to: the person does not see what they press then.
func (g *gate) through() bool {
	p, err := xproto.QueryPointer(g.conn, g.root).Reply()
	if err != nil || p.Child == 0 {
		return false
	}
	tree, err := xproto.QueryTree(g.conn, g.root).Reply()
	if err != nil {
		return false
	}
	own := ^xproto.Setup(g.conn).ResourceIdMask
	for i := len(tree.Children) - 1; i >= 0 && tree.Children[i] != p.Child; i-- {
		w := tree.Children[i]
		if uint32(w)&own == 0 {
			continue // the server's, which a compositor draws everything into
		}
		a, err := xproto.GetWindowAttributes(g.conn, w).Reply()
		if err != nil || a.MapState != xproto.MapStateViewable || a.Class != xproto.WindowClassInputOutput {
			continue
		}
		r, err := xproto.GetGeometry(g.conn, xproto.Drawable(w)).Reply()
		if err != nil || r.Width <= hairline || r.Height <= hairline {
			continue
		}
		border := int(r.BorderWidth)
		at := image.Pt(int(p.RootX)-int(r.X)-border, int(p.RootY)-int(r.Y)-border)
		if at.In(image.Rect(-border, -border, int(r.Width)+border, int(r.Height)+border)) && g.shows(w, at) {
			return true
		}
	}
	return false
}

// shows says whether w, as it is shaped, is at a place of it.
func (g *gate) shows(w xproto.Window, at image.Point) bool {
	if !g.shapes {
		return true
	}
	s, err := shape.GetRectangles(g.conn, w, shape.SkBounding).Reply()
	return err != nil || slices.ContainsFunc(s.Rectangles, func(r xproto.Rectangle) bool {
		return at.In(image.Rect(0, 0, int(r.Width), int(r.Height)).Add(image.Pt(int(r.X), int(r.Y))))
	})
}

// press is one that a window has got, of a key or with 0 of a button: whether it
// was the person's, and made for that window.
func (g *gate) press(key int, window xproto.Window) Press {
	g.mu.Lock()
	defer g.mu.Unlock()
	C.XSync(g.display, 0) // what the server has told a window it has told here before
	g.read()
	now := time.Now()
	var kept []devicePress
	found, mine, through, spoiled := false, false, false, false
	for _, p := range g.presses {
		switch {
		case now.Sub(p.at) > pressAge:
		case p.key != key:
			kept = append(kept, p)
		case p.window != window:
			kept = append(kept, p)
			spoiled = spoiled || p.robot && now.Sub(p.at) < robotNear
		default:
			// One press is heard once: the next of the same key is another.
			if found {
				kept = append(kept, p)
			} else {
				found, mine, through = true, !p.robot, p.through
			}
			spoiled = spoiled || p.robot && now.Sub(p.at) < robotNear
		}
	}
	g.presses = kept
	return Press{Key: key != 0, Mine: found && mine && !spoiled, Through: through}
}
