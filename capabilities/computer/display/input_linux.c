#include "input_linux.h"

#include <X11/XKBlib.h>
#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <X11/extensions/XI.h>
#include <X11/extensions/XI2.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Xlib's handlers are the process's, and by default end it. These only note
// what happened to which connection.
#define LINKS 64
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { Display *d; int failed, dead; } links[LINKS];
static int xi_opcode, xkb_event;

static void note(Display *d, int failed, int dead) {
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LINKS; i++)
		if (links[i].d == d) {
			links[i].failed |= failed;
			links[i].dead |= dead;
		}
	pthread_mutex_unlock(&lock);
}

static int on_error(Display *d, XErrorEvent *e) { (void)e; note(d, 1, 0); return 0; }
static int on_io_error(Display *d) { note(d, 1, 1); return 0; }
static void on_io_exit(Display *d, void *unused) { (void)unused; note(d, 1, 1); }

static void handlers(void) {
	XInitThreads(); // before any other call: each link has its own threads
	XSetErrorHandler(on_error);
	XSetIOErrorHandler(on_io_error);
}

Display *lx_open(const char *name) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, handlers);
	Display *d = XOpenDisplay(name);
	if (!d) return NULL;
	XSetIOErrorExitHandler(d, on_io_exit, NULL);
	pthread_mutex_lock(&lock);
	int at = -1;
	for (int i = 0; i < LINKS && at < 0; i++)
		if (!links[i].d) at = i;
	if (at >= 0) {
		links[at].d = d;
		links[at].failed = links[at].dead = 0;
	}
	pthread_mutex_unlock(&lock);
	if (at < 0) {
		XCloseDisplay(d);
		return NULL;
	}
	return d;
}

void lx_close(Display *d) {
	// Xlib waits for a server that is gone for ever: then only what the system
	// holds is given back.
	struct pollfd at = {ConnectionNumber(d), 0, 0};
	poll(&at, 1, 0);
	if (lx_dead(d) || at.revents & (POLLHUP | POLLERR | POLLNVAL))
		close(ConnectionNumber(d));
	else
		XCloseDisplay(d);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LINKS; i++)
		if (links[i].d == d) links[i].d = NULL;
	pthread_mutex_unlock(&lock);
}

int lx_dead(Display *d) {
	int dead = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LINKS; i++)
		if (links[i].d == d) dead = links[i].dead;
	pthread_mutex_unlock(&lock);
	return dead;
}

int lx_failed(Display *d) {
	int failed = 0;
	XSync(d, False);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < LINKS; i++)
		if (links[i].d == d) {
			failed = links[i].failed;
			links[i].failed = links[i].dead;
		}
	pthread_mutex_unlock(&lock);
	return failed;
}

int lx_ready(Display *d, int *screens) {
	int a, b, major = 1, minor = 0;
	*screens = ScreenCount(d);
	if (!XTestQueryExtension(d, &a, &b, &major, &minor)) return 1;
	major = XkbMajorVersion, minor = XkbMinorVersion;
	int op, ev, er;
	if (!XkbQueryExtension(d, &op, &ev, &er, &major, &minor)) return 2;
	xkb_event = ev;
	XTestGrabControl(d, True); // not held up by a program that grabs the server
	int opcode;
	if (!XQueryExtension(d, "XInputExtension", &opcode, &ev, &er)) return 3;
	xi_opcode = opcode;
	major = 2, minor = 2; // 2.2: raw events name their device, and come while another program grabs
	if (XIQueryVersion(d, &major, &minor) != Success || major * 10 + minor < 22) return 3;
	return lx_failed(d) ? 4 : 0;
}

void lx_key(Display *d, int code, int down) { XTestFakeKeyEvent(d, code, down, CurrentTime); XFlush(d); }
void lx_button(Display *d, int button, int down) { XTestFakeButtonEvent(d, button, down, CurrentTime); XFlush(d); }
void lx_move(Display *d, int x, int y) { XTestFakeMotionEvent(d, DefaultScreen(d), x, y, CurrentTime); XFlush(d); }

int lx_pointer(Display *d, int *x, int *y, unsigned int *mask) {
	Window root, child;
	int wx, wy;
	return XQueryPointer(d, DefaultRootWindow(d), &root, &child, x, y, &wx, &wy, mask);
}

