package display

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

const (
	// clipWait is how long the program that has the clipboard may take for each
	// step before it counts as one that does not answer.
	clipWait = 3 * time.Second
	// clipChunk is the most bytes of one property; what is longer goes in pieces.
	clipChunk = 128 << 10
)

// x11Clipboard is the selection named CLIPBOARD. Its events are read on one
// goroutine, which serves what write offers and hands read its answers.
type x11Clipboard struct {
	*xconn
	win xproto.Window

	mu      sync.Mutex
	text    []byte
	owned   bool
	since   xproto.Timestamp
	waiting map[xproto.Window]chan xgb.Event
	sends   map[xproto.Window]*piecemeal
}

// piecemeal is a long text on its way to a window.
type piecemeal struct {
	property, typ xproto.Atom
	rest          []byte
	at            time.Time
}

func newX11Clipboard(name string) (clipboard, error) {
	c, err := dialX11(name)
	if err != nil {
		return nil, err
	}
	x := &x11Clipboard{xconn: c, waiting: map[xproto.Window]chan xgb.Event{}, sends: map[xproto.Window]*piecemeal{}}
	if x.win, err = x.window(); err != nil {
		c.close()
		return nil, err
	}
	for _, name := range []string{"CLIPBOARD", "TARGETS", "TIMESTAMP", "UTF8_STRING", "TEXT", "INCR", plainUTF8, "text/plain", "LOCALPC_CLIP"} {
		c.atom(name) // so that events are answered without asking back
	}
	c.heard = true
	go c.each(x.event)
	return x, nil
}

const plainUTF8 = "text/plain;charset=utf-8"

// window makes one that is never shown, and hears of its properties.
func (x *x11Clipboard) window() (xproto.Window, error) {
	w, err := xproto.NewWindowId(x.Conn)
	if err != nil {
		return 0, err
	}
	return w, xproto.CreateWindowChecked(x.Conn, 0, w, x.root, -1, -1, 1, 1, 0, xproto.WindowClassInputOnly, 0,
		xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{1, xproto.EventMaskPropertyChange}).Check()
}

func (x *x11Clipboard) event(e xgb.Event) {
	switch e := e.(type) {
	case xproto.SelectionRequestEvent:
		x.serve(e)
	case xproto.SelectionClearEvent:
		x.mu.Lock()
		if e.Owner == x.win {
			x.owned, x.text = false, nil
		}
		x.mu.Unlock()
	case xproto.SelectionNotifyEvent:
		x.hand(e.Requestor, e)
	case xproto.PropertyNotifyEvent:
		if e.State == xproto.PropertyDelete && x.next(e.Window, e.Atom) {
			return
		}
		x.hand(e.Window, e)
	}
}

func (x *x11Clipboard) hand(w xproto.Window, e xgb.Event) {
	x.mu.Lock()
	ch := x.waiting[w]
	x.mu.Unlock()
	select {
	case ch <- e: // a nil channel takes none
	default:
	}
}

// wait opens the answers for w.
func (x *x11Clipboard) wait(w xproto.Window) (<-chan xgb.Event, func()) {
	ch := make(chan xgb.Event, 256)
	x.mu.Lock()
	x.waiting[w] = ch
	x.mu.Unlock()
	return ch, func() {
		x.mu.Lock()
		delete(x.waiting, w)
		x.mu.Unlock()
	}
}

func (x *x11Clipboard) read(ctx context.Context, max int) (hands.Clip, error) {
	return ask(ctx, x.xconn, func() (clip hands.Clip, err error) {
		o, err := xproto.GetSelectionOwner(x.Conn, x.atom("CLIPBOARD")).Reply()
		if err != nil || o.Owner == 0 {
			return clip, err // an empty clipboard is no error
		}
		x.mu.Lock()
		if o.Owner == x.win && x.owned {
			clip = hands.Clip{Text: string(x.text), Owned: true}
		}
		x.mu.Unlock()
		if clip.Owned {
			return clip, fitting(len(clip.Text), max)
		}
		r, err := x.reader(ctx, max)
		if err != nil {
			return clip, err
		}
		defer r.close()
		clip.Text, err = r.text()
		return clip, err
	})
}

func fitting(n, max int) error {
	if max > 0 && n > max {
		return wire.Errorf(wire.CodeTooLarge, "What was copied has more than %d bytes.", max)
	}
	return nil
}

// clipReader asks the owner, with a window of its own, so that an answer that
// comes too late reaches nobody.
type clipReader struct {
	*x11Clipboard
	ctx    context.Context
	win    xproto.Window
	events <-chan xgb.Event
	max    int
	end    func()
}

func (x *x11Clipboard) reader(ctx context.Context, max int) (*clipReader, error) {
	w, err := x.window()
	if err != nil {
		return nil, err
	}
	r := &clipReader{x11Clipboard: x, ctx: ctx, win: w, max: max}
	r.events, r.end = x.wait(w)
	return r, nil
}

func (r *clipReader) close() {
	r.end()
	xproto.DestroyWindow(r.Conn, r.win)
}

var errRefused = errors.New("the owner of the clipboard has no such form of it")

