package judge

import (
	"path"
	"slices"
	"strings"
)

// workers are programs whose doing is their own, but for what the line tells
// them to do with files.
func workers() map[string]*program {
	writesLast := func(least int) func(*call, *opts) {
		return func(c *call, o *opts) {
			c.opaque(nil)
			if ws := operands(c.args[1:]); len(ws) >= least {
				if w := ws[len(ws)-1]; w.sureness != sure || c.thereFile(w.text) {
					c.on(Write, w)
				}
			}
		}
	}
	editsAll := func(c *call, o *opts) {
		c.opaque(nil)
		for _, w := range operands(c.args[1:]) {
			if w.sureness != sure || c.thereFile(w.text) {
				c.on(Edit, w)
			}
		}
	}
	deletesAll := func(c *call, o *opts) {
		if ws := operands(c.args[1:]); len(ws) > 0 {
			if ps, ok := c.names(opWhat(Delete), ws...); ok {
				c.act(Act{Op: Delete, Paths: ps, Recursive: true})
			}
			return
		}
		c.act(Act{Op: Run, Program: c.name})
	}
	unclear := func(why string) func(*call, *opts) {
		return func(c *call, o *opts) { c.unknown(why) }
	}
	m := map[string]*program{
		"fallocate": {short: "cdipxvnzl:o:", long: "collapse-range dig-holes insert-range length= keep-size offset= punch-hole zero-range posix verbose", do: func(c *call, o *opts) { c.on(Edit, o.rest...) }},
		"sponge":    {short: "a", is: mild, do: func(c *call, o *opts) { c.on(map[bool]Op{true: Append, false: Write}[o.has("a")], o.rest...) }},
		"cpp":       {says: "Builds a program", is: free, do: writesLast(2)},
		"convert":   {says: "Converts pictures", is: free, do: writesLast(2)},
		"magick":    {says: "Converts pictures", is: free, do: writesLast(2)},
		"ffmpeg":    {says: "Converts sound and video", is: free, do: writesLast(2)},
		"sox":       {says: "Converts sound", is: free, do: writesLast(2)},
		"pdftotext": {says: "Takes the text out of a document", is: free, do: writesLast(2)},
		"mogrify":   {says: "Changes pictures", is: free, do: editsAll},
		"objcopy":   {is: free, do: writesLast(1)},
		"strip":     {is: free, do: editsAll},
		"savelog":   {is: free, do: unclear("it gives files other names")},
		"exiftool": {says: "Reads or changes what is stored about pictures", is: free, do: func(c *call, o *opts) {
			if slices.ContainsFunc(c.args[1:], func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "=") }) {
				editsAll(c, o)
				return
			}
			c.opaque(nil)
		}},
		"yq": {says: "Reads or changes YAML", is: free, do: func(c *call, o *opts) {
			if slices.ContainsFunc(c.args[1:], func(w word) bool {
				return w.is("-i") || w.is("--inplace") || w.is("--in-place") || w.is("-iy") || w.is("-yi")
			}) {
				editsAll(c, o)
				return
			}
			c.opaque(nil)
		}},
		"gdb": {says: "Looks into a running program", is: free, do: gdb},
		"man": {says: "Shows the manual", is: free, do: pager}, "less": {says: "Shows a file page by page", is: free, do: pager}, "more": {says: "Shows a file page by page", is: free, do: pager},
		"sqlite3": {says: "Works with a database", is: free, do: sqlite},
		"ssh-keygen": {says: "Makes or changes keys", is: free, do: func(c *call, o *opts) {
			c.opaque(nil)
			for i, a := range c.args[1:] {
				f := word{}
				if a.is("-f") && i+2 < len(c.args) {
					f = c.args[i+2]
				} else if strings.HasPrefix(a.text, "-f") {
					f = lit(a.text[2:])
				}
				if f.text != "" && c.thereFile(f.text) {
					c.on(Edit, f)
				}
			}
		}},
		"tesseract": {says: "Reads the text in pictures", is: free, do: func(c *call, o *opts) {
			c.opaque(nil)
			if ws := operands(c.args[1:]); len(ws) > 1 && ws[1].sureness == sure && !ws[1].is("stdout") && !ws[1].is("-") {
				c.on(Write, lit(ws[1].text+".txt"))
			}
		}},
		"gio": {is: free, do: func(c *call, o *opts) {
			ws := operands(c.args[1:])
			switch {
			case len(ws) > 1 && (ws[0].is("remove") || ws[0].is("trash")):
				if ps, ok := c.names(opWhat(Delete), ws[1:]...); ok {
					c.act(Act{Op: Delete, Paths: ps, Recursive: true})
				}
			case len(ws) > 2 && ws[0].is("move"):
				c.transfer(Move, &opts{}, ws[1:], false, true)
			case len(ws) > 2 && ws[0].is("copy"):
				c.transfer(Copy, &opts{}, ws[1:], false, true)
			case len(ws) > 0 && (ws[0].is("list") || ws[0].is("info") || ws[0].is("cat") || ws[0].is("tree")):
				c.act(Act{Op: Run, Program: c.name})
			default:
				c.unknown("what gio does is not followed here")
			}
		}},
		"lzop": {is: free, do: func(c *call, o *opts) {
			c.opaque(nil)
			if slices.ContainsFunc(c.args[1:], func(w word) bool {
				return w.is("--delete") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "U")
			}) {
				c.on(Delete, operands(c.args[1:])...)
			}
		}},
	}
	for _, n := range []string{"rename.ul", "file-rename", "perl-rename", "prename", "mmv", "mcp", "qmv", "imv", "vidir", "detox", "pyrenamer", "rnr"} {
		m[n] = &program{is: free, do: unclear("which names change is only known when it runs")}
	}
	for _, n := range []string{"fdupes", "jdupes", "rmlint", "tmpreaper", "tmpwatch", "bleachbit", "logrotate"} {
		m[n] = &program{is: free, do: unclear("which files it deletes is only known when it runs")}
	}
	for _, n := range []string{"wipe", "srm", "trash", "trash-put", "gvfs-trash", "gvfs-rm", "rm-improved", "rip", "rimraf", "del-cli", "del"} {
		m[n] = &program{is: free, do: deletesAll}
	}
	for _, n := range []string{"bunx", "pnpx", "uvx"} {
		m[n] = &program{says: "Runs a program that it downloads first", is: free, do: func(c *call, o *opts) {
			c.act(Act{Op: Connect})
			c.act(Act{Op: Run, Program: c.name})
			c.hands(c.args[1:])
		}}
	}
	for _, n := range []string{"dos2unix", "unix2dos", "mac2unix", "fromdos", "todos", "tidyp", "recode"} {
		m[n] = &program{is: free, do: editsAll}
	}
	return m
}

