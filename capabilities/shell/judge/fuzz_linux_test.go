package judge

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The oracle of this file: what is judged to only read is run for real, in a
// container with a small folder full of scripts that leave marks, and nothing
// may have changed, run or connected afterwards.

// inContainer makes the test binary the program that runs lines.
const inContainer = "JUDGE_RUNS_LINES"

func TestMain(m *testing.M) {
	if os.Getenv(inContainer) != "" {
		runLines()
		return
	}
	os.Exit(m.Run())
}

const marks = "#!/bin/sh\necho ran >> /home/user/ran\n"

// fixture is the folder that lines run in.
var fixture = map[string]string{
	"a.txt": "a[$(touch /home/user/ran)]\n-o out\nb\n", "b.txt": "x\ny\n", "notes.txt": "hello\nworld\n", "my file.txt": "m\n", "x.tmp": "t\n", "f": "f\n",
	"list": "./run.sh\nrm x.tmp\n$(./run.sh)\n", "data.json": "{\"a\": 1}\n", "src/a.c": "int main;\n", "src/b.c": "int x;\n", "build/obj": "o\n", "odd/-rf.txt": "r\n", "odd/a.txt": "a\n",
	"run.sh": marks, "x": marks, "o": marks, "id": marks, "sub/run.sh": marks, "-o": "dash\n", "clean.sh": files["/home/user/clean.sh"], "show.sh": files["/home/user/show.sh"],
	"lib.sh": files["/home/user/lib.sh"], "rule.sed": "w out.txt\n", "sum.awk": files["/home/user/sum.awk"], "evil/.git/config": "[core]\n\tfsmonitor = ./x.sh\n", "evil/x.sh": marks,
}

func fixtureCommand(text string) Command {
	c := command(text)
	c.Read = func(p string) ([]byte, bool) {
		s, ok := fixture[strings.TrimPrefix(p, "/home/user/")]
		return []byte(s), ok && strings.HasPrefix(p, "/home/user/")
	}
	c.List = func(d string) ([]string, bool) {
		rel := strings.TrimPrefix(strings.TrimPrefix(d, "/home/user"), "/")
		if !strings.HasPrefix(d, "/home/user") {
			return nil, false
		}
		var out []string
		for n := range fixture {
			if rest, ok := strings.CutPrefix(n, rel+"/"); ok || rel == "" {
				if rel == "" {
					rest = n
				}
				first, _, _ := strings.Cut(rest, "/")
				out = append(out, first)
			}
		}
		return out, true
	}
	return c
}

func lay(dir string) error {
	for n, s := range fixture {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(s, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(p, []byte(s), mode); err != nil {
			return err
		}
		if err := os.Chmod(p, mode); err != nil {
			return err
		}
	}
	return nil
}

// state of a tree, for comparing. What lies in .git/index is git's own affair.
func picture(dirs ...string) map[string]string {
	out := map[string]string{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				out[p] = err.Error()
				return nil
			}
			fi, err := d.Info()
			if err != nil {
				return nil
			}
			s := fmt.Sprint(fi.Mode(), " ", fi.Size())
			if dir != "/tmp" { // programs keep large inputs there for a moment
				s += fmt.Sprint(" ", fi.ModTime().UnixNano())
			}
			if fi.Mode().IsRegular() {
				b, _ := os.ReadFile(p)
				s += fmt.Sprintf(" %x", sha256.Sum256(b))
			} else if fi.IsDir() && dir == "/tmp" {
				s = "dir"
			}
			out[p] = s
			return nil
		})
	}
	return out
}

