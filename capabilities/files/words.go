package files

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"localpc/consent"
)

// count is "3 files", with "more than" where it was not counted to the end.
func count(n int, one, many string, more bool) string {
	s := strconv.Itoa(n) + " " + many
	if n == 1 && !more {
		s = "1 " + one
	}
	if more {
		return "more than " + s
	}
	return s
}

// maxShort is how long a path may be in a sentence, in letters.
const maxShort = 60

// short is a path for a title: the end of it when it is long.
func short(p string) string {
	p = consent.Visible(p, false)
	if n := utf8.RuneCountInString(p); n > maxShort {
		r := []rune(p)
		return "…" + string(r[n-maxShort+1:])
	}
	return p
}

// named is a place in a sentence.
func named(p place) string {
	if p.isRoot() && !p.base.tmp {
		return "the folder"
	}
	return short(p.key())
}

// exact is the text of a card for a name: as it was asked for, and where it
// leads when that is somewhere else. A line break in a name is written as an
// escape, so that no name looks like more of the card.
func exact(a asked, p place) string {
	if strings.TrimSuffix(a.reply(p), "/") == a.in(p.base, p.rel) {
		return shown(a.text)
	}
	return fmt.Sprintf("%s\nwhich leads to %s", shown(a.text), shown(a.in(p.base, p.rel)))
}

// moveRule is what a rule for a move is about. A name that could be taken for
// the two names of another move is quoted.
func moveRule(src, dst place) string {
	key := func(p place) string {
		if k := p.key(); strings.ContainsAny(k, `→"`) {
			return strconv.Quote(k)
		}
		return p.key()
	}
	return key(src) + " → " + key(dst)
}

// head is the beginning of an upload where it is text, for the card.
func head(b []byte, whole int64) string {
	if len(b) == 0 {
		return "(empty)"
	}
	text := b
	for cut := 0; cut < utf8.UTFMax && !utf8.Valid(text) && int64(len(b)) < whole; cut++ {
		// The end of what was kept may stand in the middle of a letter.
		text = text[:len(text)-1]
	}
	if !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
		return "(" + consent.Bytes(whole) + " that are not text)"
	}
	if int64(len(text)) < whole {
		return string(text) + "\n… " + consent.Bytes(whole) + " in all"
	}
	return string(text)
}
