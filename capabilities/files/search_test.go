package files

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

func (r *rig) search(p wire.FileSearch) (*wire.FileSearchResponse, error) {
	r.Helper()
	p.SessionID = r.s.ID
	if p.Max == 0 {
		p.Max = 100
	}
	res, _, err := r.do(r.call(wire.TypeFileSearch, &p))
	if err != nil {
		return nil, err
	}
	must(r, res.Payload.Validate())
	return res.Payload.(*wire.FileSearchResponse), nil
}

func hits(found *wire.FileSearchResponse) []string {
	all := []string{}
	for _, h := range found.Hits {
		s := h.Path
		if h.Line > 0 {
			s = fmt.Sprintf("%s:%d:%s", h.Path, h.Line, h.Text)
		} else if h.Kind != "file" {
			s += " " + h.Kind
		}
		all = append(all, s)
	}
	return all
}

func TestSearch(t *testing.T) {
	r := newRig(t)
	r.put("main.go", "package main\n\nfunc Main() {}\r\nfunc other() {} // Main, Main")
	r.put("lib/a.go", "package lib\n\tMAIN = 1\n")
	r.put("lib/deep/b.txt", "no main\nfoo\r\n")
	r.put("lib/deep/latin", "Caf\xe9 main\n")
	r.put("lib/deep/letters", "é")
	r.put("binary", "main\x00\x01Main")
	r.put(".git/config", "Main")
	r.put(".hidden/x.go", "Main\n\n\n")
	r.put("empty", "")
	r.link("main.go", "link.go")
	r.link("lib", "dirlink")
	r.link("/etc", "out")
	for _, c := range []struct {
		p    wire.FileSearch
		want []string
	}{
		{wire.FileSearch{Name: "*.go"}, []string{"link.go", "main.go"}},
		{wire.FileSearch{Path: "/home/user", Name: "**/*.go"}, []string{"/home/user/.hidden/x.go", "/home/user/lib/a.go", "/home/user/link.go", "/home/user/main.go"}},
		{wire.FileSearch{Path: "~", Name: "lib/**"}, []string{"~/lib dir", "~/lib/a.go", "~/lib/deep dir", "~/lib/deep/b.txt", "~/lib/deep/latin", "~/lib/deep/letters"}},
		{wire.FileSearch{Name: "**/*.{GO,Txt}", IgnoreCase: true}, []string{".hidden/x.go", "lib/a.go", "lib/deep/b.txt", "link.go", "main.go"}},
		{wire.FileSearch{Name: "{out,dirlink,binary}"}, []string{"binary", "dirlink dir", "out other"}},
		{wire.FileSearch{Path: "lib/deep"}, []string{"lib/deep/b.txt", "lib/deep/latin", "lib/deep/letters"}},
		{wire.FileSearch{Path: "dirlink", Name: "*.go"}, []string{"dirlink/a.go"}},
		{wire.FileSearch{Name: ".git/*"}, []string{".git/config"}},
		{wire.FileSearch{Name: "**/config"}, []string{}},
		{wire.FileSearch{Path: ".git"}, []string{".git/config"}},
		{wire.FileSearch{Text: "Main"}, []string{".hidden/x.go:1:Main", "main.go:3:func Main() {}", "main.go:4:func other() {} // Main, Main"}},
		{wire.FileSearch{Text: "main", Name: "lib/**"}, []string{"lib/deep/b.txt:1:no main", "lib/deep/latin:1:Caf\ufffd main"}},
		{wire.FileSearch{Text: "main", IgnoreCase: true, Name: "**/*.go"}, []string{".hidden/x.go:1:Main", "lib/a.go:2:\tMAIN = 1", "main.go:1:package main", "main.go:3:func Main() {}", "main.go:4:func other() {} // Main, Main"}},
		{wire.FileSearch{Text: `func \w+\(\) \{\}$`, Regexp: true}, []string{"main.go:3:func Main() {}"}},
		{wire.FileSearch{Text: `^foo$`, Regexp: true}, []string{"lib/deep/b.txt:2:foo"}},
		{wire.FileSearch{Text: `\Afoo\z`, Regexp: true}, []string{"lib/deep/b.txt:2:foo"}},
		{wire.FileSearch{Text: `(?i:FOO)`, Regexp: true}, []string{"lib/deep/b.txt:2:foo"}},
		{wire.FileSearch{Text: `main\s+func`, Regexp: true}, []string{}},                  // over more than one line
		{wire.FileSearch{Text: `\s*foo`, Regexp: true}, []string{"lib/deep/b.txt:2:foo"}}, // begins on the line before
		{wire.FileSearch{Text: `[^q]*other`, Regexp: true}, []string{"main.go:4:func other() {} // Main, Main"}},
		{wire.FileSearch{Text: `Caf\xe9`, Name: "**/latin"}, []string{}},
		{wire.FileSearch{Text: "É", IgnoreCase: true}, []string{"lib/deep/letters:1:é"}},
		{wire.FileSearch{Text: "a.b([", IgnoreCase: true}, []string{}},
		{wire.FileSearch{Text: "a.b(["}, []string{}},
	} {
		found, err := r.search(c.p)
		if err != nil || found.More {
			t.Errorf("%+v: %v, %+v", c.p, err, found)
			continue
		}
		if got := hits(found); !slices.Equal(got, c.want) {
			t.Errorf("%+v found\n%q, want\n%q", c.p, got, c.want)
		}
	}
	for _, p := range []wire.FileSearch{{Name: "[a"}, {Text: "(", Regexp: true}, {Text: `(a*)\1`, Regexp: true}, {Text: "two\nlines"}, {Text: "two\nlines", IgnoreCase: true}, {Name: strings.Repeat("{a,b}", 40)}} {
		_, err := r.search(p)
		wantCode(t, err, wire.CodeInvalid)
	}
	_, err := r.search(wire.FileSearch{Path: "main.go", Text: "x"})
	wantCode(t, err, wire.CodePathKind)
	_, err = r.search(wire.FileSearch{Path: "none"})
	wantCode(t, err, wire.CodePathNotFound)
	_, err = r.search(wire.FileSearch{Path: "out"})
	wantCode(t, err, wire.CodePathOutside)
	_, err = r.search(wire.FileSearch{Path: "..", Text: "root"})
	wantCode(t, err, wire.CodePathOutside)
}

