package judge

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// procFile stands for the pipe of <(…) and >(…). Nobody can write such a name
// who means a file.
const procFile = "/dev/fd/pipe"

// redirects notes what redirections do, and returns the input that they leave.
func (e *env) redirects(rs []*syntax.Redirect, in input) input {
	for _, r := range rs {
		fd := ""
		if r.N != nil {
			if fd = r.N.Value; isDigits(fd) {
				fd = strings.TrimLeft(fd[:len(fd)-1], "0") + fd[len(fd)-1:]
			}
			if name, ok := strings.CutPrefix(fd, "{"); ok {
				e.assign(strings.TrimSuffix(name, "}"), value{word: word{sureness: number, why: "$" + name}})
			} else if !isDigits(fd) {
				e.unknown("a redirection of an unusual kind")
			}
		}
		onOut := fd == "1" || fd == "2"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			w := e.heredoc(r)
			if fd == "" || fd == "0" {
				in = input{piped: true, given: w.sureness == sure, text: w.text}
			}
			continue
		case syntax.WordHdoc:
			w := e.one(r.Word)
			if fd == "" || fd == "0" {
				in = input{piped: true, given: w.sureness == sure, text: w.text + "\n"}
			}
			continue
		}
		ws := e.fields(r.Word)
		w := word{sureness: unsure, why: "a redirection"}
		if len(ws) == 1 {
			w = ws[0]
		}
		if w.sureness == pattern && bareGlob(r.Word) {
			w = word{sureness: unsure, why: "a pattern"}
		}
		switch r.Op {
		case syntax.DplIn, syntax.DplOut:
			if w.sureness == number || w.sureness == sure && (w.text == "-" || isDigits(strings.TrimSuffix(w.text, "-"))) {
				from := strings.TrimSuffix(w.text, "-")
				if (onOut || fd == "" && r.Op == syntax.DplOut) && (w.sureness == number || from != "1" && from != "2" && from != "") {
					e.w.oddOut = true
				}
				if fd == "" && r.Op == syntax.DplIn || fd == "0" {
					in = input{piped: true, typed: e.w.fed()}
				}
				continue
			}
			if r.Op == syntax.DplIn || fd != "" && fd != "1" {
				e.unknown("a redirection to " + described(w))
				continue
			}
			e.writes(Write, w)
		case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
			e.writes(Write, w)
		case syntax.AppOut, syntax.AppAll:
			e.writes(Append, w)
		case syntax.RdrInOut:
			if onOut {
				e.w.oddOut = true
			}
			e.writes(Append, w)
			if fd == "" || fd == "0" {
				in = input{piped: true, typed: e.w.feeds(e.st, w, in)}
			}
		case syntax.RdrIn:
			if onOut {
				e.w.oddOut = true
			}
			e.readsFrom(w)
			if fd == "" || fd == "0" {
				in = input{piped: true, typed: e.w.feeds(e.st, w, in)}
			}
		default:
			e.unknown("a redirection of another shell")
		}
	}
	return in
}

// bareGlob tells whether a word is a pattern as it stands there, and not by the
// value of a variable.
func bareGlob(x *syntax.Word) bool {
	return slices.ContainsFunc(x.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.ContainsAny(l.Value, "*?[")
	})
}

func described(w word) string {
	if w.sureness == sure {
		return w.text
	}
	return w.why
}

