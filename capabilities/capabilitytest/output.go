package capabilitytest

import (
	"context"
	"errors"
	"sync"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

// Frame is one frame of a reply.
type Frame struct {
	Type    wire.Type
	Payload wire.Payload
}

// ErrGone is what Send returns after Gone.
var ErrGone = errors.New("the request has gone")

// Output records the frames of a reply in memory. The zero value takes all
// there is; safe for concurrent use. Fields are set before it is used.
type Output struct {
	// Stall lets this many bytes of contents through, then Send blocks until
	// its context ends, as with a reader that gives no more credit. 0: never.
	Stall int64
	// Discard counts contents without keeping them.
	Discard bool
	// Hook, when set, sees each frame first; its error is Send's.
	Hook func(Frame) error

	mu     sync.Mutex
	frames []Frame // guarded by mu
	bytes  int64   // guarded by mu
	max    int     // guarded by mu: the largest piece of contents
}

var _ capabilities.Output = (*Output)(nil)

// Send records a frame. It refuses what the wire would refuse.
func (o *Output) Send(ctx context.Context, t wire.Type, p wire.Payload) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if o.Hook != nil {
		if err := o.Hook(Frame{t, p}); err != nil {
			return err
		}
	}
	data := contents(p)
	o.mu.Lock()
	full := o.Stall > 0 && o.bytes >= o.Stall && data != nil
	o.mu.Unlock()
	if full {
		<-ctx.Done()
		return ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += int64(len(data))
	o.max = max(o.max, len(data))
	if !o.Discard || data == nil {
		o.frames = append(o.frames, Frame{t, clone(p)})
	}
	return nil
}

// contents of a data frame, nil for the others.
func contents(p wire.Payload) []byte {
	switch p := p.(type) {
	case *wire.FileChunk:
		return p.Data
	case *wire.ProcessOutput:
		return p.Data
	}
	return nil
}

// clone copies the contents: a sender may use its buffer again after Send.
func clone(p wire.Payload) wire.Payload {
	switch p := p.(type) {
	case *wire.FileChunk:
		return &wire.FileChunk{Data: append([]byte(nil), p.Data...), Last: p.Last}
	case *wire.ProcessOutput:
		return &wire.ProcessOutput{Stream: p.Stream, Data: append([]byte(nil), p.Data...)}
	}
	return p
}

// Frames returns what was recorded so far.
func (o *Output) Frames() []Frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Frame(nil), o.frames...)
}

// Bytes is how much contents came, kept or not.
func (o *Output) Bytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// Largest is the size of the largest piece of contents.
func (o *Output) Largest() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.max
}

// Contents joins the contents of a file reply, or of one stream of a process
// ("stdout", "stderr"); "" takes every data frame.
func (o *Output) Contents(stream string) []byte {
	var all []byte
	for _, f := range o.Frames() {
		if p, ok := f.Payload.(*wire.ProcessOutput); ok && stream != "" && p.Stream != stream {
			continue
		}
		all = append(all, contents(f.Payload)...)
	}
	return all
}
