package judge

import (
	"strings"
	"testing"
)

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
