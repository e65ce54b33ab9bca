//go:build unix

package autogpt_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	msg "localpc/tunnel/wire/autogpt"
)

// A machine may send STATUS as fast as it likes: the hub's books are not looked
// at as often.
func TestStatusFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, _ := r.join("", r.token("s1"), nil)
	for range 500 {
		w.send("STATUS", "s", map[string]any{"in_flight": 0, "max_concurrent": 4})
	}
	detached := make(chan error, 1)
	go func() { detached <- r.Detach(context.Background(), user, machine, "none") }()
	w.send("ACK", w.next()["id"].(string), map[string]any{"ok": true})
	if err := <-detached; err != nil {
		t.Fatal(err)
	}
	r.books.set(func(b *books) {
		if b.heard < 2 || b.heard > 4 {
			t.Errorf("heard %d times", b.heard)
		}
	})
}

// The data connections of a program that hung end together: its next one does
// not wait for them one by one, as HELLO_ACK has to come in time.
func TestHungDataConnectionsEndTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const hung = 8
	content := strings.Repeat("x", 15<<20) // more than a socket holds
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range hung {
		session := fmt.Sprint("chat-", i)
		r.bind(session, "/task")
		r.join(session, r.token("s1"), "/task") // and reads no more
		eventually(t, "the chat is connected", func() bool { return r.Connected(session) })
		wg.Go(func() {
			_, _ = r.Do(context.Background(), session, msg.TypeFileWrite, &msg.FileWrite{Path: "/task/a", Content: content, Encoding: msg.UTF8})
		})
	}
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	w := r.raw("", r.token("s1"))
	w.send("HELLO", "h1", hello(nil))
	if ack := w.next(); ack["type"] != "HELLO_ACK" {
		t.Fatalf("%v", ack)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("HELLO_ACK took %s", took)
	}
}