// text asks what forms there are, then for the best one.
func (r *clipReader) text() (string, error) {
	forms, _, err := r.convert("TARGETS", 1<<16)
	if err != nil && !errors.Is(err, errRefused) {
		return "", err
	}
	have := map[xproto.Atom]bool{}
	for ; len(forms) >= 4; forms = forms[4:] {
		have[xproto.Atom(xgb.Get32(forms))] = true
	}
	if have[r.atom(secretHint)] {
		hint, _, err := r.convert(secretHint, 1<<10)
		// What can't be read counts as secret too.
		if err != nil || string(hint) == "secret" {
			return "", wire.Errorf(wire.CodeConcealed, "What was copied is marked as a secret, so it is not handed on.").
				With(map[string]any{"reason": "concealed_type", "marker": secretHint})
		}
	}
	for _, form := range []string{"UTF8_STRING", plainUTF8, "STRING"} {
		if len(have) > 0 && !have[r.atom(form)] {
			continue
		}
		data, typ, err := r.convert(form, r.max)
		if errors.Is(err, errRefused) {
			continue
		}
		if err != nil {
			return "", err
		}
		if typ == xproto.AtomString && form == "STRING" { // Latin-1
			runes := make([]rune, len(data))
			for i, b := range data {
				runes[i] = rune(b)
			}
			return string(runes), fitting(len(string(runes)), r.max)
		}
		return text(data), nil
	}
	return "", wire.Errorf(wire.CodeNotSupported, "What was copied is no text.")
}

// secretHint is what password managers mark what they copy with.
const secretHint = "x-kde-passwordManagerHint"

func (r *clipReader) convert(form string, max int) ([]byte, xproto.Atom, error) {
	property := r.atom("LOCALPC_CLIP")
	xproto.ConvertSelection(r.Conn, r.win, r.atom("CLIPBOARD"), r.atom(form), property, xproto.TimeCurrentTime)
	for {
		e, err := r.event()
		if err != nil {
			return nil, 0, err
		}
		if n, ok := e.(xproto.SelectionNotifyEvent); ok && n.Target == r.atom(form) {
			if n.Property == xproto.AtomNone {
				return nil, 0, errRefused
			}
			break
		}
	}
	data, typ, err := r.take(property, max)
	if err != nil || typ != r.atom("INCR") {
		return data, typ, err
	}
	data = nil
	var large error // found underway; the owner is still let come to its end
	for end := time.Now(); large == nil || time.Since(end) < clipWait; {
		// In pieces, each asked for by having taken the one before.
		e, err := r.event()
		if err != nil {
			return nil, 0, err
		}
		if p, ok := e.(xproto.PropertyNotifyEvent); !ok || p.Atom != property || p.State != xproto.PropertyNewValue {
			continue
		}
		piece, t, err := r.take(property, 0)
		switch {
		case err != nil:
			return nil, 0, err
		case t == xproto.AtomNone || t == r.atom("INCR"):
			continue // told of twice
		case len(piece) == 0:
			return data, typ, large
		case large != nil:
			continue
		}
		typ = t
		data = append(data, piece...)
		if large = fitting(len(data), max); large != nil {
			data, end = nil, time.Now()
		}
	}
	return nil, 0, large
}

// take reads a property and removes it.
func (r *clipReader) take(property xproto.Atom, max int) ([]byte, xproto.Atom, error) {
	units := uint32(1 << 24)
	if max > 0 {
		units = uint32(max/4 + 1)
	}
	p, err := xproto.GetProperty(r.Conn, true, r.win, property, xproto.GetPropertyTypeAny, 0, units).Reply()
	if err != nil {
		return nil, 0, err
	}
	if p.Type != r.atom("INCR") {
		if err := fitting(len(p.Value)+int(p.BytesAfter), max); err != nil {
			return nil, 0, err
		}
	}
	return p.Value, p.Type, nil
}

// event is the next one, within bounds.
func (r *clipReader) event() (xgb.Event, error) {
	t := time.NewTimer(clipWait)
	defer t.Stop()
	select {
	case e := <-r.events:
		return e, nil
	case <-t.C:
		return nil, wire.Errorf(wire.CodeNotSupported, "The program that the clipboard is from does not answer.")
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	case <-r.gone:
		return nil, errGone
	}
}

func (x *x11Clipboard) write(ctx context.Context, s string) error {
	return x.do(ctx, func() error {
		now, err := x.now(ctx)
		if err != nil {
			return err
		}
		x.mu.Lock()
		x.text, x.owned, x.since = []byte(s), true, now
		x.mu.Unlock()
		selection := x.atom("CLIPBOARD")
		if err := xproto.SetSelectionOwnerChecked(x.Conn, x.win, selection, now).Check(); err != nil {
			return err
		}
		o, err := xproto.GetSelectionOwner(x.Conn, selection).Reply()
		if err != nil {
			return err
		}
		if o.Owner != x.win {
			return wire.Errorf(wire.CodeInternal, "Another program took the clipboard at the same moment. Try again.")
		}
		return nil
	})
}

// now is the server's time, which it tells with a change of a property.
func (x *x11Clipboard) now(ctx context.Context) (xproto.Timestamp, error) {
	events, end := x.wait(x.win)
	defer end()
	xproto.ChangeProperty(x.Conn, xproto.PropModeAppend, x.win, xproto.AtomWmName, xproto.AtomString, 8, 0, nil)
	r := clipReader{x11Clipboard: x, ctx: ctx, events: events}
	for {
		e, err := r.event()
		if err != nil {
			return 0, err
		}
		if p, ok := e.(xproto.PropertyNotifyEvent); ok {
			return p.Time, nil
		}
	}
}

func (x *x11Clipboard) close() {
	x.xconn.close()
	<-x.gone
}