// gdb runs what it is told, beside the program that it looks into.
func gdb(c *call, o *opts) {
	c.act(Act{Op: Run, Program: c.name})
	for i, a := range c.args[1:] {
		rest := c.args[i+2:]
		name, v, eq := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
		switch {
		case a.is("--args") || a.is("-args"):
			c.hands(rest)
			return
		case !strings.HasPrefix(a.text, "-") || name != "ex" && name != "iex" && name != "eval-command" && name != "init-eval-command":
			continue
		case !eq && len(rest) > 0:
			v = rest[0].text
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(v), " "); !slices.Contains([]string{"bt", "backtrace", "run", "r", "quit", "q", "info", "i", "where", "thread", "frame", "f", "up", "down", "break", "b", "continue", "c", "next", "n", "step", "s", "list", "l", "x", "disassemble", "start", "kill"}, first) {
			c.unknown("gdb runs what it is told to")
			return
		}
	}
}

// pager judges less, more and man, which can be told to run commands.
func pager(c *call, o *opts) {
	c.opaque(nil)
	for _, a := range c.args[1:] {
		if a.sureness == sure && (strings.HasPrefix(a.text, "+") && strings.ContainsAny(a.text, "!|s") ||
			c.name == "man" && (strings.HasPrefix(a.text, "-P") || strings.HasPrefix(a.text, "--pa") || strings.HasPrefix(a.text, "-H") || strings.HasPrefix(a.text, "--ht"))) {
			c.unknown("it may run a command: " + a.text)
			return
		}
	}
}

