// Package hands is what localpc asks of the process that touches the display,
// in step 5: pictures, mouse and keyboard, windows, the clipboard. It holds the
// interface, which the display itself has (capabilities/computer/display, in
// localpc-desktop) and so has the link to it (app/desklink, in localpc), and
// the plain data that crosses between them.
package hands

import (
	"context"
	"image"
	"time"

	"localpc/capabilities/computer/space"
)

// Hands touches the display. Its methods may be called from many goroutines;
// Act runs one action at a time. Every error that a client is to learn is a
// *wire.Error; its codes are named at the methods. Each returns promptly when
// ctx ends, with nothing held down.
type Hands interface {
	// Abilities says what works on this display. It is quick, and never asks the
	// person or the system for anything.
	Abilities(ctx context.Context) (Abilities, error)
	// Layout is the screens as they are now.
	Layout(ctx context.Context) (space.Layout, error)
	// Shoot takes a picture. CodeNotSupported where there can be none,
	// CodeBlank where it is uniformly black or the system refused it, with the
	// cause; CodeWindowStale, CodeBounds, CodeTooLarge.
	Shoot(ctx context.Context, a Ask) (Shot, error)
	// Act does one action. CodeBounds (nothing was done), CodePictureStale,
	// CodePerson where the person's own hands came between, CodeOwnWindow where
	// it would reach a window of this program, CodeNotSupported.
	Act(ctx context.Context, a Action) error
	// Cursor is the device pixel under the mouse pointer.
	Cursor(ctx context.Context) (image.Point, error)
	// Windows lists them, the topmost first, minimised ones last.
	Windows(ctx context.Context) (space.Stack, error)
	// Focus gives w the keyboard, and brings it to the front where raise.
	// seen is as Action.Seen. CodeWindowStale where it is not the same window any
	// more, CodeOwnWindow, CodePerson.
	Focus(ctx context.Context, w space.Window, raise bool, seen time.Time) error
	// ReadClipboard returns its text. CodeConcealed where its owner marked it as
	// a secret, CodeNotSupported where it is no text, CodeTooLarge above max
	// bytes. Owned is true where WriteClipboard put it there.
	ReadClipboard(ctx context.Context, max int) (c Clip, err error)
	// WriteClipboard offers text until somebody else copies something.
	WriteClipboard(ctx context.Context, text string) error
	// Control draws, or takes away, the frame on each screen, and sets which
	// processes are this program's. Everything held down is released when c.On
	// is false.
	Control(ctx context.Context, c Control) error
	// Release lets go of every key and button that Act holds down.
	Release(ctx context.Context) error
	// Target draws one target at each of points, at its middle, in TargetColour at
	// its edges, and the same on all sides of the middle; in place of those
	// that were drawn before; none takes them away. It is for the screen test:
	// Act reaches targets although they are this program's, where its action is
	// marked Test. Hits are the device pixels at which they were clicked since.
	Target(ctx context.Context, points []image.Point) error
	Hits(ctx context.Context) ([]image.Point, error)
	// Listen has fn called for each event, on a goroutine of the Hands; the last
	// call counts. fn returns at once.
	Listen(fn func(Event))
	// Close releases everything and ends.
	Close() error
}

// Abilities is what works on a display, and why what does not, doesn't.
type Abilities struct {
	System    string `json:"system"` // "x11", "wayland", "windows", "darwin", "none"
	Pictures  bool   `json:"pictures"`
	Input     bool   `json:"input"`
	Windows   bool   `json:"windows"` // they can be listed; without it no curtain
	Clipboard bool   `json:"clipboard"`
	// Person: the person's own hands are told from the agent's.
	Person bool `json:"person"`
	// Frame: the frame that says that somebody is in control can be drawn.
	Frame bool `json:"frame"`
	// Why is one plain sentence for each of "pictures", "input", "windows",
	// "clipboard", "person" and "frame" that does not work, with the remedy.
	Why map[string]string `json:"why,omitempty"`
	// StopKey is the key that stops everything as it is really bound ("Ctrl+Alt+
	// Esc"); "" with StopKeyProblem where none is.
	StopKey        string `json:"stop_key,omitempty"`
	StopKeyProblem string `json:"stop_key_problem,omitempty"`
}

// Wayland is the Abilities.System of desktops that may ask the person themselves,
// in a window of their own, whether a picture may be taken.
const Wayland = "wayland"

// The names of Abilities.Why.
const (
	AbilityPictures  = "pictures"
	AbilityInput     = "input"
	AbilityWindows   = "windows"
	AbilityClipboard = "clipboard"
	AbilityPerson    = "person"
	AbilityFrame     = "frame"
)

// Formats of a picture.
const (
	JPEG = "jpeg"
	PNG  = "png"
)

