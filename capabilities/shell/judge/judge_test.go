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

// TestTyped: a program that runs what it reads is not told beforehand when that
// comes later; one that takes it as data is judged as without.
func TestTyped(t *testing.T) {
	for _, c := range []struct {
		argv             string // words, or after "bash -c " a text
		sent, atTerminal bool   // asked about
	}{
		{"cat", false, false}, {"tee out.txt", false, false}, {"grep -c x", false, false}, {"wc -l", false, false}, {"sort", false, false}, {"ls -la", false, false},
		{"bash", true, true}, {"sh", true, true}, {"bash -i -l", true, true}, {"sh -s x", true, true}, {"env FOO=1 bash", true, true}, {"nice -n 5 sh", true, true}, {"zsh", true, true},
		{"python3", true, true}, {"python3 -", true, true}, {"python3 -i tool.py", true, true}, {"python3 -m pdb tool.py", true, true}, {"python3 -W error", true, true},
		{"python3 tool.py", false, true}, {"python3 -c print(1)", false, true}, {"python3 -m pytest", false, true},
		{"node", true, true}, {"node -r x", true, true}, {"node -e 1", false, true}, {"perl", true, true}, {"perl -p", true, true}, {"perl -pe 1", false, true}, {"ruby -r json", true, true}, {"php -r 1", false, true},
		{"psql", true, true}, {"sqlite3 a.db", true, true}, {"vim a.txt", true, true}, {"less a.txt", true, true}, {"make -f -", true, true}, {"make", false, true}, {"git log", false, true}, {"ssh example.org", true, true},
		{"bash -c cat", false, false}, {"bash -c cat | bash", true, true}, {"bash -c cat | python3 -", true, true}, {"bash -c cat | python3", true, true}, {"bash -c bash < notes.txt", true, true},
		{"bash -c echo ls | bash", false, false}, {"bash -c python3 < tool.py", false, true}, {"bash -c python3 < /dev/stdin", true, true}, {"bash -c exec 3<&0; python3 <&3", true, true},
		{"bash -c . /dev/stdin", true, true}, {"bash -c bash /dev/stdin", true, true}, {"bash -c python3 /dev/fd/0", true, true}, {"bash -c (bash)", true, true}, {"bash -c f() { bash; }; f", true, true},
		{"bash -c while read -r l; do echo \"$l\"; done", false, false}, {"bash -c while read -r l; do $l; done", true, true}, {"bash -c read x; eval \"$x\"", true, true}, {"bash -c sleep 1; echo hi", false, false},
		{"npx ts-node", true, true}, {"sudo -s", true, true}, {"docker exec -i x sh", true, true}, {"./run.sh", false, true},
	} {
		cmd := command("")
		if text, ok := strings.CutPrefix(c.argv, "bash -c "); ok {
			cmd.Argv = []string{"bash", "--noprofile", "--norc", "-c", text}
		} else {
			cmd.Argv = strings.Fields(c.argv)
		}
		unknown := func() bool {
			j := Line(cmd)
			is := strings.Contains(effects(j), "unknown") || j.Problem != ""
			if j.Typed && !is {
				t.Errorf("%s: typed into, and known", c.argv)
			}
			return is
		}
		cmd.Typed = true
		if unknown() != c.sent {
			t.Errorf("%s, with what is sent later: %s", c.argv, effects(Line(cmd)))
		}
		cmd.Typed, cmd.Terminal = false, true
		if unknown() != c.atTerminal {
			t.Errorf("%s, at a terminal: %s", c.argv, effects(Line(cmd)))
		}
		cmd.Terminal = false
		if j := Line(cmd); j.Typed {
			t.Errorf("%s: typed into without input", c.argv)
		}
	}
	cmd := command("")
	cmd.Argv, cmd.Terminal = []string{"/bin/bash", "--noprofile", "--norc", "-i", "-l"}, true
	if j := Line(cmd); len(j.Parts) != 1 || j.Parts[0].Sentence != "Opens a terminal. What is typed there runs without being shown first." {
		t.Errorf("%+v", j.Parts)
	}
}