// runLines is the program in the container: lines come in as JSON texts, and
// what each changed goes out.
func runLines() {
	var connected atomic.Int64
	for _, port := range []string{"80", "443", "22"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Fprintln(os.Stderr, "listen:", err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				connected.Add(1)
				_ = c.Close()
			}
		}()
	}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := json.NewEncoder(os.Stdout)
	before := picture("/home/user", "/tmp")
	for {
		var line string
		if err := in.Decode(&line); err != nil {
			return
		}
		line, makes := strings.CutPrefix(line, makesNew)
		cmd := exec.Command("bash", "--noprofile", "--norc", "-c", line)
		if sh, ok := strings.CutPrefix(line, "#!sh "); ok {
			cmd = exec.Command("sh", "-c", sh)
		}
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err == nil {
			t := time.AfterFunc(700*time.Millisecond, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			_ = cmd.Wait()
			t.Stop()
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		did := ""
		after := picture("/home/user", "/tmp")
		if makes {
			did = changedOrGone(before, after)
			clearNew(before, after)
			before = picture("/home/user", "/tmp")
		} else {
			did = compare(before, after)
			before = after
		}
		if n := connected.Swap(0); n > 0 {
			did += "connected; "
		}
		if err := out.Encode(did); err != nil {
			return
		}
	}
}

// compare says what is not as it was.
func compare(before, after map[string]string) (did string) {
	for p := range after {
		if after[p] != before[p] {
			did += "changed " + p + "; "
		}
	}
	for p := range before {
		if after[p] == "" {
			did += "gone " + p + "; "
		}
	}
	return did
}

// makesNew before a line means that it may make what is not there, and give
// what is there another time, and nothing else.
const makesNew = "#!new "

// changedOrGone says what of before is gone or has other contents, and whether
// a script of the folder ran.
func changedOrGone(before, after map[string]string) (did string) {
	what := func(state string) string { // without the time
		f := strings.Fields(state)
		if len(f) < 3 || strings.HasPrefix(f[0], "d") {
			return f[0]
		}
		return strings.Join([]string{f[0], f[1], f[len(f)-1]}, " ")
	}
	for p, was := range before {
		switch now, there := after[p]; {
		case !there:
			did += "gone " + p + "; "
		case what(was) != what(now):
			did += "changed " + p + "; "
		}
	}
	if _, ran := after["/home/user/ran"]; ran {
		if b, err := os.ReadFile("/home/user/ran"); err == nil && bytes.HasPrefix(b, []byte("ran\n")) {
			did += "ran a script; "
		}
	}
	return did
}

// clearNew takes away what a line made.
func clearNew(before, after map[string]string) {
	made := slices.Sorted(maps.Keys(after))
	for _, p := range slices.Backward(made) { // what is in a directory comes after it
		if _, was := before[p]; !was {
			_ = os.RemoveAll(p)
		}
	}
}

// container runs lines one by one.
type container struct {
	in  *json.Encoder
	out *json.Decoder
	end func()
}

func newContainer(t testing.TB) *container {
	t.Helper()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal("these tests run lines in bubblewrap, which is not installed")
	}
	dir := t.TempDir()
	home, tmp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	for _, d := range []string{home, tmp} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := lay(home); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", inContainer, "1", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin",
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin",
		"--proc", "/proc", "--dev", "/dev", "--ro-bind", self, "/judge.test", "--bind", home, "/home/user", "--bind", tmp, "/tmp", "--cap-add", "CAP_NET_BIND_SERVICE", "--chdir", "/home/user", "/judge.test"}
	cmd := exec.Command(bwrap, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &container{in: json.NewEncoder(stdin), out: json.NewDecoder(stdout), end: func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the container: %v %s", err, errs.String())
		}
	}}
}

// run gives what the line changed, "" for nothing.
func (c *container) run(t testing.TB, line string) string {
	if err := c.in.Encode(line); err != nil {
		t.Fatal(err)
	}
	var did string
	if err := c.out.Decode(&did); err != nil {
		t.Fatalf("the container ended at %q: %v", line, err)
	}
	return did
}

// TestOracle makes sure that the container sees what a line does.
func TestOracle(t *testing.T) {
	c := newContainer(t)
	defer c.end()
	for line, want := range map[string]string{
		"touch new": "new", "rm x.tmp": "gone /home/user/x.tmp", "chmod 600 b.txt": "b.txt", "./run.sh": "ran", "echo > /tmp/y": "/tmp/y", "touch a.txt": "a.txt",
		"echo > /dev/tcp/127.0.0.1/80": "connected", "read x < a.txt; echo $((x))": "ran",
	} {
		if did := c.run(t, line); !strings.Contains(did, want) {
			t.Errorf("%s: got %q, want %q", line, did, want)
		}
	}
	if did := c.run(t, "cat a.txt"); did != "" {
		t.Errorf("cat: %q", did)
	}
	for line, want := range map[string]string{"mkdir -p d/e; touch a.txt": "", "touch new; rm new": "", "echo > a.txt": "changed /home/user/a.txt", "mv b.txt c": "gone /home/user/b.txt",
		"chmod 600 f": "changed /home/user/f", "./run.sh": "ran a script"} {
		fresh := newContainer(t)
		if did := fresh.run(t, makesNew+line); !strings.Contains(did, want) || want == "" && did != "" {
			t.Errorf("%s: got %q, want %q", line, did, want)
		}
		if did := fresh.run(t, makesNew+"true"); did != "" {
			t.Errorf("after %s: %q", line, did)
		}
		fresh.end()
	}
}

