package judge

import (
	"path"
	"strings"
)

// sureness is how much of a word is known before it runs.
type sureness int

const (
	sure    sureness = iota // the text is the word
	pattern                 // the text is a pattern of path.Match for names of files
	number                  // some number
	unsure                  // the text is how it begins
)

// word is one word of a command after expansion.
type word struct {
	text string
	sureness
	many bool   // unsure: none, one or several words
	why  string // unsure: what decides it, "$X"
}

func lit(s string) word { return word{text: s} }

func unknown(why string) word { return word{sureness: unsure, why: why} }

// newTemp tells whether a word is in what mktemp -d has just made: the name is
// not known, but nothing has it.
func newTemp(w word) bool {
	return w.sureness == pattern && (w.text == "/tmp/tmp.*" || strings.HasPrefix(w.text, "/tmp/tmp.*/") && !hasMeta(w.text[len("/tmp/tmp.*"):]))
}

func (w word) is(s string) bool { return w.sureness == sure && w.text == s }

// mayBeOption tells whether the word may begin with a dash. A pattern is left
// to dashes.
func (w word) mayBeOption() bool {
	switch w.sureness {
	case sure:
		return len(w.text) > 1 && w.text[0] == '-'
	case number:
		return false
	case pattern:
		return false
	}
	return w.many || w.text == "" || w.text[0] == '-'
}

// fromPattern tells whether the word is a pattern that a name with a dash at
// its beginning may fit.
func (w word) fromPattern() bool {
	return w.sureness == pattern && strings.IndexByte(`*?[-\`, w.text[0]) >= 0
}

func texts(ws []word) ([]string, bool) {
	out := make([]string, len(ws))
	for i, w := range ws {
		if w.sureness != sure {
			return nil, false
		}
		out[i] = w.text
	}
	return out, true
}

// known gives the words up to the first that is not sure.
func known(ws []word) []string {
	var out []string
	for _, w := range ws {
		if w.sureness != sure && w.sureness != pattern {
			break
		}
		out = append(out, w.text)
	}
	return out
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	// A zero before it means another base, and 08 is an error.
	return isDigits(s) && len(s) < 18
}

const metas = `*?[\`

func hasMeta(s string) bool { return strings.ContainsAny(s, metas) }

// escape makes a pattern that only s fits.
func escape(s string) string {
	if !hasMeta(s) && !strings.Contains(s, "]") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(metas+"]", s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// shellMatch is a pattern of a shell, where * crosses slashes.
func shellMatch(pattern, s string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(s, "/", "\x01"))
	return err == nil && ok
}

// trim is ${x#p}, ##, % and %% of a value.
func trim(v word, pat word, suffix, large bool) word {
	if pat.sureness == sure {
		pat = word{text: escape(pat.text), sureness: pattern}
	}
	if pat.sureness != pattern {
		return unknown("a part of a name")
	}
	switch v.sureness {
	case sure:
		for i := 0; i <= len(v.text); i++ {
			n := i
			if large {
				n = len(v.text) - i
			}
			if suffix && shellMatch(pat.text, v.text[len(v.text)-n:]) {
				return lit(v.text[:len(v.text)-n])
			}
			if !suffix && shellMatch(pat.text, v.text[:n]) {
				return lit(v.text[n:])
			}
		}
		return v
	case pattern:
		// *.txt without its .txt: where the end of the pattern is plain.
		if !suffix || large {
			break
		}
		plain := len(v.text)
		for plain > 0 && strings.IndexByte(metas+"]", v.text[plain-1]) < 0 {
			plain--
		}
		for n := 0; n <= len(v.text)-plain; n++ {
			if shellMatch(pat.text, v.text[len(v.text)-n:]) {
				return word{text: v.text[:len(v.text)-n], sureness: pattern}
			}
		}
	}
	return unknown("a part of a name")
}
