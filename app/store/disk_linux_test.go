package store_test

import (
	"errors"
	"fmt"
	"io"
	"localpc/app/store"
	"localpc/consent"
	"localpc/consent/policy"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk is a directory on a disk of 4 MiB where this may be mounted, and
// otherwise one whose files may not grow. fill leaves no room, free makes room.
func smallDisk(t *testing.T) (dir string, fill, free func()) {
	t.Helper()
	dir = t.TempDir()
	if mount := dir; syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=4m") == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(mount, 0); err != nil {
				t.Error(err)
			}
		})
		ballast := filepath.Join(mount, "ballast")
		return filepath.Join(mount, "data"), func() {
			f, err := os.Create(ballast)
			must(t, err)
			defer f.Close()
			for {
				if _, err := f.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, func() { must(t, os.Remove(ballast)) }
	}
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	set := func(n uint64) {
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: old.Max}))
	}
	t.Cleanup(func() { set(old.Cur) })
	return dir, func() { set(4096) }, func() { set(old.Cur) }
}

// A full disk, in the middle of everything: errors, nothing half done, and all
// works again when there is space.
func TestDiskFull(t *testing.T) {
	dir, fill, free := smallDisk(t)
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	defer s.Close()
	l := openLog(t, s)
	decide := func(i int) error {
		return l.Decided(t.Context(), consent.Request{ID: fmt.Sprint("r", i), Exact: strings.Repeat("x", 20_000)}, consent.Decision{Outcome: consent.Allowed})
	}
	must(t, decide(0))
	fill()
	written, failed := 1, 0
	for i := 1; failed < 3 && i < 1000; i++ {
		if err := decide(i); err != nil {
			failed++
		} else {
			written++
		}
	}
	if failed == 0 {
		t.Fatal("the disk never was full")
	}
	if name, err := s.KeepOutput(make([]byte, 1<<20)); err == nil {
		t.Errorf("an output of 1 MiB was kept as %s on a full disk", name)
	}
	if err := s.Remember(t.Context(), grant("big", strings.Repeat("z", 1<<20), consent.Always)); err == nil {
		t.Error("a grant was stored on a full disk")
	}
	if rep := verify(t, s); !rep.OK || rep.Entries != int64(written+1) {
		t.Errorf("with the disk full: %+v, %d written", rep, written)
	}
	if got := ids(t, s, "", ""); got != "" {
		t.Errorf("half a grant: %s", got)
	}
	entries, err := os.ReadDir(dir + "/outputs")
	must(t, err)
	if len(entries) != 0 {
		t.Errorf("half an output: %v", entries)
	}
	free()
	must(t, decide(5000))
	must(t, s.Remember(t.Context(), grant("a", "ls", consent.Always)))
	if _, err := s.KeepOutput([]byte("hello")); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
	s2 := open(t, dir)
	if rep := verify(t, s2); !rep.OK || rep.Entries != int64(written+2) {
		t.Errorf("with space again: %+v, %d written", rep, written)
	}
}

// The gate on a full disk: no record, no grant, nothing remembered; and the
// same question is put and answered again when there is space.
func TestGateOnAFullDisk(t *testing.T) {
	dir, fill, free := smallDisk(t)
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	defer s.Close()
	l := openLog(t, s)
	person := &alwaysYes{}
	gate := consent.New(consent.Options{Decider: policy.Policy{}, Prompter: person, Recorder: l, Book: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	r := consent.Request{ID: "r1", Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1", Mode: consent.ModeAsk, Folder: "/project", Capability: "shell", Action: "run",
		Title: "Run make", Exact: strings.Repeat("x", 60_000), Effects: []consent.Effect{{Kind: consent.EffectRun}}, Risk: consent.RiskNormal, Digest: consent.DigestOf("make"), Containable: true,
		Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Action: "run", Exact: "make"}, Scopes: []consent.Scope{consent.Once, consent.Always}}
	fill()
	for range 3 {
		g, err := gate.Authorize(t.Context(), r)
		var ref *consent.Refusal
		if !errors.As(err, &ref) || ref.Outcome != consent.Undelivered || !strings.Contains(ref.Reason, "disk full") {
			t.Fatalf("on a full disk: %v", err)
		}
		if err := g.Check(r.Digest, r.Fingerprint); err == nil {
			t.Fatal("it was granted")
		}
	}
	if got := ids(t, s, "", ""); got != "" {
		t.Errorf("remembered without a record: %s", got)
	}
	free()
	if g, err := gate.Authorize(t.Context(), r); err != nil || g.Check(r.Digest, r.Fingerprint) != nil {
		t.Errorf("with space again: %v", err)
	}
	asked := person.asked
	r.ID = "r2" // now the rule covers it
	if _, err := gate.Authorize(t.Context(), r); err != nil || person.asked != asked {
		t.Errorf("%v, asked %d times more", err, person.asked-asked)
	}
	if rep := verify(t, s); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
}
