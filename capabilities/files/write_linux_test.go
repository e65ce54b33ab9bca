package files

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestWrite(t *testing.T) {
	r := newRig(t)
	res, _, err := r.do(r.writeCall("/home/user/a/b/c.txt", "hello"))
	must(t, err)
	e := entryOf(res)
	if e.Path != "/home/user/a/b/c.txt" || e.Name != "c.txt" || e.Kind != "file" || e.Size != 5 || res.Received != 5 || res.Outcome != "5 bytes written" {
		t.Errorf("%+v, %+v", e, res)
	}
	_, err = r.write("a/b/c.txt", "")
	must(t, err)
	if fi, err := os.Stat(r.at("a/b/c.txt")); err != nil || fi.Size() != 0 {
		t.Errorf("an empty file: %v, %v", fi, err)
	}
	// Bytes come through as they are: openclaw#114895, claude-code#60174.
	raw := "\ufeff# Caf\xe9 menu\r\nline\r\n\x00\xff\xfe"
	_, err = r.write("raw", raw)
	must(t, err)
	if got, err := r.read("raw"); got != raw {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"a/b", "", "/tmp"} {
		_, err = r.write(name, "x")
		wantCode(t, err, wire.CodePathKind)
	}
	_, err = r.write("raw/below", "x")
	wantCode(t, err, wire.CodePathKind)
	r.noTemps()
}

// New contents do not run as the owner of the old ones, however they come there:
// beside and renamed, moved as a large upload, or in place.
func TestNewContentsGetNoRights(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		links bool
	}{"beside": {text: "new"}, "large": {text: strings.Repeat("new", 1<<20)}, "in place": {text: "new", links: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("f", "old")
			if c.links {
				must(t, os.Link(r.at("f"), r.at("second")))
			}
			must(t, os.Chmod(r.at("f"), 0o755|os.ModeSetuid|os.ModeSetgid))
			_, err := r.write("f", c.text)
			must(t, err)
			fi, err := os.Stat(r.at("f"))
			if must(t, err); fi.Mode() != 0o755 || r.text("f") != c.text {
				t.Errorf("its mode is %v now", fi.Mode())
			}
		})
	}
}

// openclaw/fs-safe#86: the mode stays; the umask decides for new files.
func TestWriteKeepsModes(t *testing.T) {
	r := newRig(t)
	for _, mode := range []os.FileMode{0o600, 0o755, 0o444 | 0o200} {
		r.put("f", "old")
		must(t, os.Chmod(r.at("f"), mode))
		must(t, unix.Setxattr(r.at("f"), "user.note", []byte("kept"), 0))
		_, err := r.write("f", "new")
		must(t, err)
		fi, err := os.Stat(r.at("f"))
		must(t, err)
		if fi.Mode() != mode || r.text("f") != "new" {
			t.Errorf("mode %v became %v, contents %q", mode, fi.Mode(), r.text("f"))
		}
		value := make([]byte, 16)
		if n, err := unix.Getxattr(r.at("f"), "user.note", value); err != nil || string(value[:n]) != "kept" {
			t.Errorf("an extended attribute was lost: %v", err)
		}
		must(t, os.Remove(r.at("f")))
	}
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	_, err := r.write("d/fresh", "x")
	must(t, err)
	f, _ := os.Stat(r.at("d/fresh"))
	d, _ := os.Stat(r.at("d"))
	if f.Mode().Perm() != 0o640 || d.Mode().Perm() != 0o750 {
		t.Errorf("new file %v, new folder %v", f.Mode(), d.Mode())
	}
}