// group_of is the group of a key that has n of them in effect when the
// keyboard's is g.
static int group_of(XkbDescPtr x, int code, int n, int g) {
	if (g < n) return g;
	int info = XkbKeyGroupInfo(x, code);
	switch (XkbOutOfRangeGroupAction(info)) {
	case XkbClampIntoRange: return n - 1;
	case XkbRedirectIntoRange: { int to = XkbOutOfRangeGroupNumber(info); return to < n ? to : 0; }
	}
	return g % n;
}

int lx_map(Display *d, lx_sym *out, int max, int *min_code, int *max_code, unsigned char modmap[256], unsigned int *numlock, int *groups) {
	XkbDescPtr x = XkbGetMap(d, XkbAllClientInfoMask | XkbModifierMapMask, XkbUseCoreKbd);
	int n = 0;
	if (!x) return -1;
	*min_code = x->min_key_code, *max_code = x->max_key_code;
	*numlock = 0, *groups = 1;
	memset(modmap, 0, 256);
	for (int code = x->min_key_code; code <= x->max_key_code; code++) {
		modmap[code] = x->map->modmap[code];
		if (XkbKeyNumGroups(x, code) > *groups) *groups = XkbKeyNumGroups(x, code);
	}
	for (int code = x->min_key_code; code <= x->max_key_code; code++) {
		int has = XkbKeyNumGroups(x, code);
		for (int g = 0; has > 0 && g < *groups; g++) {
			int kg = group_of(x, code, has, g);
			XkbKeyTypePtr type = XkbKeyKeyType(x, code, kg);
			for (int level = 0; level < type->num_levels && n < max; level++) {
				unsigned long sym = XkbKeySymEntry(x, code, level, kg);
				if (sym == NoSymbol) continue;
				if (sym == XK_Num_Lock) *numlock |= modmap[code];
				// The fewest modifiers that give this level; none gives the first
				// one unless the type says otherwise.
				int found = level == 0;
				unsigned int mods = 0;
				for (int i = 0; i < type->map_count; i++) {
					XkbKTMapEntryPtr e = &type->map[i];
					if (!e->active) continue;
					if (e->mods.mask == 0 && e->level != 0 && level == 0) found = 0;
					if (e->level != level) continue;
					if (!found || __builtin_popcount(e->mods.mask) < __builtin_popcount(mods)) {
						found = 1;
						mods = e->mods.mask;
					}
				}
				if (found) out[n++] = (lx_sym){code, g, mods, sym};
			}
		}
	}
	XkbFreeKeyboard(x, 0, True);
	return n;
}

int lx_state_now(Display *d, lx_state *out) {
	XkbStateRec s;
	if (XkbGetState(d, XkbUseCoreKbd, &s) != Success) return 0;
	*out = (lx_state){s.group, s.locked_group, s.base_mods, s.latched_mods, s.locked_mods};
	return 1;
}

void lx_lock(Display *d, unsigned int affect, unsigned int values) { XkbLockModifiers(d, XkbUseCoreKbd, affect, values); XFlush(d); }
void lx_unlatch(Display *d) { XkbLatchModifiers(d, XkbUseCoreKbd, 0xff, 0); }
void lx_group(Display *d, int group) { XkbLockGroup(d, XkbUseCoreKbd, group); XFlush(d); }

// All keys in one request, so that each program hears of it once: it covers
// what lies between them, too, which stays as it is. A key that is given none
// loses its meaning.
int lx_bind(Display *d, const int *codes, const unsigned long *syms, int n) {
	XkbDescPtr x = XkbGetMap(d, XkbKeyTypesMask | XkbKeySymsMask, XkbUseCoreKbd);
	if (!x) return 0;
	int first = 255, last = 0;
	for (int i = 0; i < n; i++) {
		int types[XkbNumKbdGroups] = {XkbOneLevelIndex};
		if (XkbChangeTypesOfKey(x, codes[i], syms[i] != NoSymbol, XkbGroup1Mask, types, NULL) != Success) continue;
		if (syms[i] != NoSymbol) XkbKeySymEntry(x, codes[i], 0, 0) = syms[i];
		if (codes[i] < first) first = codes[i];
		if (codes[i] > last) last = codes[i];
	}
	int ok = last >= first;
	if (ok) {
		XkbMapChangesRec c;
		memset(&c, 0, sizeof c);
		c.changed = XkbKeySymsMask;
		c.first_key_sym = first, c.num_key_syms = last - first + 1;
		ok = XkbChangeMap(d, x, &c);
	}
	XkbFreeKeyboard(x, 0, True);
	return ok;
}

