package judge

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is one simple command on its way through its wrappers.
type call struct {
	w    *walker
	fr   *frame
	st   *state
	in   input
	args []word
	text string
	acts []Act
	via  []string
	envs map[string]word // set for this command alone
	name string
	prog *program

	bare      bool // no function, no builtin: started by another program
	builtins  bool // no function (command, builtin)
	outermost bool // nothing is around it
	errexit   bool // the shell it starts ends where a command fails
	emitted   bool
}

// simple walks a simple command.
func (w *walker) simple(fr *frame, s *syntax.Stmt, x *syntax.CallExpr, st *state, in input) outcome {
	e := &env{w: w, fr: fr, st: st}
	args := e.words(x.Args)
	r := e.redirects(s.Redirs, in)
	c := &call{w: w, fr: fr, st: st, in: r, args: args, text: fr.text(s)}
	if len(x.Args) == 0 {
		e.assigns(x.Assigns)
		c.acts = e.acts
		for _, a := range x.Assigns {
			if a.Name != nil {
				c.name = "=" + a.Name.Value
			}
		}
		c.emit()
		return both(st)
	}
	if len(x.Assigns) == 0 {
		c.acts = e.acts
		return c.run()
	}
	// They are there for this command alone.
	after := st.clone()
	e.st = st.clone()
	e.assigns(x.Assigns)
	c.acts, c.envs = e.acts, map[string]word{}
	for _, a := range x.Assigns {
		if a.Name != nil {
			c.envs[a.Name.Value] = e.w.lookup(e.st, a.Name.Value).word
		}
	}
	name := ""
	if len(args) > 0 && args[0].sureness == sure {
		name = args[0].text
	}
	switch _, isFunc := st.funcs[name]; {
	case isFunc, slices.Contains([]string{"eval", ".", "source", "command", "builtin", "exec", "export", "readonly", "set", "trap", "unset", ":", "shift"}, name):
		c.st = e.st
		o := c.run()
		// Whether they stay depends on the shell.
		for _, s := range []*state{o.ok, o.fail} {
			if s != nil {
				for n := range c.envs {
					s.vars[n] = value{word: unknown("$" + n)}
				}
			}
		}
		return o
	}
	*st = *after
	return c.run()
}

// run judges what the words of the call start.
func (c *call) run() outcome {
	c.w.step()
	if len(c.via) > maxDepth {
		panic(tooMuch("This command has too many commands inside each other to be read before it runs."))
	}
	if len(c.args) == 0 {
		c.emit()
		return both(c.st)
	}
	first := c.args[0]
	if first.sureness != sure {
		c.unknown("which program it runs: " + loosely(first) + " decides it")
		c.emit()
		return both(c.st)
	}
	if c.name = first.text; c.name == "" {
		c.quiet()
		c.emit()
		return both(c.st)
	}
	if !c.bare && !c.builtins {
		if fs := c.st.funcs[c.name]; len(fs) > 0 {
			return c.function(fs)
		}
	}
	if !c.bare {
		if o, ok := c.builtin(); ok {
			return o
		}
	}
	if strings.Contains(c.name, "/") {
		dir, base := path.Split(c.name)
		if dir = path.Clean(dir); !systemDirs[dir] || base == "" {
			return c.file()
		}
		c.name = base
	}
	c.program()
	return both(c.st)
}

// program judges a program by its name.
func (c *call) program() {
	p := c.w.programs[c.name]
	if p == nil {
		p = c.w.programs[strings.TrimRight(c.name, "0123456789.")]
		if p != nil && !versioned(strings.TrimRight(c.name, "0123456789.")) {
			p = nil
		}
	}
	if p == nil {
		c.opaque(nil)
		c.emit()
		return
	}
	c.prog = p
	o := c.options(p, c.args[1:])
	if p.is&free == 0 {
		if o.has("help", "version") && o.bad == "" && o.loose == "" && p.is&(stops|inner) == 0 {
			c.act(Act{Op: Read})
			c.emit()
			return
		}
		if o.bad != "" {
			c.unknown("the option " + o.bad + " of " + c.name + " is not one that is known here")
		}
	}
	defer c.emit()
	switch {
	case p.do != nil:
		p.do(c, o)
	case p.is&data == 0:
		c.reads(o.rest...)
	default:
		c.act(Act{Op: Read})
	}
	if o.loose != "" && p.is&(free|inner) == 0 && !o.settled && !slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op == Unknown }) {
		c.unknown(o.loose)
	}
}

