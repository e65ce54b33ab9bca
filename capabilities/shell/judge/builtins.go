package judge

import (
	"path"
	"slices"
	"strings"
)

// builtin judges what a shell does itself; ok is false for what is none.
func (c *call) builtin() (o outcome, ok bool) {
	args := c.args[1:]
	o = both(c.st)
	c.prog = c.w.programs[c.name]
	switch c.name {
	case ":", "true", "false", "times", "jobs", "wait", "umask", "ulimit", "dirs", "caller", "fg", "bg", "disown", "suspend", "logout", "break", "continue", "return", "unalias", "type", "help":
		if c.name == "wait" && len(args) > 0 && (args[0].sureness == unsure || strings.HasPrefix(args[0].text, "-p")) {
			c.unknown("a variable's name is only known when it runs")
		}
		c.quiet()
	case "echo":
		c.act(Act{Op: Read})
	case "pwd":
		c.act(Act{Op: Read})
	case "exit":
		c.quiet()
		c.emit()
		if len(args) == 0 || len(args) == 1 && (args[0].sureness == number || args[0].sureness == sure && isDigits(args[0].text)) {
			return outcome{}, true
		}
	case "printf":
		c.printf(args)
	case "test", "[":
		c.test(args)
	case "cd", "pushd":
		return c.cd(), true
	case "popd":
		st := c.st.clone()
		st.cwd, st.old = nil, c.st.cwd
		c.quiet()
		c.emit()
		return outcome{st, c.st}, true
	case "command":
		return c.command()
	case "builtin":
		return c.onlyBuiltin(args)
	case "exec":
		return c.exec()
	case "eval":
		return c.eval(), true
	case ".", "source":
		return c.source(), true
	case "export", "readonly", "local", "declare", "typeset":
		c.declare(args)
	case "set":
		c.set(args)
	case "shopt":
		c.shopt(args)
	case "shift":
		n := 1
		if len(args) > 0 {
			n = -1
			if args[0].sureness == sure && len(args[0].text) == 1 && isDigits(args[0].text) {
				n = int(args[0].text[0] - '0')
			}
		}
		if n >= 0 && n <= len(c.st.pos) && c.st.posKnown {
			c.st.pos = c.st.pos[n:]
		} else {
			c.st.pos, c.st.posKnown = nil, false
		}
		c.quiet()
	case "unset":
		c.unset(args)
	case "read":
		c.readInto(args)
	case "mapfile", "readarray":
		c.mapfile(args)
	case "getopts":
		c.setNames(args, 1, 2)
		c.setVar("OPTARG", unknown("$OPTARG"))
	case "alias":
		for _, a := range args {
			if a.sureness != sure || strings.Contains(a.text, "=") {
				c.unknown("it gives a command another meaning")
			}
		}
		c.quiet()
	case "trap":
		c.trap(args)
	case "hash":
		for _, a := range args {
			if a.sureness != sure || strings.HasPrefix(a.text, "-") && a.text != "-r" && a.text != "-l" {
				c.unknown("it may change which program a name stands for")
			}
		}
		c.quiet()
	case "history":
		if len(args) > 0 {
			c.unknown("it may write the list of commands typed before")
		}
		c.act(Act{Op: Read})
	case "let":
		e := &env{w: c.w, fr: c.fr, st: c.st}
		e.unknown("a sum in an unusual form")
		c.acts = append(c.acts, e.acts...)
	case "enable", "bind", "complete", "compgen", "compopt", "fc":
		c.unknown("it changes how the shell itself works")
	default:
		c.prog = nil
		return outcome{}, false
	}
	c.emit()
	return o, true
}

// quiet is for what has no effect outside of the shell.
func (c *call) quiet() { c.prog = quietBuiltin }

var quietBuiltin = &program{}

func (c *call) setVar(name string, w word) {
	e := &env{w: c.w, fr: c.fr, st: c.st}
	e.assign(name, value{word: w})
	c.acts = append(c.acts, e.acts...)
}

