package judge

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func matchable(p string) bool {
	_, err := path.Match(p, "x")
	return err == nil
}

// param expands $x and ${x…}.
func (e *env) param(p *syntax.ParamExp, quoted bool) []piece {
	one := func(w word) []piece { return e.split(w, quoted) }
	if p.Param == nil || p.NestedParam != nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 {
		e.unknown("a value in a form of another shell")
		return one(unknown("$…"))
	}
	if t := e.fr.text(p); strings.Contains(t, "<(") || strings.Contains(t, ">(") {
		e.unknown("a command in the pattern of a value") // the parser takes it for text there
	}
	name := p.Param.Value
	index := ""
	if p.Index != nil {
		if x, ok := p.Index.(*syntax.Word); ok {
			index = x.Lit()
		}
		if index != "@" && index != "*" {
			e.arithm(p.Index)
		}
	}
	if p.Slice != nil {
		e.arithm(p.Slice.Offset)
		e.arithm(p.Slice.Length)
	}
	all := index == "@" || index == "*" || p.Index == nil && (name == "@" || name == "*")
	switch {
	case p.Names != 0:
		return many("$"+name, quoted)
	case p.Excl && (index == "@" || index == "*"):
		return many("$"+name, quoted)
	case p.Excl:
		v := e.w.lookup(e.st, name)
		if v.list || v.sureness != sure || !isName(v.text) || p.Exp != nil {
			e.unknown("the variable's name stands in $" + name)
			return one(unknown("$" + name))
		}
		return one(e.w.lookup(e.st, v.text).word)
	case p.Length:
		return one(word{sureness: number, why: "$" + name})
	case all && p.Exp == nil && p.Repl == nil && p.Slice == nil:
		return e.all(name, index, quoted)
	}
	v := e.value(name, index, p.Index != nil)
	switch {
	case p.Repl != nil:
		e.matcher(p.Repl.Orig)
		e.one(p.Repl.With)
		v = value{word: unknown("$" + name)}
	case p.Slice != nil:
		v = value{word: unknown("$" + name)}
	case p.Exp != nil:
		return e.expansion(p, name, v, quoted, all)
	}
	if all {
		return many("$"+name, quoted)
	}
	return one(v.word)
}

// expansion is ${x:-y} and its like.
func (e *env) expansion(p *syntax.ParamExp, name string, v value, quoted, all bool) []piece {
	op := p.Exp.Op
	switch op {
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix:
		pat := e.matcher(p.Exp.Word)
		if all {
			return many("$"+name, quoted)
		}
		suffix := op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix
		return e.split(trim(v.word, pat, suffix, op == syntax.RemLargeSuffix || op == syntax.RemLargePrefix), quoted)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		// What stands in for it is judged with all that is in it.
		alt := e.one(p.Exp.Word)
		if all || v.list {
			return many("$"+name, quoted)
		}
		if op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull {
			e.assign(name, value{word: unknown("$" + name)})
			if v.sureness == sure && v.text != "" {
				e.st.vars[name] = v
			}
		}
		filled := v.sureness == sure && v.text != "" || v.sureness == number || v.sureness == pattern
		empty := v.unset || v.sureness == sure && v.text == "" && (op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull || op == syntax.AlternateUnsetOrNull)
		if op == syntax.AlternateUnset || op == syntax.AlternateUnsetOrNull {
			filled, empty = empty, filled
			v = value{word: lit("")}
		}
		switch {
		case filled:
			return e.split(v.word, quoted)
		case empty:
			return e.split(alt, quoted)
		}
		return e.split(unknown("$"+name), quoted)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		e.one(p.Exp.Word)
		if all {
			return many("$"+name, quoted)
		}
		return e.split(v.word, quoted)
	case syntax.OtherParamOps:
		if arg := e.one(p.Exp.Word); arg.sureness != sure || strings.Contains(arg.text, "P") {
			e.unknown("the value of $" + name + " may have commands in it")
		}
	default:
		e.one(p.Exp.Word)
	}
	if all {
		return many("$"+name, quoted)
	}
	return e.split(unknown("$"+name), quoted)
}

func many(why string, quoted bool) []piece {
	return []piece{{word: word{sureness: unsure, many: true, why: why}, quoted: quoted}}
}

// all is $@, $* and ${a[@]}.
func (e *env) all(name, index string, quoted bool) []piece {
	ws, ok := e.st.pos, e.st.posKnown
	if index != "" {
		v := e.w.lookup(e.st, name)
		ws, ok = v.array, v.list && v.array != nil
	}
	star := name == "*" || index == "*"
	if !ok || star && quoted || e.st.oddSplit && !quoted {
		return many("$"+name, quoted)
	}
	var out []piece
	for i, x := range ws {
		if i > 0 {
			out = append(out, piece{cut: true})
		}
		if quoted {
			out = append(out, piece{word: x, quoted: true})
		} else {
			out = append(out, e.split(x, false)...)
		}
	}
	if len(out) == 0 && quoted {
		// An empty "$@" takes its quotes along; a word that stays is only more.
		return many("$"+name, quoted)
	}
	return out
}

