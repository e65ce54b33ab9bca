package display

import (
	"unicode/utf8"

	"localpc/tunnel/wire"
)

// keymap is a keyboard as the system has it mapped.
type keymap struct {
	syms map[keysym][]stroke // how each is pressed, in every group where it can be
	// numLock is the modifier that it is, 0 where there is none.
	numLock uint8
	// spare are keys without a meaning, which may be given one for a while.
	spare []byte
	// bound are spare keys that have one already.
	bound map[keysym]byte
	// holds has for each modifier the key that holds it down; 0 where none does.
	holds [8]byte
}

// stroke is one key pressed in one group with exactly mods held.
type stroke struct {
	code  byte
	group int // anyGroup where it does not matter
	mods  uint8
}

const anyGroup = -1

// reach tells whether there is a key for each modifier that s needs.
func (m *keymap) reach(s stroke) bool {
	for bit := range 8 {
		if s.mods&(1<<bit) != 0 && m.holds[bit] == 0 {
			return false
		}
	}
	return true
}

// find is how sym is pressed: in group if it can be, else in another one, with
// the fewest modifiers.
func (m *keymap) find(sym keysym, group int) (stroke, bool) {
	best, found := stroke{}, false
	cost := func(s stroke) int {
		n := 0
		for b := s.mods; b != 0; b &= b - 1 {
			n++
		}
		if s.group != group && s.group != anyGroup {
			n += 100 + s.group
		}
		return n
	}
	for _, s := range m.syms[sym] {
		if m.reach(s) && (!found || cost(s) < cost(best)) {
			best, found = s, true
		}
	}
	return best, found
}

// piece is a part of a text that can be typed without giving keys other
// meanings in between.
type piece struct {
	bind    map[byte]keysym // to be given first
	strokes []stroke
}

// plan is how text is typed when group is in effect. Characters that the
// layout has are typed with its keys; the others with spare ones. Nothing is
// composed: a dead key or an input method has no part in it. An error is about
// the text: nothing is to be typed then.
func (m *keymap) plan(text string, group int) ([]piece, error) {
	bound := map[keysym]byte{}
	for s, k := range m.bound {
		bound[s] = k
	}
	var out []piece
	now := piece{bind: map[byte]keysym{}}
	free := m.free(bound)
	used := map[byte]bool{} // spare keys that this piece types with
	for _, sym := range textSyms(text) {
		if sym.bad != "" {
			return nil, wire.Errorf(wire.CodeInvalid, "%s can't be typed as text.", sym.bad)
		}
		if s, ok := m.findAny(sym.any, group); ok {
			now.strokes = append(now.strokes, s)
			if s.group != anyGroup {
				group = s.group // what follows stays in it where it can
			}
			continue
		}
		want := sym.any[0]
		code, ok := bound[want]
		if !ok {
			if len(m.spare) == 0 {
				return nil, wire.Errorf(wire.CodeNotSupported, "This keyboard layout has no key for %q, and no spare key that could stand in for it.", sym.r)
			}
			if len(free) == 0 {
				// Those that this piece does not need take another meaning, and
				// where it needs all, the next piece begins.
				free = unused(m.spare, used)
				if len(free) == 0 {
					out = append(out, now)
					now = piece{bind: map[byte]keysym{}}
					used = map[byte]bool{}
					free = append([]byte(nil), m.spare...)
				}
				for s, k := range bound {
					for _, f := range free {
						if k == f {
							delete(bound, s)
						}
					}
				}
			}
			code, free = free[0], free[1:]
			bound[want] = code
			now.bind[code] = want
		}
		used[code] = true
		now.strokes = append(now.strokes, stroke{code: code, group: anyGroup})
	}
	return append(out, now), nil
}

func (m *keymap) free(bound map[keysym]byte) []byte {
	taken := map[byte]bool{}
	for _, k := range bound {
		taken[k] = true
	}
	return unused(m.spare, taken)
}

func unused(of []byte, taken map[byte]bool) []byte {
	var out []byte
	for _, k := range of {
		if !taken[k] {
			out = append(out, k)
		}
	}
	return out
}

func (m *keymap) findAny(syms []keysym, group int) (stroke, bool) {
	for _, want := range []bool{true, false} { // this group first
		for _, sym := range syms {
			if s, ok := m.find(sym, group); ok && (!want || s.group == group || s.group == anyGroup) {
				return s, true
			}
		}
	}
	return stroke{}, false
}

// textSym is one thing to type: any of the keysyms does.
type textSym struct {
	r   rune
	any []keysym
	bad string
}

// textSyms is text as keysyms. Every way to end a line is Return.
func textSyms(text string) []textSym {
	var out []textSym
	var before rune
	for _, r := range text {
		switch {
		case r == '\n' && before == '\r':
		case r == '\n', r == '\r':
			out = append(out, textSym{r: r, any: []keysym{symReturn}})
		case r == '\t':
			out = append(out, textSym{r: r, any: []keysym{symTab}})
		case r == '\b':
			out = append(out, textSym{r: r, any: []keysym{symBackSpace}})
		case r < 0x20, r >= 0x7f && r < 0xa0:
			out = append(out, textSym{bad: "A control character"})
		case r == utf8.RuneError:
			out = append(out, textSym{bad: "What is not UTF-8"})
		default:
			out = append(out, textSym{r: r, any: symsOf(r)})
		}
		before = r
	}
	return out
}
