package look

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"localpc/capabilities/shell/judge"
)

// pack makes a tar of "name", "dir/", "link->target".
func pack(t *testing.T, w io.Writer, names ...string) {
	t.Helper()
	tw := tar.NewWriter(w)
	for _, n := range names {
		h := &tar.Header{Name: n, Mode: 0o644, Size: 1, Typeflag: tar.TypeReg}
		if from, to, ok := strings.Cut(n, "->"); ok {
			h = &tar.Header{Name: from, Linkname: to, Typeflag: tar.TypeSymlink}
		} else if strings.HasSuffix(n, "/") {
			h = &tar.Header{Name: n, Mode: 0o755, Typeflag: tar.TypeDir}
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size == 1 {
			if _, err := tw.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestArchives(t *testing.T) {
	names := []string{"p/", "p/a", "p/b", "p/old"}
	var plain, zipped, zips bytes.Buffer
	pack(t, &plain, names...)
	z := gzip.NewWriter(&zipped)
	pack(t, z, names...)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(&zips)
	for _, n := range names {
		if _, err := zw.Create(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	xz := exec.Command("xz", "-c")
	xz.Stdin = bytes.NewReader(plain.Bytes())
	packed, err := xz.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a.tar": plain.Bytes(), "a.tgz": zipped.Bytes(), "a.zip": zips.Bytes(), "a.tar.xz": packed} {
		p := newPlace(t).with(name+"="+string(text), "p/old=12345")
		act := judge.Act{Op: judge.Extract, From: at(name), Into: &at(".")[0], Replaces: true, Dir: home}
		o := p.options()
		o.Ask = func(ctx context.Context, dir string, argv []string) ([]byte, error) {
			for i := range argv {
				argv[i] = strings.Replace(argv[i], home, p.ses.Folder, 1)
			}
			return exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		}
		argv := []string{"tar", "-xf", name}
		look := func(acts ...judge.Act) Found {
			j := judged(acts...)
			j.Parts[0].Argv = argv
			return At(context.Background(), j, o)
		}
		want := "overwrite replaces p/old (5 bytes); cannot be undone | create makes p/a and p/b"
		if got := says(look(act)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		// What came out of it is the line's own, what it replaced is not.
		if got := says(look(act, rm("p/a"))); !strings.Contains(got, "own delete deletes nothing that is there now") {
			t.Errorf("%s: %s", name, got)
		}
		if got := says(look(act, rm("p"))); !strings.Contains(got, "delete deletes p with 1 file, 5 bytes") {
			t.Errorf("%s: %s", name, got)
		}
		act.Replaces = false
		if got := says(look(act)); !strings.Contains(got, "own overwrite replaces nothing") {
			t.Errorf("%s, told to keep: %s", name, got)
		}
		act.Replaces, argv = true, []string{"tar", "-xf", name, "--strip-components=1"}
		if got := says(look(act)); got != "create makes a, b and old" {
			t.Errorf("%s, stripped: %s", name, got)
		}
		argv = []string{"tar", "-xf", name, "p/o*", "--wildcards"}
		if got := says(look(act)); !strings.Contains(got, "up to") || strings.Contains(got, "own") {
			t.Errorf("%s, a part: %s", name, got)
		}
	}
	// A link out of an archive may lead anywhere.
	var evil bytes.Buffer
	pack(t, &evil, "l->..", "../../up", "/abs")
	p := newPlace(t).with("e.tar="+evil.String(), "in/keep=1")
	act := judge.Act{Op: judge.Extract, From: at("e.tar"), Into: &at("in")[0], Replaces: true}
	if got := says(p.look(act, judge.Act{Op: judge.Write, Paths: at("in/l/keep")})); !strings.Contains(got, "unknown can't be told beforehand: what /home/user/in/l/keep leads to") {
		t.Error(got)
	}
	if err := os.WriteFile(p.file("broken.tar"), []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := says(p.look(judge.Act{Op: judge.Extract, From: at("broken.tar"), Into: &at(".")[0]})); !strings.Contains(got, "unknown can't be told beforehand: what the archive has") {
		t.Error(got)
	}
}
