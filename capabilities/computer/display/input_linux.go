package display

import "errors"

// newX11Input makes the input part of the X11 display with this name.
func newX11Input(name string, a around) (input, error) {
	return nil, errors.New("Mouse and keyboard can't be used on this display.")
}
