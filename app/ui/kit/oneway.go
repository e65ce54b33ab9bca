package kit

import "unicode"

// rightToLeft are the scripts that are written from right to left.
var rightToLeft = []*unicode.RangeTable{unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic, unicode.Adlam}

// oneWay cuts a line into stretches that are written one way each, for the
// toolkit draws a space between two ways at the wrong end. What stands between
// words of one way goes with them.
func oneWay(s string) []string {
	var out []string
	start, end, back, any := 0, 0, false, false // the stretch, its last letter's end, its way
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
			continue
		}
		rtl := unicode.In(r, rightToLeft...) || back && unicode.Is(unicode.Mn, r)
		if rtl != back {
			cut := end // spaces go to what is written from left to right
			if rtl {
				cut = i
			}
			if cut > start {
				out = append(out, s[start:cut])
			}
			start, back, any = cut, rtl, true
		}
		end = i + len(string(r))
	}
	if !any {
		return []string{s}
	}
	if back && end < len(s) {
		return append(out, s[start:end], s[end:])
	}
	return append(out, s[start:])
}