func TestWriteKeepsOwner(t *testing.T) {
	r := newRig(t)
	r.put("f", "old")
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 { // only root can give a file away
		uid, gid = 1234, 4321
		must(t, os.Chown(r.at("f"), uid, gid))
	}
	_, err := r.write("f", "new")
	must(t, err)
	fi, err := os.Stat(r.at("f"))
	must(t, err)
	if st := fi.Sys().(*syscall.Stat_t); int(st.Uid) != uid || int(st.Gid) != gid || r.text("f") != "new" {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

func TestHardLinks(t *testing.T) {
	r := newRig(t)
	r.put("a", strings.Repeat("old", 1000))
	must(t, os.Link(r.at("a"), r.at("b")))
	for _, text := range []string{"short", strings.Repeat("longer than before ", 1<<16), ""} {
		_, err := r.write("a", text)
		must(t, err)
		if r.text("a") != text || r.text("b") != text {
			t.Errorf("%d bytes written: a has %d, b has %d", len(text), len(r.text("a")), len(r.text("b")))
		}
	}
	a, _ := os.Stat(r.at("a"))
	b, _ := os.Stat(r.at("b"))
	if !os.SameFile(a, b) {
		t.Error("they are two files now")
	}
	r.noTemps()
	// A failure in the middle puts the old contents back.
	r.put("a", "before")
	call := r.writeCall("a", strings.Repeat("after", 1<<20))
	must(t, os.WriteFile(call.Upload.Path, []byte(strings.Repeat("other", 1<<20)), 0o600))
	if _, _, err := r.do(call); err == nil {
		t.Error("a spool that holds something else was taken")
	}
	if r.text("a") != "before" || r.text("b") != "before" {
		t.Errorf("a has %d bytes, b has %d", len(r.text("a")), len(r.text("b")))
	}
	r.noTemps()
	// Without a journal it is refused, and nothing is lost.
	r.e = New(Options{})
	_, err := r.write("a", "x")
	wantCode(t, err, wire.CodeForbidden)
	if r.text("b") != "before" {
		t.Error("it was written all the same")
	}
}

// QwenLM/qwen-code#3839: the person saved in between.
func TestSavedInBetween(t *testing.T) {
	r := newRig(t)
	for name, between := range map[string]func(){
		"saved in place": func() { r.put("f", "the person's") },
		"saved by rename": func() {
			r.put("f~", "the person's")
			must(t, os.Rename(r.at("f~"), r.at("f")))
		},
		"became a link":   func() { must(t, os.Remove(r.at("f"))); r.put("g", "the person's"); r.link("g", "f") },
		"was deleted":     func() { must(t, os.Remove(r.at("f"))) },
		"became a folder": func() { must(t, os.Remove(r.at("f"))); r.put("f/g", "the person's") },
	} {
		must(t, os.RemoveAll(r.at("f")))
		r.put("f", "old")
		call := r.writeCall("f", "the agent's")
		d, err := r.describe(call)
		must(t, err)
		g := capabilitytest.Grant(t, r.s, "files", d)
		between()
		before := capabilitytest.Tree(t, r.s.Folder)
		_, err = r.e.Run(context.Background(), call, g, &capabilitytest.Output{})
		if !errors.Is(err, consent.ErrChanged) && wire.CodeOf(err) != wire.CodePathKind {
			t.Errorf("%s: %v", name, err)
		}
		if after := capabilitytest.Tree(t, r.s.Folder); after != before {
			t.Errorf("%s: the folder was changed:\n%s\nwas\n%s", name, after, before)
		}
	}
	// And at the very last moment, between the check and the rename.
	must(t, os.RemoveAll(r.at("f")))
	for _, existed := range []bool{true, false} {
		if existed {
			r.put("f", "old")
		}
		call := r.writeCall("f", "the agent's")
		j, err := openJail(r.s)
		must(t, err)
		o := &writeOp{request: request{e: r.e, j: j}, p: call.Payload.(*wire.FileWrite), up: call.Upload}
		_, err = o.look(t.Context())
		must(t, err)
		r.put("f", "the person's")
		if _, err := o.run(t.Context(), nil); !errors.Is(err, consent.ErrChanged) {
			t.Errorf("existed %v: %v", existed, err)
		}
		o.close()
		if r.text("f") != "the person's" {
			t.Errorf("existed %v: what the person saved is lost", existed)
		}
		must(t, os.Remove(r.at("f")))
	}
	r.noTemps()
}

func TestCancelledWrite(t *testing.T) {
	r := newRig(t)
	r.put("f", "old")
	must(t, os.Link(r.at("f"), r.at("second")))
	for _, name := range []string{"f", "new/deep/g"} {
		call := r.writeCall(name, "text")
		d, err := r.describe(call)
		must(t, err)
		before := capabilitytest.Tree(t, r.s.Folder)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.e.Run(ctx, call, capabilitytest.Grant(t, r.s, "files", d), &capabilitytest.Output{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if after := capabilitytest.Tree(t, r.s.Folder); after != before {
			t.Errorf("%s: something was done:\n%s", name, after)
		}
	}
	r.noTemps()
}

// kill -9 at random moments: no half-written file, and no leavings after the
// next start.
func TestKilled(t *testing.T) {
	for _, linked := range []bool{false, true} {
		dir := t.TempDir()
		r := newRigIn(t, dir)
		r.put("f", killText("A"))
		if linked {
			must(t, os.Link(r.at("f"), r.at("second")))
		}
		undone := 0
		for range 20 {
			cmd := child(t, roleWriter, dir)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "ready" {
			}
			time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			if left, _ := os.ReadDir(r.e.journal.dir); len(left) > 0 {
				undone++
			}
			restored, err := Recover(r.e.journal.dir, nil)
			must(t, err)
			if len(restored) > 0 && restored[0] != r.at("f") {
				t.Errorf("restored %v", restored)
			}
			if got := r.text("f"); got != killText("A") && got != killText("B") {
				t.Fatalf("linked %v: a half-written file of %d bytes", linked, len(got))
			}
			if linked && r.text("second") != r.text("f") {
				t.Fatal("the two names are two files now")
			}
			r.noTemps()
		}
		if undone == 0 {
			t.Errorf("linked %v: no kill came in the middle of a write", linked)
		}
	}
}

func TestRecover(t *testing.T) {
	if restored, err := Recover(filepath.Join(t.TempDir(), "none"), nil); err != nil || restored != nil {
		t.Errorf("no journal: %v, %v", restored, err)
	}
	r := newRig(t)
	r.put("f", "old contents")
	must(t, os.Link(r.at("f"), r.at("second")))
	half := func() {
		f, err := os.OpenFile(r.at("f"), os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		n, err := lstatFile(f)
		must(t, err)
		s, err := r.e.journal.save(t.Context(), f, r.at("f"), n)
		must(t, err)
		must(t, s.copy.Close())
		must(t, os.WriteFile(r.at("f"), []byte("half"), 0))
	}
	half()
	restored, err := Recover(r.e.journal.dir, nil)
	must(t, err)
	if len(restored) != 1 || restored[0] != r.at("f") || r.text("second") != "old contents" {
		t.Errorf("%v, %q", restored, r.text("second"))
	}
	r.noTemps()
	// Another file is there now: it is left alone, and the old contents are kept.
	half()
	must(t, os.Remove(r.at("f")))
	r.put("f", "another")
	if _, err := Recover(r.e.journal.dir, nil); err == nil || !strings.Contains(err.Error(), "another file is there now") {
		t.Errorf("%v", err)
	}
	if r.text("f") != "another" {
		t.Error("another file was written over")
	}
	left, _ := filepath.Glob(filepath.Join(r.e.journal.dir, "*.data"))
	if len(left) != 1 {
		t.Fatalf("the old contents are gone: %v", left)
	}
	// A note never makes Recover remove what this program did not make.
	must(t, os.WriteFile(filepath.Join(r.e.journal.dir, "evil.json"), []byte(`{"remove":"`+r.at("second")+`"}`), 0o600))
	_, _ = Recover(r.e.journal.dir, nil)
	if r.text("second") != "half" {
		t.Error("it removed a file of the person's")
	}
}

func TestDiskFull(t *testing.T) {
	t.Run("size limit", func(t *testing.T) {
		dir := t.TempDir()
		r := newRigIn(t, dir)
		big := strings.Repeat("x", adoptFrom-1) // copied, not moved into its place
		full := func() {
			r.put("f", "old")
			r.put("linked", "old")
			must(t, os.Link(r.at("linked"), r.at("linked2")))
		}
		full()
		before := capabilitytest.Tree(t, r.s.Folder)
		must(t, os.WriteFile(filepath.Join(dir, "spool"), []byte(big), 0o600))
		sum := sha256.Sum256([]byte(big))
		cmd := child(t, roleLimit, dir)
		cmd.Env = append(cmd.Env, "SPOOL_SHA256="+hex.EncodeToString(sum[:]))
		out, err := cmd.CombinedOutput()
		must(t, err)
		if n := strings.Count(string(out), string(wire.CodeTooLarge)); n != 3 {
			t.Errorf("%d of 3 writes were refused as too large:\n%s", n, out)
		}
		if after := capabilitytest.Tree(t, r.s.Folder); after != before {
			t.Errorf("something was half done:\n%s\nwas\n%s", after, before)
		}
		r.noTemps()
	})
	t.Run("small disk", func(t *testing.T) {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
			if !errors.Is(err, os.ErrPermission) {
				t.Fatal(err)
			}
			return // only who may mount has a small disk; the limit stands for it
		}
		defer func() { must(t, unix.Unmount(disk, unix.MNT_DETACH)) }()
		base := t.TempDir()
		r := newRigIn(t, disk)
		r.e = New(Options{Journal: filepath.Join(base, "journal")})
		r.put("f", "old")
		r.put("linked", "old")
		must(t, os.Link(r.at("linked"), r.at("linked2")))
		before := capabilitytest.Tree(t, r.s.Folder)
		big := strings.Repeat("x", 3<<20)
		for _, name := range []string{"f", "linked", "new/deep/g"} {
			_, err := r.write(name, big)
			wantCode(t, err, wire.CodeDiskFull)
		}
		// From another file system, too: the source stays.
		must(t, os.MkdirAll(filepath.Join(base, "tmp"), 0o700))
		r.s.Tmp = filepath.Join(base, "tmp")
		r.put("/tmp/tree/one", "1")
		r.put("/tmp/tree/big", big)
		_, err := r.move("/tmp/tree", "there/tree")
		wantCode(t, err, wire.CodeDiskFull)
		if r.text("/tmp/tree/one") != "1" || len(r.text("/tmp/tree/big")) != len(big) {
			t.Error("the source of a move that failed was harmed")
		}
		if after := capabilitytest.Tree(t, r.s.Folder); after != before {
			t.Errorf("something was half done:\n%s\nwas\n%s", after, before)
		}
		r.noTemps()
	})
}

// Writes of one file at the same time: one of them as a whole, whichever way
// the file has to be written.
func TestWritesAtOnce(t *testing.T) {
	for _, linked := range []bool{false, true} {
		r := newRig(t)
		r.put("f", "old")
		if linked {
			must(t, os.Link(r.at("f"), r.at("second")))
		}
		const writers = 8
		texts := map[string]bool{}
		var calls []capabilities.Call
		for i := range writers {
			text := strings.Repeat(string(rune('a'+i)), 100_000+i)
			texts[text] = true
			calls = append(calls, r.writeCall("f", text))
		}
		errs := make([]error, writers)
		var wait sync.WaitGroup
		for i, c := range calls {
			wait.Go(func() {
				for range 20 {
					if _, _, errs[i] = r.do(c); !errors.Is(errs[i], consent.ErrChanged) {
						return
					}
				}
			})
		}
		wait.Wait()
		worked := 0
		for _, err := range errs {
			if err == nil {
				worked++
			} else if !errors.Is(err, consent.ErrChanged) {
				t.Errorf("linked %v: %v", linked, err)
			}
		}
		if worked == 0 || !texts[r.text("f")] {
			t.Errorf("linked %v: %d worked; the file is one of what was written: %v", linked, worked, texts[r.text("f")])
		}
		if linked && r.text("second") != r.text("f") {
			t.Error("the two names are two files now")
		}
		r.noTemps()
	}
}
