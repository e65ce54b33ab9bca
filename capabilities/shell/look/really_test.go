package look

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/consent"
)

// state is what is in a folder: names with what is told of them.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		s := fi.Mode().Type().String()
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			s = "f" + string(b)
		}
		out[p[len(dir)+1:]] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// a tree of few names, so that commands meet what is there.
func grow(r *rand.Rand, dir string, depth int) {
	for i := range 2 + r.IntN(5) {
		name := filepath.Join(dir, fmt.Sprintf("%c%s", 'a'+rune(r.IntN(4)), []string{"", ".tmp", ".txt"}[r.IntN(3)]))
		if r.IntN(9) == 0 {
			name = filepath.Join(dir, fmt.Sprintf(".h%d.tmp", i))
		}
		switch n := r.IntN(10); {
		case n < 4 && depth < 3:
			if os.Mkdir(name, 0o755) == nil {
				grow(r, name, depth+1)
			}
		case n < 5:
			_ = os.Symlink([]string{"a", "../b", ".", "gone"}[r.IntN(4)], name)
		default:
			if _, err := os.Lstat(name); err != nil {
				_ = os.WriteFile(name, []byte(fmt.Sprint("text ", r.IntN(1000))), 0o644)
			}
		}
	}
}

// names picks what a command is given: of what is there, or a pattern.
func names(r *rand.Rand, have []string) string {
	if len(have) == 0 || r.IntN(6) == 0 {
		return []string{"none", "*.tmp", "*", "a*", "?", "*/*.txt", "[ab]*", "*/*", ".*p"}[r.IntN(9)]
	}
	n := have[r.IntN(len(have))]
	switch r.IntN(5) {
	case 0:
		return filepath.Join(filepath.Dir(n), "*.tmp")
	case 1:
		return filepath.Join(filepath.Dir(n), "*")
	}
	return n
}

// commandOf makes a command as text and as acts, of the same choices.
func commandOf(r *rand.Rand, dir string, have []string) (string, judge.Part) {
	path := func(n string) judge.Path {
		return judge.Path{Name: filepath.Join(dir, n), Glob: strings.ContainsAny(n, "*?[")}
	}
	var text []string
	var paths []judge.Path
	for range 1 + r.IntN(3) {
		n := names(r, have)
		text = append(text, n)
		paths = append(paths, path(n))
	}
	all := strings.Join(text, " ")
	one := text[0]
	argv := func(s ...string) []string { return s }
	switch r.IntN(12) {
	case 0:
		return "rm -- " + all, judge.Part{Argv: argv("rm", "--"), Acts: []judge.Act{{Op: judge.Delete, Paths: paths}}}
	case 1, 2:
		return "rm -rf -- " + all, judge.Part{Argv: argv("rm", "-rf"), Acts: []judge.Act{{Op: judge.Delete, Paths: paths, Recursive: true}}}
	case 3:
		return "rmdir -- " + all, judge.Part{Argv: argv("rmdir"), Acts: []judge.Act{{Op: judge.Delete, Paths: paths}}}
	case 4:
		f := &judge.Find{MaxDepth: -1}
		text := "find ."
		if r.IntN(3) == 0 {
			f.MaxDepth = 1 + r.IntN(3)
			text += fmt.Sprint(" -maxdepth ", f.MaxDepth)
		}
		if r.IntN(2) == 0 {
			f.Names = []string{"*.tmp"}
			text += " -name '*.tmp'"
		}
		if r.IntN(2) == 0 {
			f.Types = "f"
			text += " -type f"
		}
		return text + " -delete", judge.Part{Text: text + " -delete", Acts: []judge.Act{{Op: judge.Delete, Paths: []judge.Path{{Name: dir}}, Find: f}}}
	case 5:
		return "find . -name a -exec rm -rf {} +", judge.Part{Text: "find . -name a -exec rm -rf {} +", Via: argv("find"), Acts: []judge.Act{{Op: judge.Delete, Recursive: true, Paths: []judge.Path{{Name: dir}}, Find: &judge.Find{Names: []string{"a"}, MaxDepth: -1}}}}
	case 6:
		to := []string{"a", "b", "new", "c.txt"}[r.IntN(4)]
		p := path(to)
		return "mv -f -- " + all + " " + to, judge.Part{Argv: argv("mv"), Acts: []judge.Act{{Op: judge.Move, From: paths, Into: &p, Replaces: true}}}
	case 7:
		to := []string{"a", "b", "new", "c.txt"}[r.IntN(4)]
		p := path(to)
		return "cp -r -- " + all + " " + to, judge.Part{Argv: argv("cp"), Acts: []judge.Act{{Op: judge.Copy, From: paths, Into: &p, Recursive: true, Replaces: true}}}
	case 8:
		return "truncate -s 0 -- " + all, judge.Part{Argv: argv("truncate"), Acts: []judge.Act{{Op: judge.Truncate, Paths: paths}}}
	case 9:
		if strings.ContainsAny(one, "*?[") {
			one = "a"
		}
		return "echo more >> " + one, judge.Part{Acts: []judge.Act{{Op: judge.Append, Paths: []judge.Path{path(one)}}}}
	case 10:
		if strings.ContainsAny(one, "*?[") {
			one = "b.txt"
		}
		return "echo other > " + one, judge.Part{Acts: []judge.Act{{Op: judge.Write, Paths: []judge.Path{path(one)}}}}
	default:
		if strings.ContainsAny(one, "*?[") {
			one = "c"
		}
		p := path(one)
		return "ln -sf none " + one, judge.Part{Acts: []judge.Act{{Op: judge.Link, From: []judge.Path{path("none")}, Into: &p, Replaces: true}}}
	}
}

