package display

import (
	"context"
	"image"
	"slices"
	"sync"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// mover is a system's own way to move the mouse and to press keys; actor makes
// actions of it. Its methods are called one after another.
type mover interface {
	move(ctx context.Context, p image.Point) error
	// button presses or lets go of "left", "middle" or "right" where the pointer
	// is, the nth time at one place: systems that count clicks want to know.
	button(ctx context.Context, name string, down bool, nth int) error
	scroll(ctx context.Context, direction string, steps int) error
	// press presses or lets go of the key with that keysym; CodeInvalid where the
	// system has no such key.
	press(ctx context.Context, sym keysym, down bool) error
	// text types characters as text, whatever the person's keyboard layout is.
	text(ctx context.Context, syms []textSym) error
	cursor(ctx context.Context) (image.Point, error)
	close() error
}

// watcher is what a system tells of the person's own hands, and of the key that
// stops everything.
type watcher interface {
	listen(fn func(hands.Event))
	// after tells whether the person was at work after t.
	after(t time.Time) bool
	stopKey(ctx context.Context, on bool) (bound, problem string)
	person() (ok bool, why string)
	close() error
}

// actor is the input part of the systems that have a mover.
type actor struct {
	around
	mover mover
	watch watcher

	cut sync.Mutex              // of off
	off context.CancelCauseFunc // breaks off the action under way

	one sync.Mutex // one action at a time, and of what is held
	// held are buttons and keys in the order in which they were pressed.
	held []holding
}

// holding is a button, or with "" a key.
type holding struct {
	button string
	sym    keysym
}

// The pace of an action: programs miss what is done in no time at all.
const (
	tapFor     = 12 * time.Millisecond
	betweenTap = 30 * time.Millisecond
	dragStep   = 8 * time.Millisecond
	dragSettle = 60 * time.Millisecond
	// releaseIn bounds letting go after an action was broken off.
	releaseIn = 3 * time.Second
	// typeChunk is how many characters are typed between two looks at the person.
	typeChunk = 24
)

func newActor(a around, m mover, w watcher) *actor { return &actor{around: a, mover: m, watch: w} }

func (d *actor) Act(ctx context.Context, a hands.Action) error {
	if err := check(&a); err != nil {
		return err
	}
	var chord []keysym
	var err error
	if a.Kind == hands.Key || a.Kind == hands.HoldKey {
		if chord, err = parseChord(a.Chord, nil); err != nil {
			return err
		}
	}
	d.one.Lock()
	defer d.one.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.At == nil && a.Kind != hands.Drag && !keyboard(a) {
		// Where the pointer was last put; the person may have moved it since, so it
		// is put there again, where it is checked.
		if p, err := d.mover.cursor(ctx); err == nil {
			a.At = &p
		}
	}
	if err := d.allowed(ctx, a); err != nil {
		return err
	}
	before := len(d.held)
	ctx, off := context.WithCancelCause(ctx)
	defer off(nil)
	d.breakOff(off, nil)
	defer d.breakOff(nil, nil)
	run := &running{actor: d, ctx: ctx, seen: a.Seen, checked: time.Now()}
	err = run.do(a, chord)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if wire.CodeOf(err) == wire.CodeStopped && d.watch.after(a.Seen) {
		err = errPerson() // it is for their hands that all was let go of
	}
	// Broken off: what this action holds down is let go; and where it was the
	// person's hands, everything is.
	if wire.CodeOf(err) == wire.CodePerson {
		before = 0
	}
	if failed := d.letGo(ctx, before); failed != nil && wire.CodeOf(err) == "" {
		err = failed
	}
	return err
}

// allowed compares the screens, and what is under the points, with what was
// aimed at.
func (d *actor) allowed(ctx context.Context, a hands.Action) error {
	layout, err := d.layout(ctx)
	if err != nil {
		return err
	}
	if a.Layout != "" && a.Layout != layout.Fingerprint() {
		return errLayout()
	}
	if err := bounds(a, layout); err != nil {
		return err
	}
	if d.watch.after(a.Seen) {
		return errPerson()
	}
	stack, err := d.stack(ctx)
	if wire.CodeOf(err) == wire.CodeNotSupported {
		return nil // windows can't be listed here; the card said so
	}
	if err != nil {
		return err
	}
	if err := aimed(a, points(a), stack, nil); err != nil {
		return err
	}
	if keyboard(a) {
		return keysTo(a, stack)
	}
	return nil
}

// letGo releases what was pressed after the first keep of held, the last first.
func (d *actor) letGo(ctx context.Context, keep int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseIn)
	defer cancel()
	var first error
	for len(d.held) > keep {
		h := d.held[len(d.held)-1]
		d.held = d.held[:len(d.held)-1]
		if err := d.raise(ctx, h); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *actor) raise(ctx context.Context, h holding) error {
	if h.button != "" {
		return d.mover.button(ctx, h.button, false, 1)
	}
	return d.mover.press(ctx, h.sym, false)
}

// running is one action under way.
type running struct {
	*actor
	ctx     context.Context
	seen    time.Time
	checked time.Time // when what it reaches was
}

// still checks again, in the middle of a long action, what is under at and a's
// aim.
func (r *running) still(a hands.Action, at []image.Point) error {
	if time.Since(r.checked) < checkEvery {
		return nil
	}
	stack, err := r.stack(r.ctx)
	if wire.CodeOf(err) == wire.CodeNotSupported {
		return nil // as before it began
	}
	if err != nil {
		return err
	}
	r.checked = time.Now()
	if keyboard(a) {
		return keysTo(a, stack)
	}
	return aimed(a, at, stack, nil)
}

// hold is a pause of a's keys, which may be long.
func (r *running) hold(a hands.Action, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if err := r.pause(min(left, checkEvery)); err != nil || left <= checkEvery {
			return err
		}
		if err := r.still(a, nil); err != nil {
			return err
		}
	}
}

