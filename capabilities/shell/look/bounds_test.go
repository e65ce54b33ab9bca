package look

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/shell/judge"
	"localpc/consent"
)

func judged(acts ...judge.Act) judge.Judgement {
	var j judge.Judgement
	for _, a := range acts {
		j.Parts = append(j.Parts, judge.Part{Sentence: "Deletes the files named *.tmp", Acts: []judge.Act{a}})
	}
	return j
}

func TestMoreThanCanBeCounted(t *testing.T) {
	p := newPlace(t)
	for d := range 22 {
		dir := p.file(fmt.Sprint("d", d))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, n), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	j, o := judged(rm(".")), p.options()
	o.Max = 2000
	f := At(context.Background(), j, o)
	if !f.More || len(f.Effects) != 1 || f.Effects[0].Own || !strings.HasPrefix(f.Effects[0].Text, "deletes the folder with more than 19") {
		t.Errorf("by number: %+v", f.Effects)
	}
	if again := At(context.Background(), j, o); again.Fingerprint != f.Fingerprint {
		t.Error("by number: looked at twice, two fingerprints")
	}
	// By time, a look that comes less far is found among the marks of one that
	// comes further.
	for _, within := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 2 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		short := At(ctx, j, o)
		cancel()
		if !short.More || len(short.Effects) == 0 || short.Effects[0].Kind != consent.EffectDelete || short.Effects[0].Own || short.Effects[0].Count > o.Max {
			t.Errorf("%v: %+v", within, short.Effects)
		}
		if !slices.Contains(f.Marks, short.Fingerprint) && short.Fingerprint != f.Fingerprint && short.Fingerprint != "until 0" {
			t.Errorf("%v: %s is not among the marks", within, short.Fingerprint)
		}
	}
	// A change in what both have seen is seen.
	j = judged(rm("d1"))
	short := At(context.Background(), j, o)
	if err := os.WriteFile(p.file("d1/7"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := At(context.Background(), j, o); f.Fingerprint == short.Fingerprint || f.More {
		t.Error("a changed file has the same fingerprint")
	}
}

func TestFingerprints(t *testing.T) {
	write := func(name, text string) func(*place) {
		return func(p *place) { p.with(name + "=" + text) }
	}
	for name, c := range map[string]struct {
		act    judge.Act
		change func(*place)
		same   bool
	}{
		"a further file":            {rm("d"), write("d/new", "1"), false},
		"a further match":           {rm("*.tmp"), write("z.tmp", "1"), false},
		"another beside it":         {rm("*.tmp"), write("z.txt", "1"), true},
		"longer":                    {rm("d"), write("d/a", "12345"), false},
		"its own is longer":         {rm("own"), write("own/a", "12345"), true},
		"a name that appears":       {judge.Act{Op: judge.Write, Paths: at("new")}, write("new", "1"), false},
		"a log that grows":          {judge.Act{Op: judge.Append, Paths: at("d/a")}, write("d/a", "12345"), true},
		"moved, and longer":         {judge.Act{Op: judge.Move, From: at("d"), Paths: at("n"), Replaces: true}, write("d/a", "12345"), true},
		"what it would replace":     {judge.Act{Op: judge.Move, From: at("d/a"), Paths: at("n"), Replaces: true}, write("n", "1"), false},
		"another file by that name": {judge.Act{Op: judge.Access, Paths: at("d/a")}, func(p *place) { _ = os.Rename(p.file("d/b"), p.file("d/a")) }, false},
		"a link leads elsewhere": {rm("l/a"), func(p *place) {
			_ = os.Remove(p.file("l"))
			p.with("l->own")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).with("d/a=1", "d/b=2", "a.tmp=1", "b.txt=2", "own/a=1", "l->d").own("own", "own/a")
			before := p.look(c.act)
			c.change(p)
			if after := p.look(c.act); (after.Fingerprint == before.Fingerprint) != c.same {
				t.Errorf("same: %v\nbefore %s\nafter %s", !c.same, says(before), says(after))
			}
		})
	}
}

// Nothing outside of the folder is looked at, also not through links.
func TestNothingOutsideIsLookedAt(t *testing.T) {
	secret := t.TempDir()
	p := newPlace(t).with("d/", "l->"+secret, "d/m->"+secret+"/x")
	acts := []judge.Act{rm("l/*", "l/x", "d/m", "l"), {Op: judge.Write, Paths: at("l/x", "d/m")}, {Op: judge.Access, Paths: at("l"), Recursive: true},
		{Op: judge.Copy, From: at("l/x"), Paths: at("new"), Replaces: true}}
	before := p.look(acts...)
	if err := os.WriteFile(secret+"/x", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := p.look(acts...); says(after) != says(before) || after.Fingerprint != before.Fingerprint {
		t.Errorf("it tells what is outside:\n%s\n%s", says(before), says(after))
	}
	if !before.High {
		t.Error("a deletion outside is no high risk")
	}
}