// sqlite judges the statements that sqlite3 gets: one that does more than ask
// changes the database.
func sqlite(c *call, o *opts) {
	c.act(Act{Op: Run, Program: c.name})
	args := c.args[1:]
	var ws []word
	reads := false
	var sql []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.sureness != sure || !strings.HasPrefix(a.text, "-") {
			ws = append(ws, a)
			continue
		}
		switch n := strings.TrimLeft(a.text, "-"); {
		case n == "readonly":
			reads = true
		case n == "cmd" && i+1 < len(args):
			i++
			if args[i].sureness != sure {
				c.unknown("what it asks the database: " + loosely(args[i]) + " decides it")
			}
			sql = append(sql, args[i].text)
		case n == "init":
			c.unknown("the file with its commands is not read here")
		case slices.Contains([]string{"separator", "newline", "nullvalue", "maxsize", "mmap", "lookaside", "pagecache", "vfs"}, n):
			i++
		}
	}
	if len(ws) == 0 {
		return
	}
	for _, w := range ws[1:] {
		if w.sureness != sure {
			c.on(Edit, ws[0])
			return
		}
		sql = append(sql, w.text)
	}
	if len(ws) == 1 {
		if !c.in.given {
			c.on(Edit, ws[0])
			return
		}
		sql = append(sql, c.in.text)
	}
	for _, s := range sql {
		low := strings.ToLower(s)
		for line := range strings.Lines(low) {
			if cmd, ok := strings.CutPrefix(strings.TrimSpace(line), "."); ok {
				if f := strings.Fields(cmd); len(f) == 0 || !slices.Contains([]string{"tables", "schema", "headers", "header", "mode", "dump", "indexes", "databases", "width", "nullvalue", "separator", "timeout", "quit", "exit", "dbinfo", "fullschema", "stats", "timer", "show", "help"}, f[0]) || strings.Contains(cmd, "|") {
					c.unknown("sqlite3 is told to do more than to ask the database")
				}
			}
		}
		for _, f := range []string{"writefile", "load_extension", "edit(", "attach", "vacuum into"} {
			if strings.Contains(low, f) {
				c.unknown("sqlite3 is told to do more than to ask the database")
			}
		}
		for _, k := range []string{"insert", "update", "delete", "drop", "create", "alter", "replace", "vacuum", "reindex", "pragma", "begin", "analyze"} {
			if !reads && strings.Contains(low, k) && !strings.HasPrefix(low, "pragma table_info") && !strings.HasPrefix(low, "pragma integrity_check") {
				c.on(Edit, ws[0])
				return
			}
		}
	}
}

// tidier is a program that changes files to look better.
type tidier struct {
	names []string // that it looks for in a folder
	when  []string // options with which it changes files; none: always
	not   []string // options with which it does not
	sub   []string // the subcommands that do
}

var (
	pythonFiles = []string{"*.py", "*.pyi"}
	webFiles    = []string{"*.js", "*.jsx", "*.ts", "*.tsx", "*.mjs", "*.cjs", "*.css", "*.scss", "*.json", "*.html", "*.vue", "*.md", "*.yml", "*.yaml"}
	scriptFiles = webFiles[:6]
)

