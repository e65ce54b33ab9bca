// Package judge is step 3 for a line of shell: it reads the text, follows what
// it would start through lists, wrappers and scripts, and says part by part what
// each would do. It looks at nothing on this computer but what it is given.
package judge

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of judging one command. What is beyond them is a Problem.
const (
	maxText  = 128 << 10
	maxParts = 2000
	maxSteps = 20000
	maxDepth = 40 // of texts, functions and wrappers in each other
)

// Line judges what a command would do. It looks at nothing but the command
// and what Read and List give, and always returns.
func Line(cmd Command) (j Judgement) {
	w := &walker{cmd: cmd, programs: tables(), read: map[string]bool{}}
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(tooMuch)
			if !ok {
				stop = "This command could not be read, so what it does can't be told beforehand."
			}
			j.Problem = string(stop)
		}
		j.Parts = w.finish()
		j.Read = slices.Sorted(maps.Keys(w.read))
		j.Typed = w.typed || cmd.Typed && (j.Problem != "" || slices.ContainsFunc(j.Parts, Part.unknown))
	}()
	w.once()
	size := 0
	for _, a := range cmd.Argv {
		size += len(a)
		if p := unreadable(a); p != "" {
			panic(tooMuch(p))
		}
	}
	switch {
	case len(cmd.Argv) == 0:
		panic(tooMuch("There is no command."))
	case size > maxText:
		panic(tooMuch("This command is too long to be read before it runs."))
	}
	st := &state{vars: map[string]value{}, funcs: map[string][]function{}, posKnown: true}
	if path.IsAbs(cmd.Dir) {
		st.cwd = []string{path.Clean(cmd.Dir)}
	}
	fr := &frame{src: strings.Join(cmd.Argv, " ")}
	w.environment(fr, st)
	args := make([]word, len(cmd.Argv))
	for i, a := range cmd.Argv {
		args[i] = lit(a)
	}
	c := &call{w: w, fr: fr, st: st, args: args, text: fr.src, bare: true, outermost: true, in: input{typed: cmd.Typed || cmd.Terminal}}
	c.run()
	w.atTerminal()
	return j
}

// tooMuch is a sentence that ends the judging.
type tooMuch string

// unreadable says why a text is not one that is read here, or "".
func unreadable(s string) string {
	if !utf8.ValidString(s) {
		return "This command has bytes that are no text, so it can't be read before it runs."
	}
	for _, r := range s {
		switch {
		case r == '\r':
			return "This command has carriage returns in it, which shells take for a part of a word, so it can't be read before it runs."
		case r < ' ' && r != '\n' && r != '\t' || r == 0x7f:
			return "This command has control characters in it, so it can't be read before it runs."
		}
	}
	return ""
}

// environment is a part for what the request sets and programs heed.
func (w *walker) environment(fr *frame, st *state) {
	var acts []Act
	for _, name := range slices.Sorted(maps.Keys(w.cmd.Env)) {
		v := w.cmd.Env[name]
		switch {
		case strings.HasPrefix(name, "BASH_FUNC_"):
		case name == "HOME" && (v == w.cmd.Home || v == NoHome), name == "PATH" && SystemPath(v), name == "SHELL" && (v == "/bin/bash" || v == "/bin/sh"), name == "PWD":
			continue
		case !mattersToPrograms(name):
			continue
		}
		acts = append(acts, Act{Op: Env, What: name})
	}
	if len(acts) > 0 {
		w.add(&part{Part: Part{Acts: acts}})
	}
	_, st.oddSplit = w.cmd.Env["IFS"]
}

// NoHome is the home, by convention, of who has none: there are no settings.
const NoHome = "/nonexistent"

var systemDirs = map[string]bool{
	"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true, "/usr/local/sbin": true,
	"/opt/homebrew/bin": true, "/usr/games": true,
}

// SystemPath tells whether a PATH names the system's own folders only: what it
// finds is what the system has.
func SystemPath(v string) bool {
	for d := range strings.SplitSeq(v, ":") {
		if !systemDirs[d] {
			return false
		}
	}
	return true
}

