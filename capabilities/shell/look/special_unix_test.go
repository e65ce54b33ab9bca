//go:build unix

package look

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities/shell/judge"
)

func TestWhatIsNoFile(t *testing.T) {
	p := newPlace(t).with("d/a=1", "d/loop->loop", "d/up->..", "sub/x=1")
	if err := syscall.Mkfifo(p.file("d/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		f := p.look(rm("d"))
		w := p.look(judge.Act{Op: judge.Write, Paths: at("d/pipe", "d/loop", "d/up/sub/x")}, judge.Act{Op: judge.Extract, From: at("d/pipe"), Into: &at(".")[0]})
		done <- says(f) + "\n" + says(w)
	}()
	select {
	case got := <-done:
		want := "delete deletes d with 4 files, 1 byte; cannot be undone\n" +
			"unknown can't be told beforehand: what /home/user/d/loop leads to; what the archive has | overwrite replaces sub/x (1 byte); cannot be undone"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits for a pipe")
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(p.file("sub"), 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(p.file("sub"), 0o755)
		if f := p.look(rm("sub")); f.Effects[0].Own || !strings.Contains(f.Effects[0].Text, "more than") {
			t.Errorf("a folder that can't be read: %s", says(f))
		}
	}
}