// bits are what mutations put into lines.
var bits = strings.Split(strings.ReplaceAll(`;| && | || | | & |⏎|>|>>|<|<>|&>| 2>| >&|$(|)|"|'|\|$'|{|}|(|,|..| rm x.tmp| touch ran|./run.sh|run.sh| -o | -o| o| -i | -exec ./run.sh ;| -delete|--output=o|w o|e|`+
	`$x|"$x"|${x:=|${x@P}|x=|PATH=. |eval |exec |. ./run.sh|source |sh | bash -c |env |xargs |-c |-f |tee o|*|?|[|]|~|<<EOF⏎|⏎EOF⏎|<<<|#|!|$((|))|[[ | ]]| -v |a[$(touch ran)]|coproc |trap |function f |f() |case x in |esac|`+
	`if |then |fi|for x in * ; do |do |done|while read x; do |\⏎|/dev/tcp/127.0.0.1/80| -- | -s| -n|1|0|-| |⇥|=|+|:|@|%|^|/|..|./|a.txt|x|$(./run.sh)|<(./run.sh)|>(tee o)|{a,b}|$IFS|read x < list;|x=list;|x=./run.sh;|x='-o out';|$x |"$@"|`+
	`set -- ./run.sh;|"$1"|$1|a=(./run.sh o);|${a[0]}|${!x}|${x#|${x//a/b}|$((x))|let x=1;|((x))|[ $x ]|test |printf |command |builtin |time |nice |timeout 1 |find . |sed |awk |sort |uniq |git |grep |cat |echo |head -1 |'w ran'|'1e ./run.sh'|system("./run.sh")|print > "ran"|`+
	`;w ran|;e ./run.sh|s/x/y/e|s/h/y/w ran|{e|1,$|r list|-e |-E|-n|--in-place|-z|--|--files-with|-ok |-fprint ran|-fls ran|+|\;|-name |-printf |--compress-program=./run.sh|-T sub|-C |--ext-diff|-O./x|-c core.pager=./x |`+
	`-c alias.l=!./x |alias |unset |local |export |declare -n |readonly |shopt -s |set -e;|set -f;|cd sub;|cd sub && |cd .. ;|pushd src;|exit;|return;|break|continue|&1|>&2|2>&1|1<&0|1<>f|0>|3>ran|/dev/stdout|/dev/stdin|/dev/fd/0|/dev/fd/3|/proc/self/fd/0|~/run.sh|$HOME/run.sh|`+
	`${HOME}|~+|$PWD|`+"`|`./run.sh`", "⏎", "\n"), "|")

// mutate changes a line in one to four places.
func mutate(r *rand.Rand, line string, others []string) string {
	for range 1 + r.IntN(4) {
		at := r.IntN(len(line) + 1)
		if r.IntN(2) == 0 { // at a blank
			if i := strings.IndexAny(line[at:], " ;|&"); i >= 0 {
				at += i
			}
		}
		bit := strings.ReplaceAll(bits[r.IntN(len(bits))], "⇥", "\t")
		switch r.IntN(8) {
		case 0, 1, 2:
			line = line[:at] + bit + line[at:]
		case 3:
			line = line[:at] + " " + bit + line[at:]
		case 4:
			end := min(len(line), at+1+r.IntN(4))
			line = line[:at] + line[end:]
		case 5:
			end := min(len(line), at+1+r.IntN(4))
			line = line[:at] + bit + line[end:]
		case 6:
			line = bit + line
		case 7:
			o := others[r.IntN(len(others))]
			line = line[:at] + o[r.IntN(len(o)):]
		}
		if line == "" {
			line = bit + " "
		}
	}
	return line
}

