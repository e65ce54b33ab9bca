package display

import (
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// serve answers a program that pastes. It runs on the goroutine of the events.
func (x *x11Clipboard) serve(e xproto.SelectionRequestEvent) {
	property := e.Property
	if property == xproto.AtomNone { // an old program
		property = e.Target
	}
	x.mu.Lock()
	text, owned, since := x.text, x.owned, x.since
	x.mu.Unlock()
	if !owned || e.Selection != x.atom("CLIPBOARD") || !x.put(e.Requestor, property, e.Target, text, since) {
		property = xproto.AtomNone
	}
	n := xproto.SelectionNotifyEvent{Time: e.Time, Requestor: e.Requestor, Selection: e.Selection, Target: e.Target, Property: property}
	xproto.SendEvent(x.Conn, false, e.Requestor, 0, string(n.Bytes()))
}

// put writes what target asks for; false where there is no such form.
func (x *x11Clipboard) put(w xproto.Window, property, target xproto.Atom, text []byte, since xproto.Timestamp) bool {
	set := func(typ xproto.Atom, format byte, n int, data []byte) bool {
		return xproto.ChangePropertyChecked(x.Conn, xproto.PropModeReplace, w, property, typ, format, uint32(n), data).Check() == nil
	}
	number := func(ns ...uint32) []byte {
		b := make([]byte, 4*len(ns))
		for i, n := range ns {
			xgb.Put32(b[4*i:], n)
		}
		return b
	}
	switch target {
	case x.atom("TARGETS"):
		var forms []uint32
		for _, name := range []string{"TARGETS", "TIMESTAMP", "UTF8_STRING", plainUTF8, "text/plain", "TEXT"} {
			forms = append(forms, uint32(x.atom(name)))
		}
		return set(xproto.AtomAtom, 32, len(forms), number(forms...))
	case x.atom("TIMESTAMP"):
		return set(xproto.AtomInteger, 32, 1, number(uint32(since)))
	case x.atom("TEXT"):
		target = x.atom("UTF8_STRING")
	case x.atom("UTF8_STRING"), x.atom(plainUTF8), x.atom("text/plain"):
	default:
		return false
	}
	if len(text) <= clipChunk {
		return set(target, 8, len(text), text)
	}
	// In pieces: the reader removes each one when it has it.
	x.mu.Lock()
	for other, s := range x.sends {
		if time.Since(s.at) > time.Minute {
			delete(x.sends, other) // it never came back for the rest
		}
	}
	x.sends[w] = &piecemeal{property: property, typ: target, rest: text, at: time.Now()}
	x.mu.Unlock()
	if xproto.ChangeWindowAttributesChecked(x.Conn, w, xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange}).Check() != nil {
		return false
	}
	return set(x.atom("INCR"), 32, 1, number(uint32(len(text))))
}

// next sends the next piece to w; false where nothing is on its way there.
func (x *x11Clipboard) next(w xproto.Window, property xproto.Atom) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sends[w]
	if s == nil || s.property != property {
		return false
	}
	n := min(len(s.rest), clipChunk)
	piece := s.rest[:n]
	s.rest, s.at = s.rest[n:], time.Now()
	xproto.ChangeProperty(x.Conn, xproto.PropModeReplace, w, property, s.typ, 8, uint32(n), piece)
	if n == 0 { // the empty piece is the end
		delete(x.sends, w)
		if w != x.win && x.waiting[w] == nil {
			xproto.ChangeWindowAttributes(x.Conn, w, xproto.CwEventMask, []uint32{0})
		}
	}
	return true
}
