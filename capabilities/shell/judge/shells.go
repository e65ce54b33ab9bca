package judge

import (
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shell judges sh, dash and bash: -c TEXT, a script, or what is on their
// standard input.
func (c *call) shell(posix bool) {
	args := c.args[1:]
	text, isText, stdin := word{}, false, false
	profile, rc := true, true // start-up files are read
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if a.sureness != sure {
			if a.mayBeOption() || a.sureness == pattern {
				c.unknown("which options " + c.name + " gets depends on " + loosely(a))
				return
			}
			break
		}
		s := a.text
		if s == "--" || s == "-" {
			i++
			break
		}
		if len(s) < 2 || s[0] != '-' && s[0] != '+' {
			break
		}
		if strings.HasPrefix(s, "--") {
			switch s {
			case "--norc":
				rc = false
			case "--noprofile":
				profile = false
			case "--posix", "--noediting", "--restricted", "--verbose":
			case "--version", "--help":
				c.act(Act{Op: Read})
				return
			case "--login":
				if profile {
					c.startUp()
				}
			default:
				c.unknown("the option " + s + " of " + c.name + " is not one that is known here")
				return
			}
			continue
		}
		for k := 1; k < len(s); k++ {
			switch s[k] {
			case 'c':
				isText = true
			case 's':
				stdin = true
			case 'l', 'i':
				if s[k] == 'l' && profile || s[k] == 'i' && rc {
					c.startUp()
				}
			case 'e':
				c.errexit = s[0] == '-'
			case 'u', 'x', 'v', 'f', 'n', 'C', 'a', 'b', 'h', 'm':
			case 'o', 'O':
				i++
				if i >= len(args) || args[i].sureness != sure || !plainShellOption(args[i].text) {
					c.unknown("a setting of " + c.name + " that is not known here")
					return
				}
			default:
				c.unknown("the option -" + s[k:k+1] + " of " + c.name + " is not one that is known here")
				return
			}
		}
	}
	rest := args[i:]
	switch {
	case isText:
		if len(rest) == 0 {
			c.act(Act{Op: Read})
			return
		}
		if text, rest = rest[0], rest[1:]; text.sureness != sure {
			c.unknown("the commands that " + c.name + " gets: " + loosely(text) + " decides them")
			return
		}
		if len(rest) > 0 {
			rest = rest[1:] // $0
		}
		c.inText(text.text, posix, rest)
	case len(rest) > 0 && !stdin:
		c.scriptWord(rest[0], posix, rest[1:])
	case c.in.typed:
		c.takesOrders()
	case c.in.given:
		src := c.in.text
		c.in = input{piped: true}
		c.inText(src, posix, rest)
	default:
		c.unknown("the commands that " + c.name + " gets on its input are only known when it runs")
	}
}