// versioned are programs whose names have a version behind them.
func versioned(base string) bool {
	return slices.Contains([]string{"python", "pip", "perl", "ruby", "php", "lua", "node", "gcc", "clang", "g++", "pypy", "java"}, base)
}

func (c *call) act(a Act) { c.acts = append(c.acts, a) }

func (c *call) unknown(why string) { c.act(Act{Op: Unknown, Why: why}) }

// reads notes names that are read; those that are not known leave no name.
func (c *call) reads(ws ...word) {
	c.act(Act{Op: Read})
	for _, w := range ws {
		if w.is("-") {
			continue
		}
		c.acts = append(c.acts, c.w.reading(c.st, w)...)
	}
}

// names are the paths of words that an effect is on. Not known: the act is
// Unknown, and ok false.
func (c *call) names(what string, ws ...word) (ps []Path, ok bool) {
	for _, w := range ws {
		p, why := c.w.paths(c.st, w)
		if why != "" {
			c.unknown(what + ": " + why)
			return nil, false
		}
		for _, x := range p {
			if a, special := device(c.w, x.Name); special && a.Op != 0 {
				c.act(a)
				continue
			} else if special {
				continue
			}
			ps = append(ps, x)
		}
	}
	return ps, true
}

// on notes an effect on all the words.
func (c *call) on(op Op, ws ...word) {
	if len(ws) == 0 {
		return
	}
	if ps, ok := c.names(opWhat(op), ws...); ok && len(ps) > 0 {
		c.act(Act{Op: op, Paths: ps, Replaces: true})
	}
}

func opWhat(op Op) string {
	switch op {
	case Delete:
		return "what is deleted"
	case Access:
		return "whose permissions change"
	case Move, Copy, Link, Extract:
		return "where it goes"
	}
	return "which file is written"
}

// emit notes the part of the call, once.
func (c *call) emit() {
	if c.emitted {
		return
	}
	c.emitted = true
	c.typedInto()
	c.passes()
	c.w.add(&part{
		Part: Part{Text: c.text, Argv: known(c.args), Via: slices.Concat(c.fr.via, c.via), Acts: c.acts},
		prog: c.prog, name: c.name,
	})
}

// pass gives the effects so far to a part of the wrapper's own, where what it
// runs has parts of its own.
func (c *call) pass() {
	if len(c.acts) > 0 {
		c.emit()
	}
	c.emitted = true
}

// start judges the command that a wrapper starts: the part is that command's.
func (c *call) start(args []word) outcome {
	d := &call{w: c.w, fr: c.fr, st: c.st, in: c.in, args: args, text: c.text, acts: c.acts, envs: c.envs, bare: c.bare, builtins: c.builtins}
	d.via = append(slices.Clone(c.via), c.name)
	c.emitted = true
	return d.run()
}

// startBare is start for a wrapper that knows no functions and builtins.
func (c *call) startBare(args []word) {
	if len(args) == 0 {
		c.act(Act{Op: Read})
		return
	}
	c.bare = true
	c.start(args)
}

