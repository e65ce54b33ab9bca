package display

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"localpc/tunnel/wire"
)

// named are the names of keys, in small letters: those of wire 1.1, what people
// write, and what xdotool calls them.
var named = map[string]keysym{
	"enter": symReturn, "return": symReturn, "esc": 0xff1b, "escape": 0xff1b, "space": 0x20, "tab": symTab,
	"backspace": symBackSpace, "back_space": symBackSpace, "delete": 0xffff, "del": 0xffff, "insert": 0xff63, "ins": 0xff63,
	"up": 0xff52, "down": 0xff54, "left": 0xff51, "right": 0xff53, "home": 0xff50, "end": 0xff57,
	"arrowup": 0xff52, "arrowdown": 0xff54, "arrowleft": 0xff51, "arrowright": 0xff53,
	"pageup": 0xff55, "page_up": 0xff55, "prior": 0xff55, "pgup": 0xff55,
	"pagedown": 0xff56, "page_down": 0xff56, "next": 0xff56, "pgdn": 0xff56,
	"shift": symShift, "ctrl": symControl, "control": symControl, "alt": symAlt, "option": symAlt,
	"super": symSuper, "meta": symSuper, "win": symSuper, "windows": symSuper, "cmd": symSuper, "command": symSuper,
	"altgr": symLevel3, "capslock": 0xffe5, "caps_lock": 0xffe5, "numlock": 0xff7f, "num_lock": 0xff7f, "scrolllock": 0xff14, "scroll_lock": 0xff14,
	"print": 0xff61, "printscreen": 0xff61, "print_screen": 0xff61, "pause": 0xff13, "break": 0xff6b, "menu": 0xff67,
	"plus": '+', "minus": '-', "equal": '=', "comma": ',', "period": '.', "slash": '/', "backslash": '\\', "semicolon": ';',
	"apostrophe": '\'', "grave": '`', "bracketleft": '[', "bracketright": ']', "underscore": '_', "asterisk": '*', "colon": ':',
	"shift_l": symShift, "shift_r": 0xffe2, "control_l": symControl, "control_r": 0xffe4, "alt_l": symAlt, "alt_r": 0xffea,
	"meta_l": 0xffe7, "meta_r": 0xffe8, "super_l": symSuper, "super_r": 0xffec, "hyper_l": 0xffed, "iso_level3_shift": symLevel3, "iso_left_tab": 0xfe20,
	"kp_enter": 0xff8d, "kp_add": 0xffab, "kp_subtract": 0xffad, "kp_multiply": 0xffaa, "kp_divide": 0xffaf, "kp_decimal": 0xffae,
}

func init() {
	for n := range 24 {
		named["f"+itoa(n+1)] = 0xffbe + keysym(n)
	}
	for n := range 10 {
		named["kp_"+itoa(n)] = 0xffb0 + keysym(n)
	}
}

// modifiers are what a click, a drag or scrolling may be done with.
var modifiers = map[string]keysym{"shift": symShift, "ctrl": symControl, "control": symControl, "alt": symAlt, "super": symSuper,
	"meta": symSuper, "win": symSuper, "cmd": symSuper}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// maxChord is the most keys in one chord.
const maxChord = 8

// parseChord takes "ctrl+shift+t" apart: the keysyms in the order in which they
// are pressed. Names are taken in any case; a single character is that
// character ("A" is shift and a). more knows further names, exactly as the
// system spells them; nil for none.
func parseChord(chord string, more func(string) keysym) ([]keysym, error) {
	var out []keysym
	for _, name := range splitChord(chord) {
		sym, ok := keyNamed(name, more)
		if !ok {
			if name == "" {
				return nil, wire.Errorf(wire.CodeInvalid, "%q is not a key, or keys joined by +.", chord)
			}
			return nil, wire.Errorf(wire.CodeInvalid, "There is no key named %q. Keys are named as in ctrl+s, Return, Page_Up, F5 or a.", name)
		}
		out = append(out, sym)
	}
	if len(out) > maxChord {
		return nil, wire.Errorf(wire.CodeInvalid, "%d keys at once are too many; %d are the most.", len(out), maxChord)
	}
	return out, nil
}

// splitChord splits at "+", which is a key itself where nothing stands before it
// or after it: "+", "ctrl++".
func splitChord(chord string) []string {
	chord = strings.TrimSpace(chord)
	if chord == "+" {
		return []string{"+"}
	}
	plus := strings.HasSuffix(chord, "++")
	if plus {
		chord = strings.TrimSuffix(chord, "++")
	}
	names := strings.Split(chord, "+")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if plus {
		names = append(names, "+")
	}
	return names
}

func keyNamed(name string, more func(string) keysym) (keysym, bool) {
	if r, size := utf8.DecodeRuneInString(name); size == len(name) && size > 0 && r != utf8.RuneError && unicode.IsGraphic(r) {
		return symsOf(r)[0], true
	}
	if sym, ok := named[strings.ToLower(name)]; ok {
		return sym, true
	}
	if more == nil {
		return 0, false
	}
	// As written, then as names of the system usually are: Some_Name, some.
	lower := strings.ToLower(name)
	parts := strings.Split(lower, "_")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	for _, spelt := range []string{name, lower, strings.Join(parts, "_")} {
		if sym := more(spelt); sym != 0 {
			return sym, true
		}
	}
	return 0, false
}
