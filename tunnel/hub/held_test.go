package hub_test

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

// A connection that cannot be noted takes nobody's place: the one that was there
// goes on, and is shown as connected.
func TestFailedConnectionTakesNoPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	token := b.token(t, "m-1")
	first := b.join(t, token, hello("m-1"))
	mend := breakData(t, dir, "UPDATE OF epoch ON machines")
	second := mustDial(t, b.url, token)
	second.send(wire.TypeHello, "", hello("m-1"))
	second.closed(wire.CloseInternal)
	mend()
	b.works(t, first, "m-1")
	if m := b.machines(t); len(m) != 1 || !m[0].Online {
		t.Errorf("after that the hub shows %+v", m)
	}
	first.ws.Close()
	eventually(t, "its end is noted", func() bool { return !b.machines(t)[0].Online && b.Online() == 0 })
}

// The token ends while a connection that came with it is being noted: it is
// found, and so is the one whose place it wants.
func TestRevokedWhileEnrolling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	token := b.token(t, "m-1")
	first := b.join(t, token, hello("m-1"))
	second := mustDial(t, b.url, token)
	let := holdData(t, dir)
	second.send(wire.TypeHello, "", hello("m-1"))
	time.Sleep(200 * time.Millisecond) // it waits for the data now, and so does the revocation
	revoked := make(chan error, 1)
	go func() { revoked <- b.RevokeMachine(t.Context(), "m-1") }()
	time.Sleep(50 * time.Millisecond)
	let()
	must(t, <-revoked)
	for _, r := range []*raw{first, second} {
		_ = r.ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		for err := error(nil); err == nil; {
			_, _, err = r.ws.ReadMessage()
			if err != nil && !websocket.IsCloseError(err, wire.CloseRevoked, wire.CloseReplaced) {
				t.Errorf("ended with %v", err)
			}
		}
	}
	eventually(t, "nothing is connected", func() bool { return b.Online() == 0 && !b.machines(t)[0].Online })
}

// Who holds a token that ends, connects before its end and says HELLO after it
// takes nobody's place: the computer that has a good one stays connected, and
// is reached.
func TestHelloAfterTheTokenEnded(t *testing.T) {
	b := newBench(t, func(o *hub.Options) { o.HelloTimeout = 30 * time.Second })
	stolen := b.token(t, "m-1")
	thief := mustDial(t, b.url, stolen)
	good := b.join(t, b.token(t, "m-1"), hello("m-1")) // ends the stolen one
	thief.send(wire.TypeHello, "", hello("m-1"))
	thief.closed(wire.CloseRevoked)
	eventually(t, "the thief's connection is over", func() bool { return b.Online() == 1 })
	// Its computer ends the good one, which only a connection in use notices.
	if err := b.RevokeMachine(t.Context(), "m-1"); err != nil {
		t.Fatal(err)
	}
	good.closed(wire.CloseRevoked)

	// Without another connection the thief has none either.
	last := b.token(t, "m-2")
	thief = mustDial(t, b.url, last)
	if err := b.RevokeMachine(t.Context(), "m-2"); err != nil {
		t.Fatal(err)
	}
	thief.send(wire.TypeHello, "", hello("m-2"))
	thief.closed(wire.CloseRevoked)
	eventually(t, "nothing is connected", func() bool { return b.Online() == 0 })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
