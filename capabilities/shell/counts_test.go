//go:build linux

package shell_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// fill makes files in the session's folder that the session did not make.
func fill(t testing.TB, ses *capabilities.Session, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(ses.Folder, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pictures is a folder of 500 files, 214 of them to be tidied away.
func pictures(t testing.TB, ses *capabilities.Session) {
	t.Helper()
	files := map[string]string{}
	for i := range 500 {
		name := fmt.Sprintf("Pictures/%d/%d.jpg", i%5, i)
		if i < 214 {
			name = fmt.Sprintf("Pictures/%d/%d.tmp", i%5, i)
		}
		files[name] = strings.Repeat("x", 1000)
	}
	fill(t, ses, files)
}

// effect is the one of kind that d has.
func effect(t testing.TB, d capabilities.Description, kind consent.EffectKind) consent.Effect {
	t.Helper()
	for _, e := range d.Effects {
		if e.Kind == kind {
			return e
		}
	}
	t.Fatalf("no effect %s in %+v", kind, d.Effects)
	return consent.Effect{}
}

func TestACardSaysWhatWouldBeDeleted(t *testing.T) {
	s := newShell(t)
	for _, text := range []string{
		"find Pictures -name '*.tmp' -delete",
		"find Pictures -type f -iname '*.TMP' -exec rm {} +",
		"find . -name '*.tmp' -print0 | xargs -0 rm -f",
		"rm Pictures/*/*.tmp",
		"cd Pictures && rm -- */*.tmp",
		`for f in Pictures/*/*.tmp; do rm "$f"; done`,
		"echo 'rm Pictures/*/*.tmp' | bash",
		"bash -c \"rm Pictures/*/*.tmp\"",
	} {
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		pictures(t, ses)
		d := describe(t, s, ses, bash(ses, text))
		e := effect(t, d, consent.EffectDelete)
		if e.Count != 214 || e.Bytes != 214_000 || e.Own || e.Text != "deletes 214 files in Pictures, 214 KB; cannot be undone" {
			t.Errorf("%s: %+v", text, e)
		}
		if d.Title != "Delete 214 files in Pictures" || d.Sentence != "%s wants to delete 214 files in Pictures." || d.Exact != text || len(d.Steps) == 0 || d.Wide != nil {
			t.Errorf("%s: %q, %q, steps %q", text, d.Title, d.Sentence, d.Steps)
		}
		if got := verdict(ses, d); got != "" {
			t.Errorf("%s is %q, not asked", text, got)
		}
		if sh(t, s, ses, contained, text); len(present(t, ses)) != 286+6 {
			t.Errorf("%s left %d names", text, len(present(t, ses)))
		}
	}
}

// present are the names in a session's folder, with what is in them.
func present(t testing.TB, ses *capabilities.Session) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(ses.Folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == ses.Folder {
			return err
		}
		text := d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = "file " + string(b)
		}
		out[p[len(ses.Folder)+1:]] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatTheSessionMadeIsItsOwn(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	fill(t, ses, map[string]string{"mine.txt": "1", "build/keep.txt": "2"})
	sh(t, s, ses, contained, "mkdir -p out && echo 1 > out/a && echo 2 > own.txt && echo 3 > build/new")
	for text, want := range map[string]consent.Outcome{
		"rm -rf out":                                      consent.Allowed,
		"rm own.txt":                                      consent.Allowed,
		"echo 9 > own.txt":                                consent.Allowed,
		"sed -i s/2/3/ own.txt":                           consent.Allowed,
		"chmod +x own.txt":                                consent.Allowed,
		"mv own.txt out/":                                 consent.Allowed,
		"rm -f build/new":                                 consent.Allowed,
		"touch x && rm x":                                 consent.Allowed,
		"mkdir d && cp own.txt d && rm -rf d":             consent.Allowed,
		"echo x > /tmp/a; rm -rf /tmp/a":                  consent.Allowed,
		"cat > run.sh <<'E'\necho\nE\nchmod +x run.sh":    consent.Allowed,
		"rm mine.txt":                                     "",
		"rm -rf build":                                    "",
		"echo 9 > mine.txt":                               "",
		"echo 9 >> mine.txt":                              "",
		"rm own.txt mine.txt":                             "",
		"mv mine.txt out/ && rm -rf out":                  "",
		"mv own.txt mine.txt":                             "",
		"cp own.txt mine.txt":                             "",
		"mv mine.txt build":                               "", // a folder that has the name takes it
		"mv mine.txt /tmp":                                "",
		"mv build out":                                    "",
		"cp out/a build":                                  consent.Allowed,
		"echo 4 > keep.txt && cp keep.txt build":          "",
		"echo 4 > keep.txt && ln -f keep.txt build":       "",
		"echo 4 > keep.txt && mv keep.txt \"$PWD/build\"": "",
		"ln -s build l && ln -sfn out l":                  consent.Allowed,
		"rm ../user/own.txt":                              consent.Allowed, // out of the folder, and back in
		"rm out/../../../home/user/own.txt":               consent.Allowed,
		"rm ../user/mine.txt":                             "",
		"rm ../users/own.txt":                             "",
		"rm ../../../home/user/own.txt":                   "", // there is nothing above /, and this is a way through it
		"chmod -R 700 .":                                  "",
		"rm -rf /etc/x":                                   "",
		"echo x > .envrc":                                 "",
		"rm -rf $THAT":                                    "",
		"ls -l; make; npm test":                           consent.Allowed,
	} {
		if got := verdict(ses, describe(t, s, ses, bash(ses, text))); got != want {
			t.Errorf("%s: %q, want %q: %+v", text, got, want, describe(t, s, ses, bash(ses, text)).Effects)
		}
	}
}

func TestWhatChangesBeforeItRunsIsAskedAgain(t *testing.T) {
	s := newShell(t)
	for name, c := range map[string]struct {
		text   string
		change map[string]string
		same   bool
	}{
		"a further file":           {text: "rm -rf d", change: map[string]string{"d/more": "1"}},
		"another text":             {text: "rm d/a", change: map[string]string{"d/a": "other"}},
		"a further match":          {text: "rm *.tmp", change: map[string]string{"b.tmp": "1"}},
		"a name that appears":      {text: "echo 1 > new", change: map[string]string{"new": "1"}},
		"a file beside it":         {text: "rm *.tmp", change: map[string]string{"other.txt": "1"}, same: true},
		"a script":                 {text: "bash x.sh", change: map[string]string{"x.sh": "rm -rf d"}},
		"a script in a script":     {text: "bash y.sh", change: map[string]string{"x.sh": "rm -rf d"}},
		"what a runner goes by":    {text: "npm test", change: map[string]string{"package.json": `{"scripts":{"test":"rm -rf d"}}`}},
		"a Makefile that appears":  {text: "make", change: map[string]string{"GNUmakefile": "all:\n\trm -rf d"}},
		"a file that is only read": {text: "cat d/a", change: map[string]string{"d/a": "other"}, same: true},
	} {
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		fill(t, ses, map[string]string{"d/a": "1", "a.tmp": "1", "x.sh": "echo", "y.sh": "bash x.sh", "package.json": "{}", "Makefile": "all:"})
		call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, c.text))
		d, err := s.Describe(context.Background(), call)
		if err != nil {
			t.Fatal(err)
		}
		g := capabilitytest.GrantWith(t, ses, "shell", d, contained)
		fill(t, ses, c.change)
		if _, err := s.Run(context.Background(), call, g, &capabilitytest.Output{}); errors.Is(err, consent.ErrChanged) == c.same {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(ses.Folder, "d")); err != nil && !c.same {
			t.Errorf("%s: it ran", name)
		}
	}
}