// slow lines wait for something and only cost time.
func slow(line string) bool {
	for _, s := range []string{"sleep", "tail -f", "yes", "/dev/zero", "/dev/urandom", "/dev/tty", "/dev/random", "tail", "while", "until", "/dev/full", "for ((", "seq", "1..", "-R", "-r ", "find /", "du /", "~/.."} {
		if strings.Contains(line, s) {
			return true
		}
	}
	return false
}

// makesOnly tells whether a line reads, and makes what is not there: that much
// runs without a question in a session that may work in its folder.
func makesOnly(j Judgement) bool {
	makes := false
	for _, p := range j.Parts {
		for _, a := range p.Acts {
			if a.Op != Read && a.Op != Create {
				return false
			}
			makes = makes || a.Op == Create
		}
	}
	return makes && j.Problem == ""
}

func seedLines(t testing.TB, fits func(Judgement) bool) []string {
	var out []string
	for _, l := range lines(t, "testdata/lines.txt") {
		if !slow(l.text) && fits(Line(fixtureCommand(l.text))) {
			out = append(out, l.text)
		}
	}
	return out
}

// TestNothingBecomesSilent mutates lines that only read, and runs those that
// are still judged to only read: nothing may be another.
func TestNothingBecomesSilent(t *testing.T) {
	t.Parallel()
	fuzzLines(t, "", Judgement.ReadsOnly, 60, 200)
}

// TestNothingThatWasThereChanges does so with lines that make what is new too:
// what was there may not be another.
func TestNothingThatWasThereChanges(t *testing.T) {
	t.Parallel()
	fuzzLines(t, makesNew, makesOnly, 10, 100)
}

func fuzzLines(t *testing.T, how string, fits func(Judgement) bool, least, leastRun int) {
	seeds := seedLines(t, fits)
	if len(seeds) < least {
		t.Fatalf("only %d lines to begin with", len(seeds))
	}
	budget := 20 * time.Second
	if s := os.Getenv("JUDGE_FUZZ"); s != "" {
		budget, _ = time.ParseDuration(s)
	}
	start := uint64(1)
	if s := os.Getenv("JUDGE_SEED"); s != "" {
		_, _ = fmt.Sscan(s, &start)
	}
	var wg sync.WaitGroup
	var ran, made atomic.Int64
	for k := range 2 {
		c := newContainer(t)
		wg.Go(func() {
			defer func() { c.end() }()
			found := 0
			r := rand.New(rand.NewPCG(start, uint64(k)))
			end := time.Now().Add(budget)
			own := slices.Clone(seeds)
			for n := 0; n < 1_000_000 && time.Now().Before(end); n++ {
				line := mutate(r, own[r.IntN(len(own))], seeds)
				made.Add(1)
				if len(line) > 400 || slow(line) || !fits(Line(fixtureCommand(line))) {
					continue
				}
				ran.Add(1)
				if did := c.run(t, how+line); did != "" {
					t.Errorf("judged to be harmless: %q\n%s", line, did)
					if found++; found == 12 {
						return
					}
					c.end()
					c = newContainer(t)
					continue
				}
				if len(own) < 3*len(seeds) {
					own = append(own, line)
				} else {
					own[len(seeds)+r.IntN(2*len(seeds))] = line
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d lines made, %d run", made.Load(), ran.Load())
	if ran.Load() < int64(leastRun) {
		t.Errorf("only %d lines were run", ran.Load())
	}
}

// FuzzReadsOnly is the same for go test -fuzz, whose seeds are run by the
// ordinary test too.
func FuzzReadsOnly(f *testing.F) {
	for _, l := range seedLines(f, Judgement.ReadsOnly) {
		f.Add(l)
	}
	c := newContainer(f)
	f.Cleanup(func() { c.end() })
	f.Fuzz(func(t *testing.T, text string) {
		if slow(text) || !Line(fixtureCommand(text)).ReadsOnly() {
			return
		}
		if did := c.run(t, text); did != "" {
			t.Errorf("judged to only read: %q\n%s", text, did)
		}
	})
}