// setNames notes variables that get a value; a name that is none may have
// commands in its index.
func (c *call) setNames(args []word, from, to int) {
	for i := from; i < to && i < len(args); i++ {
		if args[i].sureness != sure || !isName(args[i].text) {
			c.unknown("the variable's name is only known when it runs")
			continue
		}
		c.setVar(args[i].text, unknown("$"+args[i].text))
	}
}

func (c *call) printf(args []word) {
	c.act(Act{Op: Read})
	if len(args) == 0 {
		return
	}
	a := args[0]
	switch {
	case a.sureness == sure && !strings.HasPrefix(a.text, "-v"):
	case a.is("-v"):
		c.setNames(args, 1, 2)
	case a.sureness == sure:
		c.setNames([]word{lit(a.text[2:])}, 0, 1)
	case a.many || a.mayBeOption() && len(args) > 2:
		c.unknown("which options printf gets: " + loosely(a) + " decides them")
	}
}

// test judges test and [, which run nothing, but for the index of a variable's
// name behind -v.
func (c *call) test(args []word) {
	c.act(Act{Op: Read})
	for i, a := range args {
		switch {
		case a.many:
			c.unknown("what is tested: " + loosely(a) + " may be several words")
			return
		case a.sureness == sure && (a.text == "-v" || a.text == "-R") && i+1 < len(args):
			if n := args[i+1]; n.sureness != sure || strings.Contains(n.text, "[") {
				c.unknown("the variable's name is only known when it runs")
				return
			}
		case a.sureness == unsure && a.mayBeOption() && i+1 < len(args) && (args[i+1].sureness == unsure || args[i+1].sureness == sure && strings.Contains(args[i+1].text, "[")):
			c.unknown("what is tested: " + loosely(a) + " decides it")
			return
		}
	}
}

func (c *call) cd() outcome {
	st := c.st.clone()
	st.old = c.st.cwd
	st.cwd = nil
	var dirs []word
	ok := true
	for i, a := range c.args[1:] {
		switch {
		case a.sureness == sure && (a.text == "-L" || a.text == "-P" || a.text == "-e" || a.text == "-n" || a.text == "--") && i == len(dirs):
		case newTemp(a):
			dirs = append(dirs, lit(a.text))
		case a.sureness != sure || a.many:
			ok = false
		default:
			dirs = append(dirs, a)
		}
	}
	_, cdPath := c.st.vars["CDPATH"]
	_, cdEnv := c.w.cmd.Env["CDPATH"]
	switch {
	case !ok || len(dirs) > 1 || cdPath || cdEnv:
	case len(dirs) == 0 && c.name == "cd":
		if h := c.w.lookup(c.st, "HOME").word; h.sureness == sure && path.IsAbs(h.text) {
			st.cwd = []string{path.Clean(h.text)}
		}
	case len(dirs) == 0:
	case dirs[0].is("-"):
		st.cwd = c.st.old
	case strings.HasPrefix(dirs[0].text, "+") || strings.HasPrefix(dirs[0].text, "-") && c.name == "pushd":
	case dirs[0].text == "":
		st.cwd = c.st.cwd
	default:
		if at, ok := c.st.at(dirs[0].text); ok {
			st.cwd = union(nil, at)
		}
	}
	c.quiet()
	c.emit()
	return outcome{st, c.st}
}

func (c *call) command() (outcome, bool) {
	args := c.args[1:]
	for len(args) > 0 {
		a := args[0]
		switch {
		case a.is("-p"):
		case a.is("--"):
			args = args[1:]
			return c.noFunction(args), true
		case a.is("-v"), a.is("-V"), a.is("-pv"), a.is("-pV"):
			c.act(Act{Op: Read})
			c.emit()
			return both(c.st), true
		case a.sureness == sure && strings.HasPrefix(a.text, "-"):
			c.unknown("the option " + a.text + " of command is not one that is known here")
			c.emit()
			return both(c.st), true
		default:
			return c.noFunction(args), true
		}
		args = args[1:]
	}
	c.emit()
	return both(c.st), true
}

