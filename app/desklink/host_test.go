//go:build unix

package desklink_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

// Fewer requests on the open card: it stays as it is, its digits too.
func TestCardIsUpdated(t *testing.T) {
	h, e := newHost(t, "plain", 0)
	r, info := consent.Request{ID: "allow-1"}, snapshot.CardInfo{Denied: 3, Folded: []snapshot.Folded{{ID: "a", Exact: "x"}, {ID: "b"}}}
	h.Update(r, info) // before there is a card
	if h.PID() != 0 {
		t.Error("it runs though nothing is to be shown")
	}
	if _, err := h.Present(r, info); err != nil {
		t.Fatal(err)
	}
	e.want("shown allow-1")
	digits := strings.Fields(e.want("answer allow-1 true "))[3][:2]
	info.Folded = info.Folded[1:]
	h.Update(r, info)
	e.want("updated allow-1: 1 folded, digits " + digits + ", denied 3")
	h.Update(consent.Request{ID: "another"}, info)
	h.Withdraw("allow-1")
	h.Update(r, info)
	e.want("closed allow-1")
	e.nothing(50 * time.Millisecond)
}

func TestCardIsShownAndAnswered(t *testing.T) {
	h, e := newHost(t, "plain", 0)
	if h.PID() != 0 {
		t.Error("it runs before it is needed")
	}
	h.Withdraw("nothing")
	h.Raise()
	h.Publish(snapshot.Snapshot{Seq: 1})
	if h.PID() != 0 {
		t.Error("it runs though nothing is to be shown")
	}
	present(t, h, "allow-1")
	e.want("shown allow-1")
	if got := e.want("answer allow-1 true "); !strings.HasSuffix(got, "700[/project]") || len(strings.Fields(got)[3]) != len("42700[/project]") {
		t.Errorf("the card came as %q", got)
	}
	pid := h.PID()
	h.Raise()
	e.want("raised")
	h.Withdraw("allow-1")
	e.want("closed allow-1")
	present(t, h, "2")
	e.want("shown 2")
	if h.PID() != pid {
		t.Error("a second card needs a second process")
	}
	h.Withdraw("2")
	e.want("closed 2")
	h.Raise()
	e.nothing(50 * time.Millisecond)
	h.Close()
	gone(t, pid)
	e.nothing(0)
	if _, err := h.Present(consent.Request{ID: "late"}, snapshot.CardInfo{}); err == nil {
		t.Error("a closed host shows a card")
	}
	if err := h.Show("pair"); err == nil {
		t.Error("a closed host opens a window")
	}
	h.Close()
}

func TestKilled(t *testing.T) {
	t.Run("before the card was shown", func(t *testing.T) {
		h, e := newHost(t, "blind", 0)
		present(t, h, "a")
		pid := h.PID()
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		e.want("lost")
		present(t, h, "a") // as the queue does, once
		if again := h.PID(); again == pid || again == 0 {
			t.Errorf("process %d after %d", again, pid)
		}
	})
	t.Run("after it was shown", func(t *testing.T) {
		h, e := newHost(t, "plain", 0)
		present(t, h, "a")
		e.want("shown a")
		must(t, syscall.Kill(h.PID(), syscall.SIGKILL))
		e.want("lost")
		if h.PID() != 0 {
			t.Error("it was started again by itself")
		}
		h.Withdraw("a")
		present(t, h, "allow-b")
		e.want("shown allow-b")
		e.want("answer allow-b")
	})
	t.Run("from the loss itself, over and over", func(t *testing.T) {
		h, e := newHost(t, "plain", 0)
		for i := range 10 {
			present(t, h, fmt.Sprint(i))
			e.want("shown")
			must(t, syscall.Kill(h.PID(), syscall.SIGKILL))
			e.want("lost")
		}
	})
}

// A desktop that can't be heard any more is ended and counts as lost, whatever
// way it has fallen silent.
func TestFallenSilent(t *testing.T) {
	for _, manner := range []string{"dumb", "endless"} {
		t.Run(manner, func(t *testing.T) {
			h, e := newHost(t, manner, 0)
			present(t, h, "a")
			pid := h.PID()
			e.want("lost")
			gone(t, pid)
		})
	}
}

// One that can't be told anything any more would leave its card on the screen.
func TestFallenDeaf(t *testing.T) {
	h, e := newHost(t, "earless", 0)
	present(t, h, "a")
	e.want("shown a")
	pid := h.PID()
	h.Withdraw("a")
	e.want("lost")
	gone(t, pid)
}

func TestUnreadableLines(t *testing.T) {
	h, e := newHost(t, "babbling", 0)
	present(t, h, "allow-a")
	e.want("shown allow-a")
	e.want("answer allow-a")
}

