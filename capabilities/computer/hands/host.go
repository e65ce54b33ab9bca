package hands

import (
	"context"
	"image/color"
	"time"
)

// Host is what the executor (capabilities/computer) is given by the machine it
// works in.
type Host struct {
	// Terms is what Settings says at the moment.
	Terms func() Terms
	// Begin is called before the display is touched, for a person's card too.
	// When it returns, the frame is on the screens where it has to be, and the
	// hands know which windows are this program's. Its error is the request's.
	Begin func(ctx context.Context) error
	// Open is how many windows of this program are open that can change
	// something; nil: none ever is.
	Open func() int
}

// Terms are what a person has set for screen, mouse and keyboard.
type Terms struct {
	PerAction bool
	Clipboard string // ClipOwn, ClipAll, ClipOff
	Hide      Curtain
}

// What may be read of the clipboard. Serialised.
const (
	ClipOwn = "own" // what the session put there itself, for ClipOwnFor
	ClipAll = "all"
	ClipOff = "off" // nor written
)

// ClipOwnFor is how long a session may read what it put on the clipboard.
const ClipOwnFor = 30 * time.Second

// TargetColour is the colour of a target's edges: one that desktops do not have.
var TargetColour = color.RGBA{R: 0xff, G: 0x00, B: 0xc8, A: 0xff}

// Use says that a session sees the screens, or has mouse and keyboard. Where it
// does neither that was broken off, and it may do so again while Until lasts.
type Use struct {
	Session string
	Sees    bool
	Acts    bool
	Since   time.Time
	// Until is when it is over, unless it is used again before. Idle: it ends for
	// not being used; otherwise it was for one request, which is done.
	Until time.Time
	Idle  bool
	// Rested is since when the person's own hands must have rested for it to act.
	Rested time.Time
}

// On tells whether the session sees or acts.
func (u Use) On() bool { return u.Sees || u.Acts }
