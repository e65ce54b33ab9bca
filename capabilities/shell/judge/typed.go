package judge

import (
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

// standardInput are names for what a program reads, whatever that is.
var standardInput = []string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/tty"}

// takesOrders notes that the call runs what comes later.
func (c *call) takesOrders() {
	c.w.typed = true
	c.unknown(c.w.later())
}

// codeOptions are the letters of the options that give a language its program.
func codeOptions(name string) string {
	switch {
	case strings.HasPrefix(name, "py"):
		return "c"
	case name == "php":
		return "r"
	case name == "node", name == "ts-node", name == "tsx":
		return "ep"
	}
	return "eE"
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
	if !c.in.typed || slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op == Unknown && a.Why == c.w.later() }) {
		return
	}
	runs := slices.ContainsFunc(c.acts, func(a Act) bool { return a.Op == Run })
	named := slices.ContainsFunc(c.args, func(a word) bool { return slices.Contains(standardInput, a.text) })
	if obedient[c.name] || runs && named {
		c.takesOrders()
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