// A program that is read from standard input, under whatever name, is what comes
// later.
func TestProgramsFromStandardInput(t *testing.T) {
	links := map[string]string{
		"/home/user/in": "/dev/stdin", "/home/user/in2": "in", "/home/user/devices": "../../dev", "/home/user/sub/up": "..", "/home/user/fd": "/proc/self/fd/0",
		"/home/user/round": "round", "/home/user/made/Makefile": "/dev/stdin", "/home/user/plain": "clean.sh", "/home/user/justfile": "/dev/fd/0",
	}
	judge := func(text string, typed bool) Judgement {
		c := command(text)
		c.Typed = typed
		c.Link = func(p string) (string, bool) { to, ok := links[p]; return to, ok }
		return Line(c)
	}
	for text := range strings.SplitSeq(strings.TrimSpace(`
make -f-
make -f -
make --file=-
make --file -
make --makefile=/dev/stdin
make -f /dev/stdin
make -f/dev/stdin
make -sf-
make -skf /dev/fd/0
make -C /dev -f stdin
make -C /dev/fd -f0
make -f in
make -f ./in2
make -f "$X"
make -C made
make -f /proc/self/fd/0
make -f sub/../in
cd made; make
make -f <(cat)
just -f -
just
cd /dev; make -f stdin
bash /dev/fd/0
bash /dev/stdin
bash //dev//stdin
bash /dev/../dev/stdin
bash /dev/./stdin
bash /proc/self/fd/0
bash /proc/thread-self/fd/0
bash /proc/1/fd/0
bash /proc/self/task/1/fd/0
bash /proc/self/root/dev/stdin
bash /proc/self/root/proc/self/fd/0
bash ../../dev/stdin
bash /dev/fd/3 3<&0
bash /dev/fd/3 3<in
bash /dev/fd/12 12<&0
bash 3<&0 /dev/fd/3
exec 3<&0; bash /dev/fd/3 </dev/null
exec 3<&0 </dev/null; bash <&3
exec 9<&0; bash /proc/self/fd/9
bash in
bash ./in
bash in2
bash devices/stdin
bash sub/up/in
bash fd
bash round
cd /dev; bash stdin
cd devices; bash ./stdin
cd sub/up; bash in
bash -x /dev/stdin
bash -e -- /dev/stdin
bash -s
bash -s -- a b
bash -es
bash +x -s
sh -s
sh -
sh
sh /dev/stdin
dash -s
dash /dev/fd/0
bash -c '. /dev/stdin'
bash --norc -s
bash < in
bash <> /dev/stdin
. /dev/stdin
source /dev/stdin
. /proc/self/fd/0
source /proc/self/fd/0
. in
source ./in2
. -- /dev/fd/0
command . /dev/stdin
builtin source /dev/stdin
. <(cat)
. /dev/fd/3 3<&0
eval "$(cat)"
eval "$(</dev/stdin)"
python -
python3 -
python3 -u -
python3 -
python3 -Wd -
python3 -W error -
python3 -Wc -
python3 -X dev
python3 -v
python3 -q
python3 -i tool.py
python3 -ui tool.py
python3 -mpdb tool.py
python3 -um pdb tool.py
python3 -m code
python3 /dev/stdin
python3 /dev/fd/0
python3 -u /proc/self/fd/0
python3 in
python3 ./in2
python3 /dev/fd/3 3<&0
python3 devices/stdin
python3 -c "$(cat)"
read x; python3 -c "$x"
python3.12 -
pypy3 -
python3 < in
python3 -- -
node -
node
node -r ./x
node -r./x
node --require ./x
node --import ./x -
node --import ./x
node --input-type=module -
node --input-type module
node -i
node --interactive
node --what ./x
node /dev/stdin
node in
node --eval "$(cat)"
tsx -
ts-node -P x.json
perl -
perl
perl -w
perl -w -
perl -Mstrict -
perl -n
perl -p -i.bak
perl -d tool.pl
perl -I lib
perl -Ilib -
perl -0777
perl -l -
perl -pie
perl /dev/stdin
perl in
perl -e "$(cat)"
perl -x
ruby -
ruby
ruby -w
ruby -r json
ruby -rjson
ruby -C x
ruby -W0 -
ruby in
ruby --disable gems
php
php -
php -a
php -d a=b
php --
php -f /dev/stdin
php -f in
php /dev/stdin
lua -
lua -i x.lua
lua -l x
lua in
julia -
julia -i x.jl
julia -L x.jl
Rscript -
Rscript /dev/stdin
deno
deno run -
deno repl
java /dev/stdin
awk -f - x
awk -f /dev/stdin x
sed -f - x
sed -f /dev/stdin x
sqlite3 a.db
psql
zsh -s
fish -
ksh /dev/stdin
busybox sh -s
busybox ash
env bash -s
env FOO=1 bash /dev/stdin
env -i bash
nohup bash -s
nice -n 5 sh -s
timeout 5 bash /dev/fd/0
setsid sh -
exec bash -s
exec bash
command bash
xargs -I{} sh -c {}
xargs sh -c
find . -maxdepth 0 -exec bash /dev/stdin \;
find . -maxdepth 0 -exec python3 - \;
trap 'python3 -' EXIT
npx -c "python3 -"
diff <(python3) a.txt
sudo bash -s
stdbuf -o0 python3 -
cat | bash
cat | bash -s
cat | bash /dev/stdin
tee log | sh
cat | python3 -
cat | python3 /dev/stdin
(bash)
{ bash; }
if true; then bash -s; fi
for i in 1; do sh; done
while bash; do :; done
f() { bash /dev/stdin; }; f
bash -s &
bash && true
x=$(bash -s)
echo $(python3 -)
cat > new.sh; bash new.sh
cat > new.sh && sh ./new.sh
tee new.py; python3 new.py
dd of=new.sh; . ./new.sh
cat > new.mk; make -f new.mk
cat > new; chmod +x new; ./new
cat >> clean.sh; bash clean.sh
cp /dev/stdin new.sh; bash new.sh
ln -s /dev/stdin new.sh; bash new.sh
cat > a; mv a b; bash b
cat > a; cp a sub/; bash sub/a
while read -r l; do echo "$l" >> new.sh; done; bash new.sh
cat > Makefile; make
`), "\n") {
		j := judge(text, true)
		if !j.Typed || j.Problem == "" && !strings.Contains(effects(j), "unknown") {
			t.Errorf("%s, with what is sent later: typed %v, %s", text, j.Typed, effects(j))
		}
		if j := judge(text, false); j.Typed {
			t.Errorf("%s: typed into without input", text)
		}
	}
	for _, text := range []string{"bash clean.sh", "bash plain", "bash sub/up/clean.sh", ". ./lib.sh", "python3 tool.py", "python3 -u tool.py", "python3 -W error tool.py", "python3 -c 'print(1)'", "python3 -cpass", "python3 -m pytest -q", "python3 -mpytest",
		"node tool.js", "node --inspect tool.js", "node --import ./x tool.js", "node --enable-source-maps tool.js", "node -pe 1", "node --eval=1", "node -e 1", "perl -pe 1", "perl -e1", "perl -lane 'print' a.txt", "perl -MList::Util=sum -e 1", "ruby -e 1", "ruby -rjson tool.rb",
		"php -r 1", "php tool.php", "php -f tool.php", "php -S localhost:8000", "lua -e 1", "lua x.lua", "Rscript x.R", "java -jar x.jar", "julia -e 1", "julia x.jl", "deno run x.ts",
		"make", "make -f clean.mk", "make -C src all", "make -j4 -s all", "python3 </dev/null", "python3 tool.py > out.txt; node report.js out.txt", "echo 'echo hi' > new.sh; bash new.sh", "cat > data.txt; python3 tool.py data.txt", "sort | head", "cat > new.sh",
		"npm run build", "cargo build", "go test ./...", "read x; echo \"$x\""} {
		if j := judge(text, true); j.Typed {
			t.Errorf("%s takes what is sent for its program: %s", text, effects(j))
		}
	}
}
