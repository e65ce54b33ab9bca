package display

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"strings"
	"sync"
	"time"

	"localpc/capabilities/computer/display/portal"
	"localpc/capabilities/computer/display/wl"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// wayland is what its parts share: the connection to the compositor, the
// portals, and the screens that those share.
type wayland struct {
	log  *slog.Logger
	env  func(string) string
	kept Kept

	mu     sync.Mutex // of what follows
	conn   *wl.Conn
	closed bool

	portal    *portal.Portal // nil with portalErr
	portalErr error

	sharing sync.Mutex // of session; a dialog may be open meanwhile
	session *portal.Session
	// input tells that session has mouse and keyboard.
	input bool
	// declined is when the person last said no, without and with input.
	declined [2]time.Time
}

// portalIn is how long the portals may take to start.
const portalIn = 30 * time.Second

// declinedFor is how long a no of the person counts: with every look the
// system would ask anew.
const declinedFor = 30 * time.Second

// openWayland never uses X11, which under Wayland is Xwayland: black in
// pictures, and its pointer reaches Xwayland's own windows alone.
func openWayland(ctx context.Context, o Options) (*parts, error) {
	return openWaylandAs(ctx, o, true)
}

// openWaylandAs leaves out what the compositor itself offers where not direct,
// as on desktops that offer nothing.
func openWaylandAs(ctx context.Context, o Options, direct bool) (*parts, error) {
	w := &wayland{log: o.Log, env: o.Env, kept: o.Kept}
	conn, err := wl.Open(ctx, o.Env)
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeNotSupported, "This desktop runs on Wayland, and Local PC Executor can't reach it.")
	}
	w.conn = conn
	limited, cancel := context.WithTimeout(ctx, portalIn)
	defer cancel()
	if w.portal, w.portalErr = portal.Open(limited, o.Env); w.portalErr != nil {
		o.Log.Info("No portals", "err", w.portalErr)
	}
	pictures := &waylandPictures{wayland: w, done: make(chan struct{}), gone: make(chan struct{})}
	p := &parts{system: hands.Wayland, why: map[string]string{
		hands.AbilityWindows:   "On Wayland no program can list the windows of this desktop, so nothing can be blacked out in pictures. Close what nobody else is to see, or log in with an X11 session.",
		hands.AbilityClipboard: "On Wayland this desktop gives the clipboard only to the window that is in front. Log in with an X11 session to use it here.",
		hands.AbilityFrame:     "On Wayland no frame can be drawn around the screens. The strip and the tray icon say who is in control.",
	}}
	if pictures.sources, err = w.sources(direct); err != nil {
		w.close()
		return nil, err // without pictures nothing else is of use
	}
	p.pictures = pictures
	p.newInput = func(a around) (input, error) { return w.newInput(a, pictures.layout, direct) }
	if direct && o.Env("SWAYSOCK") != "" {
		p.windows = &swayWindows{socket: o.Env("SWAYSOCK"), layout: pictures.layout}
	}
	return p, nil
}

// desktop is the name that the person knows, for sentences.
func (w *wayland) desktop() string {
	name, _, _ := strings.Cut(w.env("XDG_CURRENT_DESKTOP"), ":")
	if name == "" {
		return "This desktop"
	}
	return "The desktop " + name
}

// backend is the package that gives this desktop its portals.
func (w *wayland) backend() string {
	switch names := strings.ToLower(w.env("XDG_CURRENT_DESKTOP")); {
	case strings.Contains(names, "gnome"), strings.Contains(names, "unity"):
		return "xdg-desktop-portal-gnome"
	case strings.Contains(names, "kde"):
		return "xdg-desktop-portal-kde"
	case strings.Contains(names, "hyprland"):
		return "xdg-desktop-portal-hyprland"
	}
	return "xdg-desktop-portal-wlr and xdg-desktop-portal-gtk"
}

// compositor is the connection, made anew where it broke.
func (w *wayland) compositor(ctx context.Context) (*wl.Conn, error) {
	w.mu.Lock()
	conn, closed := w.conn, w.closed
	w.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if !conn.Broken() {
		return conn, nil
	}
	anew, err := wl.Open(ctx, w.env) // without mu: close waits for no compositor
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		_ = anew.Close()
		return nil, errClosed
	case !w.conn.Broken(): // somebody was faster
		_ = anew.Close()
		return w.conn, nil
	}
	_ = w.conn.Close()
	w.conn = anew
	return anew, nil
}