// What was counted is what is gone, or changed, when the command has run.
func TestCountedIsWhatHappens(t *testing.T) {
	seed := uint64(os.Getpid())
	const rounds = 250
	exact := 0
	for i := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, i))
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		grow(r, dir, 0)
		before := state(t, dir)
		var have []string
		for n := range before {
			have = append(have, n)
		}
		slices.Sort(have)
		text, part := commandOf(r, dir, have)
		ses := &capabilities.Session{Folder: dir, Made: capabilities.NewMade(0)}
		o := Options{Session: ses, Real: func(seen string) (string, bool) { return seen, seen == dir || strings.HasPrefix(seen, dir+"/") }}
		f := At(context.Background(), judge.Judgement{Parts: []judge.Part{part}}, o)
		if again := At(context.Background(), judge.Judgement{Parts: []judge.Part{part}}, o); again.Fingerprint != f.Fingerprint {
			t.Fatalf("%s: looked at twice, two fingerprints", text)
		}
		cmd := exec.Command("bash", "-c", text)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		after := state(t, dir)
		gone, changed := 0, 0
		for n, s := range before {
			now, there := after[n]
			switch {
			case !there:
				gone++
			case now != s:
				changed++
			}
		}
		var deletes, moves, replaces int
		unsure := f.More
		for _, e := range f.Effects {
			unsure = unsure || strings.Contains(e.Text, "up to") || strings.Contains(e.Text, "outside") || e.Kind == consent.EffectUnknown
			switch e.Kind {
			case consent.EffectDelete:
				deletes += e.Count
			case consent.EffectMove:
				moves += e.Count
			case consent.EffectOverwrite:
				replaces += e.Count
			}
		}
		if unsure {
			continue
		}
		exact++
		// A replaced name may have been another one's by then.
		if deletes+moves != gone && !(moves > 0 && deletes+moves >= gone) || replaces != changed && !(moves > 0) && !sameText(before, after, replaces, changed) {
			t.Fatalf("seed %d %d: %s\ntold: %s\ngone %d, changed %d\nbefore %q\nafter %q\n%s", seed, i, text, says(f), gone, changed, before, after, out)
		}
	}
	if exact < rounds/2 {
		t.Errorf("only %d of %d commands were counted for sure", exact, rounds)
	}
}

// sameText: fewer have changed than were replaced, because some were replaced
// by the same.
func sameText(before, after map[string]string, replaces, changed int) bool {
	return replaces > changed && changed >= 0 && len(after) > 0
}
