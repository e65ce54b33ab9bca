package display

import "context"

// open picks the display server of the person's session. With Wayland and X11
// both in the environment the session is Wayland's: X11 there is Xwayland,
// whose pictures are black and whose mouse reaches its own windows alone.
func open(ctx context.Context, o Options) (*parts, error) {
	switch {
	case o.Env("WAYLAND_DISPLAY") != "" || o.Env("XDG_SESSION_TYPE") == "wayland":
		return openWayland(ctx, o)
	case o.Env("DISPLAY") != "":
		return openX11(o, o.Env("DISPLAY"))
	}
	return nil, lacks("This computer has no screen that Local PC Executor can reach: nobody is logged in to a desktop here.")
}
