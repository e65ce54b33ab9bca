package mcp

import (
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	utf16 := func(s string) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, r := range s {
			b.WriteByte(byte(r))
			b.WriteByte(byte(r >> 8))
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		file, old, new string
		all            bool
		want           string // "" and fails: the file is not changed
		fails          string
		line, count    int
	}{
		"once":                       {file: "one\ntwo\n", old: "two", new: "2", want: "one\n2\n", line: 2, count: 1},
		"several lines":              {file: "a\nb\nc\nd\n", old: "b\nc\n", new: "x\n", want: "a\nx\nd\n", line: 2, count: 1},
		"all":                        {file: "x y x\nx", old: "x", new: "zz", all: true, want: "zz y zz\nzz", line: 1, count: 3},
		"nothing in its place":       {file: "a b", old: " b", new: "", want: "a", line: 1, count: 1},
		"not there":                  {file: "one\n", old: "two", new: "2", fails: "does not occur"},
		"not unique":                 {file: "x x", old: "x", new: "y", fails: "occurs 2 times"},
		"empty":                      {file: "x", old: "", new: "y", fails: "empty"},
		"the same":                   {file: "x", old: "x", new: "x", fails: "the same"},
		"spaces count":               {file: "a  b", old: "a b", new: "c", fails: "does not occur"},
		"a mark stays":               {file: "\xef\xbb\xbfone\n", old: "one", new: "é", want: "\xef\xbb\xbfé\n", line: 1, count: 1},
		"CRLF stays":                 {file: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "a\nnew\nb\n", want: "a\r\nnew\r\nb\r\nc\r\n", line: 1, count: 1},
		"CRLF in what is new":        {file: "a\r\nb\r\n", old: "b", new: "b\nc", want: "a\r\nb\r\nc\r\n", line: 2, count: 1},
		"CRLF as it is given":        {file: "a\r\nb\r\n", old: "a\r\nb", new: "c\r\nd", want: "c\r\nd\r\n", line: 1, count: 1},
		"mixed ends stay":            {file: "a\r\nb\nc\r\n", old: "b\n", new: "x\n", want: "a\r\nx\nc\r\n", line: 2, count: 1},
		"UTF-16 stays":               {file: utf16("héllo\r\nx\r\n"), old: "héllo\n", new: "hi\n", want: utf16("hi\r\nx\r\n"), line: 1, count: 1},
		"broken UTF-16":              {file: "\xff\xfea", old: "a", new: "b", fails: "UTF-16"},
		"other bytes stay":           {file: "caf\xe9 one", old: "one", new: "two", want: "caf\xe9 two", line: 1, count: 1},
		"not by guess":               {file: "caf\xe9 one", old: "é", new: "e", fails: "not UTF-8"},
		"no end of line at the end":  {file: "a\nb", old: "b", new: "c", want: "a\nc", line: 2, count: 1},
		"what looks like a pattern":  {file: "a.*b", old: ".*", new: "$1", want: "a$1b", line: 1, count: 1},
		"a character of many bytes":  {file: "a👍b", old: "👍", new: "👎", want: "a👎b", line: 1, count: 1},
		"it grows by what it is not": {file: "aa", old: "a", new: "aa", all: true, want: "aaaa", line: 1, count: 2},
	} {
		got, err := edit([]byte(c.file), c.old, c.new, c.all)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %q, %v", name, got.data, err)
			}
			continue
		}
		if err != nil || string(got.data) != c.want || got.line != c.line || got.count != c.count {
			t.Errorf("%s: %q at line %d, %d times, %v", name, got.data, got.line, got.count, err)
		}
	}
}

func TestOutputKeepsBothEnds(t *testing.T) {
	o := newOutput()
	line := []byte(strings.Repeat("x", 99) + "\n")
	for range 30_000 {
		o.write(line)
	}
	o.write([]byte("the end\n"))
	o.end()
	if n := len(o.head) + cap(o.tail); n > keptHead+4*keptTail {
		t.Errorf("%d bytes are held for %d printed", n, o.total)
	}
	first := o.from(0, 200)
	if first.text != string(line)+string(line) || first.next != 200 || !first.more || first.missing != 0 {
		t.Errorf("the beginning: %q, %+v", first.text, first)
	}
	gap := o.from(keptHead, 100)
	if gap.missing == 0 || gap.missing+int64(keptHead)+int64(len(o.tail)) != o.total {
		t.Errorf("what is not kept: %+v", gap)
	}
	last := o.from(o.total-8, 100)
	if last.text != "the end\n" || last.next != o.total || last.more {
		t.Errorf("the end: %q, %+v", last.text, last)
	}
	if after := o.from(o.total+50, 100); after.text != "" || after.next != o.total {
		t.Errorf("past the end: %+v", after)
	}
	s, cut := o.all(1000)
	if !cut || len(s) > 1100 || !strings.HasPrefix(s, "xxx") || !strings.HasSuffix(s, "the end\n") || !strings.Contains(s, "left out") {
		t.Errorf("all of it in short: %q", s)
	}
}

func TestOutputAcrossItsParts(t *testing.T) {
	o := newOutput()
	o.write([]byte(strings.Repeat("a", keptHead-2)))
	o.write([]byte("€uro")) // its first character is cut by the end of the head
	if got := o.from(keptHead-4, 100); got.text != "aa€uro" || got.missing != 0 || got.more {
		t.Errorf("across the parts: %+v", got)
	}
	s, cut := o.all(2 * keptHead)
	if cut || !strings.HasSuffix(s, "aa€uro") {
		t.Errorf("all of it: cut %v, %q", cut, s[len(s)-10:])
	}
}