// pause waits; the person's hands end it.
func (r *running) pause(d time.Duration) error {
	for end := time.Now().Add(d); ; {
		if r.watch.after(r.seen) {
			return errPerson()
		}
		left := time.Until(end)
		if left <= 0 {
			return r.ctx.Err()
		}
		select {
		case <-time.After(min(left, 20*time.Millisecond)):
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
}

func (r *running) press(h holding, nth int) error {
	// Noted before: whether it came to be pressed is not known after an error.
	r.held = append(r.held, h)
	if h.button != "" {
		return r.mover.button(r.ctx, h.button, true, nth)
	}
	return r.mover.press(r.ctx, h.sym, true)
}

func (r *running) unpress(h holding, nth int) error {
	if i := slices.Index(r.held, h); i >= 0 {
		r.held = slices.Delete(r.held, i, i+1)
	}
	if h.button != "" {
		return r.mover.button(r.ctx, h.button, false, nth)
	}
	return r.mover.press(r.ctx, h.sym, false)
}

// with does fn while the modifiers are held.
func (r *running) with(names []string, fn func() error) error {
	var syms []keysym
	for _, name := range names {
		syms = append(syms, modifiers[name])
	}
	return r.chord(syms, fn)
}

// chord presses syms in their order, does fn, and lets go in reverse.
func (r *running) chord(syms []keysym, fn func() error) error {
	if len(syms) == 0 {
		return fn()
	}
	h := holding{sym: syms[0]}
	if err := r.press(h, 1); err != nil {
		return err
	}
	if err := r.chord(syms[1:], fn); err != nil {
		return err
	}
	return r.unpress(h, 1)
}

func (r *running) do(a hands.Action, chord []keysym) error {
	if a.At != nil {
		if err := r.mover.move(r.ctx, *a.At); err != nil {
			return err
		}
		if err := r.pause(tapFor); err != nil {
			return err
		}
	}
	chord, err := r.fit(chord)
	if err != nil {
		return err
	}
	button := holding{button: a.Button}
	switch a.Kind {
	case hands.Click:
		return r.with(a.Modifiers, func() error {
			for n := 1; n <= a.Count; n++ {
				if err := r.click(button, n); err != nil {
					return err
				}
			}
			return nil
		})
	case hands.Press:
		return r.press(button, 1)
	case hands.Unpress:
		return r.unpress(button, 1)
	case hands.Drag:
		return r.with(a.Modifiers, func() error { return r.drag(a, button, thin(a.Path)) })
	case hands.Type:
		return r.write(a, textSyms(a.Text))
	case hands.Key:
		for range a.Repeat {
			if err := r.still(a, nil); err != nil {
				return err
			}
			if err := r.chord(chord, func() error { return r.pause(tapFor) }); err != nil {
				return err
			}
			if err := r.pause(tapFor); err != nil {
				return err
			}
		}
	case hands.HoldKey:
		return r.chord(chord, func() error { return r.hold(a, a.Hold) })
	case hands.Scroll:
		return r.with(a.Modifiers, func() error { return r.scroll(a) })
	}
	return nil
}

func (r *running) click(button holding, nth int) error {
	if err := r.press(button, nth); err != nil {
		return err
	}
	if err := r.pause(tapFor); err != nil {
		return err
	}
	if err := r.unpress(button, nth); err != nil {
		return err
	}
	return r.pause(betweenTap)
}

func (r *running) drag(a hands.Action, button holding, path []image.Point) error {
	a.Aim = nil // what is dragged may be what was aimed at
	for i, p := range path {
		if err := r.still(a, path[i:]); err != nil {
			return err
		}
		if err := r.mover.move(r.ctx, p); err != nil {
			return err
		}
		wait := dragStep
		if i == 0 || i == len(path)-1 {
			wait = dragSettle
		}
		if err := r.pause(wait); err != nil {
			return err
		}
		if i == 0 {
			if err := r.press(button, 1); err != nil {
				return err
			}
			if err := r.pause(dragSettle); err != nil {
				return err
			}
		}
	}
	return r.unpress(button, 1)
}

// fitter is a mover that can press only some keysyms.
type fitter interface {
	// fit is text with one keysym each, of those that can be pressed.
	fit(ctx context.Context, text []textSym) ([]textSym, error)
}

// fit is chord with keysyms that can be pressed.
func (r *running) fit(chord []keysym) ([]keysym, error) {
	f, ok := r.mover.(fitter)
	if !ok || len(chord) == 0 {
		return chord, nil
	}
	var all []textSym
	for _, sym := range chord {
		s := textSym{any: []keysym{sym}}
		if sym > unicodeSym {
			s.r = rune(sym - unicodeSym)
			s.any = symsOf(s.r)
		}
		all = append(all, s)
	}
	all, err := f.fit(r.ctx, all)
	if err != nil {
		return nil, err
	}
	var out []keysym
	for _, s := range all {
		out = append(out, s.any[0])
	}
	return out, nil
}

func (r *running) write(a hands.Action, text []textSym) error {
	for _, s := range text {
		if s.bad != "" {
			return wire.Errorf(wire.CodeInvalid, "%s can't be typed as text.", s.bad)
		}
	}
	if f, ok := r.mover.(fitter); ok {
		var err error
		if text, err = f.fit(r.ctx, text); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(text, typeChunk) {
		if err := r.pause(0); err != nil {
			return err
		}
		if err := r.still(a, nil); err != nil {
			return err
		}
		if err := r.mover.text(r.ctx, part); err != nil {
			return err
		}
	}
	return r.pause(0)
}

func (r *running) scroll(a hands.Action) error {
	for range a.Amount {
		if err := r.still(a, points(a)); err != nil {
			return err
		}
		if err := r.mover.scroll(r.ctx, a.Direction, 1); err != nil {
			return err
		}
		if err := r.pause(dragStep); err != nil {
			return err
		}
	}
	return nil
}

func (d *actor) Cursor(ctx context.Context) (image.Point, error) {
	d.one.Lock()
	defer d.one.Unlock()
	return d.mover.cursor(ctx)
}

// breakOff ends the action under way with why, or notes how the next one is
// ended.
func (d *actor) breakOff(off context.CancelCauseFunc, why error) {
	d.cut.Lock()
	defer d.cut.Unlock()
	if why == nil {
		d.off = off
	} else if d.off != nil {
		d.off(why)
	}
}

func (d *actor) Release(ctx context.Context) error {
	d.breakOff(nil, wire.Errorf(wire.CodeStopped, "Mouse and keyboard were let go of before this was done."))
	d.one.Lock()
	defer d.one.Unlock()
	return d.letGo(ctx, 0)
}

func (d *actor) Target(_ context.Context, points []image.Point) error {
	if len(points) == 0 {
		return nil
	}
	return wire.Errorf(wire.CodeNotSupported, "The screen test can't draw its targets on this kind of desktop.")
}

func (d *actor) Hits(context.Context) ([]image.Point, error) { return nil, nil }

func (d *actor) Listen(fn func(hands.Event)) { d.watch.listen(fn) }

func (d *actor) StopKey(ctx context.Context, on bool) (bound, problem string) {
	return d.watch.stopKey(ctx, on)
}

func (d *actor) Person() (ok bool, why string) { return d.watch.person() }

func (d *actor) Busy(t time.Time) bool { return d.watch.after(t) }

func (d *actor) Close() error {
	d.breakOff(nil, wire.Errorf(wire.CodeStopped, "The display was closed before this was done."))
	d.one.Lock()
	defer d.one.Unlock()
	err := d.letGo(context.Background(), 0)
	if closed := d.watch.close(); err == nil {
		err = closed
	}
	if closed := d.mover.close(); err == nil {
		err = closed
	}
	return err
}