func (c *call) noFunction(args []word) outcome {
	c.builtins = true
	if len(args) == 0 {
		c.emit()
		return both(c.st)
	}
	return c.start(args)
}

func (c *call) onlyBuiltin(args []word) (outcome, bool) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	return c.noFunction(args), true
}

func (c *call) exec() (outcome, bool) {
	p := &program{short: "cla:", is: stops | inner}
	o := c.options(p, c.args[1:])
	if o.bad != "" {
		c.unknown("the option " + o.bad + " of exec is not one that is known here")
	}
	if len(o.rest) == 0 {
		c.quiet()
		c.emit()
		return both(c.st), true
	}
	if o.has("l") {
		c.startUp()
	}
	c.startBare(o.rest)
	return both(c.st), true
}

// eval judges a text as a part of the line.
func (c *call) eval() outcome {
	args := c.args[1:]
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	ts, ok := texts(args)
	if !ok {
		c.unknown("the commands that eval gets are only known when it runs")
		c.emit()
		return both(c.st)
	}
	src := strings.Join(ts, " ")
	c.via = append(slices.Clone(c.via), c.name)
	return c.walkText(src, c.fr.posix, c.st)
}

// activates knows the script that a virtual environment of Python comes with,
// and the name of one that is not there yet.
func (c *call) activates(name string) bool {
	if !strings.HasSuffix(name, "/bin/activate") {
		return false
	}
	src, ok := c.w.readFile(name)
	if !ok && c.w.cmd.List != nil {
		names, _ := c.w.cmd.List(path.Dir(name))
		return !slices.Contains(names, "activate")
	}
	return ok && strings.Contains(src, "deactivate () {") && strings.Contains(src, "VIRTUAL_ENV=")
}

func (c *call) source() outcome {
	args := c.args[1:]
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		c.quiet()
		c.emit()
		return both(c.st)
	}
	if c.runsInput(args[0]) {
		c.takesOrders()
		c.emit()
		return both(c.st)
	}
	ps, why := c.w.paths(c.st, args[0])
	if why == "" && args[0].sureness == sure && len(ps) == 1 && c.activates(ps[0].Name) {
		c.act(Act{Op: Run, Program: "activate", Scripts: []string{ps[0].Name}})
		c.emit()
		return both(c.st)
	}
	if why == "" && args[0].sureness == sure && len(ps) == 1 && !strings.HasPrefix(args[0].text, "-") {
		if src, ok := c.w.readFile(ps[0].Name); ok {
			c.via = append(slices.Clone(c.via), ps[0].Name)
			st := c.st.clone()
			pos, posKnown := st.pos, st.posKnown
			if len(args) > 1 {
				st.pos, st.posKnown = args[1:], !c.many(args[1:])
			}
			o := c.walkText(src, c.fr.posix, st)
			for _, s := range []*state{o.ok, o.fail} {
				if s != nil && len(args) > 1 {
					s.pos, s.posKnown = pos, posKnown
				}
			}
			return o
		}
	}
	c.unknown("the file with its commands could not be read beforehand")
	c.emit()
	return both(c.st)
}

func (c *call) set(args []word) {
	c.quiet()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.sureness != sure {
			if a.mayBeOption() || a.sureness == pattern {
				c.unknown("which settings of the shell change: " + loosely(a) + " decides it")
			}
			c.st.pos, c.st.posKnown = nil, false
			return
		}
		s := a.text
		if s == "--" || s == "-" || s == "" || s[0] != '-' && s[0] != '+' {
			if s == "--" || s == "-" {
				i++
			}
			c.st.pos, c.st.posKnown = args[i:], !c.many(args[i:])
			return
		}
		on := s[0] == '-'
		for _, l := range s[1:] {
			switch l {
			case 'e':
				c.st.errexit = on
			case 'f':
				c.st.noglob = on
			case 'o':
				if i++; i >= len(args) {
					return
				}
				if args[i].sureness != sure || !plainShellOption(args[i].text) {
					c.unknown("it changes how the shell itself works")
					return
				}
				switch args[i].text {
				case "errexit":
					c.st.errexit = on
				case "noglob":
					c.st.noglob = on
				}
			case 'u', 'x', 'v', 'C', 'E', 'T', 'b', 'a', 'n', 'h', 'm':
			default:
				c.unknown("it changes how the shell itself works")
				return
			}
		}
	}
}

