//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/capabilitytest"
	"localpc/capabilities/shell"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestOutputIsTheSameBytes(t *testing.T) {
	s := newShell(t)
	for name, choice := range modes {
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		want := make([]byte, 3<<20)
		r := rand.NewChaCha8([32]byte{1})
		_, _ = r.Read(want)
		if err := os.WriteFile(filepath.Join(ses.Folder, "blob"), want, 0o600); err != nil {
			t.Fatal(err)
		}
		got := do(t, s, ses, choice, bash(ses, "cat blob; cat blob >&2"))
		if !bytes.Equal([]byte(got.out), want) || !bytes.Equal([]byte(got.err), want) || got.exit.Truncated {
			t.Errorf("%s: %d and %d bytes came, of %d each", name, len(got.out), len(got.err), len(want))
		}
		if got.res.Sent != int64(2*len(want)) || len(got.res.Output) > 200<<10 {
			t.Errorf("%s: %d bytes counted, %d kept", name, got.res.Sent, len(got.res.Output))
		}
	}
}

// Gitlawb/zero#469: a flood keeps memory flat. A reader that is slow gets all
// of it; one that has stalled does not hold the command up for ever.
func TestFlood(t *testing.T) {
	for name, choice := range modes {
		t.Run(name, func(t *testing.T) {
			flood := int64(20 << 20)
			if choice == contained {
				flood = 200 << 20
			}
			s := newShell(t, func(o *shell.Options) { o.Stall = 300 * time.Millisecond })
			ses := capabilitytest.NewSession(t, consent.ModeWork)
			run := func(text string, out *capabilitytest.Output) *wire.ProcessExited {
				t.Helper()
				call := capabilitytest.NewCall(t, ses, wire.TypeProcessStart, bash(ses, text))
				d, err := s.Describe(context.Background(), call)
				if err != nil {
					t.Fatal(err)
				}
				res, err := s.Run(context.Background(), call, capabilitytest.GrantWith(t, ses, "shell", d, choice), out)
				if err != nil {
					t.Fatal(err)
				}
				return res.Payload.(*wire.ProcessExited)
			}
			var peak uint64
			frames := 0
			out := &capabilitytest.Output{Discard: true, Hook: func(capabilitytest.Frame) error {
				if frames++; frames%100 == 0 {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapInuse)
				}
				return nil
			}}
			if exit := run(fmt.Sprintf("yes | head -c %d", flood), out); exit.Truncated || out.Bytes() != flood {
				t.Errorf("%+v, %d bytes", exit, out.Bytes())
			}
			if peak > 64<<20 {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
			slow := &capabilitytest.Output{Discard: true, Hook: func(capabilitytest.Frame) error { time.Sleep(100 * time.Millisecond); return nil }}
			if exit := run("head -c 3M /dev/zero", slow); exit.Truncated || slow.Bytes() != 3<<20 {
				t.Errorf("a slow reader: %+v, %d bytes", exit, slow.Bytes())
			}
			begin := time.Now()
			stalled := &capabilitytest.Output{Stall: 1}
			if exit := run("head -c 50M /dev/zero && echo done > done; exit 5", stalled); !exit.Truncated || exit.ExitCode != 5 {
				t.Errorf("a stalled reader: %+v", exit)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("a stalled reader held the command up for %v", took)
			}
			if _, err := os.Stat(filepath.Join(ses.Folder, "done")); err != nil {
				t.Error("a stalled reader ended the command")
			}
		})
	}
}

// nanobot#2323, opencode#1852: what waits for a terminal fails instead.
func TestThereIsNoTerminal(t *testing.T) {
	s := newShell(t)
	for name, choice := range modes {
		ses := capabilitytest.NewSession(t, consent.ModeWork)
		r := do(t, s, ses, choice, bash(ses, "read -r x < /dev/tty; echo $?; read -r y; echo $?; ps -o tty= -p $$"))
		if !strings.HasPrefix(r.out, "1\n1\n?") || r.took > 2*time.Second {
			t.Errorf("%s: %q %q after %v", name, r.out, r.err, r.took)
		}
	}
}
