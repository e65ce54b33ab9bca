package display

import (
	"strings"
	"testing"
	"unicode/utf8"

	"localpc/tunnel/wire"
)

// A chord that a program names is taken apart or refused; what is taken has keys,
// not too many, and means the same however it is spaced.
func FuzzParseChord(f *testing.F) {
	for _, s := range []string{"ctrl+s", "+", "ctrl++", "ctrl + shift + T", "F24", "a+b+c+d+e+f+g+h+i", "", "++", "+ +", "\xff", "KP_5", "Ж", "ctrl+\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, chord string) {
		syms, err := parseChord(chord, nil)
		if err != nil {
			if wire.CodeOf(err) != wire.CodeInvalid || len(syms) > 0 {
				t.Fatalf("%q is %x, %v", chord, syms, err)
			}
			return
		}
		if len(syms) == 0 || len(syms) > maxChord {
			t.Fatalf("%q is %d keys", chord, len(syms))
		}
		for _, s := range syms {
			if s == 0 {
				t.Fatalf("%q is %x", chord, syms)
			}
		}
		if again, err := parseChord("  "+chord+"\t", nil); err != nil || len(again) != len(syms) {
			t.Fatalf("%q spaced is %x, %v, not %x", chord, again, err, syms)
		}
		if strings.ContainsRune(chord, utf8.RuneError) && !strings.Contains(chord, "\uFFFD") {
			t.Fatalf("%q, which is no text, is %x", chord, syms)
		}
	})
}

// Any text is planned or refused as a whole; each character that is planned comes
// to one key, and a spare key means one thing in one piece only.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{"aA\r\nф@é@", "héllo 世界", "\r\r\n\n", "\t\b", "\x00", "\xff", "👩‍👩‍👧", "éèêëéèêë"} {
		for spare := range 3 {
			f.Add(s, spare)
		}
	}
	f.Fuzz(func(t *testing.T, text string, spare int) {
		codes := []byte{200, 201, 202}
		m := testMap(codes[:max(spare%4, -(spare%4))]...)
		pieces, err := m.plan(text, 0)
		want := 0
		for _, s := range textSyms(text) {
			if s.bad != "" {
				want = -1
				break
			}
			want++
		}
		if err != nil {
			if code := wire.CodeOf(err); pieces != nil || code != wire.CodeInvalid && (code != wire.CodeNotSupported || len(m.spare) > 0) {
				t.Fatalf("%q: %+v, %v", text, pieces, err)
			}
			return
		}
		if want < 0 {
			t.Fatalf("%q, which has what can't be typed, is planned", text)
		}
		n := 0
		for _, p := range pieces {
			n += len(p.strokes)
			if len(p.bind) > len(m.spare) {
				t.Fatalf("%q: a piece binds %d keys of %d", text, len(p.bind), len(m.spare))
			}
			for _, s := range p.strokes {
				if s.code == 0 || !m.reach(s) {
					t.Fatalf("%q: a stroke %+v", text, s)
				}
			}
		}
		if n != want {
			t.Fatalf("%q of %d characters is %d strokes", text, want, n)
		}
		// As the keyboard is given meanings piece by piece, it types the text.
		now, typed := map[byte]keysym{}, 0
		syms := textSyms(text)
		for _, p := range pieces {
			for code, sym := range p.bind {
				now[code] = sym
			}
			for _, s := range p.strokes {
				if s.code >= 200 && now[s.code] != syms[typed].any[0] {
					t.Fatalf("%q: character %d is typed with a key that means %x", text, typed, now[s.code])
				}
				typed++
			}
		}
	})
}