// A folder that can't be counted in the time is told as more than what was
// counted, and what was allowed runs all the same.
func TestMoreThanThereIsTimeFor(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for i := range 60 {
		dir := filepath.Join(ses.Folder, fmt.Sprint("big/", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for k := range 100 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(k)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, "rm -rf big"))
	cut := false
	for within := 51 * time.Millisecond; !cut && within < 60*time.Millisecond; within += time.Millisecond {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		d, err := s.Describe(ctx, call)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		e := effect(t, d, consent.EffectDelete)
		if e.Own || verdict(ses, d) != "" {
			t.Errorf("it is not asked: %+v", e)
		}
		if cut = strings.Contains(e.Text, "more"); !cut {
			continue
		}
		g := capabilitytest.GrantWith(t, ses, "shell", d, contained)
		if _, err := s.Run(context.Background(), call, g, &capabilitytest.Output{}); err != nil {
			t.Fatal(err)
		}
	}
	if !cut {
		t.Fatal("6000 files were counted in no time")
	}
	if left := present(t, ses); len(left) != 0 {
		t.Errorf("%d names are left", len(left))
	}
}

func TestWhatStandsInTheWayOfLooking(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	fill(t, ses, map[string]string{"d/a": "1", "shut/b": "1"})
	for _, p := range []string{"d/pipe", "x.sh", "package.json"} {
		if err := syscall.Mkfifo(filepath.Join(ses.Folder, p), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, ses, map[string]string{"P/deep/x": "1", "P/keep": "22"})
	for _, l := range [][2]string{{"P/deep", "to"}, {"loop", "d/loop"}, {"..", "d/up"}, {"/proc/self/root", "d/root"}, {"/", "top"}} {
		if err := os.Symlink(l[0], filepath.Join(ses.Folder, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(ses.Folder, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(ses.Folder, "shut"), 0o755)
	for text, want := range map[string]string{
		"rm -rf d":                  "deletes d with 5 files, 1 byte; cannot be undone",
		"rm -rf top/etc/passwd":     "outside the folder",
		"cat d/loop > d/pipe":       "",
		"bash x.sh; npm test":       "",
		"tar xf d/pipe":             "",
		"rm -rf d/up/d/up/d/up/d/a": "deletes d/a (1 byte); cannot be undone",
		"rm -rf d/root/etc":         "outside the folder",
		"rm to/../keep":             "deletes P/keep (2 bytes); cannot be undone",
		"cd to && rm -f ../ke*":     "deletes P/keep (2 bytes); cannot be undone",
		"rm -rf shut top":           "",
	} {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		d, err := s.Describe(ctx, capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, text)))
		cancel()
		if took := time.Since(begin); err != nil || took > 2*time.Second {
			t.Errorf("%s: %v after %v", text, err, took)
		}
		if want != "" && !strings.Contains(effect(t, d, consent.EffectDelete).Text, want) {
			t.Errorf("%s: %+v", text, d.Effects)
		}
	}
}

// What a card offers to be remembered depends on what was found.
func TestWhatMayBeRemembered(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeAsk)
	fill(t, ses, map[string]string{"a": "1"})
	all := []consent.Scope{consent.Session, consent.Minutes15, consent.Always}
	for text, c := range map[string]struct {
		risk   consent.Risk
		scopes []consent.Scope
		wide   bool
	}{
		"ls":                  {consent.RiskNormal, all, true},
		"npm test && mkdir x": {consent.RiskNormal, all, true},
		"rm a":                {consent.RiskNormal, all, false},
		"echo x > .envrc":     {consent.RiskHigh, all[:2], false},
		"sudo ls":             {consent.RiskHigh, all[:2], false},
		"rm -rf /etc/x":       {consent.RiskHigh, all[:2], false},
		"rm $X":               {consent.RiskHigh, all[:1], false},
		"rm 'a":               {consent.RiskHigh, all[:1], false},
	} {
		d := describe(t, s, ses, bash(ses, text))
		if d.Risk != c.risk || !slices.Equal(d.Scopes, c.scopes) || (d.Wide != nil) != c.wide || len(d.Steps) == 0 {
			t.Errorf("%s: risk %d, scopes %v, wide %v, steps %q, effects %+v", text, d.Risk, d.Scopes, d.Wide, d.Steps, d.Effects)
		}
		// Its words leave out nothing of what it holds for.
		if w := d.Wide; w != nil && (!strings.Contains(w.Words, "install") && slices.Contains(w.Effects, consent.EffectInstall) || !strings.Contains(w.Words, "connection") && slices.Contains(w.Effects, consent.EffectConnect)) {
			t.Errorf("%s: %q for %v", text, w.Words, w.Effects)
		}
		if got := verdict(ses, d); got != "" {
			t.Errorf("%s in \"Ask me each time\" is %q", text, got)
		}
	}
}

// What a card counts is what is gone, or changed, when the line has run.
func TestCountedIsWhatHappens(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	seed := uint64(time.Now().UnixNano())
	sure := 0
	const rounds = 60
	for i := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, i))
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		for n := range present(t, ses) {
			_ = os.RemoveAll(filepath.Join(ses.Folder, n))
		}
		files := map[string]string{}
		for range 4 + r.IntN(12) {
			files[pick("", "a/", "b/", "a/c/", "sp ace/")+pick("1", "2", "3", "4")+pick(".tmp", ".txt", ".log")] = fmt.Sprint("text ", r.IntN(1000))
		}
		fill(t, ses, files)
		name := func() string {
			if r.IntN(3) > 0 {
				have := slices.Sorted(maps.Keys(files))
				return "'" + have[r.IntN(len(have))] + "'"
			}
			return pick("*.tmp", "a", "b/*", "*/*.log", "a/c", "none", "[12].*", "'sp ace'/*", "{a,b}/*.txt")
		}
		text := pick("", "cd a && ", "D=a; ", "true; ")
		for range 1 + r.IntN(2) {
			text += pick("rm -f ", "rm -rf ", "rm -r -- ", "unlink ", "truncate -s 0 ", "sed -i s/text/other/ ", "find . -name ", "echo new | tee ", "chmod 700 ")
			switch {
			case strings.HasSuffix(text, "-name "):
				text += pick("'*.tmp' -delete", "'*.txt' -exec rm {} +", "a -exec rm -rf {} +", "'[12]*' -type f -delete")
			case strings.HasSuffix(text, "unlink "):
				text += "'" + pick(slices.Sorted(maps.Keys(files))...) + "'"
			default:
				text += name() + " " + name()
			}
			text += pick("; ", "\n", "; ")
		}
		before := present(t, ses)
		d := describe(t, s, ses, bash(ses, text))
		var told [2]int
		exact := true
		for _, e := range d.Effects {
			switch e.Kind {
			case consent.EffectDelete:
				told[0] += e.Count
			case consent.EffectOverwrite:
				told[1] += e.Count
			case consent.EffectUnknown:
				exact = false
			}
			exact = exact && !strings.Contains(e.Text, "up to") && !strings.Contains(e.Text, "more than")
		}
		r1 := do(t, s, ses, contained, bash(ses, text))
		after := present(t, ses)
		var did [2]int
		for n, was := range before {
			now, there := after[n]
			if !there {
				did[0]++
			} else if now != was {
				did[1]++
			}
		}
		// A line may write again what it has deleted before, and the other way
		// round; and a cd that fails leaves it where it was, which is counted too.
		writes := strings.Contains(text, "tee") || strings.Contains(text, "truncate")
		if exact && (did[0]+did[1] > told[0]+told[1] || did[0] > told[0] || told[0] != did[0] && !writes && !strings.Contains(text, "cd a")) {
			t.Errorf("seed %d, %d: %q\ntold %v, did %v\n%+v\nbefore %q\nafter %q\n%s", seed, i, text, told, did, d.Effects, before, after, r1.err)
		}
		if exact {
			sure++
		}
	}
	if sure < rounds/3 {
		t.Errorf("only %d of %d lines were counted for sure", sure, rounds)
	}
}
