package display

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

// Of a keyboard's layouts, as a compositor tells them, those keysyms are chosen
// that are on its keys, be they of Unicode or from before.
func TestLayouts(t *testing.T) {
	for symbols, c := range map[string]struct {
		layouts int
		typed   map[string]keysym // the keysym for each character
		not     string
	}{
		"pc+us+inet(evdev)": {1, map[string]keysym{"q": 'q', "Q": 'Q', "~": '~', "\n": symReturn}, "éяя世😀ß€"},
		"pc+fr+inet(evdev)": {1, map[string]keysym{"é": 0xe9, "€": 0x20ac, "ù": 0xf9}, "я世ñ"},
		// What takes Shift and AltGr at once, or a lock, desktops do not press.
		"pc+us(intl)+inet(evdev)": {1, map[string]keysym{"é": 0xe9, "E": 'E', "ß": 0xdf}, "É§"},
		"pc+de+inet(evdev)":       {1, map[string]keysym{"ß": 0xdf, "ü": 0xfc, "€": 0x20ac}, "ẞ¡"},
		"pc+us+ru:2+inet(evdev)":  {2, map[string]keysym{"q": 'q', "я": 0x6d1, "Ё": 0x6b3, " ": ' ', "№": 0x6b0}, "é世"},
	} {
		layouts, err := layoutsOf(compiled(t, symbols))
		if err != nil || len(layouts) != c.layouts {
			t.Fatalf("%s: %d layouts, %v", symbols, len(layouts), err)
		}
		for text, want := range c.typed {
			got, err := fitted(textSyms(text), layouts)
			if err != nil || len(got) != 1 || got[0].any[0] != want {
				t.Errorf("%s: %q is %+v, %v, want %#x", symbols, text, got, err, want)
			}
		}
		for _, r := range c.not {
			if _, err := fitted(textSyms("a"+string(r)), layouts); wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), string(r)) {
				t.Errorf("%s: %q: %v", symbols, r, err)
			}
		}
	}
	if _, err := layoutsOf("no keymap"); err == nil {
		t.Error("what is no keymap was read")
	}
}

// compiled is a keymap in whole, as compositors give it.
func compiled(t *testing.T, symbols string) string {
	t.Helper()
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	text := "xkb_keymap { xkb_keycodes { include \"evdev+aliases(qwerty)\" }; xkb_types { include \"complete\" }; xkb_compat { include \"complete\" }; xkb_symbols { include \"" + symbols + "\" }; };"
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("xkbcomp", "-xkb", in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