unsigned long lx_bound(Display *d, int code) {
	int n = 0;
	KeySym *syms = XGetKeyboardMapping(d, code, 1, &n);
	unsigned long sym = NoSymbol;
	if (syms && n > 0) sym = syms[0];
	if (syms) XFree(syms);
	return sym;
}

static int is_xtest(Display *d, int id) {
	Atom prop = XInternAtom(d, "XTEST Device", False), type;
	int format, yes = 0;
	unsigned long n, after;
	unsigned char *data = NULL;
	if (XIGetProperty(d, id, prop, 0, 1, False, AnyPropertyType, &type, &format, &n, &after, &data) == Success) {
		yes = data && n > 0 && data[0];
		if (data) XFree(data);
	}
	return yes;
}

int lx_devices(Display *d, lx_device *out, int max) {
	int n = 0, count = 0;
	XIDeviceInfo *all = XIQueryDevice(d, XIAllDevices, &n);
	if (!all) return 0;
	for (int i = 0; i < n && count < max; i++) {
		lx_device *v = &out[count++];
		memset(v, 0, sizeof *v);
		v->id = all[i].deviceid;
		v->slave = all[i].use != XIMasterPointer && all[i].use != XIMasterKeyboard;
		for (int c = 0; c < all[i].num_classes; c++) {
			XIAnyClassInfo *cls = all[i].classes[c];
			if (cls->type == XIKeyClass) v->keys = 1;
			if (cls->type == XIButtonClass) v->buttons = 1;
			if (cls->type == XIValuatorClass) {
				XIValuatorClassInfo *a = (XIValuatorClassInfo *)cls;
				if (a->number < 0 || a->number > 1) continue;
				v->absolute[a->number] = a->mode == XIModeAbsolute;
				v->min[a->number] = a->min, v->max[a->number] = a->max, v->value[a->number] = a->value;
			}
		}
		v->xtest = v->slave && is_xtest(d, v->id);
	}
	XIFreeDeviceInfo(all);
	return count;
}

int lx_down(Display *d, int id, unsigned char keys[32], unsigned char buttons[32]) {
	memset(keys, 0, 32);
	memset(buttons, 0, 32);
	XDevice *dev = XOpenDevice(d, id);
	if (!dev) return 0;
	XDeviceState *s = XQueryDeviceState(d, dev);
	if (s) {
		XInputClass *c = s->data;
		for (int i = 0; i < s->num_classes; i++) {
			if (c->class == KeyClass) memcpy(keys, ((XKeyState *)c)->keys, 32);
			if (c->class == ButtonClass) memcpy(buttons, ((XButtonState *)c)->buttons, 32);
			c = (XInputClass *)((char *)c + c->length);
		}
		XFreeDeviceState(s);
	}
	XCloseDevice(d, dev);
	return s != NULL;
}

// Programs get what the core pointer's map makes of a button, not the device's.
int lx_buttons(Display *d, unsigned char map[256]) {
	int n = XGetPointerMapping(d, map, 255);
	return n < 0 ? 0 : n;
}

unsigned long lx_focus(Display *d) {
	Window w = None;
	int revert;
	XGetInputFocus(d, &w, &revert);
	// With the focus on a root window too, keys go to the window under the pointer.
	for (int s = 0; s < ScreenCount(d); s++)
		if (w == RootWindow(d, s)) return PointerRoot;
	return w;
}

int lx_up(Display *d, unsigned long window, unsigned long *parent) {
	Window root = None, up = None, *children = NULL;
	unsigned int n;
	if (!XQueryTree(d, window, &root, &up, &children, &n)) return 0;
	if (children) XFree(children);
	*parent = up;
	return up != None && up != root;
}

static int numbers(Display *d, Window w, const char *name, long *out, int max) {
	Atom type;
	int format, got = 0;
	unsigned long n = 0, after;
	unsigned char *data = NULL;
	if (XGetWindowProperty(d, w, XInternAtom(d, name, False), 0, max, False, AnyPropertyType, &type, &format, &n, &after, &data) == Success && data) {
		if (format == 32)
			for (; got < (int)n && got < max; got++) out[got] = ((long *)data)[got];
		XFree(data);
	}
	return got;
}

static const char noted[] = "_LOCALPC_KEYBOARD";

void lx_note(Display *d, const long *values, int n) {
	Atom name = XInternAtom(d, noted, False);
	if (n > 0) XChangeProperty(d, DefaultRootWindow(d), name, XA_CARDINAL, 32, PropModeReplace, (const unsigned char *)values, n);
	else XDeleteProperty(d, DefaultRootWindow(d), name);
	XFlush(d);
}