var tidiers = map[string]tidier{
	"gofmt": {names: []string{"*.go"}, when: []string{"-w"}}, "goimports": {names: []string{"*.go"}, when: []string{"-w"}}, "gofumpt": {names: []string{"*.go"}, when: []string{"-w"}},
	"black": {names: pythonFiles, not: []string{"--check", "--diff", "-c", "--code", "--version"}}, "isort": {names: pythonFiles, not: []string{"--check", "--check-only", "-c", "--diff", "--stdout", "--version"}},
	"autopep8": {names: pythonFiles, when: []string{"-i", "--in-place"}}, "yapf": {names: pythonFiles, when: []string{"-i", "--in-place"}},
	"prettier": {names: webFiles, when: []string{"-w", "--write"}}, "eslint": {names: scriptFiles, when: []string{"--fix"}}, "stylelint": {names: webFiles, when: []string{"--fix"}}, "standard": {names: scriptFiles, when: []string{"--fix"}},
	"clang-format": {when: []string{"-i"}}, "shfmt": {names: []string{"*.sh"}, when: []string{"-w", "--write"}}, "rustfmt": {names: []string{"*.rs"}, not: []string{"--check", "--version"}},
	"cargo": {names: []string{"*.rs"}, sub: []string{"fmt", "fix"}, not: []string{"--check"}}, "go": {names: []string{"*.go"}, sub: []string{"fmt", "fix"}}, "terraform": {names: []string{"*.tf"}, sub: []string{"fmt"}, not: []string{"-check"}},
	"biome": {names: scriptFiles, when: []string{"--write", "--apply", "--fix"}}, "rubocop": {names: []string{"*.rb"}, when: []string{"-a", "-A", "--auto-correct", "--autocorrect", "--autocorrect-all"}},
	"ruff": {names: pythonFiles, sub: []string{"format"}, not: []string{"--check", "--diff"}},
}

// tidies notes the files that a tidier changes.
func (c *call) tidies() {
	t, ok := tidiers[path.Base(c.name)]
	if !ok {
		return
	}
	has := func(names []string) bool {
		return slices.ContainsFunc(c.args[1:], func(w word) bool {
			n, _, _ := strings.Cut(w.text, "=")
			return w.sureness == sure && slices.Contains(names, n)
		})
	}
	ws := operands(c.args[1:])
	switch {
	case has(t.not), len(t.when) > 0 && !has(t.when):
		return
	case c.name == "ruff" && len(ws) > 0 && ws[0].is("check") && has([]string{"--fix", "--fix-only", "--unsafe-fixes"}):
		ws = ws[1:]
	case len(t.sub) > 0:
		if len(ws) == 0 || ws[0].sureness != sure || !slices.Contains(t.sub, ws[0].text) {
			return
		}
		ws = ws[1:]
	}
	f := &Find{Names: t.names, Types: "f", MaxDepth: -1, Others: []string{"that are not tidy yet"}}
	some := false
	for _, w := range ws {
		if w.sureness == sure {
			w.text = strings.TrimSuffix(w.text, "...")
		}
		switch {
		case w.sureness == pattern:
			c.on(Edit, w)
		case w.sureness != sure:
			continue
		case c.thereFile(w.text):
			c.on(Edit, w)
		case !c.there(w.text):
			continue
		default:
			if ps, ok := c.names(opWhat(Edit), w); ok && len(t.names) > 0 {
				c.act(Act{Op: Edit, Paths: ps, Find: f})
			}
		}
		some = true
	}
	if !some && len(t.names) > 0 {
		if ps, ok := c.names(opWhat(Edit), lit(".")); ok {
			c.act(Act{Op: Edit, Paths: ps, Find: f})
		}
	}
}

// inPlace judges -i of perl and ruby, with which they write back what they read.
func (c *call) inPlace() {
	ends := map[string]string{"perl": "eEMmIFCDx0l", "ruby": "eIrFEKCTWx0"}[strings.TrimRight(c.name, "0123456789.")]
	if ends == "" {
		return
	}
	in, text, kept := false, false, false
	args := c.args[1:]
	var files []word
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.is("--") {
			files = append(files, args[i+1:]...)
			break
		}
		if a.sureness != sure || len(a.text) < 2 || a.text[0] != '-' {
			files = append(files, a)
			continue
		}
		for k := 1; k < len(a.text); k++ {
			l := a.text[k]
			if l == 'i' {
				in, kept = true, k+1 < len(a.text)
				break
			}
			if l == 'e' || l == 'E' && c.name != "ruby" {
				text = true
				if k+1 == len(a.text) {
					i++
				}
				break
			}
			if strings.IndexByte(ends, l) >= 0 {
				if k+1 == len(a.text) && strings.IndexByte("ICr", l) >= 0 {
					i++
				}
				if l != '0' && l != 'l' {
					break
				}
			}
		}
	}
	if !in {
		return
	}
	if !text && len(files) > 0 {
		files = files[1:]
	}
	c.on(Edit, files...)
	if kept {
		c.unknown("it keeps what was there under other names")
	}
}