func TestCannotStart(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := desklink.NewHost(desklink.HostOptions{Command: func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "none")) },
		OnLost: func() { t.Error("lost what never was") }})
	if _, err := h.Present(consent.Request{ID: "a"}, snapshot.CardInfo{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if err := h.Show("pair"); err == nil {
		t.Error("a window opens")
	}
	h.Close()
}

func TestIdle(t *testing.T) {
	const idle = 2 * time.Second // longer than a process takes to say that its window is open
	h, e := newHost(t, "plain", idle)
	present(t, h, "a")
	e.want("shown a")
	pid := h.PID()
	time.Sleep(idle + 200*time.Millisecond)
	if h.PID() != pid {
		t.Fatal("it was let go with a card open")
	}
	h.Withdraw("a")
	e.want("closed a")
	gone(t, pid)
	e.nothing(50 * time.Millisecond) // no loss

	must(t, h.Show("pair"))
	pid = h.PID()
	time.Sleep(idle + 500*time.Millisecond)
	if h.PID() != pid {
		t.Fatal("it was let go with a window open")
	}
	must(t, h.Show("shut")) // and with it the last window
	gone(t, pid)
	e.nothing(50 * time.Millisecond)
	present(t, h, "b")
	e.want("shown b")
}

// One that does not quit when it is told to is replaced, killed, and waited
// for: no card and no Close hangs on it.
func TestClinging(t *testing.T) {
	h, e := newHost(t, "clinging", 50*time.Millisecond)
	present(t, h, "a")
	e.want("shown a")
	old := h.PID()
	h.Withdraw("a")
	e.want("closed a")
	for end := time.Now().Add(5 * time.Second); h.PID() == old; time.Sleep(20 * time.Millisecond) {
		present(t, h, "b")
		if h.PID() == old {
			h.Withdraw("b") // not idle yet
			time.Sleep(100 * time.Millisecond)
		}
		if time.Now().After(end) {
			t.Fatal("the one that clings is not replaced")
		}
	}
	begin := time.Now()
	h.Close()
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("Close took %v", took)
	}
	gone(t, old)
}

func TestDeaf(t *testing.T) {
	h, _ := newHost(t, "deaf", 0)
	must(t, h.Show("pair"))
	for i := range 100 { // more than a pipe holds
		h.Withdraw(strings.Repeat("x", 2000) + fmt.Sprint(i))
	}
	pid := h.PID()
	begin := time.Now()
	h.Close()
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("Close took %v", took)
	}
	gone(t, pid)
}

// One that draws nothing any more, though it has had the time, is replaced; one
// that is slow to start, or whose card went at once, is not.
func TestStuck(t *testing.T) {
	const stuck = 400 * time.Millisecond
	h, e := newHost(t, "blind", 0, func(o *desklink.HostOptions) { o.Stuck = stuck })
	card := func(id string, open time.Duration) {
		t.Helper()
		present(t, h, id)
		time.Sleep(open)
		h.Withdraw(id)
	}
	card("a", stuck+10*time.Millisecond) // it may still be starting
	time.Sleep(3 * stuck)
	card("b", 0)
	for _, id := range []string{"a", "b"} {
		e.want("closed " + id)
	}
	pid := h.PID()
	card("c", stuck+10*time.Millisecond)
	for told := ""; told != "lost"; {
		select {
		case told = <-e.ch:
		case <-time.After(10 * time.Second):
			t.Fatal("the one that draws nothing stays")
		}
	}
	gone(t, pid)
	present(t, h, "d")
	if next := h.PID(); next == pid || next == 0 {
		t.Errorf("process %d shows the next card", next)
	}
}

// Snapshots that nobody has read yet give way to newer ones.
func TestFloodOfSnapshots(t *testing.T) {
	h, e := newHost(t, "slow", 0)
	must(t, h.Show("pair"))
	time.Sleep(100 * time.Millisecond)
	entries := make([]snapshot.Entry, 200)
	var wg sync.WaitGroup
	var seq atomic.Uint64
	var order sync.Mutex
	for range 4 {
		wg.Go(func() {
			for range 250 {
				order.Lock()
				h.Publish(snapshot.Snapshot{Seq: seq.Add(1), Entries: entries})
				order.Unlock()
				must(t, h.Show("pair"))
			}
		})
	}
	wg.Wait()
	must(t, h.Show("count"))
	var n, last uint64
	if _, err := fmt.Sscanf(e.want(""), "%d snapshots, the last %d", &n, &last); err != nil {
		t.Fatal(err)
	}
	if last != 1000 || n > 200 {
		t.Errorf("%d snapshots were sent for 1000, the last is number %d", n, last)
	}
}

func TestSnapshotsGoToWhatIsOpen(t *testing.T) {
	h, e := newHost(t, "watching", 0)
	present(t, h, "a")
	e.want("shown a")
	h.Publish(snapshot.Snapshot{Seq: 1}) // the card says how many wait behind it
	e.want("snapshot 1")
	h.Withdraw("a")
	e.want("closed a")
	h.Publish(snapshot.Snapshot{Seq: 1}) // nothing is open: nobody needs it
	e.nothing(50 * time.Millisecond)
	must(t, h.Show("pair"))
	e.want("snapshot 1") // with the window
	e.want("snapshot 1") // when it has opened
	h.Publish(snapshot.Snapshot{Seq: 2})
	e.want("snapshot 2")
}

