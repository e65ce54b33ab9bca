package judge

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// env is what expanding a word needs: where it stands, and a part to note what
// the expansion itself does.
type env struct {
	w  *walker
	fr *frame
	st *state
	// acts of the expansion itself: ${X:=v} of PATH, arithmetic that may run code.
	acts []Act
	hdoc bool // in a here-document, where \" is two characters
}

func (e *env) unknown(why string) {
	e.acts = append(e.acts, Act{Op: Unknown, Why: why})
}

// piece is a bit of a word before it is cut into words.
type piece struct {
	word
	quoted bool
	cut    bool // ends a word: the pieces after it are another one
}

// words expands the words of a command.
func (e *env) words(ws []*syntax.Word) []word {
	var out []word
	for _, x := range ws {
		out = append(out, e.fields(x)...)
	}
	return out
}

// fields expands one word as an argument: braces, values, cutting, patterns.
func (e *env) fields(x *syntax.Word) []word {
	e.w.step()
	if e.fr.posix {
		return e.cut(e.pieces(x.Parts, false))
	}
	c := &syntax.Word{Parts: append([]syntax.WordPart(nil), x.Parts...)}
	if !syntax.SplitBraces(c) {
		return e.cut(e.pieces(x.Parts, false))
	}
	var out []word
	for b, err := range expand.BracesSeq(nil, c) {
		e.w.step()
		if err != nil || len(out) > 4096 {
			return []word{{sureness: unsure, many: true, why: "a long list in braces"}}
		}
		out = append(out, e.cut(e.pieces(b.Parts, false))...)
	}
	return out
}

// one expands a word that stays one: of an assignment, a case, a here-string.
func (e *env) one(x *syntax.Word) word {
	if x == nil {
		return lit("")
	}
	e.w.step()
	ps := e.pieces(x.Parts, false)
	for i := range ps {
		ps[i].quoted, ps[i].cut = true, false
		if ps[i].many {
			ps[i].many = false
		}
		if ps[i].sureness == pattern { // a value that was one
			continue
		}
	}
	return glue(ps, true)
}

// matcher expands a word that is a pattern for words (case, ${x%y}).
func (e *env) matcher(x *syntax.Word) word {
	if x == nil {
		return lit("")
	}
	e.w.step()
	ps := e.pieces(x.Parts, false)
	for i := range ps {
		ps[i].cut, ps[i].many = false, false
	}
	return glue(ps, false)
}

