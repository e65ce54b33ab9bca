package display

import (
	"context"
	"image"
	"log/slog"
	"os"
	"sync"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// desk is a display made of its parts.
type desk struct {
	log *slog.Logger
	parts
	input input // nil: there is none
	// shots is one token: pictures are taken one after another.
	shots chan struct{}

	mu      sync.Mutex // of what follows
	own     map[int]bool
	control hands.Control
	key     string // the stop key as bound
	problem string
	listen  func(hands.Event)
	closed  bool
	shape   string // fingerprint of the layout last seen
	// looks are when the last pictures were taken, by a clock that nobody sets.
	looks []time.Time
}

func compose(o Options, p *parts) *desk {
	if p.why == nil {
		p.why = map[string]string{}
	}
	d := &desk{log: o.Log, parts: *p, shots: make(chan struct{}, 1), own: map[int]bool{os.Getpid(): true}}
	if p.newInput != nil {
		in, err := p.newInput(around{layout: d.Layout, stack: d.Windows})
		if err != nil {
			o.Log.Warn("No mouse and keyboard", "err", err)
			d.why[hands.AbilityInput] = err.Error()
		} else {
			d.input = in
			d.input.Listen(d.tell)
		}
	}
	if d.pictures != nil {
		d.pictures.changed(d.screensChanged)
	}
	return d
}

func (d *desk) tell(e hands.Event) {
	d.mu.Lock()
	fn := d.listen
	d.mu.Unlock()
	if fn != nil {
		if e.At.IsZero() {
			e.At = time.Now()
		}
		fn(e)
	}
}

func (d *desk) Abilities(context.Context) (hands.Abilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := hands.Abilities{
		System:   d.system,
		Pictures: d.pictures != nil, Input: d.input != nil, Windows: d.windows != nil, Clipboard: d.clipboard != nil, Frame: d.frame != nil,
		Why: map[string]string{}, StopKey: d.key, StopKeyProblem: d.problem,
	}
	if d.input != nil {
		var why string
		if a.Person, why = d.input.Person(); !a.Person {
			a.Why[hands.AbilityPerson] = why
		}
	} else {
		a.Why[hands.AbilityPerson] = d.why[hands.AbilityInput]
	}
	if d.frame == nil && d.why[hands.AbilityFrame] == "" {
		a.Why[hands.AbilityFrame] = "No frame can be drawn around the screens here. The strip and the tray icon say who is in control."
	}
	for name, there := range map[string]bool{hands.AbilityPictures: a.Pictures, hands.AbilityInput: a.Input, hands.AbilityWindows: a.Windows, hands.AbilityClipboard: a.Clipboard, hands.AbilityFrame: a.Frame} {
		if !there && a.Why[name] == "" {
			a.Why[name] = lacks(d.why[name]).Error()
		}
	}
	return a, nil
}

func (d *desk) Layout(ctx context.Context) (space.Layout, error) {
	if d.pictures == nil {
		return space.Layout{}, lacks(d.why[hands.AbilityPictures])
	}
	return d.pictures.layout(ctx)
}

// Windows is what a click may reach.
func (d *desk) Windows(ctx context.Context) (space.Stack, error) {
	stack, _, err := d.list(ctx, time.Now())
	return stack, err
}

// list is what a click may reach, and what else may show or have shown since.
func (d *desk) list(ctx context.Context, since time.Time) (stack, over space.Stack, err error) {
	if d.windows == nil {
		return nil, nil, lacks(d.why[hands.AbilityWindows])
	}
	if stack, over, err = d.windows.list(ctx, since); err != nil {
		return nil, nil, err
	}
	if stack == nil {
		stack = space.Stack{} // none, which is not the same as unknown
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range []space.Stack{stack, over} {
		for i := range s {
			s[i].Ours = d.own[s[i].PID]
		}
	}
	return stack, over, nil
}

func (d *desk) Focus(ctx context.Context, w space.Window, raise bool, seen time.Time) error {
	if d.input != nil && d.input.Busy(seen) {
		return errPerson()
	}
	stack, err := d.Windows(ctx)
	if err != nil {
		return err
	}
	for _, now := range stack {
		if !now.Same(w) {
			continue
		}
		if now.Ours {
			return wire.Errorf(wire.CodeOwnWindow, "That window belongs to Local PC Executor itself.")
		}
		return d.windows.focus(ctx, now, raise)
	}
	return stale()
}

func stale() error {
	return wire.Errorf(wire.CodeWindowStale, "That window is not there any more. List the windows again.")
}

func (d *desk) Act(ctx context.Context, a hands.Action) error {
	if d.input == nil {
		return lacks(d.why[hands.AbilityInput])
	}
	a.Seen = d.looked(a.Seen)
	return d.input.Act(ctx, a)
}

// took notes when a picture was taken.
func (d *desk) took(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.looks = append(d.looks, at); len(d.looks) > 256 {
		d.looks = d.looks[1:]
	}
}

// looked is seen as this process noted it, where it is a picture's time: then
// it compares rightly though the clock was set since.
func (d *desk) looked(seen time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.looks {
		if at.Equal(seen) {
			return at
		}
	}
	return seen
}

func (d *desk) Cursor(ctx context.Context) (image.Point, error) {
	if d.input == nil {
		return image.Point{}, lacks(d.why[hands.AbilityInput])
	}
	return d.input.Cursor(ctx)
}

func (d *desk) Release(ctx context.Context) error {
	if d.input == nil {
		return nil // nothing can be held
	}
	return d.input.Release(ctx)
}

func (d *desk) Target(ctx context.Context, points []image.Point) error {
	if d.input == nil {
		return lacks(d.why[hands.AbilityInput])
	}
	return d.input.Target(ctx, points)
}

func (d *desk) Hits(ctx context.Context) ([]image.Point, error) {
	if d.input == nil {
		return nil, lacks(d.why[hands.AbilityInput])
	}
	return d.input.Hits(ctx)
}

func (d *desk) ReadClipboard(ctx context.Context, max int) (hands.Clip, error) {
	if d.clipboard == nil {
		return hands.Clip{}, lacks(d.why[hands.AbilityClipboard])
	}
	return d.clipboard.read(ctx, max)
}

func (d *desk) WriteClipboard(ctx context.Context, text string) error {
	if d.clipboard == nil {
		return lacks(d.why[hands.AbilityClipboard])
	}
	return d.clipboard.write(ctx, text)
}

// Control takes effect for the curtain before it does for the frame: a picture
// that is taken afterwards has none of this program's windows.
func (d *desk) Control(ctx context.Context, c hands.Control) error {
	d.mu.Lock()
	d.control = c
	d.own = map[int]bool{os.Getpid(): true}
	for _, pid := range c.Own {
		d.own[pid] = true
	}
	d.mu.Unlock()
	if d.input != nil {
		if !c.On {
			if err := d.input.Release(ctx); err != nil {
				return err
			}
		}
		key, problem := d.input.StopKey(ctx, c.StopKey)
		d.mu.Lock()
		d.key, d.problem = key, problem
		d.mu.Unlock()
	}
	return d.draw(ctx)
}

// draw brings the frame to what control and the screens are now.
func (d *desk) draw(ctx context.Context) error {
	if d.frame == nil || d.pictures == nil {
		return nil
	}
	d.mu.Lock()
	c := d.control
	d.mu.Unlock()
	if !c.On {
		return d.frame.show(ctx, "", nil)
	}
	layout, err := d.pictures.layout(ctx)
	if err != nil {
		return err
	}
	if c.Colour == "" {
		c.Colour = "#e8590c"
	}
	return d.frame.show(ctx, c.Colour, layout.Screens)
}

// screensChanged runs on the pictures' own goroutine.
func (d *desk) screensChanged() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	layout, err := d.pictures.layout(ctx)
	if err != nil {
		return // the display is going away
	}
	d.mu.Lock()
	before := d.shape
	d.shape = layout.Fingerprint()
	same := before == d.shape
	d.mu.Unlock()
	if same {
		return
	}
	if err := d.draw(ctx); err != nil {
		d.log.Warn("The frame was not drawn anew", "err", err)
	}
	if before != "" {
		d.tell(hands.Event{Screens: true})
	}
}

func (d *desk) Listen(fn func(hands.Event)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listen = fn
}

func (d *desk) Close() error {
	d.mu.Lock()
	was := d.closed
	d.closed, d.listen = true, nil
	d.mu.Unlock()
	if was {
		return nil
	}
	var err error
	if d.input != nil { // first: it lets go of what is held
		err = d.input.Close()
	}
	if d.frame != nil {
		d.frame.close()
	}
	if d.clipboard != nil {
		d.clipboard.close()
	}
	if d.windows != nil {
		d.windows.close()
	}
	if d.pictures != nil {
		d.pictures.close()
	}
	return err
}
