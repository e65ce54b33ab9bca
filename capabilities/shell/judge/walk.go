package judge

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// input is what a command gets on its standard input.
type input struct {
	piped bool
	typed bool // it comes later, or may
	given bool // text is known
	text  string
	find  *found // the names come from a find, each ended by a zero byte
}

// maxNest is how deep in the syntax is followed.
const maxNest = 150

// maxValues is how many values of a for loop are followed one by one.
const maxValues = 64

// stmts walks a list.
func (w *walker) stmts(fr *frame, list []*syntax.Stmt, st *state, in input) outcome {
	o := both(st)
	last := st
	for _, s := range list {
		last = w.after(o, last)
		o = w.stmt(fr, s, last, in)
		// set -e ends the shell where a command fails, but not in a condition.
		if _, plain := s.Cmd.(*syntax.CallExpr); plain && !s.Negated && w.conds == 0 && o.ok != nil && o.ok.errexit && o.fail != o.ok {
			o.fail = nil
		}
	}
	return o
}

// condition walks what set -e takes for a question.
func (w *walker) condition(fr *frame, list []*syntax.Stmt, st *state, in input) outcome {
	w.conds++
	defer func() { w.conds-- }()
	return w.stmts(fr, list, st, in)
}

func (w *walker) stmt(fr *frame, s *syntax.Stmt, st *state, in input) (o outcome) {
	w.step()
	if w.nest++; w.nest > maxNest {
		panic(tooMuch("This command has too many commands inside each other to be read before it runs."))
	}
	defer func() { w.nest-- }()
	if s.Coprocess || s.Disown {
		w.add(&part{Part: Part{Text: fr.text(s), Via: fr.via, Acts: []Act{{Op: Unknown, Why: "it is written for another shell"}}}})
	}
	if s.Negated {
		w.conds++
	}
	if s.Background {
		defer func(st *state) { o = both(st) }(st)
		st = st.clone()
	}
	if c, ok := s.Cmd.(*syntax.CallExpr); ok {
		o = w.simple(fr, s, c, st, in)
	} else {
		e := &env{w: w, fr: fr, st: st}
		r := e.redirects(s.Redirs, in)
		// Those are for all that is in it: a part of their own.
		if len(e.acts) > 0 || s.Cmd == nil {
			text := fr.text(s)
			if len(s.Redirs) > 0 && s.Cmd != nil {
				text = fr.text(s.Redirs[0])
				if from, to := int(s.Redirs[0].Pos().Offset()), int(s.Redirs[len(s.Redirs)-1].Word.End().Offset()); from < to && to <= len(fr.src) {
					text = fr.src[from:to]
				}
			}
			w.add(&part{Part: Part{Text: text, Via: fr.via, Acts: e.acts}})
		}
		o = w.command(fr, s, s.Cmd, st, r)
	}
	if s.Negated {
		w.conds--
		o.ok, o.fail = o.fail, o.ok
	}
	return o
}

// command walks what is no simple command.
func (w *walker) command(fr *frame, s *syntax.Stmt, cmd syntax.Command, st *state, in input) outcome {
	switch c := cmd.(type) {
	case nil:
		return both(st)
	case *syntax.Block:
		return w.stmts(fr, c.Stmts, st, in)
	case *syntax.Subshell:
		w.stmts(fr, c.Stmts, st.clone(), in)
		return both(st)
	case *syntax.BinaryCmd:
		return w.binary(fr, c, st, in)
	case *syntax.IfClause:
		return w.ifClause(fr, c, st, in)
	case *syntax.WhileClause:
		end := w.loop(st, func(st *state) *state {
			o := w.condition(fr, c.Cond, st, in)
			stay, leave := o.ok, o.fail
			if c.Until {
				stay, leave = leave, stay
			}
			body := w.stmts(fr, c.Do, orLast(stay, st).clone(), in)
			return w.join(leave, w.either(body))
		})
		return both(end)
	case *syntax.ForClause:
		return w.forClause(fr, c, st, in)
	case *syntax.CaseClause:
		return w.caseClause(fr, c, st, in)
	case *syntax.FuncDecl:
		if c.Name == nil {
			w.note(fr, s, Act{Op: Unknown, Why: "it is written for another shell"})
			return both(st)
		}
		st.funcs[c.Name.Value] = []function{{body: c.Body, from: fr}}
		if strings.HasPrefix(c.Name.Value, "command_not_found") { // the shell calls it
			lost := st.clone()
			lost.pos, lost.posKnown = nil, false
			w.stmt(fr, c.Body, lost, input{typed: w.fed()})
		}
		return both(st)
	case *syntax.ArithmCmd:
		e := &env{w: w, fr: fr, st: st}
		e.arithm(c.X)
		w.note(fr, s, e.acts...)
		return both(st)
	case *syntax.TestClause:
		e := &env{w: w, fr: fr, st: st}
		e.test(c.X)
		w.note(fr, s, e.acts...)
		return both(st)
	case *syntax.LetClause:
		e := &env{w: w, fr: fr, st: st}
		for _, x := range c.Exprs {
			e.arithm(x)
		}
		if len(st.funcs["let"]) > 0 {
			e.unknown("let is a function here")
		}
		w.note(fr, s, e.acts...)
		return both(st)
	case *syntax.DeclClause:
		return w.declClause(fr, s, c, st)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return both(st)
		}
		return w.stmt(fr, c.Stmt, st, in)
	case *syntax.CoprocClause:
		w.stmt(fr, c.Stmt, st.clone(), input{piped: true})
		if c.Name != nil {
			e := &env{w: w, fr: fr, st: st}
			if n := e.one(c.Name); n.sureness == sure && isName(n.text) {
				e.assign(n.text, value{word: unknown("$" + n.text), list: true})
			} else {
				e.unknown("the variable's name is only known when it runs")
			}
			w.note(fr, s, e.acts...)
		}
		st.vars["COPROC"] = value{word: unknown("$COPROC"), list: true}
		return both(st)
	}
	w.note(fr, s, Act{Op: Unknown, Why: "it is written for another shell"})
	return both(st)
}