func TestSearchHasBounds(t *testing.T) {
	r := newRig(t)
	for i := range 30 {
		r.put(fmt.Sprintf("f%02d", i), strings.Repeat("hit\n", 100))
	}
	found, err := r.search(wire.FileSearch{Text: "hit", Max: 150})
	must(t, err)
	if len(found.Hits) != 150 || !found.More || found.Hits[149].Path != "f01" || found.Hits[149].Line != 50 {
		t.Errorf("%d hits, more %v, the last %+v", len(found.Hits), found.More, found.Hits[len(found.Hits)-1])
	}
	if found, err = r.search(wire.FileSearch{Max: 30}); err != nil || len(found.Hits) != 30 || found.More {
		t.Errorf("as many as there are: %d, %v, %v", len(found.Hits), found.More, err)
	}
	if found, err = r.search(wire.FileSearch{Max: 29}); err != nil || len(found.Hits) != 29 || !found.More {
		t.Errorf("one less: %d, %v, %v", len(found.Hits), found.More, err)
	}
	// Names that take much room in a reply: it stays within a frame.
	deep := strings.Repeat(strings.Repeat("\u202e", 80)+"/", 14)
	for i := range 300 {
		r.put(fmt.Sprintf("wide/%sx%d", deep, i), "")
	}
	res, _, err := r.do(r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Name: "wide/**", Max: wire.MaxSearch}))
	must(t, err)
	if p := res.Payload.(*wire.FileSearchResponse); !p.More || len(p.Hits) < 50 {
		t.Errorf("%d hits, more: %v", len(p.Hits), p.More)
	}
	if _, err := wire.Encode(wire.Message{Type: res.Type, ID: "x", Payload: res.Payload}); err != nil {
		t.Errorf("a reply that the wire does not take: %v", err)
	}
}

