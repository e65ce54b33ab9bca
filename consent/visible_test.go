package consent_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"localpc/consent"
)

// openclaw/openclaw#43687, NousResearch/hermes-agent#81403: what can't be seen
// is shown as an escape.
func TestVisible(t *testing.T) {
	cases := []struct {
		in, want string
		lines    bool
	}{
		{"npm test", "npm test", false},
		{"Größe 世界 😀 naïve", "Größe 世界 😀 naïve", false},
		{"a\nb\tc\rd", `a\nb\tc\rd`, false},
		{"a\nb\tc\rd", "a\nb\tc\\rd", true},
		{"\x1b[31mred\x07", `\x1b[31mred\x07`, true},
		{"\u009b31m", `\u009b31m`, false},
		{"photo\u202egpj.exe", `photo\u202egpj.exe`, false},
		{"\u2066a\u2069", `\u2066a\u2069`, false},
		{"a\u200bb\ufeff", `a\u200bb\ufeff`, false},
		{"a\u00a0b\u3000c", `a\u00a0b\u3000c`, false},
		{"a\u2028b", `a\u2028b`, true},
		{"\U000e0041tag", `\U000e0041tag`, false},
		{"\ufe0f", `\ufe0f`, false},
		{"\u3164\u115f", `\u3164\u115f`, false},
		{"\ue000\U0010ffff", `\ue000\U0010ffff`, false},
		{"\xff\xfe", `\xff\xfe`, false},
		{"\xed\xa0\x80", `\xed\xa0\x80`, false}, // a surrogate
		{"\x00\x7f", `\x00\x7f`, false},
		{"\u0378", `\u0378`, false}, // unassigned
	}
	for _, c := range cases {
		if got := consent.Visible(c.in, c.lines); got != c.want {
			t.Errorf("Visible(%q, %v) = %q, want %q", c.in, c.lines, got, c.want)
		}
	}
	long := strings.Repeat("名", 300)
	if got := consent.Visible(long, false); got != long {
		t.Error("a long name is not what it was")
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "ls -la", "a\nb", "\x1b]0;title\x07", "\u202e\u2066\u200f", "\xff\xc0\x80", "e\u0301", "\u3164", "👨‍👩‍👧", "\u2800", "\ufeff"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, lines bool) {
		got := consent.Visible(s, lines)
		if !utf8.ValidString(got) {
			t.Fatalf("%q gives %q, which is not UTF-8", s, got)
		}
		for _, r := range got {
			if lines && (r == '\n' || r == '\t') || r == ' ' {
				continue
			}
			if !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Z, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
				t.Fatalf("%q gives %q, where %U can't be seen", s, got, r)
			}
		}
		// Who neutralises twice does no harm.
		if again := consent.Visible(got, lines); again != got {
			t.Fatalf("%q, again %q", got, again)
		}
		// What can be seen stays: nothing disappears.
		if utf8.RuneCountInString(got) < utf8.RuneCountInString(s) {
			t.Fatalf("%q became shorter: %q", s, got)
		}
	})
}
