package store_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"localpc/app/store"
)

func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if name, err := s.KeepOutput(nil); name != "" || err != nil {
		t.Errorf("nothing is kept as %q, %v", name, err)
	}
	want := []byte("hello\x00\xff")
	name, err := s.KeepOutput(want)
	must(t, err)
	if again, err := s.KeepOutput(want); again != name || err != nil {
		t.Errorf("the same once more: %q, %v", again, err)
	}
	if got, ok, err := s.Output(name); !ok || err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
	for _, odd := range []string{"", "../machine.db", "../../etc/passwd", name + "/..", name[:10], "zz" + name[2:]} {
		if b, ok, _ := s.Output(odd); ok || b != nil {
			t.Errorf("%q gives %d bytes", odd, len(b))
		}
	}
	file := filepath.Join(dir, "outputs", name)
	// Changed behind our back: it is not shown as what was sent.
	must(t, os.WriteFile(file, []byte("HELLO\x00\xff"), 0o600))
	if b, ok, err := s.Output(name); ok || err == nil {
		t.Errorf("a changed output is shown: %q", b)
	}
	// Cut short, as by a crash: keeping it again mends it.
	must(t, os.Truncate(file, 2))
	if _, err := s.KeepOutput(want); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := s.Output(name); !ok || err != nil || !bytes.Equal(got, want) {
		t.Errorf("after a crash: %q, %v, %v", got, ok, err)
	}
	must(t, os.Remove(file))
	if _, ok, err := s.Output(name); ok || err != nil {
		t.Errorf("one that was let go: %v, %v", ok, err)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	now := time.Now()
	// keep makes an output of a size, sparse, last used that long ago.
	keep := func(size int64, ago time.Duration) string {
		b := make([]byte, 32)
		rand.Read(b)
		name, err := s.KeepOutput(b)
		must(t, err)
		file := filepath.Join(dir, "outputs", name)
		must(t, os.Truncate(file, size))
		must(t, os.Chtimes(file, now.Add(-ago), now.Add(-ago)))
		return file
	}
	there := func(file string) bool { _, err := os.Lstat(file); return err == nil }

	old, fresh := keep(10, store.KeepOutputs+time.Minute), keep(10, store.KeepOutputs-time.Minute)
	staleTmp, newTmp := filepath.Join(dir, "outputs", ".new-1"), filepath.Join(dir, "outputs", ".new-2")
	must(t, os.WriteFile(staleTmp, nil, 0o600))
	must(t, os.Chtimes(staleTmp, now, now.Add(-2*time.Hour)))
	must(t, os.WriteFile(newTmp, nil, 0o600))
	must(t, s.Prune(now))
	if there(old) || there(staleTmp) {
		t.Error("what is too old is still there")
	}
	if !there(fresh) || !there(newTmp) {
		t.Error("what is not too old has gone")
	}

	third := int64(store.MaxOutputBytes / 3)
	newest, middle, oldest, tiny := keep(third, time.Minute), keep(third, time.Hour), keep(third+third/2, 2*time.Hour), keep(1, 3*time.Hour)
	must(t, s.Prune(now))
	if !there(newest) || !there(middle) {
		t.Error("the newest have gone")
	}
	if there(oldest) || there(tiny) || there(fresh) {
		t.Error("the oldest beyond the limit are still there")
	}
	// A run that goes on for long keeps the limit too.
	beyond := keep(third, 2*time.Hour)
	for i := range 33 {
		_, err := s.KeepOutput(bytes.Repeat([]byte{byte(i)}, 1<<20))
		must(t, err)
	}
	if there(beyond) || !there(newest) {
		t.Error("the limit does not hold while the program runs")
	}
	// One used again is new again.
	name, err := s.KeepOutput([]byte("again"))
	must(t, err)
	file := filepath.Join(dir, "outputs", name)
	must(t, os.Chtimes(file, now, now.Add(-store.KeepOutputs-time.Hour)))
	_, err = s.KeepOutput([]byte("again"))
	must(t, err)
	must(t, s.Prune(now))
	if !there(file) {
		t.Error("one that was kept again has gone")
	}
}
