package judge

import (
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// value is what a variable holds.
type value struct {
	word
	array []word // of an array whose elements are known
	list  bool   // an array
	unset bool
}

func (v value) same(o value) bool {
	return v.word == o.word && v.list == o.list && v.unset == o.unset && slices.Equal(v.array, o.array)
}

// function is one body that a name may have; a nil body: it may have none.
type function struct {
	body *syntax.Stmt
	from *frame
}

// state is what is known of a shell between two of its commands. What a
// command does to it gives a new one or changes a copy: see outcome.
type state struct {
	vars  map[string]value
	funcs map[string][]function
	// cwd are the directories it may be in; none: not known. old are those
	// before the last cd.
	cwd, old []string
	pos      []word // $1 and so on
	posKnown bool

	errexit  bool
	noglob   bool
	globstar bool
	oddGlob  bool // patterns mean something else here
	oddSplit bool // words are cut at something else
	locals   []string
}

func (s *state) clone() *state {
	c := *s
	c.vars, c.funcs = maps.Clone(s.vars), maps.Clone(s.funcs)
	c.locals = slices.Clone(s.locals)
	return &c
}

// outcome is the state after a command that succeeded and after one that
// failed. Nil: that does not happen. Both may be the same.
type outcome struct{ ok, fail *state }

func both(s *state) outcome { return outcome{s, s} }

// either is the state after it, however it went; nil where nothing follows.
func (w *walker) either(o outcome) *state { return w.join(o.ok, o.fail) }

// after is what the next command of a list starts with.
func (w *walker) after(o outcome, last *state) *state {
	if s := w.either(o); s != nil {
		return s
	}
	return last // not reached: judged all the same
}

// join is what is sure in both.
func (w *walker) join(a, b *state) *state {
	switch {
	case a == nil:
		return b
	case b == nil || a == b:
		return a
	}
	c := a.clone()
	for name := range b.vars {
		if _, ok := a.vars[name]; !ok {
			c.vars[name] = w.joinValue(name, w.initial(name), b.vars[name])
		}
	}
	for name, v := range a.vars {
		o, ok := b.vars[name]
		if !ok {
			o = w.initial(name)
		}
		c.vars[name] = w.joinValue(name, v, o)
	}
	for name, fs := range b.funcs {
		if !slices.Equal(fs, a.funcs[name]) {
			c.funcs[name] = union(orNone(a.funcs[name]), fs)
		}
	}
	for name, fs := range a.funcs {
		if _, ok := b.funcs[name]; !ok {
			c.funcs[name] = union(fs, []function{{}})
		}
	}
	c.cwd = joinDirs(a.cwd, b.cwd)
	c.old = joinDirs(a.old, b.old)
	if !a.posKnown || !b.posKnown || !slices.Equal(a.pos, b.pos) {
		c.pos, c.posKnown = nil, false
	}
	c.errexit = a.errexit && b.errexit
	c.oddGlob = a.oddGlob || b.oddGlob || a.noglob != b.noglob || a.globstar != b.globstar
	c.oddSplit = a.oddSplit || b.oddSplit
	c.locals = union(a.locals, b.locals)
	return c
}

func orNone(fs []function) []function {
	if len(fs) == 0 {
		return []function{{}}
	}
	return fs
}

func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// maxDirs are so many directories that a command may be in.
const maxDirs = 6

func joinDirs(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	u := union(a, b)
	if len(u) > maxDirs {
		return nil
	}
	return u
}

func (w *walker) joinValue(name string, a, b value) value {
	if a.same(b) {
		return a
	}
	out := value{word: unknown("$" + name), list: a.list || b.list}
	num := func(v value) bool {
		return !v.list && !v.unset && (v.sureness == number || v.sureness == sure && isNumber(v.text))
	}
	if num(a) && num(b) {
		out.sureness = number
	}
	return out
}

// same tells whether nothing changed: a loop's body has been seen enough.
func (w *walker) same(a, b *state) bool {
	if a == b {
		return true
	}
	for _, p := range [2][2]*state{{a, b}, {b, a}} {
		for name, v := range p[0].vars {
			o, ok := p[1].vars[name]
			if !ok {
				o = w.initial(name)
			}
			if !v.same(o) {
				return false
			}
		}
	}
	return maps.EqualFunc(a.funcs, b.funcs, slices.Equal[[]function]) && slices.Equal(a.cwd, b.cwd) && slices.Equal(a.old, b.old) &&
		a.posKnown == b.posKnown && slices.Equal(a.pos, b.pos) && a.errexit == b.errexit && a.noglob == b.noglob &&
		a.globstar == b.globstar && a.oddGlob == b.oddGlob && a.oddSplit == b.oddSplit
}

// initial is a variable that the line has not touched.
func (w *walker) initial(name string) value {
	if v, ok := w.cmd.Env[name]; ok {
		return value{word: lit(v)}
	}
	switch name {
	case "HOME":
		if w.cmd.Home != "" {
			return value{word: lit(w.cmd.Home)}
		}
	case "RANDOM", "SECONDS", "LINENO", "BASHPID", "EUID", "UID", "PPID", "SRANDOM", "EPOCHSECONDS", "OPTIND", "COLUMNS", "LINES":
		return value{word: word{sureness: number, why: "$" + name}}
	case "OLDPWD":
		return value{word: unknown("$OLDPWD")}
	}
	return value{word: unknown("$" + name)}
}

func (w *walker) lookup(st *state, name string) value {
	if v, ok := st.vars[name]; ok {
		return v
	}
	if name == "PWD" && len(st.cwd) == 1 {
		return value{word: lit(st.cwd[0])}
	}
	return w.initial(name)
}

// at makes a name absolute, once for each directory that it may be in. False
// where that is not known.
func (st *state) at(name string) ([]string, bool) {
	if path.IsAbs(name) {
		return []string{path.Clean(name)}, true
	}
	if len(st.cwd) == 0 {
		return nil, false
	}
	out := make([]string, len(st.cwd))
	for i, d := range st.cwd {
		out[i] = path.Join(d, name)
	}
	return out, true
}

// ownAffair are variables for programs whose doing is their own anyway, or that
// decide only what is printed.
var ownAffair = setOf(`PYTHONPATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PYTHONWARNINGS PYTHONFAULTHANDLER
		RUST_BACKTRACE RUST_LOG RUSTFLAGS CARGO_TERM_COLOR CARGO_INCREMENTAL GOOS GOARCH GOARM GOMAXPROCS GOGC GOMEMLIMIT GODEBUG GOTRACEBACK GO111MODULE
		PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR PIP_NO_INPUT DOCKER_BUILDKIT MAKELEVEL NPM_CONFIG_LOGLEVEL npm_config_loglevel NODE_NO_WARNINGS
		GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE`)

func setOf(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// mattersToPrograms tells whether a variable changes what programs do: which
// ones run, what they load, where they look for settings. Asked for too often
// is better than not at all.
func mattersToPrograms(name string) bool {
	if ownAffair[name] {
		return false
	}
	switch name {
	case "HOME", "PATH", "IFS", "ENV", "CDPATH", "TMPDIR", "TEMP", "TMP", "VISUAL", "BROWSER", "SHELLOPTS", "PS4", "PS0", "PS1", "PS2",
		"PROMPT_COMMAND", "CC", "CXX", "LD", "AR", "MAKE", "CARGO", "RUSTC", "TERMINFO", "TERMCAP", "HISTFILE", "FCEDIT", "TZDIR",
		"EXECIGNORE", "FUNCNEST", "POSIXLY_CORRECT", "TAPE", "RSH", "MAILPATH", "MAIL", "INPUTRC", "SHELL", "COLUMNS_CMD", "XDG_DATA_DIRS", "DISPLAY":
		return true
	}
	for _, p := range []string{"LD_", "DYLD_", "BASH", "GIT_", "SSH_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "LESS", "MAN", "TERMINFO_",
		"GCONV", "LOC", "NLS", "MALLOC_", "GLIBC_", "RSYNC_", "TAR_", "GREP_", "RIPGREP_", "FD_", "BAT_", "FZF_", "JAVA", "_JAVA", "JDK_", "MAVEN_", "GRADLE_",
		"CARGO_", "RUST", "GO", "PIP_", "UV_", "CONDA", "VIRTUAL", "DOCKER_", "XDG_CONFIG", "OPENSSL_", "SSL_", "CURL_", "WGET", "MAKE", "CMAKE_", "GEM_", "BUNDLE_",
		"COMPOSER_", "PHP", "LUA_", "R_", "JULIA_", "AWK", "SUDO_", "SYSTEMD_", "DBUS_", "GTK_", "QT_", "GDK_", "ZDOTDIR", "READLINE"} {
		if strings.HasPrefix(name, p) {
			return name != "NODE_ENV"
		}
	}
	for _, s := range []string{"PATH", "PAGER", "EDITOR", "_OPTIONS", "_OPTS", "OPTS", "_HOME", "_COMMAND", "_PRELOAD", "_PROXY", "_proxy", "_CONFIG", "_CONFIG_FILE", "RC", "_PROG", "_PROGRAM", "_WRAPPER", "_SHELL", "_CMD", "_EXEC", "OPEN", "CLOSE", "_HOOK", "_LIB", "_ROOT"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}
