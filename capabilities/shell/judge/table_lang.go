package judge

import "strings"

// lang is how a language reads its own options, as far as they say where its
// program comes from. The first four are letters, the last three long options.
type lang struct {
	code   string // their value is the program
	value  string // with a value: the rest of the word, or the next one
	rest   string // with a value only where it is attached
	orders string // they make it ask for more
	codes  string // their value is the program
	values string // with a value
	flags  string // without one
	idle   bool   // without a program it reads none
}

var langs = map[string]lang{
	"python": {code: "c", value: "WXQ", orders: "i", values: "check-hash-based-pycs", flags: "help help-all help-env help-xoptions"},
	"node": {code: "ep", value: "rCPOID", orders: "i", codes: "eval print", values: "require import loader experimental-loader conditions input-type env-file title project compiler",
		flags: "inspect inspect-brk watch test check no-warnings no-deprecation enable-source-maps experimental-strip-types experimental-transform-types experimental-vm-modules " +
			"trace-warnings trace-deprecation trace-uncaught expose-gc preserve-symlinks throw-deprecation harmony esm transpile-only files prof cpu-prof heap-prof help"},
	"deno":      {},
	"perl":      {code: "eE", value: "I", rest: "MmiF0lDCxtVd", orders: "d"},
	"ruby":      {code: "e", value: "rIEC", rest: "KiWTx0F", values: "encoding external-encoding internal-encoding enable disable backtrace-limit", flags: "verbose yjit jit debug copyright help"},
	"php":       {code: "rBRES", value: "dczt", orders: "a", codes: "run process-begin process-code process-end server", values: "define php-ini zend-extension docroot", flags: "file process-file no-php-ini syntax-check strip info help"},
	"lua":       {code: "e", value: "l", orders: "i"},
	"Rscript":   {code: "e", idle: true, flags: "vanilla verbose no-save slave quiet no-environ no-site-file no-init-file no-restore help"},
	"java":      {idle: true},
	"julia":     {code: "eE", value: "LpJtHC", rest: "OgK", orders: "i", values: "load procs threads home machine-file cpu-target"},
	"osascript": {code: "e", value: "ls", orders: "i"},
}

// languages run a program of the folder, or one that stands in the line.
func languages() map[string]*program {
	m := map[string]*program{}
	for name, says := range map[string]string{
		"python": "Python", "pypy": "Python", "node": "JavaScript", "deno": "JavaScript", "ts-node": "JavaScript", "tsx": "JavaScript",
		"perl": "Perl", "ruby": "Ruby", "php": "PHP", "lua": "Lua", "java": "Java", "julia": "Julia",
	} {
		m[name] = &program{says: "Runs a " + says + " program", is: free, do: language(name)}
	}
	m["Rscript"] = &program{says: "Runs a program for statistics", is: free, do: language("Rscript")}
	m["osascript"] = &program{says: "Runs a script", is: free, do: language("osascript")}
	for _, sh := range []string{"zsh", "fish", "ksh", "mksh", "csh", "tcsh", "nu", "elvish", "xonsh"} {
		m[sh] = &program{is: free, do: otherShell("the language of " + sh + " is not read here")}
	}
	for _, sh := range []string{"pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe", "wsl"} {
		m[sh] = &program{is: free, do: otherShell("the language of Windows' command lines is not read here")}
	}
	return m
}

func language(name string) func(*call, *opts) {
	switch name {
	case "pypy":
		name = "python"
	case "ts-node", "tsx":
		name = "node"
	}
	l := langs[name]
	return func(c *call, _ *opts) {
		args := c.args[1:]
		if len(args) == 1 && (args[0].is("--version") || args[0].is("-V") && name != "perl" || args[0].is("-v") && name != "perl" && name != "python") {
			c.act(Act{Op: Read})
			return
		}
		r := &langArgs{c: c, l: l, name: name, args: args}
		r.read()
	}
}

// langArgs reads the arguments of a language.
type langArgs struct {
	c    *call
	l    lang
	name string
	args []word
	i    int
	// given: its program is one of the arguments. loose: an option is not known,
	// and what stands after it may be its value. asks: it asks for more.
	given, loose, asks bool
}

func (r *langArgs) read() {
	c := r.c
	for ; r.i < len(r.args); r.i++ {
		a := r.args[r.i]
		s := a.text
		switch {
		case a.sureness != sure:
			r.end()
			return
		case strings.HasPrefix(s, "--") && len(s) > 2:
			r.long(s[2:])
			continue
		case s == "--" && r.name != "php" && r.i+1 < len(r.args):
			continue // what follows is the program
		case len(s) > 1 && s[0] == '-' && s != "--":
			if r.letters(s[1:]) {
				return
			}
			continue
		case s == "-" || s == "--":
			r.end()
			return
		}
		c.runs(a)
		if r.asks || r.loose && !r.given && c.in.typed || !r.given && c.runsInput(a) || r.name == "deno" && s == "repl" && c.in.typed {
			c.takesOrders()
		}
		return
	}
	r.end()
}

// end is without a program among the arguments, or with one that is given.
func (r *langArgs) end() {
	r.c.runs()
	if r.asks || !r.given && !r.l.idle && r.c.in.typed {
		r.c.takesOrders()
	}
}

// next is the value of an option that has none attached.
func (r *langArgs) next() (word, bool) {
	if r.i++; r.i < len(r.args) {
		return r.args[r.i], true
	}
	return word{}, false
}

// program is an option's value that is the program itself.
func (r *langArgs) program(w word, ok bool) {
	r.given = true
	r.asks = r.asks || ok && w.sureness != sure && r.c.w.fed()
}

// letters reads options of one letter each; true: the call is dealt with.
func (r *langArgs) letters(s string) bool {
	if r.name == "node" && s == "pe" {
		s = "e"
	}
	for k := range len(s) {
		l, attached := s[k:k+1], s[k+1:]
		if strings.Contains(r.l.orders, l) {
			r.asks = r.asks || r.c.in.typed
		}
		switch {
		case r.name == "python" && l == "m":
			rest := r.args[min(r.i+1, len(r.args)):]
			if attached != "" {
				rest = append([]word{lit(attached)}, rest...)
			}
			if len(rest) == 0 {
				return false
			}
			if r.c.module(rest); r.asks {
				r.c.takesOrders()
			}
			return true
		case strings.Contains(r.l.code, l):
			if attached != "" {
				r.given = true
			} else {
				r.program(r.next())
			}
			return false
		case strings.Contains(r.l.value, l):
			if attached == "" {
				r.i++
			}
			return false
		case strings.Contains(r.l.rest, l):
			return false
		}
	}
	return false
}

func (r *langArgs) long(s string) {
	name, _, eq := strings.Cut(s, "=")
	is := func(names string) bool { return strings.Contains(" "+names+" ", " "+name+" ") }
	switch {
	case name == "interactive":
		r.asks = r.asks || r.c.in.typed
	case is(r.l.codes):
		if eq {
			r.given = true
		} else {
			r.program(r.next())
		}
	case is(r.l.values):
		if !eq {
			r.i++
		}
	case !eq && !is(r.l.flags) && !strings.HasPrefix(name, "no-"):
		r.loose = true
	}
}

func otherShell(why string) func(*call, *opts) {
	return func(c *call, o *opts) {
		c.act(Act{Op: Run, Program: c.name})
		c.unknown(why)
	}
}
