package hub_test

import (
	"testing"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

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
