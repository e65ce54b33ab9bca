package robot

// names are robotgo's names of the keys with these X keysyms. It takes a name
// that it does not know for some key or other, so nothing else is let through.
var names = map[uint32]string{
	0xff08: "backspace", 0xff09: "tab", 0xff0d: "enter", 0xff1b: "esc", 0xffff: "delete", 0xff63: "insert",
	0xff50: "home", 0xff51: "left", 0xff52: "up", 0xff53: "right", 0xff54: "down", 0xff55: "pageup", 0xff56: "pagedown", 0xff57: "end",
	0xffe1: "lshift", 0xffe2: "rshift", 0xffe3: "lctrl", 0xffe4: "rctrl", 0xffe9: "lalt", 0xffea: "ralt", 0xffeb: "lcmd", 0xffec: "rcmd",
	0xffe5: "capslock", 0xff61: "printscreen", 0xff67: "menu", ' ': "space", 0xff8d: "num_enter",
}

// Name is robotgo's name of the key with an X keysym; plain characters of a US
// keyboard are their own names.
func Name(sym uint32) (string, bool) {
	if name, ok := names[sym]; ok {
		return name, true
	}
	switch {
	case sym >= 0xffbe && sym < 0xffbe+24: // F1 to F24
		n := int(sym-0xffbe) + 1
		if n < 10 {
			return "f" + string(rune('0'+n)), true
		}
		return "f" + string(rune('0'+n/10)) + string(rune('0'+n%10)), true
	case sym > ' ' && sym < 0x7f:
		return string(rune(sym)), true
	}
	return "", false
}
