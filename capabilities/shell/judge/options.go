package judge

import (
	"path"
	"slices"
	"strings"
)

// program is how one program reads its arguments and what it does with them.
// The grammar is strict: an option that is not in it makes the call Unknown.
type program struct {
	says  string // plain words, with % for the names it reads
	short string // as for getopt: a letter, with : for a value, ? for an attached one
	long  string // names; = for a value, ? for an attached one
	is    manner
	do    func(c *call, o *opts)
}

// manner is what is unusual about a program's arguments.
type manner int

const (
	free   manner = 1 << iota // no argument can do harm: the grammar only tells names from options
	stops                     // options end at the first operand
	digits                    // -5 is an option
	plus                      // +5 is an option
	mild                      // a file name that is taken for an option does no harm worth asking about
	data                      // the operands are no files
	exact                     // long options can't be shortened
	apart                     // a letter's value is never attached to it
	alone                     // says is for when it changes nothing
	inner                     // runs what stands after it: a loose word there is judged there
)

type opt struct {
	name string // "o", "output"
	val  word
	has  bool
}

// opts are a program's arguments, read by its grammar.
type opts struct {
	list    []opt
	rest    []word
	bad     string // an option that is not known
	loose   string // a word that may be an option, or several words
	settled bool   // what is loose was understood
}

func (o *opts) has(names ...string) bool {
	return slices.ContainsFunc(o.list, func(x opt) bool { return slices.Contains(names, x.name) })
}

// get is the last value of an option.
func (o *opts) get(names ...string) (word, bool) {
	for _, x := range slices.Backward(o.list) {
		if slices.Contains(names, x.name) {
			return x.val, true
		}
	}
	return word{}, false
}

func (o *opts) each(names ...string) []word {
	var out []word
	for _, x := range o.list {
		if slices.Contains(names, x.name) {
			out = append(out, x.val)
		}
	}
	return out
}

const (
	valueNone = iota
	valueNeeded
	valueAttached
)

// shortValue tells how a letter takes its value; ok is false for one that is
// not known.
func (p *program) shortValue(c byte) (int, bool) {
	i := strings.IndexByte(p.short, c)
	if i < 0 || c == ':' || c == '?' {
		return 0, false
	}
	if i+1 < len(p.short) {
		switch p.short[i+1] {
		case ':':
			return valueNeeded, true
		case '?':
			return valueAttached, true
		}
	}
	return valueNone, true
}

// longName finds a long option, by its beginning too.
func (p *program) longName(s string) (name string, kind int, ok bool) {
	for f := range strings.FieldsSeq(p.long + " help version") {
		n, k := f, valueNone
		if strings.HasSuffix(f, "=") {
			n, k = f[:len(f)-1], valueNeeded
		} else if strings.HasSuffix(f, "?") {
			n, k = f[:len(f)-1], valueAttached
		}
		if n == s {
			return n, k, true
		}
		if p.is&exact == 0 && strings.HasPrefix(n, s) && s != "" {
			if ok {
				return "", 0, false // or one that is not in the list
			}
			name, kind = n, k
			ok = true
		}
	}
	return name, kind, ok
}

// options reads args by the grammar of p.
func (c *call) options(p *program, args []word) *opts {
	o := &opts{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.sureness != sure {
			if a.mayBeOption() || a.fromPattern() && !c.dashless(p, a) {
				o.loose = "which options it gets depends on " + loosely(a)
			}
			if p.is&stops != 0 {
				o.rest = append(o.rest, args[i:]...)
				break
			}
			o.rest = append(o.rest, a)
			continue
		}
		s := a.text
		switch {
		case s == "--":
			o.rest = append(o.rest, args[i+1:]...)
			if c.many(args[i+1:]) && p.is&inner == 0 {
				o.loose = "how many names it gets is only known when it runs"
			}
			return o
		case p.is&plus != 0 && len(s) > 1 && s[0] == '+':
			o.list = append(o.list, opt{name: "+", val: lit(s[1:])})
			continue
		case len(s) < 2 || s[0] != '-':
			if p.is&stops != 0 {
				o.rest = append(o.rest, args[i:]...)
				return o
			}
			o.rest = append(o.rest, a)
			continue
		case strings.HasPrefix(s, "--"):
			n, v, eq := strings.Cut(s[2:], "=")
			name, kind, ok := p.longName(n)
			if !ok || eq && kind == valueNone {
				o.bad = "--" + n
				continue
			}
			x := opt{name: name, val: lit(v), has: eq}
			if kind == valueNeeded && !eq {
				if i++; i == len(args) {
					o.bad = s + " without a value"
					break
				}
				x.val, x.has = args[i], true
				if args[i].many {
					o.loose = "which options it gets depends on " + loosely(args[i])
				}
			}
			o.list = append(o.list, x)
			continue
		}
		if p.is&digits != 0 && isDigits(s[1:]) {
			o.list = append(o.list, opt{name: "0", val: lit(s[1:])})
			continue
		}
		i += c.letters(p, o, s, args[i+1:])
	}
	return o
}

// letters reads -abc, and returns how many words after it are its values.
func (c *call) letters(p *program, o *opts, s string, after []word) int {
	for k := 1; k < len(s); k++ {
		kind, ok := p.shortValue(s[k])
		x := opt{name: s[k : k+1]}
		switch {
		case !ok:
			o.bad = "-" + s[k:k+1]
			if s[k] >= 0x80 {
				o.bad = s
			}
			return 0
		case kind == valueNone:
			o.list = append(o.list, x)
			continue
		case p.is&apart != 0 && k+1 < len(s):
			o.bad = s
			return 0
		case kind == valueAttached || k+1 < len(s):
			x.val, x.has = lit(s[k+1:]), k+1 < len(s)
			o.list = append(o.list, x)
			return 0
		case len(after) == 0:
			o.bad = "-" + s[k:k+1] + " without a value"
			return 0
		}
		x.val, x.has = after[0], true
		if after[0].many {
			o.loose = "which options it gets depends on " + loosely(after[0])
		}
		o.list = append(o.list, x)
		return 1
	}
	return 0
}

func loosely(w word) string {
	if w.sureness == pattern {
		return "the names that " + w.text + " fits"
	}
	return w.why
}

func (c *call) many(ws []word) bool {
	return slices.ContainsFunc(ws, func(w word) bool { return w.many })
}

// dashless tells whether no name that fits the pattern is an option.
func (c *call) dashless(p *program, w word) bool {
	if p.is&free != 0 {
		return true
	}
	if c.w.cmd.List == nil || len(c.st.cwd) == 0 {
		return p.is&mild != 0 && c.w.cmd.List == nil
	}
	head, _, _ := strings.Cut(w.text, "/")
	for _, d := range c.st.cwd {
		names, ok := c.w.cmd.List(d)
		if !ok {
			return p.is&mild != 0
		}
		for _, n := range names {
			if !strings.HasPrefix(n, "-") {
				continue
			}
			if fits, err := path.Match(head, n); err != nil || fits {
				return false
			}
		}
	}
	return true
}