// heredoc is the text of a here-document.
func (e *env) heredoc(r *syntax.Redirect) word {
	quoted := false
	for _, p := range r.Word.Parts {
		l, ok := p.(*syntax.Lit)
		quoted = quoted || !ok || strings.Contains(l.Value, `\`)
	}
	if r.Hdoc == nil {
		return lit("")
	}
	if quoted {
		var b strings.Builder
		for _, p := range r.Hdoc.Parts {
			l, ok := p.(*syntax.Lit)
			if !ok {
				e.unknown("a text in an unusual form")
				return unknown("a text")
			}
			b.WriteString(l.Value)
		}
		return e.tabs(r, lit(b.String()))
	}
	e.hdoc = true
	ps := e.pieces(r.Hdoc.Parts, true)
	e.hdoc = false
	return e.tabs(r, glue(ps, true))
}

// tabs takes the tabs away that <<- leaves out.
func (e *env) tabs(r *syntax.Redirect, w word) word {
	if r.Op == syntax.DashHdoc && w.sureness == sure {
		ls := strings.SplitAfter(w.text, "\n")
		for i := range ls {
			ls[i] = strings.TrimLeft(ls[i], "\t")
		}
		w.text = strings.Join(ls, "")
	}
	return w
}

// device says what writing to a name below /dev, /proc or /sys is.
func device(w *walker, name string) (a Act, special bool) {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom", procFile:
		return Act{}, true
	case "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/proc/self/fd/1", "/proc/self/fd/2":
		if !w.oddOut {
			return Act{}, true
		}
	}
	if a, ok := netFile(name); ok {
		return a, true
	}
	switch {
	case strings.HasPrefix(name, "/dev/shm/"):
	case strings.HasPrefix(name, "/dev/fd/"), name == "/dev/stdin", name == "/dev/stdout", name == "/dev/stderr":
		return Act{Op: Unknown, Why: "it writes to a file that is already open"}, true
	case strings.HasPrefix(name, "/dev/"):
		return Act{Op: Unknown, Why: "it writes straight to the device " + name}, true
	case strings.HasPrefix(name, "/proc/sys/"), strings.HasPrefix(name, "/sys/"):
		return Act{Op: Settings, What: "the running system, through " + name}, true
	case strings.HasPrefix(name, "/proc/"):
		return Act{Op: Unknown, Why: "it changes a running program through " + name}, true
	}
	return Act{}, false
}

// netFile knows the names that bash takes for connections.
func netFile(name string) (Act, bool) {
	f := strings.Split(name, "/")
	if len(f) < 4 || f[0] != "" || f[1] != "dev" || f[2] != "tcp" && f[2] != "udp" {
		return Act{}, false
	}
	a := Act{Op: Connect, Host: f[3]}
	if len(f) > 4 {
		a.Port, _ = strconv.Atoi(f[4])
	}
	return a, true
}

// writes notes a file that is written.
func (e *env) writes(op Op, w word) {
	if w.sureness == sure && w.text != "" {
		names := []string{w.text}
		if at, ok := e.st.at(w.text); ok {
			names = append(names, at...)
		}
		for _, n := range names {
			if a, special := device(e.w, path.Clean(n)); special {
				if a.Op != 0 {
					e.acts = append(e.acts, a)
				}
				return
			}
		}
	}
	ps, why := e.w.paths(e.st, w)
	if why != "" {
		e.unknown("which file is written: " + why)
		return
	}
	e.acts = append(e.acts, Act{Op: op, Paths: ps, Replaces: true})
}

// readsFrom notes a file that is read through a redirection.
func (e *env) readsFrom(w word) {
	if w.sureness == sure {
		if a, ok := netFile(path.Clean(w.text)); ok {
			e.acts = append(e.acts, a)
			return
		}
	}
	if w.sureness == unsure && (w.text == "" || strings.HasPrefix("/dev/", w.text) || strings.HasPrefix(w.text, "/dev/")) {
		e.unknown("the name of the file it reads is " + w.why + ", and it may stand for a connection")
		return
	}
	e.acts = append(e.acts, e.w.reading(e.st, w)...)
}

// reading is the act of reading a name. A device is no file.
func (w *walker) reading(st *state, x word) []Act {
	ps, why := w.paths(st, x)
	if why != "" {
		return []Act{{Op: Read}}
	}
	for _, p := range ps {
		if !strings.HasPrefix(p.Name, "/dev/") {
			continue
		}
		switch {
		case strings.HasPrefix(p.Name, "/dev/fd/"), strings.HasPrefix(p.Name, "/dev/shm/"):
			return []Act{{Op: Read}}
		}
		switch p.Name {
		case "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr":
			return []Act{{Op: Read}}
		}
		return []Act{{Op: Unknown, Why: "it reads straight from the device " + p.Name}}
	}
	return []Act{{Op: Read, Paths: ps}}
}

// raw is Path.Raw of a name in dir.
func raw(dir, name string) string {
	if !slices.Contains(strings.Split(name, "/"), "..") {
		return ""
	}
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// paths are the names that a word stands for, or why that is not known.
func (w *walker) paths(st *state, x word) (ps []Path, why string) {
	switch {
	case x.sureness == number:
		return nil, "the name has a number in it that is only known when it runs"
	case x.sureness == unsure:
		return nil, x.why + " decides it"
	case x.text == "":
		return nil, "the name is empty"
	}
	if x.sureness == pattern {
		if path.IsAbs(x.text) {
			ps = []Path{{Name: path.Clean(x.text), Glob: true, Raw: raw("", x.text)}}
		} else {
			for _, d := range st.cwd {
				ps = append(ps, Path{Name: path.Join(escape(d), x.text), Glob: true, Raw: raw(escape(d), x.text)})
			}
		}
	} else {
		at, _ := st.at(x.text)
		for i, n := range at {
			p := Path{Name: n, Raw: raw("", x.text)}
			if !path.IsAbs(x.text) {
				p.Raw = raw(st.cwd[i], x.text)
			}
			ps = append(ps, p)
		}
	}
	if len(ps) == 0 {
		return nil, "the folder it happens in is only known when it runs"
	}
	return ps, ""
}
