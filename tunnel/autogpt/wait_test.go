package autogpt

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// inTime is how long a person may take where the test has them answer in time,
// and so how long a test waits that has them answer late: a slow computer makes
// them slow, too.
const inTime = 3 * time.Second

// person answers requests when the test says so, and counts what ran.
type person struct {
	asked  chan struct{}
	allow  chan error // nil: allowed
	finish chan struct{}
	ran    atomic.Int32
	saidNo chan struct{} // Begin said that nobody waits
}

func newPerson() *person {
	return &person{asked: make(chan struct{}, 8), allow: make(chan error), finish: make(chan struct{}), saidNo: make(chan struct{}, 8)}
}

// says is the answer to the oldest card.
func (p *person) says(t *testing.T, err error) {
	t.Helper()
	put(t, p.allow, err, "answer")
}

// finishes ends what runs.
func (p *person) finishes(t *testing.T) {
	t.Helper()
	put(t, p.finish, struct{}{}, "end of what runs")
}

func (p *person) handle(ctx context.Context, m wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	p.asked <- struct{}{}
	select {
	case err := <-p.allow:
		if err != nil {
			return "", nil, err
		}
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	if !x.Begin() {
		p.saidNo <- struct{}{}
		return "", nil, wire.Errorf(wire.CodePending, "It was allowed when nobody waited.")
	}
	n := p.ran.Add(1)
	select {
	case <-p.finish:
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	return wire.TypeProcessExited, &wire.ProcessExited{ExitCode: int(n)}, nil
}

// waiting is a chat whose requests wait for a person.
func waiting(t *testing.T, change func(o *Options)) (*person, *machine, *peer) {
	t.Helper()
	who := newPerson()
	m, _, data := working(t, newHub(t), func(o *Options) {
		o.Handler = who.handle
		o.Timings.Asking, o.Timings.Running = inTime, inTime+time.Second
		if change != nil {
			change(o)
		}
	})
	return who, m, data
}

var makeIt = object{"command": "make", "cwd": root}

func exitCode(t *testing.T, f frame) int {
	t.Helper()
	var r msg.Result
	if f.into(t, &r); f.Type != "COMMAND_RESULT" {
		t.Fatalf("%s %s", f.Type, f.Payload)
	}
	return r.ExitCode
}

func TestAllowedInTime(t *testing.T) {
	t.Parallel()
	who, _, p := waiting(t, nil)
	p.ask("EXECUTE_COMMAND", "e1", makeIt)
	who.says(t, nil)
	who.finishes(t)
	if code := exitCode(t, p.next()); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// Allowed when the client had given up, it does not run; the repeat asks the
// gate again, which remembers.
func TestAllowedLate(t *testing.T) {
	t.Parallel()
	who, m, p := waiting(t, nil)
	began := time.Now()
	e := p.fails("EXECUTE_COMMAND", makeIt, msg.CodePending)
	if e.Details["permission"] != "shell" || e.Details["hint"] == "" || time.Since(began) < inTime-10*time.Millisecond {
		t.Errorf("%+v after %s", e, time.Since(began))
	}
	take(t, who.asked, "question")
	who.says(t, nil)
	take(t, who.saidNo, "refusal to begin")
	within(t, "the task's end", func() bool { m.c.book.mu.Lock(); defer m.c.book.mu.Unlock(); return len(m.c.book.pages) == 0 })
	p.ask("EXECUTE_COMMAND", "again", makeIt)
	take(t, who.asked, "question to the gate")
	who.says(t, nil)
	who.finishes(t)
	if code := exitCode(t, p.next()); code != 1 || who.ran.Load() != 1 {
		t.Errorf("exit code %d, ran %d times", code, who.ran.Load())
	}
}

// A repeat that comes while the card is open waits with it.
func TestRepeatJoinsTheCard(t *testing.T) {
	t.Parallel()
	who, m, p := waiting(t, nil)
	p.fails("EXECUTE_COMMAND", makeIt, msg.CodePending)
	p.fails("EXECUTE_COMMAND", makeIt, msg.CodePending)
	p.ask("EXECUTE_COMMAND", "third", object{"cwd": root, "command": "make", "shell": "auto", "env": object{}}) // the same, in other words
	within(t, "the third's joining", func() bool { return m.c.book.waiting() == 1 })
	who.says(t, nil)
	who.finishes(t)
	if code := exitCode(t, p.next()); code != 1 || len(who.asked) != 1 {
		t.Errorf("exit code %d, %d questions", code, len(who.asked))
	}
	// Then it is a new request.
	p.ask("EXECUTE_COMMAND", "fourth", makeIt)
	who.says(t, nil)
	who.finishes(t)
	if code := exitCode(t, p.next()); code != 2 {
		t.Errorf("exit code %d", code)
	}
}

// Allowed in time, but it runs for longer than the client waits: the repeat
// gets the result, once, and nothing runs twice.
func TestRunsTooLong(t *testing.T) {
	for _, when := range []string{"after the end", "while it runs"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			who, m, p := waiting(t, nil)
			began := time.Now()
			p.ask("EXECUTE_COMMAND", "e1", makeIt)
			who.says(t, nil)
			e := refusedWith(t, p.next(), msg.CodePending)
			if took := time.Since(began); took < inTime-10*time.Millisecond || e.Details["permission"] != "shell" {
				t.Errorf("%+v after %s", e, took)
			}
			if when == "after the end" {
				who.finishes(t)
				within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
				p.ask("EXECUTE_COMMAND", "again", makeIt)
			} else {
				p.ask("EXECUTE_COMMAND", "again", makeIt)
				p.call("PING", object{})
				who.finishes(t)
			}
			if code := exitCode(t, p.next()); code != 1 || who.ran.Load() != 1 {
				t.Errorf("exit code %d, ran %d times", code, who.ran.Load())
			}
			p.ask("EXECUTE_COMMAND", "new", makeIt)
			who.says(t, nil)
			who.finishes(t)
			if code := exitCode(t, p.next()); code != 2 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestAnotherRequestIsNoRepeat(t *testing.T) {
	t.Parallel()
	who, m, p := waiting(t, nil)
	p.ask("EXECUTE_COMMAND", "e1", makeIt)
	who.says(t, nil)
	refusedWith(t, p.next(), msg.CodePending)
	who.finishes(t)
	within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
	for _, other := range []object{{"command": "make", "cwd": root + "/a"}, {"command": "make", "cwd": root, "timeout_seconds": 5}, {"command": "make", "cwd": root, "env": object{"A": "b"}}} {
		p.ask("EXECUTE_COMMAND", "other", other)
		who.says(t, wire.Errorf(wire.CodeDenied, "Ana declined."))
		refusedWith(t, p.next(), msg.CodeNotGranted)
	}
}

func TestLateAnswers(t *testing.T) {
	for _, c := range []struct {
		code wire.Code
		kept bool
	}{{wire.CodeDenied, true}, {wire.CodeStopped, true}, {wire.CodeExpired, false}, {wire.CodeUndelivered, false}, {wire.CodePaused, false}} {
		t.Run(string(c.code), func(t *testing.T) {
			t.Parallel()
			who, m, p := waiting(t, nil)
			p.fails("EXECUTE_COMMAND", makeIt, msg.CodePending)
			take(t, who.asked, "question")
			who.says(t, wire.Errorf(c.code, "A sentence."))
			if c.kept {
				within(t, "the answer's keeping", func() bool { return m.c.book.kept() == 1 })
				if f := p.call("EXECUTE_COMMAND", makeIt); f.Type != "ERROR" || len(who.asked) != 0 {
					t.Errorf("%s, %d questions", f.Payload, len(who.asked))
				}
			} else {
				within(t, "the task's end", func() bool { m.c.book.mu.Lock(); defer m.c.book.mu.Unlock(); return len(m.c.book.pages) == 0 })
			}
			p.ask("EXECUTE_COMMAND", "anew", makeIt)
			take(t, who.asked, "question")
			who.says(t, nil)
			who.finishes(t)
			exitCode(t, p.next())
		})
	}
}

// A card needs no place among what is worked on: others go on.
func TestCardsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	who, _, p := waiting(t, func(o *Options) { o.MaxConcurrent = 1 })
	p.fails("EXECUTE_COMMAND", makeIt, msg.CodePending)
	p.ask("EXECUTE_COMMAND", "other", object{"command": "ls"})
	take(t, who.asked, "first question")
	take(t, who.asked, "second question")
	who.says(t, wire.Errorf(wire.CodeDenied, "Ana declined."))
	who.says(t, wire.Errorf(wire.CodeDenied, "Ana declined."))
	p.next()
}

// A result is kept for its time, and over a new data connection.
func TestKeptResults(t *testing.T) {
	t.Run("over a reconnect", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		who := newPerson()
		m, _, p := working(t, h, func(o *Options) {
			o.Handler = who.handle
			o.Timings.Asking, o.Timings.Running = inTime, inTime
		})
		p.ask("EXECUTE_COMMAND", "e1", makeIt)
		who.says(t, nil)
		refusedWith(t, p.next(), msg.CodePending)
		who.finishes(t)
		within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
		p.ws.Close()
		p = take(t, h.data, "next connection")
		p.greet(nil)
		if code := exitCode(t, p.call("EXECUTE_COMMAND", makeIt)); code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("not over a detach", func(t *testing.T) {
		t.Parallel()
		h := newHub(t)
		who := newPerson()
		m, control, p := working(t, h, func(o *Options) {
			o.Handler = who.handle
			o.Timings.Asking, o.Timings.Running = inTime, inTime
		})
		p.ask("EXECUTE_COMMAND", "e1", makeIt)
		who.says(t, nil)
		refusedWith(t, p.next(), msg.CodePending)
		who.finishes(t)
		within(t, "the result's keeping", func() bool { return m.c.book.kept() == 1 })
		control.call("DETACH_SESSION", object{"session_id": chat})
		if m.c.book.kept() != 0 {
			t.Error("the result was kept")
		}
	})
	t.Run("not for ever", func(t *testing.T) {
		b := newBook(20 * time.Millisecond)
		m := msg.Message{Type: msg.TypeFileDelete, Payload: &msg.FileDelete{Path: "/a"}}
		k := newTask()
		k.begin()
		close(k.done)
		if !k.leave(false) {
			t.Fatal("it waits on")
		}
		b.add(&channel{session: chat}, m, k)
		if b.kept() != 1 {
			t.Fatal("not kept")
		}
		time.Sleep(30 * time.Millisecond)
		if b.join(&channel{session: chat}, m) != nil || b.kept() != 0 {
			t.Error("kept for too long")
		}
	})
	t.Run("not too much", func(t *testing.T) {
		b := newBook(time.Minute)
		for i := range 3 * maxKept {
			k := newTask()
			k.begin()
			k.p = &msg.FileContents{Content: string(make([]byte, 1<<20))}
			close(k.done)
			k.leave(false)
			b.add(&channel{session: chat}, msg.Message{Type: msg.TypeFileRead, Payload: &msg.FileRead{Offset: int64(i)}}, k)
		}
		if b.kept() != maxKept {
			t.Errorf("%d kept", b.kept())
		}
		if b.join(&channel{session: chat}, msg.Message{Type: msg.TypeFileRead, Payload: &msg.FileRead{Offset: 3*maxKept - 1}}) == nil {
			t.Error("the newest was dropped")
		}
		if b.join(&channel{session: "other"}, msg.Message{Type: msg.TypeFileRead, Payload: &msg.FileRead{Offset: 3*maxKept - 2}}) != nil {
			t.Error("another chat got the result")
		}
	})
}

// Whoever has seen a result given, and asks again, asks anew: nobody sees it
// before the book has noted that it is given.
func TestAResultIsGivenOnce(t *testing.T) {
	ch, m := &channel{session: chat}, msg.Message{Type: msg.TypeFileDelete, Payload: &msg.FileDelete{Path: "/a"}}
	b, k := newBook(time.Minute), newTask()
	k.begin()
	k.leave(false)
	b.add(ch, m, k)
	if b.join(ch, m) != k {
		t.Fatal("the repeat does not join")
	}
	b.mu.Lock()
	go b.ended(k)
	select {
	case <-k.done:
		t.Error("the result is given while a repeat may still join")
	case <-time.After(50 * time.Millisecond):
	}
	b.mu.Unlock()
	take(t, k.done, "result")
	if b.join(ch, m) != nil {
		t.Error("the result is given again")
	}
}