// pieces expands the parts of a word, and judges the commands in them.
func (e *env) pieces(parts []syntax.WordPart, quoted bool) []piece {
	var out []piece
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if quoted {
				out = append(out, piece{word: lit(unescape(p.Value, !e.hdoc)), quoted: true})
				continue
			}
			v := p.Value
			if strings.Contains(v, "<(") || strings.Contains(v, ">(") {
				e.unknown("a command in a pattern")
			}
			if i == 0 && strings.HasPrefix(v, "~") {
				var h word
				h, v = e.tilde(v, len(parts) == 1)
				out = append(out, piece{word: h, quoted: true})
			}
			out = append(out, unquoted(v)...)
		case *syntax.SglQuoted:
			v, ok := p.Value, true
			if p.Dollar {
				v, ok = ansiC(v)
			}
			if !ok {
				out = append(out, piece{word: unknown("an unusual escape in $'…'"), quoted: true})
				continue
			}
			out = append(out, piece{word: lit(v), quoted: true})
		case *syntax.DblQuoted:
			if p.Dollar {
				e.pieces(p.Parts, true)
				out = append(out, piece{word: unknown("a text that is translated"), quoted: true})
				continue
			}
			out = append(out, piece{word: lit(""), quoted: true})
			out = append(out, e.pieces(p.Parts, true)...)
		case *syntax.ParamExp:
			out = append(out, e.param(p, quoted)...)
		case *syntax.CmdSubst:
			if p.Backquotes && strings.Contains(e.fr.text(p), `\`) {
				e.unknown("a backslash between backquotes")
			}
			if p.TempFile || p.ReplyVar {
				e.unknown("a substitution of another shell")
			}
			w := unknown("what a command prints")
			w.many = !quoted
			if d, ok := e.printsDir(p); ok && (quoted || !e.st.oddSplit && !strings.ContainsAny(d, " \t\n"+metas)) {
				w = lit(d)
			}
			if e.printsTemp(p) {
				w = word{text: "/tmp/tmp.*", sureness: pattern}
			}
			e.w.stmts(e.fr, p.Stmts, e.st.clone(), input{typed: e.w.fed()})
			out = append(out, piece{word: w, quoted: quoted})
		case *syntax.ArithmExp:
			e.arithm(p.X)
			out = append(out, piece{word: word{sureness: number, why: "a sum", many: !quoted && e.st.oddSplit}, quoted: quoted})
		case *syntax.ProcSubst:
			in := input{typed: e.w.fed()}
			if p.Op == syntax.CmdOut {
				in = input{piped: true}
			}
			e.w.stmts(e.fr, p.Stmts, e.st.clone(), in)
			out = append(out, piece{word: lit(procFile), quoted: true})
		default: // an extended pattern, or a brace that was left
			e.unknown("a pattern of an unusual kind")
			out = append(out, piece{word: word{sureness: unsure, many: true, why: "a pattern"}})
		}
	}
	return out
}

// plainCall is a substitution of one plain command, as its words.
func (e *env) plainCall(p *syntax.CmdSubst) string {
	if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) > 0 || p.Stmts[0].Negated || p.Stmts[0].Background {
		return ""
	}
	c, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 {
		return ""
	}
	var ws []string
	for _, a := range c.Args {
		ws = append(ws, a.Lit())
	}
	if len(e.st.funcs[ws[0]]) > 0 {
		return ""
	}
	return strings.Join(ws, " ")
}

// printsDir knows $(pwd).
func (e *env) printsDir(p *syntax.CmdSubst) (string, bool) {
	if len(e.st.cwd) != 1 || e.plainCall(p) != "pwd" {
		return "", false
	}
	return e.st.cwd[0], true
}

// printsTemp knows $(mktemp), which gives one of the names that are made there.
func (e *env) printsTemp(p *syntax.CmdSubst) bool {
	_, set := e.st.vars["TMPDIR"]
	_, given := e.w.cmd.Env["TMPDIR"]
	call := e.plainCall(p)
	return !set && !given && (call == "mktemp" || call == "mktemp -d")
}

// tilde expands ~ at the beginning of a word.
func (e *env) tilde(v string, whole bool) (word, string) {
	head, rest, slash := strings.Cut(v, "/")
	if slash {
		rest = "/" + rest
	} else if !whole {
		return unknown("a name with ~"), v
	}
	switch head {
	case "~":
		home := e.w.lookup(e.st, "HOME").word
		if home.sureness == sure && home.text != "" {
			return home, rest
		}
		return word{text: "/", sureness: unsure, why: "the home folder"}, rest
	case "~+", "~-":
		return unknown("a name with ~"), rest
	}
	return word{text: "", sureness: unsure, why: "a name with ~"}, rest
}

// unquoted takes the backslashes of a bare text away.
func unquoted(v string) []piece {
	var out []piece
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b.WriteByte(v[i])
			continue
		}
		i++
		if v[i] == '\n' {
			continue
		}
		if b.Len() > 0 {
			out = append(out, piece{word: lit(b.String())})
			b.Reset()
		}
		out = append(out, piece{word: lit(v[i : i+1]), quoted: true})
	}
	if b.Len() > 0 {
		out = append(out, piece{word: lit(b.String())})
	}
	return out
}

// unescape takes away the backslashes that count in double quotes.
func unescape(v string, quotes bool) string {
	if !strings.Contains(v, `\`) {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			switch c := v[i+1]; {
			case c == '\n':
				i++
				continue
			case c == '$' || c == '`' || c == '\\' || c == '"' && quotes:
				i++
			}
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// ansiC is $'…' for the escapes that mean the same everywhere.
func ansiC(v string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			b.WriteByte(v[i])
			continue
		}
		i++
		if i == len(v) {
			return "", false
		}
		switch c := v[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'x':
			n := i + 1
			for n < len(v) && n < i+3 && strings.IndexByte("0123456789abcdefABCDEF", v[n]) >= 0 {
				n++
			}
			x, err := strconv.ParseUint(v[i+1:n], 16, 8)
			if err != nil || x == 0 || x > 0x7f {
				return "", false
			}
			b.WriteByte(byte(x))
			i = n - 1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := i
			for n < len(v) && n < i+3 && v[n] >= '0' && v[n] <= '7' {
				n++
			}
			x, err := strconv.ParseUint(v[i:n], 8, 16)
			if err != nil || x == 0 || x > 0x7f {
				return "", false
			}
			b.WriteByte(byte(x))
			i = n - 1
		default:
			return "", false
		}
	}
	return b.String(), true
}

