package kept_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/kept"
	"localpc/capabilities"
	"localpc/consent"
)

// command does what a contained command would, between a snapshot and its end.
func (r *rig) command(line string) (request string, notes []string) {
	r.Helper()
	request = consent.NewID()
	snap := r.hold(request)
	r.sh(line)
	return request, snap.End(context.Background())
}

func (r *rig) hold(request string) capabilities.Snapshot {
	r.Helper()
	snap, err := r.k.Snapshot(context.Background(), r.s, request)
	must(r, err)
	return snap
}

func (r *rig) sh(line string) {
	r.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir = r.s.Folder
	if out, err := c.CombinedOutput(); err != nil {
		r.Logf("%s: %v: %s", line, err, out)
	}
}

func TestCommandsAreUndone(t *testing.T) {
	for name, line := range map[string]string{
		"append":      "echo more >>a.txt",
		"in place":    "printf X | dd of=a.txt conv=notrunc status=none",
		"replaced":    "sed -i s/a/b/ a.txt",
		"deleted":     "rm -r d a.txt",
		"made":        "mkdir -p n/e/w; echo 1 >n/e/w/f; ln -s f n/e/w/l; echo 2 >new",
		"moved":       "mv d e; mv a.txt e/deep",
		"mode":        "chmod 755 a.txt; chmod 700 d/deep",
		"kind":        "rm a.txt; mkdir a.txt; echo x >a.txt/in; rm -r d; echo file >d",
		"links":       "ln -sf elsewhere link; rm hard1; echo both >>hard2",
		"both names":  "echo both >>hard2",
		"not written": "echo x >d/x; chmod 500 d",
		"not UTF-8":   `mv "$(printf 'a\377b')" "$(printf 'c\377d')"; echo x >"$(printf 'e\376')"`,
		"odd names":   "rm -f -- '-n' ' sp ace' 'a\"b' 'new\nline' '😀'; echo y >'#+%\\'",
		"attributes":  "setfattr -x user.note a.txt 2>/dev/null; setfattr -n user.note -v other d/deep/x",
		"large":       "printf X | dd of=large bs=1 seek=5000 conv=notrunc status=none; mv large2 d",
		"all":         "rm -rf -- * .hidden",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("a.txt", "aaa")
			r.put("d/deep/x", "x")
			r.put(".hidden/y", "y")
			r.put("large", strings.Repeat("large ", 50_000)) // can be shared by some file systems
			r.put("large2", strings.Repeat("l", 8192))
			for _, odd := range []string{"-n", " sp ace", `a"b`, "new\nline", "😀", "a\xffb"} {
				r.put(odd, odd)
			}
			must(t, os.Symlink("a.txt", r.at("link")))
			r.put("hard1", "one")
			must(t, os.Link(r.at("hard1"), r.at("hard2")))
			must(t, os.Chmod(r.at("d/deep"), 0o750))
			r.sh("setfattr -n user.note -v mine a.txt d/deep/x")
			before, notes := r.tree(), r.attributes()
			request, said := r.command(line)
			after := r.tree()
			if len(said) > 0 {
				t.Errorf("it said %q", said)
			}
			if can, _ := r.k.State(request); !can {
				t.Fatal("it can't be undone")
			}
			r.undo("undo", request)
			if now := r.tree(); now != before {
				t.Fatalf("undone, the folder is\n%s\n\nand was\n%s", now, before)
			}
			if now := r.attributes(); now != notes {
				t.Errorf("the attributes are\n%s\nand were\n%s", now, notes)
			}
			r.undo("again", "undo")
			if now := r.tree(); now != after {
				t.Fatalf("done again, the folder is\n%s\n\nand was\n%s", now, after)
			}
		})
	}
}

func (r *rig) attributes() string {
	c := exec.Command("sh", "-c", "getfattr -Rd . | grep -v '^$' | sort")
	c.Dir = r.s.Folder
	out, err := c.Output()
	must(r, err)
	return string(out)
}