// frame is one text that is walked: the line itself, a script, what eval gets.
type frame struct {
	src   string
	posix bool
	via   []string
	depth int
}

func (fr *frame) inner(src string, via ...string) *frame {
	c := *fr
	c.src, c.depth = src, fr.depth+1
	c.via = append(slices.Clone(fr.via), via...)
	if c.depth > maxDepth {
		panic(tooMuch("This command has too many commands inside each other to be read before it runs."))
	}
	return &c
}

// text is the bytes of a node.
func (fr *frame) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(fr.src) || from >= to {
		return ""
	}
	return strings.TrimRight(fr.src[from:to], " \t\n;")
}

// parse reads a text as the shells do that posix names, or says why not.
func parse(src string, posix bool) (*syntax.File, error) {
	if p := unreadable(src); p != "" {
		return nil, fmt.Errorf("%s", p)
	}
	if tooDeep(src) {
		return nil, fmt.Errorf("too many parentheses inside each other")
	}
	lang := syntax.LangBash
	if posix {
		lang = syntax.LangPOSIX
	}
	f, err := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(src), "")
	if err != nil {
		return nil, err
	}
	// The parser lets a comment go on behind a backslash; shells do not.
	for n := range syntax.Preorder(f) {
		if c, ok := n.(*syntax.Comment); ok {
			text, _, _ := strings.Cut(src[min(int(c.Hash.Offset()), len(src)):], "\n")
			if strings.HasSuffix(text, `\`) {
				return nil, fmt.Errorf("a comment that ends in a backslash")
			}
		}
	}
	return f, nil
}

// tooDeep tells whether the parser would go too deep: it has no bound.
func tooDeep(src string) bool {
	round, curly := 0, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '(':
			round++
		case ')':
			round = max(0, round-1)
		case '{':
			curly++
		case '}':
			curly = max(0, curly-1)
		}
		if round > 3*maxNest || curly > 3*maxNest {
			return true
		}
	}
	return false
}

// walker judges one command.
type walker struct {
	cmd      Command
	programs map[string]*program
	parts    []*part
	read     map[string]bool
	steps    int
	oddOut   bool            // standard output may be a file that was opened for reading
	dry      int             // more than none: nothing is noted down
	nest     int             // how deep in the syntax
	conds    int             // more than none: in a condition
	typed    bool            // something runs what comes later
	wrote    map[string]bool // names at which it has put what comes later
}

// once makes each file be read, and each directory be listed, once. What is
// looked for in a long list counts for more than one step.
func (w *walker) once() {
	type file struct {
		text []byte
		ok   bool
	}
	type list struct {
		names []string
		ok    bool
	}
	if read := w.cmd.Read; read != nil {
		files := map[string]file{}
		w.cmd.Read = func(p string) ([]byte, bool) {
			f, seen := files[p]
			if !seen {
				f.text, f.ok = read(p)
				files[p] = f
			}
			return f.text, f.ok
		}
	}
	if link := w.cmd.Link; link != nil {
		type held struct {
			target string
			ok     bool
		}
		links := map[string]held{}
		w.cmd.Link = func(p string) (string, bool) {
			h, seen := links[p]
			if !seen {
				w.step()
				h.target, h.ok = link(p)
				links[p] = h
			}
			return h.target, h.ok
		}
	}
	if names := w.cmd.List; names != nil {
		lists := map[string]list{}
		w.cmd.List = func(dir string) ([]string, bool) {
			l, seen := lists[dir]
			if !seen {
				l.names, l.ok = names(dir)
				lists[dir] = l
			}
			w.steps += len(l.names) / 100
			w.step()
			return l.names, l.ok
		}
	}
}

func (w *walker) step() {
	if w.steps++; w.steps > maxSteps {
		panic(tooMuch("This command is too long to be read before it runs."))
	}
}

func (w *walker) add(p *part) {
	if w.dry > 0 {
		return
	}
	if len(w.parts) >= maxParts {
		panic(tooMuch("This command has too many parts to be read before it runs."))
	}
	w.parts = append(w.parts, p)
}

// part is a Part on its way.
type part struct {
	Part
	prog *program
	name string // of the program
}
