package judge

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declare judges export, readonly, local, declare and typeset by their words.
func (c *call) declare(args []word) {
	c.quiet()
	for _, a := range args {
		name, v, eq := strings.Cut(a.text, "=")
		switch {
		case a.sureness == sure && len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+'):
			c.declareOption(a.text)
			continue
		case a.sureness == unsure && !eq, a.sureness == pattern, a.many:
			c.unknown("the variable's name is only known when it runs")
			continue
		case strings.HasSuffix(name, "+") && isName(name[:len(name)-1]):
			c.setVar(name[:len(name)-1], unknown("$"+name[:len(name)-1]))
			continue
		case !isName(name):
			c.unknown("the variable's name is only known when it runs")
			continue
		}
		c.local(name)
		if !eq {
			if c.name == "export" && mattersToPrograms(name) {
				c.setVar(name, c.w.lookup(c.st, name).word)
			}
			continue
		}
		w := a
		w.text = v
		if strings.HasPrefix(v, "~") || strings.Contains(v, ":~") {
			w = unknown("$" + name)
		}
		c.setVar(name, w)
	}
}

func (c *call) local(name string) {
	if c.name == "local" || c.name == "declare" || c.name == "typeset" {
		c.st.locals = append(c.st.locals, name)
		if c.name == "local" {
			if _, ok := c.st.vars[name]; !ok {
				c.st.vars[name] = value{word: unknown("$" + name)}
			}
		}
	}
}

// declareOption judges the letters of declare.
func (c *call) declareOption(s string) {
	if s == "--" {
		return
	}
	if strings.Trim(s[1:], "xrgpaAt") != "" && (strings.Trim(s[1:], "fFpg") != "" || s[0] == '+') || c.name == "export" && strings.Contains(s, "f") {
		c.unknown("it changes how a variable's value is read")
	}
}

// declClause walks declare and its like as the parser gives them.
func (w *walker) declClause(fr *frame, s *syntax.Stmt, x *syntax.DeclClause, st *state) outcome {
	e := &env{w: w, fr: fr, st: st}
	c := &call{w: w, fr: fr, st: st, text: fr.text(s), name: x.Variant.Value}
	if len(st.funcs[c.name]) > 0 {
		c.unknown(c.name + " is a function here")
	}
	for _, a := range x.Args {
		switch {
		case a.Naked && a.Name == nil:
			c.declare(e.fields(a.Value))
		case a.Naked && a.Index != nil:
			e.arithm(a.Index)
			c.local(a.Name.Value)
			e.assign(a.Name.Value, value{word: unknown("$" + a.Name.Value), list: true})
		case a.Naked:
			c.declare([]word{lit(a.Name.Value)})
		default:
			c.local(a.Name.Value)
			e.assigns([]*syntax.Assign{a})
		}
	}
	if c.name == "nameref" {
		c.unknown("it changes how a variable's value is read")
	}
	c.acts = append(c.acts, e.acts...)
	c.quiet()
	c.emit()
	return both(st)
}