// What changes nothing is no entry that can be undone, and what a command wrote
// back as it was is no change.
func TestNothingChanged(t *testing.T) {
	r := newRig(t)
	r.put("a", "same")
	for _, line := range []string{"true", "cat a", "touch -r a .t; printf same >a; touch -r .t a; rm .t"} {
		request, said := r.command(line)
		if can, undone := r.k.State(request); can || undone || len(said) > 0 {
			t.Errorf("%s: can be undone: %v, %v; said %q", line, can, undone, said)
		}
	}
}

// Random commands and file requests, and then all of the session undone.
func TestMixedSessionUndone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range 8 {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		r := newRig(t)
		random := func() string {
			var p []string
			for range 1 + rnd.IntN(3) {
				p = append(p, string("abcd"[rnd.IntN(4)]))
			}
			return strings.Join(p, "/")
		}
		for range 10 {
			rel := random()
			r.sh("mkdir -p $(dirname " + rel + ") 2>/dev/null; echo " + rel + " >" + rel + " 2>/dev/null || true")
		}
		before := r.tree()
		var did []string
		for i := range 15 {
			rel, to := random(), random()
			line := []string{
				"rm -rf " + rel, "mv " + rel + " " + to, "cp -r " + rel + " " + to, "mkdir -p " + rel, "chmod 700 " + rel,
				fmt.Sprintf("echo %d >>%s", i, rel), fmt.Sprintf("mkdir -p $(dirname %s); echo %d >%s", rel, i, rel), "ln -s " + to + " " + rel, "ln " + to + " " + rel,
			}[rnd.IntN(9)]
			if rnd.IntN(3) == 0 {
				if _, _, err := r.do(r.write(rel, line)); err == nil {
					did = append(did, "write "+rel)
				}
				continue
			}
			_, notes := r.command(line + " 2>/dev/null || true")
			did = append(did, line)
			if len(notes) > 0 {
				t.Errorf("%s: %q", line, notes)
			}
		}
		after := r.tree()
		all := r.k.OfSession(r.s.ID)
		if len(all) == 0 && after == before {
			continue // none of it could be done
		}
		r.undo("undo", all...)
		if now := r.tree(); now != before {
			t.Fatalf("round %d: the folder is\n%s\n\nand was\n%s\n\nafter\n%s", round, now, before, strings.Join(did, "\n"))
		}
		r.undo("redo", "undo")
		if now := r.tree(); now != after {
			t.Fatalf("round %d: done again, the folder is\n%s\n\nand was\n%s\n\nafter\n%s", round, now, after, strings.Join(did, "\n"))
		}
	}
}

// What a person and file requests do while a command runs is told apart as far
// as that can be known.
func TestOthersMeanwhile(t *testing.T) {
	r := newRig(t)
	r.put("mine", "old")
	r.put("a", "a")
	long := consent.NewID()
	snap := r.hold(long)
	written := r.doing(r.write("mine", "new"))
	second, _ := r.command("echo b >b")
	r.sh("echo c >c; echo more >>a")
	snap.End(context.Background())

	r.undo("u1", long)
	if _, err := os.Stat(r.at("c")); err == nil || r.text("a") != "a" {
		t.Error("what the command did was not undone")
	}
	if r.text("mine") != "new" || r.text("b") != "b\n" {
		t.Error("what others did was undone with it")
	}
	r.undo("u2", second)
	r.undo("u3", written)
	if _, err := os.Stat(r.at("b")); err == nil || r.text("mine") != "old" {
		t.Error("what others did was not undone by itself")
	}
}

