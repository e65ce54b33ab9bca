package look

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
)

// home is the session's folder as a command sees it.
const home = "/home/user"

// place is a session in a folder of its own.
type place struct {
	t   *testing.T
	ses *capabilities.Session
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, ses: &capabilities.Session{Folder: t.TempDir(), Tmp: t.TempDir(), Cache: t.TempDir(), Made: capabilities.NewMade(0)}}
	return p
}

// with makes files: "a/b=text", "a/", "link->target".
func (p *place) with(names ...string) *place {
	p.t.Helper()
	for _, n := range names {
		var err error
		if from, to, ok := strings.Cut(n, "->"); ok {
			err = os.Symlink(to, p.file(from))
		} else if name, text, ok := strings.Cut(n, "="); ok {
			if err = os.MkdirAll(filepath.Dir(p.file(name)), 0o755); err == nil {
				err = os.WriteFile(p.file(name), []byte(text), 0o644)
			}
		} else {
			err = os.MkdirAll(p.file(n), 0o755)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return p
}

func (p *place) file(rel string) string { return filepath.Join(p.ses.Folder, rel) }

// own makes the session have made what is there.
func (p *place) own(rel ...string) *place {
	p.t.Helper()
	for _, r := range rel {
		d, err := os.Open(filepath.Dir(p.file(r)))
		if err != nil {
			p.t.Fatal(err)
		}
		n, err := lstatIn(d, filepath.Base(r))
		d.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		p.ses.Made.Add(r, n.id)
	}
	return p
}

func (p *place) options() Options {
	return Options{Session: p.ses, Real: func(seen string) (string, bool) {
		for _, m := range [][2]string{{home, p.ses.Folder}, {p.ses.Folder, p.ses.Folder}, {"/tmp", p.ses.Tmp}} {
			if seen == m[0] || strings.HasPrefix(seen, m[0]+"/") {
				// Test folders lie in the real /tmp, which is outside.
				if rest := seen[len(m[0]):]; m[0] != "/tmp" || !strings.HasPrefix(rest, "/Test") {
					return m[1] + rest, true
				}
			}
		}
		return "", false
	}, StartsUp: func(rel string) bool { return filepath.Base(rel) == ".envrc" }}
}

func (p *place) look(acts ...judge.Act) Found {
	p.t.Helper()
	var j judge.Judgement
	for _, a := range acts {
		part := judge.Part{Sentence: "Does it", Acts: []judge.Act{a}}
		if a.Op == judge.Edit {
			part.Argv = []string{"sed", "-i"}
		}
		j.Parts = append(j.Parts, part)
	}
	return At(context.Background(), j, p.options())
}

func at(names ...string) (out []judge.Path) {
	for _, n := range names {
		if !filepath.IsAbs(n) {
			n = home + "/" + n
		}
		out = append(out, judge.Path{Name: n, Glob: strings.ContainsAny(n, "*?[")})
	}
	return out
}

// says is the effects as text, for comparing.
func says(f Found) string {
	var out []string
	for _, e := range f.Effects {
		s := string(e.Kind) + " " + e.Text
		if e.Own {
			s = "own " + s
		}
		out = append(out, s)
	}
	return strings.Join(out, " | ")
}

func rm(names ...string) judge.Act {
	return judge.Act{Op: judge.Delete, Paths: at(names...), Recursive: true}
}

func TestWhatIsSaid(t *testing.T) {
	into := func(n string) *judge.Path { return &at(n)[0] }
	for name, c := range map[string]struct {
		with, own []string
		acts      []judge.Act
		want      string
	}{
		"one file":        {with: []string{"notes.txt=abc"}, acts: []judge.Act{{Op: judge.Delete, Paths: at("notes.txt")}}, want: "delete deletes notes.txt (3 bytes); cannot be undone"},
		"not there":       {acts: []judge.Act{rm("none")}, want: "own delete deletes nothing that is there now"},
		"a folder":        {with: []string{"d/a=1", "d/b/c=22"}, acts: []judge.Act{rm("d")}, want: "delete deletes d with 2 files and 1 folder, 3 bytes; cannot be undone"},
		"no folder":       {with: []string{"d/a=1"}, acts: []judge.Act{{Op: judge.Delete, Paths: at("d")}}, want: "own delete deletes nothing that is there now"},
		"a pattern":       {with: []string{"p/a.tmp=1", "p/b.tmp=2", "p/c.tmp=3", "p/d.tmp=4", "p/.e.tmp=5", "p/x.txt=6"}, acts: []judge.Act{rm("p/*.tmp")}, want: "delete deletes 4 files in p, 4 bytes; cannot be undone"},
		"twice":           {with: []string{"a=1"}, acts: []judge.Act{rm("a", "a"), rm("a")}, want: "delete deletes a (1 byte); cannot be undone"},
		"within":          {with: []string{"d/a=1"}, acts: []judge.Act{rm("d/a"), rm("d")}, want: "delete deletes d with 1 file, 1 byte; cannot be undone"},
		"up from a link":  {with: []string{"p/q/x=1", "p/a=22", "a=1", "l->p/q"}, acts: []judge.Act{{Op: judge.Delete, Paths: []judge.Path{{Name: home + "/a", Raw: home + "/l/../a"}}}}, want: "delete deletes p/a (2 bytes); cannot be undone"},
		"a link":          {with: []string{"d/a=1", "l->d"}, acts: []judge.Act{rm("l")}, want: "delete deletes l (0 bytes); cannot be undone"},
		"through a link":  {with: []string{"d/a=1", "l->d"}, acts: []judge.Act{rm("l/a")}, want: "delete deletes d/a (1 byte); cannot be undone"},
		"out by a link":   {with: []string{"l->/etc"}, acts: []judge.Act{rm("l/passwd")}, want: "delete deletes files outside the folder: /home/user/l/passwd; cannot be undone"},
		"outside":         {acts: []judge.Act{rm("/etc/passwd")}, want: "delete deletes files outside the folder: /etc/passwd; cannot be undone"},
		"its own":         {with: []string{"d/a=1"}, own: []string{"d", "d/a"}, acts: []judge.Act{rm("d")}, want: "own delete deletes d with 1 file, 1 byte; cannot be undone"},
		"partly its own":  {with: []string{"d/a=1", "d/b=1"}, own: []string{"d", "d/a"}, acts: []judge.Act{rm("d")}, want: "delete deletes d with 2 files, 2 bytes; cannot be undone"},
		"temporary":       {acts: []judge.Act{rm("/tmp/x")}, want: "own delete deletes nothing that is there now"},
		"made before":     {acts: []judge.Act{{Op: judge.Create, Paths: at("x")}, rm("x")}, want: "own delete deletes nothing that is there now | create makes x"},
		"moved before":    {with: []string{"a=12"}, acts: []judge.Act{{Op: judge.Move, From: at("a"), Paths: at("x"), Replaces: true}, rm("x")}, want: "delete deletes x (2 bytes); cannot be undone | move moves a to x; it can be moved back"},
		"moved into":      {with: []string{"a=12", "b=1", "d/"}, acts: []judge.Act{{Op: judge.Move, From: at("a", "b"), Into: into("d"), Replaces: true}, rm("d")}, want: "delete deletes d with 2 files, 3 bytes; cannot be undone | move moves a and b to d; they can be moved back"},
		"moved and by *":  {with: []string{"a=12"}, acts: []judge.Act{{Op: judge.Move, From: at("a"), Paths: at("x1"), Replaces: true}, rm("x*")}, want: "delete deletes x1 (2 bytes); cannot be undone | move moves a to x1; it can be moved back"},
		"link made":       {with: []string{"a=12"}, acts: []judge.Act{{Op: judge.Link, From: at("."), Paths: at("d")}, rm("d/*")}, want: "unknown can't be told beforehand: what /home/user/d leads to | create makes d"},
		"copy replaces":   {with: []string{"s/a=1", "s/b=2", "d/s/a=333"}, acts: []judge.Act{{Op: judge.Copy, From: at("s"), Into: into("d"), Recursive: true, Replaces: true}}, want: "overwrite replaces d/s/a (3 bytes); cannot be undone | create makes d/s/b"},
		"copy told not":   {with: []string{"a=1", "b=2"}, acts: []judge.Act{{Op: judge.Copy, From: at("a"), Paths: at("b")}}, want: "own overwrite replaces nothing that is there now"},
		"copy a tree":     {with: []string{"s/a=1", "s/b=2"}, acts: []judge.Act{{Op: judge.Copy, From: at("s"), Paths: at("n"), Recursive: true, Replaces: true}}, want: "create makes n with 2 files"},
		"copy by link":    {with: []string{"a=1", "l->/etc/x"}, acts: []judge.Act{{Op: judge.Copy, From: at("a"), Into: into("l"), Replaces: true}}, want: "overwrite replaces files outside the folder: /home/user/l; cannot be undone"},
		"write":           {with: []string{"notes.txt=abc"}, acts: []judge.Act{{Op: judge.Write, Paths: at("notes.txt")}}, want: "overwrite replaces notes.txt (3 bytes); cannot be undone"},
		"write new":       {acts: []judge.Act{{Op: judge.Write, Paths: at("notes.txt")}}, want: "create makes notes.txt"},
		"write by a link": {with: []string{"a=1", "l->a"}, acts: []judge.Act{{Op: judge.Write, Paths: at("l")}}, want: "overwrite replaces a (1 byte); cannot be undone"},
		"write nowhere":   {acts: []judge.Act{{Op: judge.Write, Paths: at("/dev/null")}}, want: ""},
		"write and add":   {with: []string{"a=1", "b=2"}, acts: []judge.Act{{Op: judge.Append, Paths: at("b")}, {Op: judge.Write, Paths: at("a")}}, want: "overwrite replaces a (1 byte), adds to b (1 byte); cannot be undone"},
		"edit":            {with: []string{"a=1", "b=2"}, acts: []judge.Act{{Op: judge.Edit, Paths: at("a", "b", "c")}}, want: "overwrite changes a and b (2 bytes); cannot be undone"},
		"access":          {with: []string{"d/a=1", "d/l->a"}, acts: []judge.Act{{Op: judge.Access, Paths: at("d"), Recursive: true}}, want: "access changes who may use d with 1 file"},
		"startup":         {acts: []judge.Act{{Op: judge.Write, Paths: at("x/.envrc")}}, want: "startup changes x/.envrc, which other programs run | create makes x/.envrc"},
		"moved to start":  {with: []string{"a=1"}, acts: []judge.Act{{Op: judge.Move, From: at("a"), Paths: at(".envrc"), Replaces: true}}, want: "startup changes .envrc, which other programs run | move moves a to .envrc; it can be moved back"},
		"find":            {with: []string{"p/a.tmp=1", "p/q/b.TMP=2", "p/q/c.txt=3"}, acts: []judge.Act{{Op: judge.Delete, Paths: at("p"), Find: &judge.Find{FoldNames: []string{"*.tmp"}, MaxDepth: -1}}}, want: "delete deletes p/a.tmp and p/q/b.TMP (2 bytes); cannot be undone"},
		"find, perhaps":   {with: []string{"p/a=1", "p/q/b=2"}, acts: []judge.Act{{Op: judge.Delete, Paths: at("p"), Find: &judge.Find{Types: "f", MaxDepth: -1, Others: []string{"-mtime +3"}}}}, want: "delete deletes up to 2 files in p, 2 bytes; cannot be undone"},
		"unknown":         {acts: []judge.Act{{Op: judge.Unknown, Why: "the name stands in $X"}}, want: "unknown can't be told beforehand: the name stands in $X"},
		"settings":        {acts: []judge.Act{{Op: judge.Settings, What: "what starts by itself"}}, want: "settings changes settings: what starts by itself"},
		"runs":            {acts: []judge.Act{{Op: judge.Run, Program: "make"}, {Op: judge.Read}}, want: "run runs make | read reads files"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPlace(t).with(c.with...).own(c.own...).look(c.acts...)
			if got := says(f); got != c.want {
				b, _ := json.Marshal(c.acts)
				t.Errorf("%s\n got %s\nwant %s", b, got, c.want)
			}
		})
	}
}
