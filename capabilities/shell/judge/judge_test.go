package judge

import (
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// files are the scripts of the folder that the tables know.
var files = map[string]string{
	"/home/user/clean.sh":         "#!/bin/sh\nrm -rf build\n",
	"/home/user/show.sh":          "#!/bin/bash\ncat notes.txt\n",
	"/home/user/args.sh":          "#!/bin/bash\nrm -- \"$1\"\n",
	"/home/user/lib.sh":           "greet() { echo hello; }\nwipe() { rm -rf \"$1\"; }\n",
	"/home/user/odd/bin/activate": "rm x\n",
	"/home/user/tool.py":          "print(1)\n",
	"/home/user/package.json":     "{}\n",
	"/home/user/Makefile":         "all:\n\trm x\n",
	"/home/user/rule.sed":         "w out.txt\n",
	"/home/user/sum.awk":          "{ s += $1 } END { print s }\n",
	"/home/user/evil/.git/config": "[core]\n\tfsmonitor = ./x.sh\n",
	"/home/user/repo/.git/HEAD":   "ref: refs/heads/main\n", "/home/user/repo/.git/packed-refs": "# pack-refs with: peeled\n0123 refs/heads/old\n0123 refs/stash\n",
	"/home/user/repo/.git/config": "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/x.git\n",
}

func command(text string) Command {
	c := Command{
		Argv: []string{"bash", "--noprofile", "--norc", "-c", text},
		Dir:  "/home/user", Home: "/home/user", Folder: "/home/user",
		Read: func(p string) ([]byte, bool) { s, ok := files[p]; return []byte(s), ok },
		List: func(d string) ([]string, bool) {
			if d == "/home/user/odd" {
				return []string{"-rf.txt", "a.txt"}, true
			}
			if path.Ext(d) != "" { // a file
				return nil, false
			}
			return []string{"a.txt", "b.txt", "notes.txt", "x.tmp"}, true
		},
	}
	if sh, ok := strings.CutPrefix(text, "#!sh "); ok {
		c.Argv = []string{"sh", "-c", sh}
	}
	return c
}

// effects writes a judgement in the notation of testdata/lines.txt.
func effects(j Judgement) string {
	if j.Problem != "" {
		return "problem"
	}
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, p := range j.Parts {
		for _, a := range p.Acts {
			add(effect(a))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}

func effect(a Act) string {
	names := func(ps []Path) string {
		var out []string
		for _, p := range ps {
			n := strings.TrimPrefix(p.Name, "/home/user/")
			if p.Name == "/home/user" {
				n = "."
			}
			if !p.Glob && hasMeta(n) {
				n = "'" + n + "'"
			}
			out = append(out, n)
		}
		return strings.Join(out, ",")
	}
	s := map[Op]string{Read: "read", Create: "create", Write: "write", Append: "append", Edit: "edit", Truncate: "truncate", Delete: "delete", Move: "move", Copy: "copy", Link: "link",
		Access: "access", Extract: "extract", GitClean: "gitclean", GitReset: "gitreset", GitRestore: "gitrestore", Run: "run", Connect: "connect", Settings: "settings", Install: "install",
		Env: "env", Root: "root", Unknown: "unknown"}[a.Op]
	if a.Recursive {
		s += " -r"
	}
	if len(a.From) > 0 {
		s += " " + names(a.From) + " ->"
	}
	if a.Into != nil {
		s += " " + names([]Path{*a.Into}) + "/"
	}
	if len(a.Paths) > 0 {
		s += " " + names(a.Paths)
	}
	if (a.Op == Copy || a.Op == Move || a.Op == Link) && !a.Replaces {
		s += " keeping"
	}
	if f := a.Find; f != nil {
		s += " find"
		for _, n := range f.Names {
			s += " name=" + n
		}
		for _, n := range f.FoldNames {
			s += " iname=" + n
		}
		if f.Types != "" {
			s += " type=" + f.Types
		}
		if f.MaxDepth >= 0 {
			s += fmt.Sprint(" max=", f.MaxDepth)
		}
		if len(f.Others) > 0 {
			s += " others"
		}
	}
	switch a.Op {
	case Run:
		s += " " + a.Program
		for _, x := range a.Scripts {
			s += " [" + names([]Path{{Name: x}}) + "]"
		}
	case Connect:
		if s += " " + a.Host; a.Port != 0 {
			s += fmt.Sprint(":", a.Port)
		}
	case Settings, Install, Env:
		s += " " + a.What
	case GitClean, GitReset, GitRestore:
		s += " in " + names([]Path{{Name: a.Dir}})
	}
	return strings.TrimSpace(s)
}

type line struct {
	text, want string
	at         int
}

// lines are those of a file of testdata: "text => effects", where ⏎ is a new
// line and # begins a comment.
func lines(t testing.TB, name string) []line {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []line
	for i, l := range strings.Split(string(b), "\n") {
		if l == "" || strings.HasPrefix(l, "# ") {
			continue
		}
		text, want, ok := strings.Cut(l, " => ")
		if !ok {
			t.Fatalf("%s:%d: no =>", name, i+1)
		}
		out = append(out, line{strings.TrimRight(strings.ReplaceAll(text, "⏎", "\n"), " "), strings.TrimSpace(want), i + 1})
	}
	return out
}

func TestLines(t *testing.T) {
	ls := lines(t, "testdata/lines.txt")
	if len(ls) < 300 {
		t.Errorf("only %d lines", len(ls))
	}
	for _, l := range ls {
		j := Line(command(l.text))
		if got := effects(j); got != l.want {
			t.Errorf("lines.txt:%d: %s\n got %s\nwant %s", l.at, l.text, got, l.want)
			for _, p := range j.Parts {
				for _, a := range p.Acts {
					if a.Op == Unknown {
						t.Logf("    why: %s", a.Why)
					}
				}
			}
		}
		for _, p := range j.Parts {
			if p.Sentence == "" {
				t.Errorf("lines.txt:%d: %s: a part without a sentence: %q", l.at, l.text, p.Text)
			}
		}
	}
}

// TestBounds: whatever comes in, an answer comes out, and soon.
func TestBounds(t *testing.T) {
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "ls" + strings.Repeat(end, n) }
	for name, text := range map[string]string{
		"long":          "echo " + strings.Repeat("a", maxText),
		"many parts":    strings.Repeat("rm x;", maxParts+1),
		"subshells":     deep("( ", " )", 20000),
		"braces":        deep("{ ", "; }", 20000),
		"substitutions": deep("echo $(", ")", 20000),
		"quoted":        deep(`echo "$(`, `)"`, 10000),
		"sums":          "echo $((" + strings.Repeat("(", 30000) + "1" + strings.Repeat(")", 30000) + "))",
		"signs":         "echo $((" + strings.Repeat("- ", 30000) + "1))",
		"ands":          strings.Repeat("ls && ", 20000) + "ls",
		"pipes":         strings.Repeat("cat | ", 20000) + "cat",
		"nots":          strings.Repeat("! ", 30000) + "ls",
		"loops":         deep("while a; do b=$b; ", "; done", 60),
		"ifs":           deep("if a; then ", "; fi", 5000),
		"functions":     "f() { g; g; g; g; }; g() { h; h; h; h; }; h() { i; i; i; i; }; i() { j; j; j; j; }; j() { k; k; k; k; }; k() { l; l; l; l; }; l() { f; }; f",
		"braces expand": "echo {1..1000000}{1..1000000}",
		"braces many":   "rm {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}",
		"for":           "for a in {1..60}; do for b in {1..60}; do for c in {1..60}; do rm $a$b$c; done; done; done",
		"wrappers":      strings.Repeat("env ", 10000) + "rm x",
		"texts":         strings.Repeat("eval ", 10000) + "rm x",
		"itself":        ". ./self.sh",
		"bytes":         "ls \xff",
		"zero":          "ls \x00 x",
		"carriage":      "ls\r\nrm x\r\n",
		"escape":        "ls \x1b[31m",
		"backspace":     "rm x\b\b\b\bls",
		"parameters":    "echo " + strings.Repeat("${a:-", 10000) + "x" + strings.Repeat("}", 10000),
		"tests":         "[[ " + strings.Repeat("( ", 20000) + "a" + strings.Repeat(" )", 20000) + " ]]",
		"cases":         deep("case a in a) ", ";; esac", 5000),
		"process":       deep("cat <(", ")", 10000),
		"backquotes":    "echo " + strings.Repeat("`", 30001),
		"heredocs":      strings.Repeat("cat <<E\n", 2000),
		"arrays":        "a=(" + strings.Repeat("x ", 40000) + "); rm \"${a[@]}\"",
		"doubled":       "a=" + strings.Repeat("x", 1000) + strings.Repeat(";a=$a$a", 40) + ";rm $a",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c := command(text)
			read := c.Read
			c.Read = func(p string) ([]byte, bool) {
				if strings.HasSuffix(p, "self.sh") {
					return []byte(". ./self.sh\n"), true
				}
				return read(p)
			}
			j := Line(c)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			if j.ReadsOnly() && !strings.Contains("braces expand ands pipes nots tests parameters signs sums loops ifs cases", name) {
				t.Errorf("judged to only read: %q", text[:min(60, len(text))])
			}
			if len(j.Parts) > maxParts {
				t.Errorf("%d parts", len(j.Parts))
			}
		})
	}
	if j := Line(Command{}); j.Problem == "" {
		t.Error("no command is no problem")
	}
}