// Who changed what while a command ran can't be told apart: where a person had
// the time to, it is asked. What they changed after it is theirs in any case.
func TestWorkDuringACommand(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Second: "", 3 * time.Second: "ran for 3 seconds", 5 * time.Minute: "ran for 5 minutes"} {
		for _, edited := range []bool{false, true} {
			r := newRig(t)
			r.put("mine", "old")
			request := consent.NewID()
			snap := r.hold(request)
			r.sh("echo x >x; echo more >>mine")
			r.now.Add(int64(after))
			snap.End(context.Background())
			if edited {
				r.put("mine", "newer")
			}
			q, err := r.k.Ask(context.Background(), []string{request})
			must(t, err)
			if want != "" && !strings.Contains(q, want+". All that changed in the folder in that time counts as its work, also what you or others did: mine, x.") || strings.Contains(q, "mine changed after this") != edited || q != "" && want == "" && !edited {
				t.Errorf("after %v, edited %v: it asks %q", after, edited, q)
			}
			var newer *kept.Newer
			if _, err := r.k.Undo(context.Background(), "u", []string{request}, false); errors.As(err, &newer) != edited {
				t.Errorf("edited %v: %v", edited, err)
			}
			if is := r.text("mine"); edited && is != "newer" || !edited && is != "old" {
				t.Errorf("edited %v: it is %q", edited, is)
			}
		}
	}
}

// Two commands, or a command and a request, that work on one file at the same
// time: what the person had comes back with the session, or it asks, and what one
// of them found comes back with that one.
func TestTwoOnOneFile(t *testing.T) {
	asks := []string{"command, folder", "folder", "move"}
	for name, other := range map[string]func(r *rig) (request string){
		"command":         func(r *rig) string { id, _ := r.command("echo other >a"); return id },
		"command, folder": func(r *rig) string { id, _ := r.command("echo other >a; rm -r d"); return id },
		"write":           func(r *rig) string { return r.doing(r.write("a", "other")) },
		"delete":          func(r *rig) string { return r.doing(r.remove("a")) },
		"move":            func(r *rig) string { return r.doing(r.move("a", "c")) },
		"folder":          func(r *rig) string { return r.doing(r.remove("d")) },
	} {
		for _, after := range []string{"true", "echo long >>a; mkdir -p d; echo long >>d/x"} {
			for alone := range 2 {
				r := newRig(t)
				r.put("a", "person's")
				r.put("d/x", "person's")
				before := r.tree()
				snap := r.hold(consent.NewID())
				r.sh("echo long >a; echo long >b; echo long >d/x")
				found := r.tree()
				id := other(r)
				if alone == 1 && after == "true" {
					if r.undo("alone", id); r.tree() != found {
						t.Errorf("%s: undone by itself, the folder is\n%s\nand was\n%s", name, r.tree(), found)
					}
				}
				r.sh(after)
				snap.End(context.Background())
				then := r.tree()
				_, err := r.k.Undo(t.Context(), "u", r.k.OfSession(r.s.ID), false)
				var newer *kept.Newer
				if slices.Contains(asks, name) && errors.As(err, &newer) {
					before = then
				} else if err != nil {
					t.Errorf("%s, %s: %v", name, after, err)
				}
				if now := r.tree(); now != before {
					t.Errorf("%s, %s: undone, the folder is\n%s\nand was\n%s", name, after, now, before)
				}
			}
		}
	}
}

// A folder with more than can be held is not promised to be; what programs make
// again is left out, and that is said.
func TestTooMuchToHold(t *testing.T) {
	r := newRig(t)
	r.put("a", "a")
	must(t, os.MkdirAll(r.at("node_modules/x"), 0o755))
	r.large("node_modules/x/large")
	ok, but := r.k.WouldSnapshot(context.Background(), r.s)
	if shares := r.shares(); ok != true || (but == "node_modules") == shares {
		t.Fatalf("would be held: %v, but %q; the disk shares contents: %v", ok, but, shares)
	} else if shares {
		return
	}
	request, _ := r.command("echo b >>a; echo c >node_modules/x/c")
	r.undo("undo", request)
	if r.text("a") != "a" {
		t.Error("what is held was not put back")
	}
	must(t, os.Rename(r.at("node_modules"), r.at("films")))
	r.now.Store(int64(time.Hour))
	r.k.Leave(r.s.Folder)
	if ok, _ := r.k.WouldSnapshot(context.Background(), r.s); ok {
		t.Error("too much would be held")
	}
	if _, err := r.k.Snapshot(context.Background(), r.s, consent.NewID()); err == nil {
		t.Error("too much was held")
	}
	if left := r.versions(); len(left) > 2 {
		t.Errorf("%d versions are left", len(left))
	}
}

