// Package display touches the display, in step 5: it takes pictures, moves the
// mouse, types, lists windows, holds the clipboard, and draws the frame that
// says somebody else is in control. It is linked into localpc-desktop alone,
// whose process of its own ("hands") it is; localpc reaches it as a hands.Hands.
// A display is made of parts (parts.go), each with a connection of its own, so
// that a picture never waits for the mouse: which parts there are depends on
// the system that the session of the person runs on.
package display

import (
	"context"
	"log/slog"
	"os"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// Options of Open; the zero value is the display of this process's environment.
type Options struct {
	// Env is the environment that says which display it is; nil is os.Getenv.
	Env func(string) string
	Log *slog.Logger // nil is slog.Default
	// Kept has what lets a Wayland desktop share its screens again without
	// asking; nil keeps nothing, so that the system asks each time.
	Kept Kept
}

// Kept keeps small secrets by name from one start to the next.
type Kept interface {
	Load(name string) string // "" where there is none
	Save(name, value string) error
}

// Open connects to the display. Where there is none, or it can't be reached,
// what it returns answers every call with the sentence that says why, so an
// error is never about the display itself.
func Open(ctx context.Context, o Options) (hands.Hands, error) {
	o = o.filled()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := open(ctx, o)
	if err != nil {
		o.Log.Warn("No display", "err", err)
		p = nothing(err.Error())
	}
	return compose(o, p), nil
}

// filled is o with what it leaves out.
func (o Options) filled() Options {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// nothing is the parts of a computer whose display is out of reach.
func nothing(why string) *parts {
	p := &parts{system: "none", why: map[string]string{}}
	for _, name := range []string{hands.AbilityPictures, hands.AbilityInput, hands.AbilityWindows, hands.AbilityClipboard, hands.AbilityPerson, hands.AbilityFrame} {
		p.why[name] = why
	}
	return p
}

// lacks is the error of a part that is not there.
func lacks(why string) error {
	if why == "" {
		why = "This computer's display can't do that."
	}
	return wire.Errorf(wire.CodeNotSupported, "%s", why)
}