// function judges the call of a function by its body.
func (c *call) function(fs []function) outcome {
	c.pass()
	var out outcome
	for _, f := range fs {
		var o outcome
		if f.body == nil {
			d := *c
			d.st, d.builtins, d.emitted, d.acts = c.st.clone(), true, false, nil
			o = d.run()
		} else {
			st := c.st.clone()
			st.pos, st.posKnown, st.locals = c.args[1:], !c.many(c.args[1:]), nil
			fr := f.from.inner(f.from.src)
			fr.via, fr.depth = slices.Concat(c.fr.via, c.via), c.fr.depth+1
			if fr.depth > maxDepth {
				panic(tooMuch("This command has functions that call each other too deeply to be read before it runs."))
			}
			o = c.w.stmt(fr, f.body, st, c.in)
			for _, s := range []*state{o.ok, o.fail} {
				if s == nil {
					continue
				}
				for _, n := range s.locals {
					s.vars[n] = value{word: unknown("$" + n)}
				}
				s.pos, s.posKnown, s.locals = c.st.pos, c.st.posKnown, c.st.locals
			}
		}
		out = outcome{c.w.join(out.ok, o.ok), c.w.join(out.fail, o.fail)}
	}
	return out
}

// opaque is a program whose doing is its own.
func (c *call) opaque(scripts []string) {
	c.act(Act{Op: Run, Program: c.name, Scripts: scripts, Dir: c.dir()})
	c.outputs()
	c.tidies()
	if c.prog != nil {
		return
	}
	if what := c.handed(); what != "" {
		c.unknown(path.Base(c.name) + " is not on the list of programs, and it is given another command: " + what)
	}
}

func (c *call) dir() string {
	if len(c.st.cwd) == 1 {
		return c.st.cwd[0]
	}
	return ""
}

// isStrong tells whether a word is the name of a program that nobody uses for
// anything else.
func isStrong(s string) bool {
	return slices.Contains(strings.Fields(strongNames), s)
}

const strongNames = "rm rmdir mv cp ln dd sh bash dash zsh ksh fish env sudo doas chmod chown truncate shred tee touch mkdir unlink git curl wget " +
	"python python3 perl ruby php xargs find sed awk gawk tar nc ncat ssh scp rsync kill pkill killall eval busybox pwsh powershell cmd mkfs " +
	"reboot shutdown systemctl nohup setsid node npm npx"

// handedCommand finds a command line among a program's arguments.
func handedCommand(args []word) string {
	for _, a := range args {
		if a.sureness != sure {
			continue
		}
		first, _, spaced := strings.Cut(strings.TrimSpace(a.text), " ")
		if isStrong(path.Base(first)) && (spaced || path.Base(a.text) == path.Base(first)) {
			return a.text
		}
	}
	return ""
}

// file judges a program that is named by its place.
func (c *call) file() outcome {
	at, ok := c.st.at(c.name)
	if c.runsInput(lit(c.name)) {
		c.takesOrders()
		c.emit()
		return both(c.st)
	}
	if len(at) == 1 && ok {
		if src, ok := c.w.readFile(at[0]); ok {
			switch shebang(src) {
			case "sh", "dash":
				return c.script(at[0], src, true, c.args[1:])
			case "bash":
				return c.script(at[0], src, false, c.args[1:])
			}
		}
	}
	c.opaque(at)
	c.emit()
	return both(c.st)
}

// shebang is the shell that a script asks for, or "".
func shebang(src string) string {
	line, _, _ := strings.Cut(src, "\n")
	f := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(f) == 0 {
		return ""
	}
	if f[0] == "/usr/bin/env" && len(f) == 2 {
		return f[1]
	}
	if len(f) == 1 && systemDirs[path.Dir(f[0])] {
		return path.Base(f[0])
	}
	return ""
}

// maxScript is as much as Read gives of a file.
const maxScript = 64 << 10

// readFile reads a script of the folder.
func (w *walker) readFile(name string) (string, bool) {
	if w.cmd.Read == nil || w.cmd.Folder == "" || name != w.cmd.Folder && !strings.HasPrefix(name, strings.TrimSuffix(w.cmd.Folder, "/")+"/") {
		return "", false
	}
	b, ok := w.cmd.Read(name)
	if !ok || len(b) >= maxScript {
		return "", false
	}
	w.read[name] = true
	return string(b), true
}