// large makes a file that is too large to be held, in a moment: one that takes
// the room it has, and where the disk can't give that at once one of holes.
func (r *rig) large(rel string) {
	f, err := os.Create(r.at(rel))
	must(r, err)
	if syscall.Fallocate(int(f.Fd()), 0, 0, 300<<20) != nil {
		must(r, f.Truncate(2100<<20))
	}
	must(r, f.Close())
}

// shares tells whether the tests' file system shares contents.
func (r *rig) shares() bool {
	r.put("s1", "x")
	err := exec.Command("cp", "--reflink=always", r.at("s1"), r.at("s2")).Run()
	r.sh("rm -f s1 s2")
	return err == nil
}

func (r *rig) versions() []string {
	entries, err := os.ReadDir(r.dir)
	must(r, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func BenchmarkSnapshot(b *testing.B) {
	r := newRig(b)
	for i := range 2000 {
		r.put(fmt.Sprintf("src/m%d/f%d.go", i/40, i), strings.Repeat("package x\n", 400))
	}
	run := func(name string, once func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			var from, to syscall.Rusage
			must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &from))
			for b.Loop() {
				once(b)
			}
			must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &to))
			spent := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
			b.ReportMetric(float64(spent)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
	run("would", func(b *testing.B) {
		r.k.Leave(r.s.Folder)
		if ok, _ := r.k.WouldSnapshot(context.Background(), r.s); !ok {
			b.Fatal("it would not be held")
		}
	})
	run("first", func(*testing.B) {
		r.k.Leave(r.s.Folder)
		r.command("true")
	})
	run("next", func(*testing.B) { r.command("true") })
	run("one changed", func(*testing.B) { r.command("echo x >>src/m1/f41.go") })
	run("sh alone", func(*testing.B) { r.sh("true") })
}

// A command that makes more than can be looked at loses nothing of what was
// there before.
func TestMadeTooMuch(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "d/x", "e/y"} {
		r.put(name, "old")
	}
	before := r.tree()
	request, notes := r.command("echo new >a; rm b; mv d f; echo new >e/y; mkdir many; cd many; seq 21000 | xargs touch")
	if len(notes) != 1 || !strings.Contains(notes[0], "what it made can't be undone") {
		t.Errorf("it said %q", notes)
	}
	if can, _ := r.k.State(request); !can {
		t.Fatal("it can't be undone")
	}
	if ok, _ := r.k.WouldSnapshot(t.Context(), r.s); ok {
		t.Error("a folder with so much would be held")
	}
	r.sh("rm -r many")
	r.undo("undo", request)
	r.sh("rm -r f")
	if now := r.tree(); now != before {
		t.Errorf("undone, the folder is\n%s\nand was\n%s", now, before)
	}
}

// Where a folder becomes too large to be held, of a command under way all is known
// as before.
func TestGrowsTooLarge(t *testing.T) {
	r := newRig(t)
	if r.shares() {
		t.Log("the disk shares contents: nothing is too large")
		return
	}
	r.put("a", "a")
	r.put("node_modules/x", "x")
	first := consent.NewID()
	snap := r.hold(first)
	r.large("film")
	if _, err := r.k.Snapshot(t.Context(), r.s, consent.NewID()); err == nil {
		t.Error("too much was held")
	}
	if notes := snap.End(t.Context()); len(notes) > 0 {
		t.Errorf("it said %q", notes)
	}
	r.undo("u1", first)
	if _, err := os.Stat(r.at("film")); err == nil || r.text("a") != "a" {
		t.Error("what the first command did was not undone, or more was")
	}
	r.now.Store(int64(time.Hour))
	second, _ := r.command("echo b >>a")
	r.undo("u", second)
	if r.text("a") != "a" || r.text("node_modules/x") != "x" {
		t.Errorf("a is %q, node_modules/x %q", r.text("a"), r.text("node_modules/x"))
	}
}
