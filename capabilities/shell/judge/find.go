package judge

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// found is what a find chooses: below which names, by which tests.
type found struct {
	roots []word
	find  Find
}

// findTests are the tests that change nothing, with how many words they take.
var findTests = map[string]int{
	"-mtime": 1, "-mmin": 1, "-ctime": 1, "-cmin": 1, "-atime": 1, "-amin": 1, "-newer": 1, "-anewer": 1, "-cnewer": 1, "-size": 1, "-user": 1, "-group": 1,
	"-perm": 1, "-links": 1, "-inum": 1, "-samefile": 1, "-regex": 1, "-iregex": 1, "-ipath": 1, "-iwholename": 1, "-lname": 1, "-ilname": 1, "-uid": 1, "-gid": 1,
	"-fstype": 1, "-used": 1, "-xtype": 1, "-regextype": 1, "-newermt": 1, "-newerct": 1, "-newerat": 1,
	"-empty": 0, "-executable": 0, "-readable": 0, "-writable": 0, "-nouser": 0, "-nogroup": 0, "-prune": 0, "-quit": 0, "-xdev": 0, "-mount": 0,
	"-depth": 0, "-d": 0, "-daystart": 0, "-follow": 0, "-noleaf": 0, "-warn": 0, "-nowarn": 0, "-ignore_readdir_race": 0, "-true": 0, "-false": 0,
	"-print": 0, "-print0": 0, "-ls": 0, "-printf": 1, "(": 0, ")": 0, "!": 0, "-not": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, ",": 0,
}

func find(c *call, o *opts) { findRun(c, c.args[1:]) }

// findRun judges a find, and gives what it chooses.
func findRun(c *call, args []word) *found {
	f := &found{find: Find{MaxDepth: -1}}
	i := 0
	for ; i < len(args); i++ { // options and places
		a := args[i]
		if a.sureness == sure && (a.text == "-H" || a.text == "-L" || a.text == "-P" || strings.HasPrefix(a.text, "-O") && isDigits(a.text[2:]) || a.text == "--") {
			continue
		}
		if a.sureness == sure && (strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" || a.text == ")" || a.text == ",") {
			break
		}
		if a.mayBeOption() || a.fromPattern() && !c.dashless(&program{}, a) {
			c.unknown("what find does: " + loosely(a) + " decides it")
			return f
		}
		f.roots = append(f.roots, a)
	}
	if len(f.roots) == 0 {
		f.roots = []word{lit(".")}
	}
	c.reads(f.roots...)
	or := false
	for ; i < len(args); i++ {
		a := args[i]
		if a.sureness != sure {
			c.unknown("what find does: " + loosely(a) + " decides it")
			return f
		}
		val := word{}
		take := func() bool {
			if i++; i >= len(args) || args[i].many || args[i].sureness == pattern {
				c.unknown("what find does is only known when it runs")
				return false
			}
			val = args[i]
			return true
		}
		t := a.text
		switch t {
		case "-name", "-iname", "-path", "-wholename", "-type", "-maxdepth", "-mindepth":
			if !take() {
				return f
			}
			f.add(t, val, or)
		case "-delete":
			c.findDelete(f)
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && !args[end].is(";") && !(args[end].is("+") && args[end-1].is("{}")) {
				end++
			}
			if end == len(args) {
				c.unknown("which program find runs is only known when it runs")
				return f
			}
			for _, x := range args[i+1 : end] {
				// It may be the end of the command, and what is behind it more tests.
				if x.sureness == pattern || x.many || x.sureness == unsure && x.text == "" {
					c.unknown("what find runs: " + loosely(x) + " decides it")
					return f
				}
			}
			c.findExec(f, args[i+1:end], strings.HasSuffix(t, "dir"))
			i = end
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if !take() {
				return f
			}
			c.on(Write, val)
			if t == "-fprintf" && !take() {
				return f
			}
		case "-files0-from":
			if !take() {
				return f
			}
			f.find.Others = append(f.find.Others, t)
			c.unknown("where find looks stands in a file")
		case "-o", "-or", "!", "-not", ",", "(", ")", "-prune":
			or = true
			f.find.Others = append(f.find.Others, t)
			f.find.Names, f.find.FoldNames, f.find.Paths, f.find.Types = nil, nil, nil, ""
		default:
			n, ok := findTests[t]
			if !ok {
				c.unknown("the test " + t + " of find is not one that is known here")
				return f
			}
			other := t
			if n == 1 {
				if !take() {
					return f
				}
				other += " " + val.text
			}
			if !slices.Contains([]string{"-print", "-print0", "-ls", "-printf", "-depth", "-d", "-xdev", "-mount", "-a", "-and", "-warn", "-nowarn", "-true", "-noleaf"}, t) {
				f.find.Others = append(f.find.Others, other)
			}
		}
	}
	return f
}