func TestIntents(t *testing.T) {
	h, e := newHost(t, "plain", 0)
	e.asked = func(_ context.Context, in snapshot.Intent) (snapshot.Reply, error) {
		if in.Text == "raised" {
			return snapshot.Reply{}, errors.New("That does not work.")
		}
		return snapshot.Reply{}, nil
	}
	present(t, h, "a")
	e.want("shown a")
	h.Raise()
	e.want("raised")
	e.want("told false: That does not work.")
}

// Close waits for an intent that is under way.
func TestCloseWaits(t *testing.T) {
	h, e := newHost(t, "plain", 0)
	var ended atomic.Bool
	e.asked = func(ctx context.Context, _ snapshot.Intent) (snapshot.Reply, error) {
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		ended.Store(true)
		return snapshot.Reply{}, ctx.Err()
	}
	present(t, h, "a")
	e.want("shown a")
	h.Raise()
	e.want("raised")
	h.Close()
	if !ended.Load() {
		t.Error("Close did not wait")
	}
}

// The last word stays until its window is closed, and nothing else is begun
// meanwhile.
func TestLastWord(t *testing.T) {
	const long = 20 * time.Second
	h, e := newHost(t, "plain", 0)
	if h.LastWord(desklink.Removed{}, long) || h.PID() != 0 {
		t.Error("a word is read where there is no window")
	}
	if err := h.Show("count"); err != nil {
		t.Fatal(err)
	}
	e.want("0 snapshots")
	pid := h.PID()
	h.Retire()
	began := time.Now()
	if !h.LastWord(desklink.Removed{Notes: []string{"It is gone."}}, long) {
		t.Fatal("the window was not used")
	}
	if took := time.Since(began); took < 300*time.Millisecond || took > long/2 {
		t.Errorf("the window was waited for for %v", took)
	}
	if h.LastWord(desklink.Removed{}, long) {
		t.Error("a closed window is used")
	}
	e.nothing(50 * time.Millisecond) // what it asked for was refused
	if syscall.Kill(pid, 0) != nil {
		t.Error("it was ended before Close")
	}
	h.Close()
	gone(t, pid)

	h, e = newHost(t, "plain", 0)
	if err := h.Show("count"); err != nil {
		t.Fatal(err)
	}
	e.want("0 snapshots")
	h.Retire()
	if !h.LastWord(desklink.Removed{Problem: "keys"}, 100*time.Millisecond) {
		t.Error("a window that nobody closes was not used")
	}
	pid = h.PID()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	gone(t, pid)
	e.nothing(50 * time.Millisecond) // its end is no loss any more
	if _, err := h.Present(consent.Request{ID: "late"}, snapshot.CardInfo{}); err == nil {
		t.Error("a card is shown after the removal")
	}
}

// While a program has control the strip is on the screen: the process is
// started for it, stays, comes back, and is let go when that is over.
func TestTheStripStays(t *testing.T) {
	var started atomic.Int32
	h, e := newHost(t, "watching", 300*time.Millisecond, func(o *desklink.HostOptions) { o.OnStarted = func() { started.Add(1) } })
	h.Publish(snapshot.Snapshot{Seq: 1})
	if h.PID() != 0 {
		t.Fatal("it runs though nothing is to be shown")
	}
	control := &snapshot.Control{Who: "Claude", Sees: true}
	h.Publish(snapshot.Snapshot{Seq: 2, Control: control})
	e.want("snapshot 2")
	pid := h.PID()
	h.Look(consent.Look{Request: "none", Data: []byte("x")}) // there is no card
	time.Sleep(700 * time.Millisecond)
	if h.PID() != pid {
		t.Fatal("it went while a program has control")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	e.want("lost")
	e.want("snapshot 2")
	pid = h.PID()
	h.Publish(snapshot.Snapshot{Seq: 3})
	e.want("snapshot 3")
	gone(t, pid)
	h.Publish(snapshot.Snapshot{Seq: 4})
	if h.PID() != 0 {
		t.Error("it runs on")
	}
	if n := started.Load(); n != 2 {
		t.Errorf("%d starts were told", n)
	}
}

// Pictures are for the card that is open.
func TestLooksAreForTheOpenCard(t *testing.T) {
	h, e := newHost(t, "plain", 0)
	present(t, h, "1")
	e.want("shown 1")
	h.Look(consent.Look{Request: "2", Screen: "DP-1"})
	h.Look(consent.Look{Request: "1", Screen: "DP-2", Data: []byte{1, 2, 3}})
	e.want("look DP-2 3")
	h.Withdraw("1")
	h.Look(consent.Look{Request: "1", Screen: "DP-3"})
	e.want("closed 1")
	e.nothing(50 * time.Millisecond)
}