// cut makes words of pieces.
func (e *env) cut(ps []piece) []word {
	var out []word
	var now []piece
	end := func() {
		if len(now) > 0 {
			w := glue(now, e.st.noglob)
			if !e.fr.posix && bracesLeft(now) {
				w = word{sureness: unsure, many: true, why: "a list in braces"}
			}
			if w.sureness == pattern && e.st.oddGlob {
				w = word{sureness: unsure, many: true, why: "a pattern"}
			}
			if w.sureness == pattern && !validPattern(w.text) {
				w = word{sureness: unsure, many: true, why: "a pattern"}
			}
			if w.sureness == pattern && !e.st.globstar {
				for strings.Contains(w.text, "**") {
					w.text = strings.ReplaceAll(w.text, "**", "*")
				}
			}
			out = append(out, w)
		}
		now = nil
	}
	for _, p := range ps {
		if p.cut {
			end()
			continue
		}
		now = append(now, p)
	}
	end()
	return out
}

// bracesLeft tells whether there is a list in braces that was not taken apart.
func bracesLeft(ps []piece) bool {
	var b strings.Builder
	for _, p := range ps {
		if p.sureness == sure && !p.quoted {
			b.WriteString(p.text)
		} else {
			b.WriteByte('x')
		}
	}
	_, t, ok := strings.Cut(b.String(), "{")
	i := strings.LastIndexByte(t, '}')
	return ok && i > 0 && (strings.Contains(t[:i], ",") || strings.Contains(t[:i], ".."))
}

// glue puts pieces together to one word.
func glue(ps []piece, plain bool) word {
	if len(ps) == 1 && (ps[0].sureness == number || ps[0].sureness == unsure || ps[0].sureness == pattern) {
		return ps[0].word
	}
	magic, bracket := false, false
	if !plain {
		for _, p := range ps {
			if p.sureness != sure || p.quoted {
				continue
			}
			magic = magic || strings.ContainsAny(p.text, "*?")
			from := 0
			if !bracket {
				if from = strings.IndexByte(p.text, '['); from < 0 {
					continue
				}
				bracket = true
			}
			magic = magic || strings.IndexByte(p.text[from:], ']') >= 0
		}
	}
	fromValue := false
	for _, p := range ps {
		fromValue = fromValue || p.sureness == pattern
	}
	var text strings.Builder
	many := false
	for i, p := range ps {
		switch p.sureness {
		case sure:
			switch {
			case (magic || fromValue) && (p.quoted || plain):
				text.WriteString(escape(p.text))
			case magic:
				text.WriteString(p.text)
			case fromValue:
				text.WriteString(escape(p.text))
			default:
				text.WriteString(p.text)
			}
			continue
		case pattern:
			text.WriteString(p.text)
			continue
		}
		out := word{sureness: unsure, why: p.why, many: many || p.many}
		if !magic && !fromValue {
			out.text = text.String()
		}
		if p.sureness == unsure && !magic && !fromValue {
			out.text += p.text
		}
		for _, q := range ps[i:] {
			out.many = out.many || q.many
		}
		out.many = out.many || magic
		return out
	}
	if !magic && !fromValue {
		return lit(text.String())
	}
	p := negated(text.String())
	return word{text: p, sureness: pattern}
}

// negated writes [!a] as path.Match does.
func negated(p string) string { return strings.ReplaceAll(p, "[!", "[^") }

// validPattern tells whether path.Match takes it for what a shell does.
func validPattern(p string) bool {
	return shellMatch(p, "x") || !strings.Contains(p, "[[") && !strings.Contains(p, "[]") && !strings.Contains(p, "[^]") && matchable(p)
}
