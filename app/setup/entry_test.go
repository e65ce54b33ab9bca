package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Programs keep keys in the files that our entry goes into: none of that is
// copied, and all of it is there again when the entry has gone.
func TestNothingOfOthersIsInTheBook(t *testing.T) {
	const secret = "sk-of-another-program"
	for name, before := range map[string]string{
		"around":   "{\n  \"a\": \"" + secret + "\",\n  \"mcpServers\": {\n    \"docs\": {\"command\": \"docs\", \"env\": {\"KEY\": \"" + secret + "\"}}\n  },\n  \"z\": \"" + secret + "\"\n}\n",
		"umlauts":  "{\"mcpServers\":{\"ä\":{\"env\":{\"ö\":\"" + secret + "€\"}}},\"ü€\":\"" + secret + "\"}",
		"ours":     "{\"mcpServers\":{\"localpc\":{\"command\":\"/é/localpc\",\"args\":[\"mcp\",\"--program\",\"Cursor\"]}},\"z\":\"" + secret + "\"}",
		"no list":  "{\"key\": \"" + secret + "\"}\n",
		"last one": "{\n  \"mcpServers\": {\n    \"a\": {\"env\": {\"K\": \"" + secret + "\"}} // the only one\n  }\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := desk(t, "linux")
			path := filepath.Join(d.Home, ".cursor", "mcp.json")
			lay(t, path, before)
			for _, exe := range []string{"/è/localpc", "/opt/localpc", "/opt/longer/than/before/localpc", "/o"} {
				d.Exe = exe
				if s, err := d.Connect("cursor", ""); err != nil || !s.Connected || !strings.Contains(text(t, path), exe) {
					t.Fatalf("connect: %v, %+v", err, s)
				}
				if book := text(t, filepath.Join(d.Book.data, BookFile)); strings.Contains(book, secret) {
					t.Fatalf("the book has what is another program's:\n%s", book)
				}
			}
			if left, err := Undo(d.Book); err != nil || len(left) != 0 || text(t, path) != before {
				t.Errorf("undone: %v, left %v\n%s\nwant\n%s", err, left, text(t, path), before)
			}
		})
	}
}

// What another program writes at that very moment is not overwritten.
func TestAFileThatIsWrittenMeanwhile(t *testing.T) {
	k, err := named("cursor")
	must(t, err)
	b, path := NewBook(t.TempDir()), filepath.Join(t.TempDir(), "mcp.json")
	put(t, path, "{}\n", 0o600)
	var d Clients
	write := func(times int) error {
		n := 0
		return b.WriteEntry(path, "test", k.format.name(), func(before []byte) ([]byte, error) {
			after, err := k.format.put(before, k.entry(d, ""))
			if n++; n <= times {
				must(t, os.WriteFile(path, fmt.Appendf(nil, "{\"theirs\": %d}\n", n), 0o600))
			}
			return after, err
		})
	}
	must(t, write(2))
	if got := text(t, path); !strings.Contains(got, `"theirs": 2`) || !strings.Contains(got, serverName) {
		t.Fatalf("it has\n%s", got)
	}
	_, err = b.PutBack()
	must(t, err)
	wantFile(t, path, "{\"theirs\": 2}\n")
	if err := write(1000); err == nil || !strings.Contains(err.Error(), "another program") || strings.Contains(text(t, path), serverName) {
		t.Errorf("a file that is always being written: %v\n%s", err, text(t, path))
	}
	left, err := b.PutBack()
	if must(t, err); len(left) != 0 || !strings.Contains(text(t, path), "theirs") {
		t.Errorf("left %v\n%s", left, text(t, path))
	}
}

// A book of an earlier version has the whole file: it is put back as it was.
func TestABookWithTheWholeFile(t *testing.T) {
	d := desk(t, "linux")
	path := filepath.Join(d.Home, ".cursor", "mcp.json")
	const before = "{\"key\": \"old\"}\n"
	lay(t, path, before)
	if _, err := d.Connect("cursor", ""); err != nil {
		t.Fatal(err)
	}
	all, err := d.Book.List()
	must(t, err)
	all[0].Before, all[0].Then, all[0].From, all[0].Length = before, "", 0, 0
	must(t, d.Book.write(all))
	d.Exe = "/new/localpc"
	if _, err := d.Connect("cursor", ""); err != nil {
		t.Fatal(err)
	}
	if all, err = d.Book.List(); err != nil || len(all) != 1 || strings.Contains(all[0].Before, "old") {
		t.Errorf("the book has %+v, %v", all, err)
	}
	if _, err := Undo(d.Book); err != nil || text(t, path) != before {
		t.Errorf("undone: %v\n%s", err, text(t, path))
	}
}
