// What the Go side asks of Xlib: one small function for each, since macros,
// unions and packed arrays are C's. Every function may be called while the
// server is gone; none ends the process.
#ifndef LOCALPC_INPUT_H
#define LOCALPC_INPUT_H

#include <X11/Xlib.h>

// One keysym of the keyboard as it is mapped: pressing code in group with
// exactly mods held gives sym.
typedef struct {
	int code, group;
	unsigned int mods;
	unsigned long sym;
} lx_sym;

typedef struct {
	int group, locked_group;
	unsigned int base, latched, locked;
} lx_state;

typedef struct {
	int id;
	int slave, keys, buttons; // what it is
	int xtest;                // input that a program makes
	int absolute[2];          // of the axes x and y
	double min[2], max[2], value[2];
} lx_device;

enum { LX_OTHER, LX_MOTION, LX_KEY, LX_KEY_UP, LX_BUTTON, LX_BUTTON_UP, LX_DEVICES, LX_GRABBED, LX_TARGET, LX_MAPPING, LX_EXPOSE };

typedef struct {
	int what;
	int source;      // device, of raw events
	int detail;      // key or button
	int has[2];      // which axes moved
	double axis[2];
	int x, y;        // on the root window, of LX_TARGET
	unsigned long window;
} lx_event;

Display *lx_open(const char *name);
void lx_close(Display *d);
int lx_dead(Display *d);          // the connection is gone
int lx_failed(Display *d);        // a request was refused since the last call; asks the server
int lx_ready(Display *d, int *screens); // 0, or what lacks: 1 XTEST, 2 XKB, 3 XInput 2.2

void lx_key(Display *d, int code, int down);
void lx_button(Display *d, int button, int down);
void lx_move(Display *d, int x, int y);
int lx_pointer(Display *d, int *x, int *y, unsigned int *mask);
int lx_map(Display *d, lx_sym *out, int max, int *min_code, int *max_code, unsigned char modmap[256], unsigned int *numlock, int *groups);
int lx_state_now(Display *d, lx_state *out);
void lx_lock(Display *d, unsigned int affect, unsigned int values);
void lx_unlatch(Display *d);
void lx_group(Display *d, int group);
int lx_bind(Display *d, const int *codes, const unsigned long *syms, int n);
// lx_note writes numbers into the root window's property, none: it goes.
void lx_note(Display *d, const long *values, int n);
int lx_noted(Display *d, long *out, int max);
unsigned long lx_bound(Display *d, int code);

int lx_devices(Display *d, lx_device *out, int max);
int lx_down(Display *d, int id, unsigned char keys[32], unsigned char buttons[32]);
int lx_buttons(Display *d, unsigned char map[256]);

unsigned long lx_focus(Display *d);
int lx_up(Display *d, unsigned long window, unsigned long *parent); // 1 while there is a parent that is not the root
int lx_pid(Display *d, unsigned long window);
int lx_pings(Display *d, unsigned long window);
void lx_ping(Display *d, unsigned long window, long serial);
int lx_ponged(Display *d, long serial);
void lx_listen_pongs(Display *d, int on);

void lx_watch(Display *d);
int lx_next(Display *d, lx_event *out);  // 1 while there are events
int lx_wait(Display *d, int wake);       // until one of both can be read
int lx_code(Display *d, unsigned long sym);
unsigned long lx_named(const char *name);
void lx_size(Display *d, int *w, int *h);
int lx_grab(Display *d, int screen, int code, unsigned int mods);
void lx_ungrab(Display *d, int screen, int code, unsigned int mods);
unsigned long lx_target(Display *d, int x, int y, int side, int pid);
void lx_paint(Display *d, unsigned long window, int side);
void lx_destroy(Display *d, unsigned long window);

#endif