func (c *call) shopt(args []word) {
	c.quiet()
	on, off := false, false
	for _, a := range args {
		switch {
		case a.is("-s"):
			on = true
		case a.is("-u"):
			off = true
		case a.is("-q"), a.is("-p"):
		case a.sureness != sure:
			c.unknown("it changes how the shell itself works")
		case !on && !off:
		case a.text == "globstar":
			c.st.globstar = on
		case slices.Contains([]string{"nullglob", "failglob", "inherit_errexit", "checkwinsize", "cmdhist", "histappend"}, a.text):
		case slices.Contains([]string{"dotglob", "extglob", "nocaseglob", "nocasematch"}, a.text):
			c.st.oddGlob = true
		default:
			c.unknown("it changes how the shell itself works")
		}
	}
}

func (c *call) unset(args []word) {
	c.quiet()
	for i, a := range args {
		switch {
		case a.sureness != sure, strings.Contains(a.text, "["):
			c.unknown("the variable's name is only known when it runs")
		case i == 0 && (a.text == "-f" || a.text == "-v" || a.text == "-n"):
		case !isName(a.text):
		default:
			if fs := c.st.funcs[a.text]; len(fs) > 0 {
				c.st.funcs[a.text] = union(fs, []function{{}})
			}
			if len(args) > 0 && !args[0].is("-f") {
				if mattersToPrograms(a.text) {
					c.setVar(a.text, unknown("$"+a.text))
				}
				c.st.vars[a.text] = value{word: lit(""), unset: true}
				if a.text == "IFS" {
					c.st.oddSplit = true
				}
			}
		}
	}
}

func (c *call) readInto(args []word) {
	c.quiet()
	p := &program{short: "ersa:d:i:n:N:p:t:u:", is: stops}
	o := c.options(p, args)
	if o.bad != "" || o.loose != "" {
		c.unknown("which variables it fills is only known when it runs")
	}
	names := append(o.rest, o.each("a")...)
	c.setNames(names, 0, len(names))
	for _, n := range o.each("a") {
		if n.sureness == sure {
			c.st.vars[n.text] = value{word: unknown("$" + n.text), list: true}
		}
	}
	if len(names) == 0 {
		c.st.vars["REPLY"] = value{word: unknown("$REPLY")}
	}
}

func (c *call) mapfile(args []word) {
	c.quiet()
	p := &program{short: "d:n:O:s:tu:", is: stops}
	o := c.options(p, args)
	if o.bad != "" || o.loose != "" {
		c.unknown("it may run a command for each line")
	}
	c.setNames(o.rest, 0, len(o.rest))
	name := "MAPFILE"
	if len(o.rest) > 0 && o.rest[0].sureness == sure {
		name = o.rest[0].text
	}
	c.st.vars[name] = value{word: unknown("$" + name), list: true}
}

// trap judges the commands that run at a signal or at the end, when nothing is
// sure of what they find.
func (c *call) trap(args []word) {
	c.quiet()
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	switch {
	case len(args) < 2, args[0].is("-"), args[0].is(""), args[0].is("-p"), args[0].is("-l"):
		if c.many(args) {
			c.unknown("which commands run at the end is only known when it runs")
		}
		return
	case args[0].sureness != sure:
		c.unknown("which commands run at the end: " + loosely(args[0]) + " decides them")
		return
	}
	st := c.st.clone()
	st.cwd, st.old, st.posKnown = nil, nil, false
	for n := range st.vars {
		st.vars[n] = value{word: unknown("$" + n), list: st.vars[n].list}
	}
	d := *c
	d.st = st
	d.via = append(slices.Clone(c.via), c.name)
	d.in = input{piped: true, typed: c.w.fed()}
	d.walkText(args[0].text, c.fr.posix, st)
	c.emitted = true
}