// note adds a part for what is no command of its own.
func (w *walker) note(fr *frame, s *syntax.Stmt, acts ...Act) {
	if len(acts) > 0 {
		w.add(&part{Part: Part{Text: fr.text(s), Via: fr.via, Acts: acts}})
	}
}

func orLast(s, last *state) *state {
	if s == nil {
		return last
	}
	return s
}

func (w *walker) binary(fr *frame, c *syntax.BinaryCmd, st *state, in input) outcome {
	switch c.Op {
	case syntax.AndStmt:
		l := w.condition(fr, []*syntax.Stmt{c.X}, st, in)
		r := w.stmt(fr, c.Y, orLast(l.ok, st).clone(), in)
		return outcome{r.ok, w.join(l.fail, r.fail)}
	case syntax.OrStmt:
		l := w.condition(fr, []*syntax.Stmt{c.X}, st, in)
		r := w.stmt(fr, c.Y, orLast(l.fail, st).clone(), in)
		return outcome{w.join(l.ok, r.ok), r.fail}
	}
	w.stmt(fr, c.X, st.clone(), in)
	next := input{piped: true}
	if c.Op == syntax.Pipe {
		next.text, next.given = w.prints(fr, c.X, st.clone())
		next.find = w.finds(fr, c.X, st.clone())
	}
	next.typed = in.typed && !next.given
	w.stmt(fr, c.Y, st.clone(), next)
	return both(st)
}

func (w *walker) ifClause(fr *frame, c *syntax.IfClause, st *state, in input) outcome {
	cond := both(st)
	if len(c.Cond) > 0 { // none: an else
		cond = w.condition(fr, c.Cond, st, in)
	}
	then := w.stmts(fr, c.Then, orLast(cond.ok, st).clone(), in)
	if len(c.Cond) == 0 {
		return then
	}
	other := outcome{ok: cond.fail}
	if c.Else != nil {
		other = w.ifClause(fr, c.Else, orLast(cond.fail, st).clone(), in)
	}
	return outcome{w.join(then.ok, other.ok), w.join(then.fail, other.fail)}
}

// loop walks a body that may run many times, and returns what is sure after
// it. The body gets a copy.
func (w *walker) loop(st *state, body func(*state) *state) *state {
	for round := 0; ; round++ {
		w.dry++
		end := body(st.clone())
		w.dry--
		next := w.join(st, end)
		if w.same(next, st) {
			break
		}
		if st = next; round > 12 {
			panic(tooMuch("This command has a loop that can't be followed before it runs."))
		}
	}
	return w.join(st, body(st.clone()))
}

