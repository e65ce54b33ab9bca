package display

import (
	"context"
	"image"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

// parts is what a display is made of. A part that is nil is not there: why
// then has a plain sentence under its ability's name, with the remedy.
type parts struct {
	system    string // of hands.Abilities
	pictures  pictures
	windows   windows
	clipboard clipboard
	frame     frame
	// newInput makes the input part; its error is the sentence for why.
	newInput func(around) (input, error)
	why      map[string]string
	// clear is when nothing shows any more of windows that went, or moved, before
	// windows began to follow them; no picture is taken before.
	clear time.Time
}

// Every method of a part may be called from many goroutines, returns promptly
// when ctx ends, and gives an error, never a crash, when the display is gone.

// pictures is the screens and what they show.
type pictures interface {
	// layout is the screens as they are now; at least one.
	layout(ctx context.Context) (space.Layout, error)
	// grab is what the screens show of area, which is within the layout's bounds
	// but may be partly on no screen (black there). With pointer its pixels, or
	// its sprite, have the mouse pointer.
	grab(ctx context.Context, area image.Rectangle, pointer bool) (*raster, error)
	// blank is the plain sentence that says why everything is black, "" where
	// that is not known.
	blank(ctx context.Context) string
	// changed has fn called whenever the screens change, until close.
	changed(fn func())
	close()
}

// windows lists the windows and gives them the keyboard.
type windows interface {
	// list is the windows, the topmost first, minimised ones last; Ours is not
	// set. Beside them, over has those that show but that no click reaches
	// (overlays), or have shown after since: the curtain and nothing else is for
	// them too.
	list(ctx context.Context, since time.Time) (stack, over space.Stack, err error)
	// focus needs w as list has it at this moment.
	focus(ctx context.Context, w space.Window, raise bool) error
	close()
}

// input is mouse and keyboard, the person's own hands, the stop key and the
// targets of the screen test; see hands.Hands for what its methods do. It
// checks Action.Layout, Action.Aim and this program's own windows itself, just
// before it acts, with what around gives it.
type input interface {
	Act(ctx context.Context, a hands.Action) error
	Cursor(ctx context.Context) (image.Point, error)
	Release(ctx context.Context) error
	Target(ctx context.Context, points []image.Point) error
	Hits(ctx context.Context) ([]image.Point, error)
	// Listen: Person and Stop events.
	Listen(fn func(hands.Event))
	// StopKey binds the key, or lets go of it: as what, or why not.
	StopKey(ctx context.Context, on bool) (bound, problem string)
	// Person: whether the person's own hands are told from the agent's; why not.
	Person() (ok bool, why string)
	// Busy tells whether the person was at work after t.
	Busy(t time.Time) bool
	Close() error
}

// around is what an input part asks of the rest of the display.
type around struct {
	layout func(ctx context.Context) (space.Layout, error)
	// stack has Ours set. It is an error where windows can't be listed.
	stack func(ctx context.Context) (space.Stack, error)
}

// clipboard is the text that was copied.
type clipboard interface {
	read(ctx context.Context, max int) (hands.Clip, error)
	write(ctx context.Context, text string) error
	close()
}

// frame is the coloured border on each screen.
type frame interface {
	// show draws it on the screens as they are, in place of what was drawn;
	// "" takes it away. Colour is "#rrggbb".
	show(ctx context.Context, colour string, screens []space.Screen) error
	// covers is where it is now, or was just before: black in every picture.
	covers() []image.Rectangle
	close()
}

// raster is pixels as they come from the screen, four bytes each: blue, green,
// red and one without meaning, or with RGB red first.
type raster struct {
	pix    []byte
	stride int             // bytes from one line to the next
	rect   image.Rectangle // the device pixels that it has
	rgb    bool
	// pointer is drawn into it after the curtain, where the system gives it apart.
	pointer *sprite
	// free gives the memory back; nil where there is nothing to do.
	free func()
}

// sprite is a mouse pointer: at is the device pixel of its upper left corner.
type sprite struct {
	img *image.RGBA // premultiplied
	at  image.Point
}

func (r *raster) done() {
	if r.free != nil {
		r.free()
		r.free = nil
	}
}
