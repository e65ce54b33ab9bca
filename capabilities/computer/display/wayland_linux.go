package display

import (
	"context"
	"errors"
)

func openWayland(context.Context, Options) (*parts, error) {
	return nil, errors.New("This desktop runs on Wayland, where Local PC Executor can't see the screen. Log in with an X11 session instead.")
}
