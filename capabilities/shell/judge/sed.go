package judge

import (
	"strings"
)

// sed judges the commands of a sed script, which can write files and run
// programs.
func sed(c *call, o *opts) {
	var scripts []string
	rest := o.rest
	fromOptions := false
	for _, x := range o.list {
		switch x.name {
		case "e", "expression":
			fromOptions = true
			if x.val.sureness != sure {
				c.unknown("the commands that sed gets: " + loosely(x.val) + " decides them")
				continue
			}
			scripts = append(scripts, x.val.text)
		case "f", "file":
			fromOptions = true
			c.sedFile(x.val, &scripts)
		}
	}
	if !fromOptions {
		if len(rest) == 0 {
			return
		}
		if rest[0].sureness != sure {
			c.unknown("the commands that sed gets: " + loosely(rest[0]) + " decides them")
		} else {
			scripts = append(scripts, rest[0].text)
		}
		rest = rest[1:]
	}
	if !o.has("sandbox") {
		c.sedScript(strings.Join(scripts, "\n"))
	}
	if in, ok := o.get("i", "in-place"); ok {
		if f, words, ok := c.chosen(rest); ok {
			o.settled = true
			if ps, ok := c.names(opWhat(Edit), f.roots...); ok {
				c.act(Act{Op: Edit, Paths: ps, Find: f.copy()})
			}
			rest = words
		}
		c.on(Edit, rest...)
		if in.text != "" {
			c.unknown("it keeps what was there under other names")
		}
		return
	}
	c.reads(rest...)
}

func (c *call) sedFile(f word, scripts *[]string) {
	ps, why := c.w.paths(c.st, f)
	if why == "" && len(ps) == 1 && f.sureness == sure {
		if src, ok := c.w.readFile(ps[0].Name); ok {
			*scripts = append(*scripts, src)
			return
		}
	}
	c.unknown("the file with the commands for sed could not be read beforehand")
}

// sedScript walks the commands of a script.
func (c *call) sedScript(s string) {
	bad := func() { c.unknown("the commands that sed gets could not be read") }
	i := 0
	skip := func(set string) {
		for i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
			i++
		}
	}
	line := func() string {
		n := strings.IndexByte(s[i:], '\n')
		if n < 0 {
			n = len(s) - i
		}
		t := s[i : i+n]
		i += n
		return t
	}
	// until reads up to an unescaped delimiter.
	until := func(d byte) bool {
		for i < len(s) {
			switch s[i] {
			case '\\':
				i++
			case d:
				i++
				return true
			}
			i++
		}
		return false
	}
	address := func() bool {
		switch {
		case i >= len(s):
			return true
		case s[i] >= '0' && s[i] <= '9' || s[i] == '$':
			skip("0123456789$")
			if i < len(s) && s[i] == '~' {
				i++
				skip("0123456789")
			}
		case s[i] == '/':
			i++
			if !until('/') {
				return false
			}
			skip("IM")
		case s[i] == '\\':
			if i+2 >= len(s) {
				return false
			}
			d := s[i+1]
			if i += 2; d == '\n' || d == '\\' || !until(d) {
				return false
			}
			skip("IM")
		case s[i] == '+' || s[i] == '~':
			i++
			skip("0123456789")
		}
		return true
	}
	for i < len(s) {
		skip(" \t\n;}")
		if i >= len(s) {
			return
		}
		if s[i] == '#' {
			line()
			continue
		}
		if s[i] == '+' || s[i] == '~' || !address() {
			bad()
			return
		}
		skip(" \t")
		if i < len(s) && s[i] == ',' {
			i++
			skip(" \t")
			if !address() {
				bad()
				return
			}
		}
		skip(" \t!")
		if i >= len(s) {
			return
		}
		cmd := s[i]
		i++
		switch cmd {
		case '{', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'F', 'z':
		case 'q', 'Q', 'l', 'L':
			skip(" \t0123456789")
		case ':', 'b', 't', 'T':
			skip(" \t")
			for i < len(s) && strings.IndexByte(" \t\n;}", s[i]) < 0 {
				i++
			}
		case 'a', 'i', 'c':
			for {
				t := line()
				i = min(i+1, len(s))
				if (len(t)-len(strings.TrimRight(t, `\`)))%2 == 0 || i >= len(s) {
					break
				}
			}
		case 'r', 'R':
			skip(" \t")
			c.reads(lit(line()))
		case 'w', 'W':
			skip(" \t")
			c.sedWrite(line())
		case 'e':
			skip(" \t")
			if t := line(); t == "" {
				c.unknown("sed runs what it reads as commands")
			} else {
				c.joinedPart(lit(t))
				c.unknown("sed runs a command")
			}
		case 's', 'y':
			if i >= len(s) {
				bad()
				return
			}
			d := s[i]
			if i++; d == '\n' || d == '\\' || !until(d) || !until(d) {
				bad()
				return
			}
			if cmd == 'y' {
				continue
			}
		flags:
			for i < len(s) {
				switch f := s[i]; {
				case strings.IndexByte("gpiImM0123456789", f) >= 0:
					i++
				case f == 'e':
					i++
					c.unknown("sed runs what it reads as commands")
				case f == 'w':
					i++
					skip(" \t")
					c.sedWrite(line())
					break flags
				default:
					break flags
				}
			}
		default:
			bad()
			return
		}
		// What stands right behind a command has to be its end.
		skip(" \t")
		if i < len(s) && cmd != '{' && strings.IndexByte("\n;}#", s[i]) < 0 && !(strings.IndexByte("aicrRwWe", cmd) >= 0) {
			bad()
			return
		}
	}
}

func (c *call) sedWrite(name string) {
	if name == "/dev/stdout" || name == "/dev/stderr" {
		return
	}
	c.on(Write, lit(name))
}
