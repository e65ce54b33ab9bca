package judge

import (
	"path"
	"slices"
	"strings"
)

// What is typed or sent while a command runs is not part of what is judged. A
// program that reads it as data is judged as always; one that runs it, or may,
// can't be told beforehand.

const (
	sentLater = "What it is sent later runs without being shown first."
	typedAt   = "Opens a terminal. What is typed there runs without being shown first."
)

// obedient are programs that run what they read, beside shells and languages.
var obedient = setOf(`psql mysql mariadb redis-cli mongosh mongo sqlite3 duckdb gdb lldb ed ex vi vim nvim view nano pico emacs mc ranger
	irb pry ghci R bc dc ipython ipython3 bpython jshell scala iex erl elixir sbcl clisp guile racket ocaml utop tclsh wish expect gnuplot octave maxima gp
	ftp sftp lftp ssh mosh screen tmux zellij script su sudo doas pkexec runuser at batch parallel docker podman kubectl nsenter chroot machinectl
	less more most man info w3m lynx links top htop fzf watch crontab pdb code asyncio IPython`)

// takesOrders notes that the call runs what comes later.
func (c *call) takesOrders() {
	c.w.typed = true
	c.unknown(c.w.later())
}

func (w *walker) later() string {
	if w.cmd.Terminal {
		return typedAt
	}
	return sentLater
}

// typedInto looks at a call that is about to be noted: one whose input comes
// later, and that is not known to take it as data only.
func (c *call) typedInto() {
	if !c.w.fed() || slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op == Unknown && a.Why == c.w.later() }) {
		return
	}
	runs := slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op == Run })
	if c.in.typed && obedient[c.name] || runs && len(c.args) > 0 && slices.ContainsFunc(c.args[1:], c.namesInput) {
		c.takesOrders()
	}
}

// fed tells whether anything comes later.
func (w *walker) fed() bool { return w.cmd.Typed || w.cmd.Terminal }

// namesInput tells whether an argument, or the value of an option in it, is a
// name for what comes later.
func (c *call) namesInput(a word) bool {
	if a.sureness != sure {
		return false
	}
	var names []string
	if !strings.HasPrefix(a.text, "-") {
		names = append(names, a.text)
	} else if a.text == "-" || !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "-") {
		names = append(names, "-") // -f-
	} else if !strings.HasPrefix(a.text, "--") {
		names = append(names, a.text[2:])
	}
	if _, v, ok := strings.Cut(a.text, "="); ok {
		names = append(names, v)
	}
	for _, in := range []string{"/dev/", "/proc/"} {
		if i := strings.Index(a.text, in); i > 0 {
			names = append(names, a.text[i:])
		}
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == "-" && c.in.typed || n != "" && n != "-" && c.w.feeds(c.st, lit(n), c.in)
	})
}

// feeds tells whether what is read from a name is, or may be, what comes later:
// it is a name for standard input, for another file that is open already, or a
// link to one. in is the standard input.
func (w *walker) feeds(st *state, name word, in input) bool {
	if !w.fed() {
		return false
	}
	if name.is(procFile) {
		return false // what another command prints
	}
	ps, why := w.paths(st, name)
	if why != "" || name.sureness != sure {
		return true
	}
	return slices.ContainsFunc(ps, func(p Path) bool {
		at, ok := w.leads(p)
		switch {
		case !ok:
			return true
		case isStandardInput(at):
			return in.typed
		}
		return isOpen(at)
	})
}

// runsInput tells whether a program of that name is, or may be, what comes
// later, or what this line has put there of it.
func (c *call) runsInput(name word) bool {
	if c.w.feeds(c.st, name, c.in) {
		return true
	}
	ps, _ := c.w.paths(c.st, name)
	return slices.ContainsFunc(ps, func(p Path) bool { at, _ := c.w.leads(p); return c.w.wrote[at] })
}

// isStandardInput knows the system's names for it.
func isStandardInput(name string) bool {
	return slices.Contains([]string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0"}, name)
}

// isOpen tells whether a name stands for what somebody has open, or for a
// terminal, and for no file of its own.
func isOpen(name string) bool {
	switch name {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom":
		return false
	}
	return strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") || strings.HasPrefix(name, "/proc/")
}

// maxLinks is how many links a name may go through, as in Linux.
const maxLinks = 40

// leads is where a name leads through links; false where it goes round.
func (w *walker) leads(p Path) (string, bool) {
	name := p.Name
	if p.Raw != "" {
		name = p.Raw
	}
	at, links := "/", 0
	for todo := strings.Split(name, "/"); len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next = path.Join(at, next)
		// The root of a process is the one that the command sees.
		if f := strings.Split(next, "/"); len(f) > 3 && f[1] == "proc" && f[len(f)-1] == "root" {
			at = "/"
			continue
		}
		if w.cmd.Link != nil {
			if target, ok := w.cmd.Link(next); ok {
				if links++; links > maxLinks {
					return "", false
				}
				if path.IsAbs(target) {
					at = "/"
				}
				todo = append(strings.Split(target, "/"), todo...)
				continue
			}
		}
		at = next
	}
	return at, true
}

// passers are programs that give on what they read.
var passers = setOf(`cat tee dd sed awk gawk mawk tr head tail grep cut sort uniq tac rev base64 base32 xxd gunzip zcat gzip unxz xzcat zstd iconv`)

// passes notes the names at which a call puts what comes later.
func (c *call) passes() {
	if !c.w.fed() || c.w.dry > 0 {
		return
	}
	reads := c.in.typed && (passers[c.name] || slices.ContainsFunc(c.args, func(a word) bool { return a.sureness == unsure }))
	for _, a := range c.acts {
		if a.Op < Create || a.Op > Link || a.Op == Delete {
			continue
		}
		names := a.Paths
		if a.Into != nil {
			for _, from := range a.From {
				names = append(names[:len(names):len(names)], Path{Name: path.Join(a.Into.Name, path.Base(from.Name))})
			}
		}
		if !reads && !slices.ContainsFunc(a.From, func(p Path) bool { at, ok := c.w.leads(p); return !ok || isOpen(at) || c.w.wrote[at] }) {
			continue
		}
		for _, p := range names {
			if at, ok := c.w.leads(p); ok {
				if c.w.wrote == nil {
					c.w.wrote = map[string]bool{}
				}
				c.w.wrote[at] = true
			}
		}
	}
}

// atTerminal is the judgement of a command at a terminal: every program there
// can be typed into, whatever its standard input is, and many run what is typed
// then. Only what surely does no such thing is judged as without.
func (w *walker) atTerminal() {
	if !w.cmd.Terminal || w.typed {
		return
	}
	for _, p := range w.parts {
		if p.name == "git" || obedient[p.name] || slices.ContainsFunc(p.Acts, func(a Act) bool {
			return slices.Contains([]Op{Run, Connect, Settings, Install, Root, Unknown}, a.Op)
		}) {
			w.typed = true
			p.Acts = append(p.Acts, Act{Op: Unknown, Why: typedAt})
			return
		}
	}
}
