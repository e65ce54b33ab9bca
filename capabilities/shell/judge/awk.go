package judge

import (
	"slices"
	"strings"
)

// awk judges an awk program, which can write files and run programs.
func awk(c *call, o *opts) {
	rest := o.rest
	var src []string
	for _, v := range o.each("v", "assign", "F", "field-separator") {
		if v.many || v.sureness == pattern {
			c.unknown("the words that awk gets: " + loosely(v) + " decides them")
		}
	}
	fromFile := false
	for _, f := range o.each("f", "file") {
		fromFile = true
		c.sedFileFor(f, &src)
	}
	if !fromFile {
		if len(rest) == 0 {
			return
		}
		if rest[0].sureness != sure {
			c.unknown("the program that awk gets: " + loosely(rest[0]) + " decides it")
			return
		}
		src, rest = []string{rest[0].text}, rest[1:]
	}
	for _, s := range src {
		c.awkProgram(s)
	}
	for _, w := range rest {
		if w.sureness == sure && strings.Contains(w.text, "=") {
			continue // a variable
		}
		c.reads(w)
	}
	c.act(Act{Op: Read})
}

func (c *call) sedFileFor(f word, src *[]string) {
	ps, why := c.w.paths(c.st, f)
	if why == "" && len(ps) == 1 && f.sureness == sure {
		if s, ok := c.w.readFile(ps[0].Name); ok {
			*src = append(*src, s)
			return
		}
	}
	c.unknown("the file with the program for " + c.name + " could not be read beforehand")
}

// token is a bit of an awk program: kind 'w' a word or number, 's' a text,
// 'r' a pattern, 'n' a line's end, else the sign itself.
type token struct {
	kind byte
	text string
}

// awkTokens reads an awk program; false where that is not sure.
func awkTokens(s string) (ts []token, ok bool) {
	operand := false // the last token ends a value: a slash divides
	var heads []bool // for each open parenthesis: it is that of if, while or for
	for i := 0; i < len(s); {
		ch := s[i]
		switch {
		case ch == ' ' || ch == '\t':
			i++
			continue
		case ch == '\\' && i+1 < len(s) && s[i+1] == '\n':
			i += 2
			continue
		case ch == '#':
			for i < len(s) && s[i] != '\n' {
				i++
			}
			continue
		case ch == '\n':
			ts = append(ts, token{kind: 'n'})
			operand = false
			i++
		case ch == '"':
			n := i + 1
			for n < len(s) && s[n] != '"' {
				if s[n] == '\\' {
					n++
				}
				if n < len(s) && s[n] == '\n' {
					return nil, false
				}
				n++
			}
			if n >= len(s) {
				return nil, false
			}
			ts = append(ts, token{'s', s[i+1 : n]})
			operand = true
			i = n + 1
		case ch == '/' && !operand:
			n := i + 1
			for n < len(s) && s[n] != '/' {
				switch s[n] {
				case '\\':
					n++
				case '\n':
					return nil, false
				case '[':
					// How a slash in brackets counts differs between awks.
					end := strings.IndexByte(s[min(n+2, len(s)):], ']')
					if end < 0 || strings.ContainsAny(s[n:n+2+end], "/\\\n") {
						return nil, false
					}
				}
				n++
			}
			if n >= len(s) || len(ts) > 0 && ts[len(ts)-1].text == "getline" {
				return nil, false
			}
			ts = append(ts, token{'r', s[i:n]})
			operand = true
			i = n + 1
		case ch == '_' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '.':
			n := i
			for n < len(s) && (s[n] == '_' || s[n] == '.' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= '0' && s[n] <= '9') {
				n++
			}
			t := s[i:n]
			ts = append(ts, token{'w', t})
			switch t {
			case "in", "print", "printf", "return", "getline", "delete", "exit", "else", "do", "case", "BEGIN", "END", "and", "or":
				operand = false
			default:
				operand = true
			}
			i = n
		case strings.IndexByte("{}()[];,+-*/%^!<>=~?:&|$@'`\\", ch) >= 0:
			two := ""
			if i+1 < len(s) {
				two = s[i : i+2]
			}
			switch two {
			case "||", "&&", ">>", "|&", ">=", "<=", "==", "!=", "++", "--", "+=", "-=", "*=", "%=", "^=", "**":
				ts = append(ts, token{two[0], two})
				operand = two == "++" || two == "--"
				i += 2
			default:
				ts = append(ts, token{ch, string(ch)})
				operand = ch == ')' || ch == ']'
				switch {
				case ch == '(':
					heads = append(heads, len(ts) > 1 && slices.Contains([]string{"if", "while", "for"}, ts[len(ts)-2].text))
				case ch == ')' && len(heads) > 0:
					operand = !heads[len(heads)-1]
					heads = heads[:len(heads)-1]
				}
				i++
			}
			if ch == '}' {
				operand = false
			}
		default:
			return nil, false
		}
	}
	return ts, true
}

// awkProgram judges what a program can do but count and print.
func (c *call) awkProgram(s string) {
	ts, ok := awkTokens(s)
	if !ok {
		c.unknown("the program that awk gets could not be read")
		return
	}
	text := func(i int) (string, bool) { // a text that stands alone there
		if i >= len(ts) || ts[i].kind != 's' || strings.Contains(ts[i].text, `\`) {
			return "", false
		}
		if i+1 < len(ts) && strings.IndexByte("n;})", ts[i+1].kind) < 0 {
			return "", false
		}
		return ts[i].text, true
	}
	printing, depth := false, 0
	for i, t := range ts {
		switch t.kind {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ';', 'n', '}', '{':
			if t.kind == 'n' && (depth > 0 || i > 0 && slices.Contains([]string{",", "&&", "||"}, ts[i-1].text)) {
				continue
			}
			printing, depth = false, 0
		case '@', '`', '\'', '\\':
			c.unknown("the program that awk gets uses something unusual")
		case 'w':
			switch t.text {
			case "print", "printf":
				printing, depth = true, 0
			case "system":
				if i+2 < len(ts) && ts[i+1].kind == '(' {
					if cmd, ok := text(i + 2); ok {
						c.joinedPart(lit(cmd))
						continue
					}
				}
				c.unknown("awk runs a command that is only known when it runs")
			case "getline":
				if i+1 < len(ts) && ts[i+1].text == "<" || i+2 < len(ts) && ts[i+2].text == "<" {
					c.act(Act{Op: Read})
				}
			}
		case '|':
			if t.text == "||" {
				continue
			}
			if t.text == "|" && printing {
				if cmd, ok := text(i + 1); ok {
					c.joinedPart(lit(cmd))
					continue
				}
			}
			if t.text == "|" && !printing && i > 0 && ts[i-1].kind == 's' && !strings.Contains(ts[i-1].text, `\`) && (i < 2 || strings.IndexByte("{;n(!=", ts[i-2].kind) >= 0) && i+1 < len(ts) && ts[i+1].text == "getline" {
				c.joinedPart(lit(ts[i-1].text))
				continue
			}
			c.unknown("awk runs a command that is only known when it runs")
		case '>':
			if !printing || t.text == ">=" || depth > 0 {
				continue
			}
			name, ok := text(i + 1)
			if !ok {
				c.unknown("which file awk writes is only known when it runs")
				continue
			}
			if name == "/dev/stdout" || name == "/dev/stderr" || name == "-" {
				continue
			}
			op := Write
			if t.text == ">>" {
				op = Append
			}
			c.on(op, lit(name))
		}
	}
}