var errClosed = errors.New("the display is closed")

// outputs are the screens, with one more try where the connection broke.
func (w *wayland) outputs(ctx context.Context) (*wl.Conn, []wl.Output, error) {
	for try := 1; ; try++ {
		c, err := w.compositor(ctx)
		if err != nil {
			return nil, nil, err
		}
		out, err := c.Outputs(ctx)
		switch {
		case err == nil && len(out) > 0:
			return c, out, nil
		case err == nil:
			return nil, nil, wire.Errorf(wire.CodeNotSupported, "No screen is switched on at this computer.")
		case try == 2 || ctx.Err() != nil:
			return nil, nil, err
		}
	}
}

// share is the session of shared screens, with input where that is asked for;
// it is begun when it is first needed, since the system may ask the person then.
func (w *wayland) share(ctx context.Context, input bool) (*portal.Session, error) {
	if w.portal == nil {
		return nil, w.portalErr
	}
	w.sharing.Lock()
	defer w.sharing.Unlock()
	if w.session != nil {
		select {
		case <-w.session.Ended():
			w.session = nil
		default:
			if w.input || !input {
				return w.session, nil
			}
		}
	}
	name, no := keptScreen, &w.declined[0]
	if input {
		name, no = keptInput, &w.declined[1]
	}
	if !no.IsZero() && time.Since(*no) < declinedFor {
		return nil, portal.ErrDeclined
	}
	token := ""
	if w.kept != nil {
		token = w.kept.Load(name)
	}
	s, err := w.portal.Share(ctx, input, token)
	if errors.Is(err, portal.ErrDeclined) {
		*no = time.Now()
	}
	if err != nil {
		return nil, err
	}
	if w.session != nil {
		w.session.Close()
	}
	w.session, w.input = s, input
	keep := s.Token
	if input && s.Devices&bothDevices != bothDevices {
		keep = "" // it would start another as poor as this, without a question
	}
	if w.kept != nil && keep != token {
		if err := w.kept.Save(name, keep); err != nil {
			w.log.Warn("What lets the screen be shared again without asking was not kept", "err", err)
		}
	}
	return s, nil
}

// unshare ends a session that has neither mouse nor keyboard, which counts as a
// no to them: else there would be no asking for them again.
func (w *wayland) unshare(s *portal.Session) {
	w.sharing.Lock()
	defer w.sharing.Unlock()
	w.declined[1] = time.Now()
	if w.session == s {
		w.session = nil
	}
	s.Close()
}

// bothDevices are what is asked for with input.
const bothDevices = portal.Pointer | portal.Keyboard

// The names under which Kept has what starts a session without asking.
const (
	keptScreen = "wayland-screen"
	keptInput  = "wayland-input"
)

// said makes a portal's error one for people, about what.
func (w *wayland) said(err error, code wire.Code, what string) error {
	switch {
	case errors.Is(err, portal.ErrDeclined):
		return wire.Wrap(err, code, "The system's own question about %s was answered with no, or closed. Try again after half a minute, and choose Share or Allow there.", what)
	case errors.Is(err, portal.ErrRefused):
		return wire.Wrap(err, code, "%s refused %s. Look into its privacy settings, or log in with an X11 session.", w.desktop(), what)
	case errors.Is(err, portal.ErrEnded):
		return wire.Wrap(err, code, "The sharing of the screen was ended at this computer. Try again; the system may ask its person anew.")
	case errors.Is(err, portal.ErrNoPortal), errors.Is(err, portal.ErrNoBus), errors.Is(err, portal.ErrMissing):
		return wire.Wrap(err, wire.CodeNotSupported, "%s has no way to allow %s: install %s and log in again, or log in with an X11 session.", w.desktop(), what, w.backend())
	}
	return err
}

func (w *wayland) close() {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if closed {
		return
	}
	_ = w.conn.Close() // nobody changes it any more
	if w.portal != nil {
		_ = w.portal.Close()
	}
}

// unscaled is a device pixel of a screen, counted from its corner, in points.
func unscaled(p image.Point, s float64) (x, y float64) {
	// A quarter of a pixel keeps the point from the edge, where rounding would
	// take it to the pixel before.
	return (float64(p.X) + 0.25) / s, (float64(p.Y) + 0.25) / s
}