// Files and lines of any length are searched, with what one piece takes.
func TestSearchInLargeFiles(t *testing.T) {
	r := newRig(t)
	line := strings.Repeat("0123456789", 10) + "\n"
	body := strings.Repeat(line, 3*pieceSize/len(line))
	r.put("large", body+"needle here\n"+body)
	r.put("long", strings.Repeat("é", pieceSize/2-1)+"needle"+strings.Repeat("é", pieceSize))
	r.put("twice", strings.Repeat("é", pieceSize/2-500)+"needle"+strings.Repeat("é", pieceSize)) // is in two pieces
	for _, p := range []wire.FileSearch{{Text: "needle"}, {Text: "NEEDLE", IgnoreCase: true}, {Text: "n[e]+dle", Regexp: true}} {
		found, err := r.search(p)
		must(t, err)
		if len(found.Hits) != 3 || found.Hits[0].Text != "needle here" || found.Hits[0].Line != 3*pieceSize/len(line)+1 {
			t.Fatalf("%+v: %d hits, %+v", p, len(found.Hits), found.Hits)
		}
		if h := found.Hits[2]; h.Line != 1 || h.Path != "twice" {
			t.Errorf("%+v: %+v", p, h)
		}
		if h := found.Hits[1]; h.Line != 1 || !strings.Contains(h.Text, "éneedleé") || strings.Contains(h.Text, "\ufffd") || len(h.Text) > maxExcerpt {
			t.Errorf("%+v: %d bytes of %q", p, len(h.Text), h.Text)
		}
	}
}

// A search ends in time, and says that there is more; one large file does not
// hide the others.
func TestSearchEndsInTime(t *testing.T) {
	r := newRig(t)
	f, err := os.Create(r.at("huge"))
	must(t, err)
	chunk := strings.Repeat(strings.Repeat("a", 99)+"\n", 10_000)
	for range 150 {
		_, err := f.WriteString(chunk)
		must(t, err)
	}
	must(t, f.Close())
	r.put("z", "aab\n")
	begin := time.Now()
	found, err := r.search(wire.FileSearch{Text: `(a|aa|aaa|aaaa)+(a|aa|aaa|aaaa)+b`, Regexp: true, IgnoreCase: true})
	must(t, err)
	took := time.Since(begin)
	// A computer so slow that the large file takes all of the time finds no more.
	if !found.More || took < searchFor && !slices.Equal(hits(found), []string{"z:1:aab"}) {
		t.Errorf("after %v: %q, more %v", took, hits(found), found.More)
	}
	if took > 4*searchFor {
		t.Errorf("it took %v", took)
	}
}

// To search and to watch is to read in the folder: nobody is asked about it in
// a session that may look.
func TestSearchIsReading(t *testing.T) {
	r := newRig(t)
	for _, c := range []capabilities.Call{r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Text: "x", Max: 9}),
		r.call(wire.TypeFileWatch, &wire.FileWatch{SessionID: r.s.ID, Recursive: true})} {
		d, err := r.describe(c)
		must(t, err)
		for mode, quiet := range map[consent.Mode]bool{consent.ModeLook: true, consent.ModeWork: true, consent.ModeAsk: false} {
			req := capabilitytest.Request(r.s, "files", d)
			req.Mode = mode
			if v := (policy.Policy{}).Decide(req, nil, time.Now()); (v.Outcome == consent.Allowed) != quiet || v.Outcome == consent.Denied {
				t.Errorf("%s in %q: %+v", c.Type, mode, v)
			}
		}
	}
	d, err := r.describe(r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Path: "~", Name: "**/*.go", Text: "a\u202eb", Regexp: true, Max: 5}))
	must(t, err)
	if d.Exact != "~\nfor names like **/*.go\nwith the text a\\u202eb" || d.Risk != consent.RiskLow || len(d.Effects) != 1 || d.Effects[0].Kind != consent.EffectRead {
		t.Errorf("%+v", d)
	}
	if d, err = r.describe(r.call(wire.TypeFileSearch, &wire.FileSearch{SessionID: r.s.ID, Max: 5})); err != nil || d.Exact != ".\nfor all names" && d.Exact != "\nfor all names" {
		t.Errorf("%q, %v", d.Exact, err)
	}
}
