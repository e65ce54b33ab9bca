//go:build unix

package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/store"
	"localpc/consent"
	"localpc/consent/record"

	"go.uber.org/goleak"
)

func umask(m int) int { return syscall.Umask(m) }

// TestMain is also the child processes that some tests start and kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_WRITE"); dir != "" {
		writeUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

// writeUntilKilled is the child: it writes all the kinds of things that the
// program writes, tells each entry that the record has taken, and never ends
// by itself.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	s, err := store.Open(ctx, dir)
	if err == nil {
		var l *record.Log
		if l, err = record.Open(ctx, record.Options{Rows: s, Key: signing, Kept: true}); err == nil {
			for i := 0; err == nil; i++ {
				id := fmt.Sprint(os.Getpid(), "-", i)
				err = l.Decided(ctx, consent.Request{ID: id, Exact: strings.Repeat("x", i%5000)}, consent.Decision{Outcome: consent.Allowed})
				if err != nil {
					break
				}
				seq, _ := l.Head()
				fmt.Println(seq)
				if _, err = s.KeepOutput([]byte(id + strings.Repeat("y", i%20000))); err != nil {
					break
				}
				if err = s.Remember(ctx, consent.Stored{ID: id, Scope: consent.Always, Rule: consent.Rule{Exact: fmt.Sprint(i % 50)}, Created: time.Now()}); err != nil {
					break
				}
				if err = s.Remember(ctx, consent.Stored{ID: id + "c", Scope: consent.Command, Session: id, Rule: consent.Rule{Capability: "network"}, Created: time.Now()}); err != nil {
					break
				}
				if err = s.EndSession(ctx, id); err == nil {
					_, err = s.Expire(ctx, time.Now())
				}
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

func child(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_WRITE="+dir)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// Killed at a random point, ten times over on one database: it opens, the
// record verifies, and everything that was told as written is there.
func TestKilledWhileWriting(t *testing.T) {
	dir := t.TempDir()
	for round := range 10 {
		cmd, lines := child(t, dir)
		if !lines.Scan() {
			t.Fatalf("round %d: the child wrote nothing", round)
		}
		told := make(chan int64, 1)
		go func() {
			last := lines.Text()
			for lines.Scan() {
				if _, err := strconv.Atoi(lines.Text()); err == nil {
					last = lines.Text()
				}
			}
			n, _ := strconv.ParseInt(last, 10, 64)
			told <- n
		}()
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		must(t, cmd.Process.Kill())
		last := <-told
		cmd.Wait()

		s, err := store.Open(t.Context(), dir)
		must(t, err)
		if rep := verify(t, s); !rep.OK || rep.Entries < last {
			t.Fatalf("round %d: %+v, though entry %d was told as written", round, rep, last)
		}
		list, err := s.Remembered(t.Context(), "", "")
		if err != nil || len(list) > 50+round+1 { // and what held for a command that was cut short
			t.Errorf("round %d: %d grants, %v", round, len(list), err)
		}
		must(t, s.Prune(time.Now()))
		// What stands under its name is whole.
		entries, err := os.ReadDir(dir + "/outputs")
		must(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".new-") {
				continue
			}
			if _, ok, err := s.Output(e.Name()); !ok || err != nil {
				t.Errorf("round %d: the output %s: %v, %v", round, e.Name(), ok, err)
			}
		}
		must(t, s.Close())
	}
}

// A second copy that writes to the same record is told so; the chain stays one.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := openLog(t, s)
	must(t, l.Happened(t.Context(), "start", ""))
	cmd, lines := child(t, dir)
	if !lines.Scan() {
		t.Fatal("the child wrote nothing")
	}
	if err := l.Happened(t.Context(), "after the other has written", ""); err == nil {
		t.Error("the record was forked")
	}
	must(t, cmd.Process.Kill())
	cmd.Wait()
	if rep := verify(t, s); !rep.OK {
		t.Errorf("%+v", rep)
	}
	// Opened anew, it goes on where the other ended.
	must(t, openLog(t, s).Happened(t.Context(), "start", ""))
	if rep := verify(t, s); !rep.OK {
		t.Errorf("%+v", rep)
	}
}

// alwaysYes is a person who allows everything, always.
type alwaysYes struct{ asked int }

func (p *alwaysYes) Prompt(context.Context, consent.Request) (consent.Answer, error) {
	p.asked++
	return consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Always, Contain: consent.Contained}}, nil
}