// add notes a test that is understood. Two names at once, or those beside an
// or, are left out: then more is counted than chosen.
func (f *found) add(t string, v word, or bool) {
	if v.sureness != sure {
		f.find.Others = append(f.find.Others, t)
		return
	}
	n := -1
	if isDigits(v.text) {
		n, _ = strconv.Atoi(v.text)
	}
	switch {
	case t == "-maxdepth" && n >= 0:
		f.find.MaxDepth = n
		return
	case t == "-mindepth" && n >= 0:
		f.find.MinDepth = n
		return
	case or:
	case t == "-name" && len(f.find.Names) == 0:
		f.find.Names = []string{negated(v.text)}
		return
	case t == "-iname" && len(f.find.FoldNames) == 0:
		f.find.FoldNames = []string{negated(v.text)}
		return
	case (t == "-path" || t == "-wholename") && len(f.find.Paths) == 0:
		f.find.Paths = []string{negated(v.text)}
		return
	case t == "-type" && f.find.Types == "":
		f.find.Types = strings.ReplaceAll(v.text, ",", "")
		return
	}
	f.find.Others = append(f.find.Others, t+" "+v.text)
}

func (f *found) copy() *Find {
	g := f.find
	g.Names, g.FoldNames = slices.Clone(g.Names), slices.Clone(g.FoldNames)
	g.Paths, g.Others = slices.Clone(g.Paths), slices.Clone(g.Others)
	return &g
}

func (c *call) findDelete(f *found) {
	if ps, ok := c.names(opWhat(Delete), f.roots...); ok {
		c.act(Act{Op: Delete, Paths: ps, Find: f.copy()})
	}
}

// findExec judges what find starts for what it finds.
func (c *call) findExec(f *found, args []word, inItsDir bool) {
	var ws []word
	for _, a := range args {
		if h, _, ok := strings.Cut(a.text, "{}"); ok {
			if a.text == "{}" {
				a = word{sureness: unsure, text: "./", why: foundBy}
			} else {
				a = word{sureness: unsure, text: h, why: foundBy}
			}
		}
		ws = append(ws, a)
	}
	d := &call{w: c.w, fr: c.fr, st: c.st.clone(), in: input{piped: true, typed: c.in.typed, find: f}, args: ws, text: c.text, bare: true, envs: c.envs}
	if inItsDir {
		d.st.cwd = nil
	}
	d.via = append(slices.Clone(c.via), c.name)
	if len(ws) == 0 {
		c.unknown("which program find runs is only known when it runs")
		return
	}
	d.run()
	// It is started by what is found, so the find does more than look.
	c.act(Act{Op: Run, Program: described(ws[0])})
}

// finds tells what the find before a pipe gives with -print0.
func (w *walker) finds(fr *frame, s *syntax.Stmt, st *state) *found {
	x, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) > 0 || s.Negated || s.Background || len(x.Assigns) > 0 || len(x.Args) < 2 || x.Args[0].Lit() != "find" || len(st.funcs["find"]) > 0 {
		return nil
	}
	w.dry++
	defer func() { w.dry-- }()
	e := &env{w: w, fr: fr, st: st}
	args := e.words(x.Args)
	if len(args) == 0 || !args[len(args)-1].is("-print0") {
		return nil
	}
	c := &call{w: w, fr: fr, st: st, args: args, name: "find", emitted: true}
	f := findRun(c, args[1:])
	if slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op != Read }) {
		return nil
	}
	return f
}

// fd is find with other letters; what is not known of them is not read.
func fd(c *call, o *opts) {
	p := &program{short: "HIusigaldtpLt:e:E:S:d:c:j:o:FqQ0h1", long: "hidden no-ignore case-sensitive ignore-case glob absolute-path list-details follow full-path type= extension= exclude= size= max-depth= min-depth= exact-depth= color= threads= fixed-strings print0 changed-within= changed-before= max-results= prune no-ignore-vcs unrestricted strip-cwd-prefix? quiet show-errors base-directory= search-path=", is: exact}
	args := c.args[1:]
	for i, a := range args {
		if a.sureness == sure && (a.text == "-x" || a.text == "-X" || a.text == "--exec" || a.text == "--exec-batch") {
			rest := args[i+1:]
			args = args[:i]
			var ws []word
			marked := false
			for _, r := range rest {
				if strings.ContainsAny(r.text, "{}") {
					r, marked = word{sureness: unsure, why: foundBy}, true
				}
				ws = append(ws, r)
			}
			if !marked {
				ws = append(ws, word{sureness: unsure, text: "./", why: foundBy})
			}
			d := &call{w: c.w, fr: c.fr, st: c.st.clone(), in: input{piped: true, typed: c.in.typed}, args: ws, text: c.text, bare: true}
			d.via = append(slices.Clone(c.via), c.name)
			d.run()
			break
		}
	}
	q := c.options(p, args)
	if q.bad != "" || q.loose != "" {
		c.unknown("an option of fd that is not known here, or only when it runs")
	}
	if len(q.rest) > 1 {
		c.reads(q.rest[1:]...)
	} else {
		c.reads(lit("."))
	}
}