int lx_noted(Display *d, long *out, int max) { return numbers(d, DefaultRootWindow(d), noted, out, max); }

int lx_pid(Display *d, unsigned long window) {
	long pid = 0;
	return numbers(d, window, "_NET_WM_PID", &pid, 1) ? (int)pid : 0;
}

int lx_pings(Display *d, unsigned long window) {
	long got[32];
	Atom ping = XInternAtom(d, "_NET_WM_PING", False);
	int n = numbers(d, window, "WM_PROTOCOLS", got, 32);
	for (int i = 0; i < n; i++)
		if ((Atom)got[i] == ping) return 1;
	return 0;
}

void lx_ping(Display *d, unsigned long window, long serial) {
	XEvent e;
	memset(&e, 0, sizeof e);
	e.xclient.type = ClientMessage;
	e.xclient.window = window;
	e.xclient.message_type = XInternAtom(d, "WM_PROTOCOLS", False);
	e.xclient.format = 32;
	e.xclient.data.l[0] = XInternAtom(d, "_NET_WM_PING", False);
	e.xclient.data.l[1] = serial;
	e.xclient.data.l[2] = window;
	XSendEvent(d, window, False, NoEventMask, &e);
	XFlush(d);
}

int lx_ponged(Display *d, long serial) {
	Atom ping = XInternAtom(d, "_NET_WM_PING", False);
	int yes = 0;
	while (!lx_dead(d) && XPending(d) > 0) {
		XEvent e;
		XNextEvent(d, &e);
		if (e.type == ClientMessage && (Atom)e.xclient.data.l[0] == ping && e.xclient.data.l[1] == serial) yes = 1;
	}
	return yes;
}

void lx_listen_pongs(Display *d, int on) { XSelectInput(d, DefaultRootWindow(d), on ? SubstructureNotifyMask : NoEventMask); XFlush(d); }

void lx_watch(Display *d) {
	unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0}, all[XIMaskLen(XI_LASTEVENT)] = {0};
	XISetMask(bits, XI_RawMotion);
	XISetMask(bits, XI_RawKeyPress);
	XISetMask(bits, XI_RawKeyRelease);
	XISetMask(bits, XI_RawButtonPress);
	XISetMask(bits, XI_RawButtonRelease);
	XISetMask(bits, XI_RawTouchBegin);
	XISetMask(bits, XI_RawTouchEnd);
	XISetMask(all, XI_HierarchyChanged);
	XISetMask(all, XI_DeviceChanged);
	XIEventMask masks[2] = {{XIAllMasterDevices, sizeof bits, bits}, {XIAllDevices, sizeof all, all}};
	for (int s = 0; s < ScreenCount(d); s++) XISelectEvents(d, RootWindow(d, s), masks, 2);
	XkbSelectEvents(d, XkbUseCoreKbd, XkbNewKeyboardNotifyMask | XkbMapNotifyMask, XkbNewKeyboardNotifyMask | XkbMapNotifyMask);
	XFlush(d);
}

static void raw(XIRawEvent *r, lx_event *out) {
	switch (r->evtype) {
	case XI_RawMotion: out->what = LX_MOTION; break;
	case XI_RawKeyPress: out->what = LX_KEY; break;
	case XI_RawKeyRelease: out->what = LX_KEY_UP; break;
	case XI_RawTouchBegin:
	case XI_RawButtonPress: out->what = LX_BUTTON; break;
	case XI_RawTouchEnd:
	case XI_RawButtonRelease: out->what = LX_BUTTON_UP; break;
	default: return;
	}
	out->source = r->sourceid;
	out->detail = r->detail;
	double *v = r->valuators.values;
	for (int i = 0; i < 2 && i < r->valuators.mask_len * 8; i++)
		if (XIMaskIsSet(r->valuators.mask, i)) {
			out->has[i] = 1;
			out->axis[i] = *v++;
		}
}

