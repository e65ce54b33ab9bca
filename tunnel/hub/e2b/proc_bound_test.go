package e2b

import (
	"io"
	"testing"

	"localpc/tunnel/wire"
)

// printer is a command that prints one character at a time.
type printer struct{ left int }

func (p *printer) Recv() (wire.Message, error) {
	if p.left--; p.left < 0 {
		return wire.Message{Type: wire.TypeProcessExited, Payload: &wire.ProcessExited{}}, nil
	}
	return wire.Message{Type: wire.TypeProcessOutput, Payload: &wire.ProcessOutput{Stream: "stdout", Data: []byte("x")}}, nil
}

func (*printer) Send(wire.Follow) error { return io.EOF }
func (*printer) Close()                 {}

// What waits for a client that reads nothing is bounded by what it takes, not by
// what it says.
func TestManySmallPiecesOfOutput(t *testing.T) {
	p := &proc{f: &Face{}, subs: map[*subscriber]struct{}{}, room: make(chan struct{}, 1), ended: make(chan struct{})}
	s := p.subscribe()
	p.hasten() // so that it is left out, and holds nothing back
	p.pump(&printer{left: 200_000}, 0)
	if n := len(s.queue); n == 0 || n > 10_000 || !s.cut {
		t.Errorf("%d pieces of output wait for one client; left out: %v", n, s.cut)
	}
}