func plainShellOption(s string) bool {
	return slices.Contains([]string{"errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "errtrace", "functrace", "inherit_errexit", "nullglob", "failglob", "globstar"}, s)
}

// startUp notes that a shell reads its start-up files.
func (c *call) startUp() {
	var files []string
	if c.w.cmd.Home != "" {
		for _, n := range []string{".bash_profile", ".bash_login", ".profile", ".bashrc"} {
			files = append(files, c.w.cmd.Home+"/"+n)
		}
	}
	c.act(Act{Op: Run, Program: c.name, Scripts: files})
}

// scriptWord judges a script by its name.
func (c *call) scriptWord(w word, posix bool, args []word) {
	ps, why := c.w.paths(c.st, w)
	if why != "" || w.sureness != sure || w.text == procFile {
		if w.text == procFile {
			w.why = "what another command prints"
		}
		c.unknown("which script " + c.name + " runs: " + loosely(w) + " decides it")
		return
	}
	if c.runsInput(w) {
		c.takesOrders()
		return
	}
	if at, _ := c.w.leads(ps[0]); isOpen(at) {
		if c.in.given && isStandardInput(at) {
			src := c.in.text
			c.in = input{piped: true}
			c.inText(src, posix, args)
			return
		}
		c.unknown("the commands that " + c.name + " gets from " + w.text + " are only known when it runs")
		return
	}
	if len(ps) == 1 {
		if src, ok := c.w.readFile(ps[0].Name); ok {
			c.script(ps[0].Name, src, posix, args)
			return
		}
	}
	var scripts []string
	for _, p := range ps {
		scripts = append(scripts, p.Name)
	}
	c.act(Act{Op: Run, Program: c.name, Scripts: scripts, Dir: c.dir()})
}

// script judges the text of a script.
func (c *call) script(name, src string, posix bool, args []word) outcome {
	c.fr = c.fr.inner(c.fr.src)
	c.via = append(slices.Clone(c.via), name)
	c.nested(src, posix, args)
	return both(c.st)
}

// inText judges the text that a shell is given.
func (c *call) inText(src string, posix bool, args []word) {
	if c.outermost {
		c.text = src
	} else {
		c.via = append(slices.Clone(c.via), c.name)
	}
	c.nested(src, posix, args)
}

// nested walks a text in a shell of its own.
func (c *call) nested(src string, posix bool, args []word) {
	st := c.fresh(args)
	if !posix {
		c.walkText(src, false, st)
		return
	}
	// What /bin/sh is differs: both ways of reading have to come to the same.
	if _, err := parse(src, true); err != nil {
		c.walkText(src, false, st)
		return
	}
	from := len(c.w.parts)
	c.walkText(src, true, st.clone())
	if _, err := parse(src, false); err != nil {
		return
	}
	one := slices.Clone(c.w.parts[from:])
	c.w.parts = c.w.parts[:from]
	c.emitted = false
	c.walkText(src, false, st)
	if !slices.EqualFunc(one, c.w.parts[from:], func(a, b *part) bool { return reflect.DeepEqual(a.Part, b.Part) }) {
		c.w.parts = append(c.w.parts[:from], one...)
		c.w.add(&part{Part: Part{Text: c.text, Via: c.via, Acts: []Act{{Op: Unknown, Why: "shells read this text in different ways"}}}})
	}
}

// fresh is the state that a shell of its own starts with.
func (c *call) fresh(args []word) *state {
	st := &state{vars: map[string]value{}, funcs: map[string][]function{}, cwd: c.st.cwd, pos: args, posKnown: !c.many(args)}
	st.errexit = c.errexit
	for n := range c.st.vars {
		st.vars[n] = value{word: unknown("$" + n)}
	}
	for n, w := range c.envs {
		st.vars[n] = value{word: w}
	}
	_, st.oddSplit = c.envs["IFS"]
	st.oddSplit = st.oddSplit || c.outermost && c.st.oddSplit
	return st
}

// walkText parses and walks a text.
func (c *call) walkText(src string, posix bool, st *state) outcome {
	if len(src) > maxText {
		panic(tooMuch("This command is too long to be read before it runs."))
	}
	f, err := parse(src, posix)
	if err != nil {
		if c.outermost {
			panic(tooMuch("This command could not be read as the text of a shell, so what it does can't be told beforehand."))
		}
		c.unknown("the text it runs could not be read")
		c.emit()
		return both(st)
	}
	c.pass()
	fr := c.fr.inner(src, c.via...)
	fr.posix = posix
	return c.w.stmts(fr, f.Stmts, st, c.in)
}

// prints is what a command surely writes to its standard output, where that
// is simple to tell.
func (w *walker) prints(fr *frame, s *syntax.Stmt, st *state) (string, bool) {
	x, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || len(x.Assigns) > 0 || len(x.Args) == 0 {
		return "", false
	}
	w.dry++
	defer func() { w.dry-- }()
	e := &env{w: w, fr: fr, st: st}
	args, ok := texts(e.words(x.Args))
	if !ok || len(args) == 0 || len(st.funcs[args[0]]) > 0 {
		return "", false
	}
	switch {
	case args[0] == "cat" && len(args) == 1 && len(s.Redirs) == 1:
		in := e.redirects(s.Redirs, input{})
		return in.text, in.given
	case len(s.Redirs) > 0 || strings.Contains(strings.Join(args, ""), `\`) && args[0] == "echo":
		return "", false
	case args[0] == "echo" && len(args) > 1 && !strings.HasPrefix(args[1], "-"):
		return strings.Join(args[1:], " ") + "\n", true
	case args[0] == "printf" && len(args) == 3 && (args[1] == "%s" || args[1] == `%s\n`):
		return args[2] + "\n", true
	case args[0] == "printf" && len(args) == 2 && !strings.ContainsAny(args[1], `%`) && !strings.HasPrefix(args[1], "-"):
		t := strings.ReplaceAll(args[1], `\n`, "\n")
		return t, !strings.Contains(t, `\`)
	}
	return "", false
}