func (w *walker) forClause(fr *frame, c *syntax.ForClause, st *state, in input) outcome {
	e := &env{w: w, fr: fr, st: st}
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		cs := c.Loop.(*syntax.CStyleLoop)
		e.arithm(cs.Init)
		end := w.loop(st, func(st *state) *state {
			e := &env{w: w, fr: fr, st: st}
			e.arithm(cs.Cond)
			o := w.stmts(fr, c.Do, st, in)
			e.st = w.after(o, st)
			e.arithm(cs.Post)
			w.noteAt(fr, fr.text(cs), e.acts)
			return e.st
		})
		w.noteAt(fr, fr.text(cs), e.acts)
		return both(end)
	}
	name := iter.Name.Value
	var values []word
	each := !c.Select
	if iter.InPos.IsValid() {
		values = e.words(iter.Items)
	} else {
		values, each = st.pos, each && st.posKnown
	}
	e.assign(name, value{word: unknown("$" + name)})
	w.noteAt(fr, fr.text(iter), e.acts)
	each = each && len(values) <= maxValues
	for _, v := range values {
		each = each && !v.many
	}
	if !each {
		v := value{word: unknown("$" + name)}
		num := len(values) > 0 && !c.Select && iter.InPos.IsValid()
		for _, x := range values {
			num = num && (x.sureness == number || x.sureness == sure && isNumber(x.text))
		}
		if num {
			v.sureness = number
		}
		return both(w.loop(st, func(st *state) *state {
			st.vars[name] = v
			return w.either(w.stmts(fr, c.Do, st, in))
		}))
	}
	end := st
	var marks []int
	for _, v := range values {
		marks = append(marks, len(w.parts))
		from := end.clone()
		from.vars[name] = value{word: v}
		end = w.join(end, w.either(w.stmts(fr, c.Do, from, in)))
	}
	if w.dry == 0 {
		w.merge(append(marks, len(w.parts)))
	}
	return both(end)
}

// noteAt adds a part for acts of a part of a loop.
func (w *walker) noteAt(fr *frame, text string, acts []Act) {
	if len(acts) > 0 {
		w.add(&part{Part: Part{Text: text, Via: fr.via, Acts: acts}})
	}
}

// merge makes one part of what the rounds of a loop do with one command.
func (w *walker) merge(marks []int) {
	if len(marks) < 3 {
		return
	}
	n := marks[1] - marks[0]
	for i := 1; i < len(marks)-1; i++ {
		if marks[i+1]-marks[i] != n {
			return
		}
		for k := range n {
			if !w.parts[marks[0]+k].like(w.parts[marks[i]+k]) {
				return
			}
		}
	}
	for i := 1; i < len(marks)-1; i++ {
		for k := range n {
			a, b := w.parts[marks[0]+k], w.parts[marks[i]+k]
			for x := range a.Acts {
				a.Acts[x].Paths = union(slices.Clone(a.Acts[x].Paths), b.Acts[x].Paths)
			}
			if !slices.Equal(a.Argv, b.Argv) {
				a.Argv = nil
			}
		}
	}
	w.parts = w.parts[:marks[1]]
}

// like tells whether two parts are the same but for the names.
func (p *part) like(o *part) bool {
	return p.Text == o.Text && p.name == o.name && slices.Equal(p.Via, o.Via) && slices.EqualFunc(p.Acts, o.Acts, func(a, b Act) bool {
		return a.Op == b.Op && a.Into == nil && b.Into == nil && a.From == nil && b.From == nil && a.Find == nil && b.Find == nil &&
			a.Recursive == b.Recursive && a.Dir == b.Dir && slices.Equal(a.Argv, b.Argv) && a.Program == b.Program && slices.Equal(a.Scripts, b.Scripts) &&
			a.Host == b.Host && a.Port == b.Port && a.What == b.What && a.Why == b.Why && a.Replaces == b.Replaces && (len(a.Paths) == 0) == (len(b.Paths) == 0)
	})
}

func (w *walker) caseClause(fr *frame, c *syntax.CaseClause, st *state, in input) outcome {
	e := &env{w: w, fr: fr, st: st}
	e.one(c.Word)
	out := both(st)
	var through *state
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			e.matcher(p)
		}
		from := w.join(st.clone(), through)
		o := w.stmts(fr, item.Stmts, from.clone(), in)
		through = nil
		if item.Op != syntax.Break {
			through = w.either(o)
		}
		out = outcome{w.join(out.ok, o.ok), w.join(out.fail, o.fail)}
	}
	w.noteAt(fr, fr.text(c.Word), e.acts)
	return out
}

// test judges the words of [[ … ]].
func (e *env) test(x syntax.TestExpr) {
	e.w.step()
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if v, ok := side.(*syntax.Word); ok {
					e.sumWord(v)
				} else {
					e.test(side)
				}
			}
			return
		}
		e.test(x.X)
		e.test(x.Y)
	case *syntax.UnaryTest:
		if v, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			if n := e.one(v); n.sureness != sure || !isName(n.text) {
				e.unknown("the variable's name is only known when it runs")
			}
			return
		}
		e.test(x.X)
	case *syntax.ParenTest:
		e.test(x.X)
	case *syntax.Word:
		// Extended patterns are words like others here.
		c := &syntax.Word{}
		for _, p := range x.Parts {
			if g, ok := p.(*syntax.ExtGlob); ok {
				if strings.ContainsAny(g.Pattern.Value, "$`") {
					e.unknown("a pattern of an unusual kind")
				}
				continue
			}
			c.Parts = append(c.Parts, p)
		}
		if len(c.Parts) > 0 {
			e.one(c)
		}
	}
}