// TestLooksOnce: a long line costs no more looks than a short one, and one that
// goes through a long list again and again is given up.
func TestLooksOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		names int
		gives bool
	}{
		"patterns": {strings.Repeat("sort *; ", 900), 50, false},
		"outputs":  {strings.Repeat("foo -o nope; ", 900), 50, false},
		"long":     {strings.Repeat("sort *; ", 900), 20_000, true},
		"scripts":  {strings.Repeat("sh show.sh; ", 500), 50, false},
	} {
		cmd := command(c.text)
		looks := 0
		read := cmd.Read
		cmd.Read = func(p string) ([]byte, bool) { looks++; return read(p) }
		cmd.List = func(d string) ([]string, bool) { looks++; return make([]string, c.names), d == "/home/user" }
		j := Line(cmd)
		if looks > 10 {
			t.Errorf("%s: %d looks", name, looks)
		}
		if (j.Problem != "") != c.gives {
			t.Errorf("%s: %q", name, j.Problem)
		}
	}
}

// TestSame: what is shown is from the same judgement as what runs.
func TestSame(t *testing.T) {
	for _, l := range lines(t, "testdata/lines.txt") {
		if a, b := Line(command(l.text)), Line(command(l.text)); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: judged in two ways", l.text)
		}
	}
}

// TestSentences: what a person reads who has never seen a terminal.
func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"find Pictures -name '*.tmp' -delete":  "Deletes the files named *.tmp in Pictures and below",
		"head -n 3 notes.txt":                  "Shows the first lines of notes.txt",
		"npm test":                             "npm test: runs the program's own tests; what that does stands in package.json",
		"curl -o data.csv https://example.org": "Connects to example.org; writes data.csv",
		"sudo -v":                              "Asks for administrator rights",
		"rm -rf build":                         "Deletes build with everything in it",
		"jq .a data.json":                      "Reads JSON from data.json",
		"ls":                                   "Lists what is in the folder",
		"mv *.jpg Pictures/":                   "Moves the files named *.jpg to Pictures",
		"git status":                           "Shows what changed since the last version git keeps",
		"rm \"$X\"":                            "It can't be told beforehand what is deleted: $X decides it",
		"ffmpeg -i a.mp4 b.webm":               "ffmpeg: converts sound and video",
		"PATH=. ls":                            "Sets PATH, which changes what programs do; lists what is in the folder",
	} {
		j := Line(command(text))
		if len(j.Parts) != 1 || j.Parts[0].Sentence != want {
			t.Errorf("%s\n got %+v\nwant %s", text, j.Parts, want)
		}
	}
}