int lx_next(Display *d, lx_event *out) {
	memset(out, 0, sizeof *out);
	if (lx_dead(d) || XPending(d) <= 0) return 0;
	XEvent e;
	XNextEvent(d, &e);
	if (e.type == xkb_event) {
		int kind = ((XkbEvent *)&e)->any.xkb_type;
		if (kind == XkbMapNotify) XkbRefreshKeyboardMapping((XkbMapNotifyEvent *)&e);
		if (kind == XkbMapNotify || kind == XkbNewKeyboardNotify) out->what = LX_MAPPING;
		return 1;
	}
	switch (e.type) {
	case GenericEvent:
		if (e.xcookie.extension == xi_opcode && XGetEventData(d, &e.xcookie)) {
			if (e.xcookie.evtype == XI_HierarchyChanged || e.xcookie.evtype == XI_DeviceChanged) out->what = LX_DEVICES;
			else raw(e.xcookie.data, out);
			XFreeEventData(d, &e.xcookie);
		}
		break;
	case KeyPress:
		out->what = LX_GRABBED;
		out->detail = e.xkey.keycode;
		break;
	case ButtonPress:
		out->what = LX_TARGET;
		out->x = e.xbutton.x_root, out->y = e.xbutton.y_root;
		out->window = e.xbutton.window;
		out->detail = e.xbutton.button;
		break;
	case MappingNotify:
		XRefreshKeyboardMapping(&e.xmapping);
		out->what = LX_MAPPING;
		break;
	case Expose:
		out->what = LX_EXPOSE;
		out->window = e.xexpose.window;
		break;
	}
	return 1;
}

int lx_wait(Display *d, int wake) {
	struct pollfd fds[2] = {{ConnectionNumber(d), POLLIN, 0}, {wake, POLLIN, 0}};
	int n;
	do n = poll(fds, 2, -1); while (n < 0 && errno == EINTR);
	return fds[1].revents ? 1 : (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL)) ? 2 : 0;
}

int lx_code(Display *d, unsigned long sym) { return XKeysymToKeycode(d, sym); }

unsigned long lx_named(const char *name) { return XStringToKeysym(name); }

void lx_size(Display *d, int *w, int *h) { *w = DisplayWidth(d, DefaultScreen(d)), *h = DisplayHeight(d, DefaultScreen(d)); }

int lx_grab(Display *d, int screen, int code, unsigned int mods) {
	lx_failed(d);
	XGrabKey(d, code, mods, RootWindow(d, screen), False, GrabModeAsync, GrabModeAsync);
	return !lx_failed(d);
}

void lx_ungrab(Display *d, int screen, int code, unsigned int mods) { XUngrabKey(d, code, mods, RootWindow(d, screen)); XFlush(d); }

unsigned long lx_target(Display *d, int x, int y, int side, int pid) {
	XSetWindowAttributes a;
	long id = pid;
	a.override_redirect = True;
	a.background_pixel = BlackPixel(d, DefaultScreen(d));
	a.event_mask = ButtonPressMask | ExposureMask;
	Window w = XCreateWindow(d, DefaultRootWindow(d), x - side / 2, y - side / 2, side, side, 0, CopyFromParent, InputOutput,
		CopyFromParent, CWOverrideRedirect | CWBackPixel | CWEventMask, &a);
	XChangeProperty(d, w, XInternAtom(d, "_NET_WM_PID", False), XA_CARDINAL, 32, PropModeReplace, (unsigned char *)&id, 1);
	XStoreName(d, w, "Screen test");
	XMapRaised(d, w);
	lx_paint(d, w, side);
	return w;
}

static unsigned long colour(Display *d, unsigned short r, unsigned short g, unsigned short b) {
	XColor c = {0, r << 8, g << 8, b << 8, DoRed | DoGreen | DoBlue, 0};
	return XAllocColor(d, DefaultColormap(d, DefaultScreen(d)), &c) ? c.pixel : WhitePixel(d, DefaultScreen(d));
}

// A ring and a centre of one flat colour: drawn by squares, so that no two
// servers draw it differently.
void lx_paint(Display *d, unsigned long w, int side) {
	GC gc = XCreateGC(d, w, 0, NULL);
	unsigned long pink = colour(d, 0xff, 0x00, 0xc8), white = colour(d, 0xff, 0xff, 0xff);
	XSetForeground(d, gc, pink);
	XFillRectangle(d, w, gc, 0, 0, side, side);
	XSetForeground(d, gc, white);
	XFillRectangle(d, w, gc, 8, 8, side - 16, side - 16);
	XSetForeground(d, gc, pink);
	XFillRectangle(d, w, gc, side / 2 - 6, side / 2 - 6, 13, 13);
	XFreeGC(d, gc);
	XFlush(d);
}

void lx_destroy(Display *d, unsigned long w) { XDestroyWindow(d, w); XFlush(d); }