// Ask says which picture to take.
type Ask struct {
	// ID names the picture; its View has it.
	ID string `json:"id"`
	// Area in device pixels, cut to the screens; ignored with Window.
	Area image.Rectangle `json:"area"`
	// Window takes what is seen of one window, as it lies on the screen.
	Window *space.Window `json:"window,omitempty"`
	// Dark are screens (indexes) that are black in it: those that were not
	// allowed.
	Dark []int `json:"dark,omitempty"`
	// Limit of its size, beside 8000 × 8000; zero fields don't bound it.
	Limit space.Limit `json:"limit"`
	// Format is JPEG or PNG; Quality 1 to 100 of JPEG, 0 means 75.
	Format  string `json:"format"`
	Quality int    `json:"quality,omitempty"`
	// MaxBytes of Data; 0 does not bound it. Where it does not fit, quality and
	// then size go down; with Exact it is CodeTooLarge instead.
	MaxBytes int  `json:"max_bytes,omitempty"`
	Exact    bool `json:"exact,omitempty"`
	// Cursor draws the mouse pointer into it.
	Cursor bool `json:"cursor,omitempty"`
	// Hide are the windows that are blacked out, beside this program's own.
	Hide Curtain `json:"hide"`
	// Test: it is the screen test's, so its targets are not blacked out.
	Test bool `json:"test,omitempty"`
	// Card: the picture is for the person, on a card. This program's own windows
	// are grey in it, so that they are told from what is blacked out, and the shot
	// says where either is. It may take as long as its context lets it: the system
	// may be asking the person about it.
	Card bool `json:"card,omitempty"`
	// Mark, in device pixels, draws rings where an action would go: only for the
	// pictures on cards.
	Mark []image.Point `json:"mark,omitempty"`
}

// Cover is a window that a picture for a card does not show.
type Cover struct {
	Area image.Rectangle `json:"area"` // the largest piece of it, in device pixels
	Own  bool            `json:"own,omitempty"`
	Name string          `json:"name,omitempty"` // the program of a window that is blacked out
}

// Shot is one picture.
type Shot struct {
	Data   []byte       `json:"-"` // the file
	Format string       `json:"format"`
	View   space.View   `json:"view"`
	Layout space.Layout `json:"layout"`
	// Stack is the windows at that moment; nil where they can't be listed.
	Stack space.Stack `json:"stack,omitempty"`
	// Hidden names the programs whose windows are blacked out in it.
	Hidden []string `json:"hidden,omitempty"`
	// Covers is what a picture for a card does not show.
	Covers []Cover `json:"covers,omitempty"`
	// At is when it was taken.
	At time.Time `json:"at"`
}

// Kinds of actions.
const (
	Click   = "click" // Count times with Button at At, or where the pointer is
	Move    = "move"  // to At
	Press   = "press" // holds Button down, at At if that is set
	Unpress = "unpress"
	Drag    = "drag" // Button from the first of Path through all to the last
	Type    = "type" // Text, as text
	Key     = "key"  // Chord, Repeat times
	HoldKey = "hold-key"
	Scroll  = "scroll" // Amount steps of the wheel to Direction, at At if set
)

// Action is one thing that mouse and keyboard do. Points are device pixels.
type Action struct {
	Kind string        `json:"kind"`
	At   *image.Point  `json:"at,omitempty"`
	Path []image.Point `json:"path,omitempty"`
	// Button is "left", "middle" or "right"; Count 1 to 3.
	Button string `json:"button,omitempty"`
	Count  int    `json:"count,omitempty"`
	// Modifiers are held in this order while a Click, Drag or Scroll is done,
	// and released in reverse: shift, ctrl, alt, super.
	Modifiers []string `json:"modifiers,omitempty"`
	Text      string   `json:"text,omitempty"`
	// Chord is key names joined by "+", the last pressed last: "ctrl+s",
	// "Return" (names of xdotool, of wire 1.1, or single characters).
	Chord     string        `json:"chord,omitempty"`
	Repeat    int           `json:"repeat,omitempty"`
	Hold      time.Duration `json:"hold,omitempty"`      // of HoldKey
	Amount    int           `json:"amount,omitempty"`    // 0 does nothing
	Direction string        `json:"direction,omitempty"` // up, down, left, right

	// Layout is the fingerprint that the screens must still have; "" is not
	// checked.
	Layout string `json:"layout,omitempty"`
	// Aim is what must still be under the points: one for At, or for each of
	// Path; nil is not checked.
	Aim []Aim `json:"aim,omitempty"`
	// Keyboard is the window that Type, Key and HoldKey must go to, all along; nil:
	// any but this program's own.
	Keyboard *space.Window `json:"keyboard,omitempty"`
	// Seen is when the picture was taken that the client last saw, or when it
	// was allowed to act: had the person's own hands been busy after that, it is
	// CodePerson.
	Seen time.Time `json:"seen"`
	// Test: it is the screen test's.
	Test bool `json:"test,omitempty"`
}

// Aim is what lay under a point in a picture; Window nil is the desktop itself.
type Aim struct {
	Point  image.Point   `json:"point"`
	Window *space.Window `json:"window,omitempty"`
}

// Clip is what the clipboard has.
type Clip struct {
	Text  string `json:"text"`
	Owned bool   `json:"owned,omitempty"`
}

// Control says that a session may use mouse and keyboard, or see the screen.
type Control struct {
	// On draws the frame; Colour is "#rrggbb".
	On     bool   `json:"on"`
	Colour string `json:"colour,omitempty"`
	// Own are the processes whose windows are this program's, beside this one.
	Own []int `json:"own,omitempty"`
	// StopKey probes and binds the key that stops everything.
	StopKey bool `json:"stop_key,omitempty"`
}

// Event is something that happened at the display.
type Event struct {
	// Person: the person used mouse or keyboard. At most ten a second.
	Person bool `json:"person,omitempty"`
	// Screens: they have changed.
	Screens bool `json:"screens,omitempty"`
	// Stop: the stop key was pressed.
	Stop bool `json:"stop,omitempty"`
	// Lost: the process ended by itself; a fresh one has released what it held.
	Lost bool      `json:"lost,omitempty"`
	At   time.Time `json:"at"`
}