// value is one variable.
func (e *env) value(name, index string, indexed bool) value {
	switch name {
	case "?", "$", "!", "#":
		return value{word: word{sureness: number, why: "$" + name}}
	case "-", "_", "0", "@", "*":
		return value{word: unknown("$" + name)}
	}
	if isDigits(name) {
		n := 0
		for _, c := range name {
			n = min(n*10+int(c-'0'), 1<<20)
		}
		switch {
		case !e.st.posKnown:
			return value{word: unknown("$" + name)}
		case n > len(e.st.pos):
			return value{word: lit(""), unset: true}
		}
		return value{word: e.st.pos[n-1]}
	}
	v := e.w.lookup(e.st, name)
	if v.list || indexed {
		n := 0
		if indexed {
			n = -1
			if isDigits(index) && len(index) < 6 {
				n = 0
				for _, c := range index {
					n = n*10 + int(c-'0')
				}
			}
		}
		if n >= 0 && n < len(v.array) {
			return value{word: v.array[n]}
		}
		return value{word: unknown("$" + name)}
	}
	return v
}

// split makes pieces of a value.
func (e *env) split(v word, quoted bool) []piece {
	if quoted {
		v.many = false
		return []piece{{word: v, quoted: true}}
	}
	switch v.sureness {
	case number:
		v.many = e.st.oddSplit
		return []piece{{word: v}}
	case unsure:
		v.many = true
		return []piece{{word: v}}
	case pattern:
		// One name of those that fit, cut at its blanks.
		if (newTemp(v) || e.w.plainNames(e.st, v.text)) && !e.st.oddSplit {
			return []piece{{word: v}}
		}
		return []piece{{word: word{sureness: unsure, many: true, why: "a name with blanks in it"}}}
	}
	if e.st.oddSplit && v.text != "" {
		return []piece{{word: word{sureness: unsure, many: true, why: "a text that is cut at other signs"}}}
	}
	if strings.Contains(v.text, `\`) {
		return []piece{{word: word{sureness: unsure, many: true, why: "a text with backslashes"}}}
	}
	var out []piece
	fs := strings.FieldsFunc(v.text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	if v.text != "" && strings.IndexByte(" \t\n", v.text[0]) >= 0 {
		out = append(out, piece{cut: true})
	}
	for i, f := range fs {
		if i > 0 {
			out = append(out, piece{cut: true})
		}
		out = append(out, piece{word: lit(f)})
	}
	if v.text != "" && strings.IndexByte(" \t\n", v.text[len(v.text)-1]) >= 0 {
		out = append(out, piece{cut: true})
	}
	return out
}

// plainNames tells whether all names that fit a pattern stay one word.
func (w *walker) plainNames(st *state, pattern string) bool {
	dir, base := path.Split(pattern)
	dirs, ok := st.at(dir)
	if w.cmd.List == nil || hasMeta(dir) || !ok {
		return false
	}
	for _, d := range dirs {
		names, ok := w.cmd.List(d)
		if !ok {
			return false
		}
		for _, n := range names {
			if fits, err := path.Match(base, n); (err != nil || fits) && strings.ContainsAny(n, " \t\n"+metas) {
				return false
			}
		}
	}
	return true
}

// assign sets a variable.
func (e *env) assign(name string, v value) {
	if mattersToPrograms(name) && name != "IFS" {
		e.acts = append(e.acts, Act{Op: Env, What: name})
	}
	if name == "IFS" {
		e.st.oddSplit = true
	}
	if len(v.text) > maxScript || len(v.array) > maxParts { // a value that doubles in a line soon fills the memory
		v = value{word: unknown("$" + name), list: v.list}
	}
	e.st.vars[name] = v
}

// assigns are the assignments before a command, or alone.
func (e *env) assigns(as []*syntax.Assign) {
	for _, a := range as {
		if a.Name == nil {
			if a.Value != nil {
				e.one(a.Value)
			}
			e.unknown("a variable's name stands in another one")
			continue
		}
		name := a.Name.Value
		if a.Index != nil {
			e.arithm(a.Index)
			e.one(a.Value)
			e.assign(name, value{word: unknown("$" + name), list: true})
			continue
		}
		if a.Array != nil {
			e.assign(name, e.array(name, a))
			continue
		}
		if name == "PATH" && e.appends(a.Value) {
			continue
		}
		v := value{word: e.assigned(a.Value)}
		if a.Append {
			old := e.w.lookup(e.st, name)
			switch {
			case old.list:
				v = value{word: unknown("$" + name), list: true}
			case old.sureness == sure && v.sureness == sure:
				v.text = old.text + v.text
			default:
				v.word = unknown("$" + name)
			}
		} else if e.w.lookup(e.st, name).list {
			v = value{word: unknown("$" + name), list: true}
		}
		e.assign(name, v)
	}
}

// appends tells whether a value of PATH only has more folders at its end, and
// none in which a command may make files: what was found before stays found.
func (e *env) appends(x *syntax.Word) bool {
	if x == nil {
		return false
	}
	parts := x.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = q.Parts
	}
	if len(parts) != 2 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	l, lit := parts[1].(*syntax.Lit)
	if !ok || !lit || p.Param == nil || p.Param.Value != "PATH" || len(e.fr.text(p)) > len("${PATH}") || !strings.HasPrefix(l.Value, ":/") {
		return false
	}
	for d := range strings.SplitSeq(l.Value[1:], ":") {
		if !slices.ContainsFunc([]string{"/usr/", "/opt/", "/snap/", "/bin", "/sbin"}, func(s string) bool { return strings.HasPrefix(path.Clean(d), s) }) || strings.ContainsAny(d, `\*?[`) {
			return false
		}
	}
	return true
}

// assigned is a value; there ~ counts after a colon too.
func (e *env) assigned(x *syntax.Word) word {
	w := e.one(x)
	if w.sureness == sure && strings.Contains(w.text, ":~") {
		return unknown("a name with ~")
	}
	return w
}

func (e *env) array(name string, a *syntax.Assign) value {
	v := value{word: unknown("$" + name), list: true, array: []word{}}
	if a.Append {
		old := e.w.lookup(e.st, name)
		v.array = slices.Clone(old.array)
	}
	ok := v.array != nil
	for _, el := range a.Array.Elems {
		if el.Index != nil {
			ok = false
			e.arithm(el.Index)
		}
		if el.Value == nil {
			continue
		}
		if el.Index != nil {
			e.one(el.Value)
			continue
		}
		for _, x := range e.fields(el.Value) {
			if ok = ok && !x.many && len(v.array) < maxParts; ok {
				v.array = append(v.array, x)
			}
		}
	}
	if !ok {
		v.array = nil
	}
	return v
}

// arithm judges the commands in a sum, and the variables in it: a value that is
// no number is read as a sum again, and its indexes may have commands in them.
func (e *env) arithm(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		assign := false
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
			assign = true
		}
		if lhs, ok := x.X.(*syntax.Word); ok && assign && isName(lhs.Lit()) {
			if x.Op != syntax.Assgn {
				e.arithm(x.X)
			}
			e.arithm(x.Y)
			e.assign(lhs.Lit(), value{word: word{sureness: number, why: "$" + lhs.Lit()}})
			return
		}
		e.arithm(x.X)
		e.arithm(x.Y)
	case *syntax.UnaryArithm:
		e.arithm(x.X)
		if v, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.Inc || x.Op == syntax.Dec) && isName(v.Lit()) {
			e.assign(v.Lit(), value{word: word{sureness: number, why: "$" + v.Lit()}})
		}
	case *syntax.ParenArithm:
		e.arithm(x.X)
	case *syntax.Word:
		e.sumWord(x)
	default:
		e.unknown("a sum in a form of another shell")
	}
}

func (e *env) sumWord(x *syntax.Word) {
	if l := x.Lit(); l != "" && isName(l) {
		e.sumValue(l)
		return
	}
	for _, p := range x.Parts {
		if s, ok := p.(*syntax.ParamExp); ok && s.Index != nil && !s.Dollar.IsValid() {
			// a[i]: its element is read as a sum.
			e.arithm(s.Index)
			e.unknown("an element of $" + s.Param.Value + " is read as a sum")
			return
		}
	}
	w := e.one(x)
	switch {
	case w.sureness == number:
	case w.sureness == sure && strings.Trim(w.text, "0123456789abcdefABCDEFx#") == "":
		if isName(w.text) {
			e.sumValue(w.text)
		}
	case w.sureness == sure && isName(w.text):
		e.sumValue(w.text)
	default:
		e.unknown("a sum of something that is only known when it runs")
	}
}

// sumValue judges a variable that is read as a number.
func (e *env) sumValue(name string) {
	for range 8 {
		v := e.w.lookup(e.st, name)
		switch {
		case v.list, v.sureness == unsure, v.sureness == pattern:
			e.unknown("the value of $" + name + " is read as a sum, and it is only known when it runs")
			return
		case v.sureness == number, v.text == "", isNumber(v.text):
			return
		case isName(v.text):
			name = v.text
			continue
		}
		e.unknown("the value of $" + name + " is read as a sum")
		return
	}
	e.unknown("the value of $" + name + " is read as a sum")
}
