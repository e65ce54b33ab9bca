package display

// keysym is the number of a symbol on a key, as X11 counts them; other systems
// translate it to their own.
type keysym = uint32

// The keysyms that are named in code.
const (
	symBackSpace keysym = 0xff08
	symTab       keysym = 0xff09
	symReturn    keysym = 0xff0d
	symShift     keysym = 0xffe1
	symControl   keysym = 0xffe3
	symAlt       keysym = 0xffe9
	symSuper     keysym = 0xffeb
	symLevel3    keysym = 0xfe03

	// unicodeSym plus a character is its keysym, where it has none of its own.
	unicodeSym keysym = 0x01000000
)

// symsOf are the keysyms that a layout may have for r, the one that every
// program understands first.
func symsOf(r rune) []keysym {
	switch {
	case r >= 0x20 && r < 0x7f, r >= 0xa0 && r < 0x100:
		return []keysym{keysym(r), unicodeSym + keysym(r)}
	}
	if s, ok := elders[r]; ok {
		return []keysym{unicodeSym + keysym(r), s}
	}
	return []keysym{unicodeSym + keysym(r)}
}

// elders are the keysyms of characters from before Unicode, which layouts
// still use.
var elders = func() map[rune]keysym {
	m := map[rune]keysym{}
	for _, run := range elderRuns {
		sym := run.first
		for _, r := range run.runes {
			if _, ok := m[r]; !ok {
				m[r] = sym
			}
			sym++
		}
	}
	return m
}()

// elderRuns has them as the X protocol lists them (appendix A, KEYSYM Encoding):
// runs of characters whose keysyms follow one another.
var elderRuns = []struct {
	first keysym
	runes string
}{
	{0x1a1, "Ą˘Ł"}, {0x1a5, "ĽŚ"}, {0x1a9, "ŠŞŤŹ"}, {0x1ae, "ŽŻ"}, {0x1b1, "ą˛ł"}, {0x1b5, "ľśˇ"}, {0x1b9, "šşťź˝žżŔ"}, {0x1c3, "Ă"},
	{0x1c5, "ĹĆ"}, {0x1c8, "Č"}, {0x1ca, "Ę"}, {0x1cc, "Ě"}, {0x1cf, "ĎĐŃŇ"}, {0x1d5, "Ő"}, {0x1d8, "ŘŮ"}, {0x1db, "Ű"}, {0x1de, "Ţ"},
	{0x1e0, "ŕ"}, {0x1e3, "ă"}, {0x1e5, "ĺć"}, {0x1e8, "č"}, {0x1ea, "ę"}, {0x1ec, "ě"}, {0x1ef, "ďđńň"}, {0x1f5, "ő"}, {0x1f8, "řů"},
	{0x1fb, "ű"}, {0x1fe, "ţ˙"}, {0x2a1, "Ħ"}, {0x2a6, "Ĥ"}, {0x2a9, "İ"}, {0x2ab, "ĞĴ"}, {0x2b1, "ħ"}, {0x2b6, "ĥ"}, {0x2b9, "ı"},
	{0x2bb, "ğĵ"}, {0x2c5, "ĊĈ"}, {0x2d5, "Ġ"}, {0x2d8, "Ĝ"}, {0x2dd, "ŬŜ"}, {0x2e5, "ċĉ"}, {0x2f5, "ġ"}, {0x2f8, "ĝ"}, {0x2fd, "ŭŝ"},
	{0x3a2, "ĸŖ"}, {0x3a5, "ĨĻ"}, {0x3aa, "ĒĢŦ"}, {0x3b3, "ŗ"}, {0x3b5, "ĩļ"}, {0x3ba, "ēģŧŊ"}, {0x3bf, "ŋĀ"}, {0x3c7, "Į"},
	{0x3cc, "Ė"}, {0x3cf, "Ī"}, {0x3d1, "ŅŌĶ"}, {0x3d9, "Ų"}, {0x3dd, "ŨŪ"}, {0x3e0, "ā"}, {0x3e7, "į"}, {0x3ec, "ė"}, {0x3ef, "ī"},
	{0x3f1, "ņōķ"}, {0x3f9, "ų"}, {0x3fd, "ũū"}, {0x47e, "‾"},
	{0x4a1, "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"}, {0x5ac, "،"}, {0x5bb, "؛"}, {0x5bf, "؟"},
	{0x5c1, "ءآأؤإئابةتثجحخدذرزسشصضطظعغ"}, {0x5e0, "ـفقكلمنهوىي\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"},
	{0x6a1, "ђѓёєѕіїјљњћќґўџ№ЂЃЁЄЅІЇЈЉЊЋЌҐЎЏюабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"}, {0x7a1, "ΆΈΉΊΪ"},
	{0x7a7, "ΌΎΫ"}, {0x7ab, "Ώ"}, {0x7ae, "΅―"}, {0x7b1, "άέήίϊΐόύϋΰώ"}, {0x7c1, "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣ"}, {0x7d4, "ΤΥΦΧΨΩ"},
	{0x7e1, "αβγδεζηθικλμνξοπρσςτυφχψω"}, {0x8a1, "⎷"}, {0x8a4, "⌠⌡"}, {0x8a7, "⎡⎣⎤⎦⎛⎝⎞⎠⎨⎬"}, {0x8bc, "≤≠≥∫∴∝∞"}, {0x8c5, "∇"},
	{0x8c8, "∼≃"}, {0x8cd, "⇔⇒≡"}, {0x8d6, "√"}, {0x8da, "⊂⊃∩∪∧∨"}, {0x8ef, "∂"}, {0x8f6, "ƒ"}, {0x8fb, "←↑→↓"},
	{0xaa1, "\u2003\u2002\u2004\u2005\u2007\u2008\u2009\u200a—–"}, {0xaae, "…‥⅓⅔⅕⅖⅗⅘⅙⅚℅"}, {0xabb, "‒"}, {0xac3, "⅛⅜⅝⅞"}, {0xac9, "™"},
	{0xad0, "‘’“”℞‰′″"}, {0xad9, "✝"}, {0xaec, "♣♦♥"}, {0xaf0, "✠†‡✓✗♯♭♂♀☎⌕℗‸‚„"}, {0xcdf, "‗אבגדהוזחטיךכלםמןנסעףפץצקרשת"},
	{0xda1, "กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะ\u0e31\u0e32\u0e33\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39\u0e3a"},
	{0xddf, "\u0e3f\u0e40\u0e41\u0e42\u0e43\u0e44\u0e45\u0e46\u0e47\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0e4d"}, {0xdf0, "๐๑๒๓๔๕๖๗๘๙"},
	{0xea1, "ㄱㄲㄳㄴㄵㄶㄷㄸㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅃㅄㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ\u11a8\u11a9\u11aa\u11ab\u11ac\u11ad\u11ae\u11af\u11b0\u11b1\u11b2\u11b3\u11b4\u11b5\u11b6\u11b7\u11b8\u11b9\u11ba\u11bb\u11bc\u11bd\u11be\u11bf\u11c0\u11c1\u11c2ㅭㅱㅸㅿㆁㆄㆆㆍㆎ\u11eb\u11f0\u11f9"},
	{0x13bc, "ŒœŸ"}, {0x20ac, "€"},
}
