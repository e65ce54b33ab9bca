package bulk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-yamux/v5"

	"localpc/tunnel/wire"
)

// A frame is a kind, the length of what follows as four bytes, the most
// significant first, and that: the raw bytes of data, or any other frame of
// the request as the control socket would carry it. The values are serialised.
const (
	kindFrame     = 0 // at most wire.MaxFrame
	kindChunk     = 1 // FILE_CHUNK; these and what follows at most wire.MaxChunk
	kindLastChunk = 2
	kindStdout    = 3 // PROCESS_OUTPUT, by stream
	kindStderr    = 4
	kindPTY       = 5
	kindInput     = 6 // PROCESS_INPUT
	kindLastInput = 7

	headSize = 5
)

var streams = map[byte]string{kindStdout: "stdout", kindStderr: "stderr", kindPTY: "pty"}

// raw is the kind of a payload, and its bytes where it is data.
func raw(p wire.Payload) (kind byte, data []byte) {
	switch p := p.(type) {
	case *wire.FileChunk:
		if p.Last {
			return kindLastChunk, p.Data
		}
		return kindChunk, p.Data
	case *wire.ProcessInput:
		if p.End {
			return kindLastInput, p.Data
		}
		return kindInput, p.Data
	case *wire.ProcessOutput:
		for kind, name := range streams {
			if name == p.Stream {
				return kind, p.Data
			}
		}
	}
	return kindFrame, nil
}

// Out sends the rest of a request's frames. One goroutine at a time may call
// Send; the others are safe at any time.
type Out struct {
	s    *session
	st   *yamux.Stream
	id   string
	left []byte // of a frame that was begun: it goes first
	head []byte
}

// Send sends one frame, as soon as the receiver has room for it. When ctx ends
// before that, the error is its cause; what went of the frame by then is
// completed before the next one. Other errors are ErrReset, ErrLost, and those
// of wire.Encode.
func (o *Out) Send(ctx context.Context, m wire.Message) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	kind, data := raw(m.Payload)
	if kind == kindFrame {
		var err error
		if data, err = wire.Encode(m); err != nil {
			return err
		}
	} else if err := m.Payload.Validate(); err != nil {
		return fmt.Errorf("encode %s: %w", m.Type, err)
	}
	done := interrupt(ctx, o.st.SetWriteDeadline)
	defer done()
	if n := len(o.left); n > maxPiece/2 {
		if err := o.write(ctx, o.left, nil); err != nil {
			return err
		}
	}
	// The head goes with as much of the data as one message takes.
	o.head = binary.BigEndian.AppendUint32(append(append(o.head[:0], o.left...), kind), uint32(len(data)))
	first := min(len(data), maxPiece-len(o.head))
	o.head = append(o.head, data[:first]...)
	o.left = nil
	return o.write(ctx, o.head, data[first:])
}

// write sends both pieces, or keeps what is left of them.
func (o *Out) write(ctx context.Context, a, b []byte) error {
	n, err := o.st.Write(a)
	if err == nil {
		a = nil
		if len(b) > 0 {
			n, err = o.st.Write(b)
			b = b[n:]
		}
	} else {
		a = a[n:]
	}
	if err == nil {
		o.left = nil
		return nil
	}
	o.left = append(bytes.Clone(a), b...)
	return fault(ctx, err)
}

// Close says that nothing more comes; what was sent still arrives.
func (o *Out) Close() { o.s.later(func() { _ = o.st.Close() }) }

// Reset drops what was not taken yet.
func (o *Out) Reset() { o.s.later(func() { _ = o.st.Reset() }) }

// In receives the rest of a request's frames. One goroutine at a time may call
// Next; the others are safe at any time.
type In struct {
	s  *session
	st *yamux.Stream
	id string
	// Reuse has Next put all data into one buffer: what it returned is good
	// until it is called again.
	Reuse bool

	head [headSize]byte
	got  int // of head
	body bytes.Buffer
	buf  []byte
	data []byte // of a frame whose data is on its way
	have int    // of data
}

// Next waits for the next frame that travels in direction dir, validated.
// io.EOF is the end. A *wire.FrameError is a frame without sense; nothing can
// be read after it. Other errors are ErrReset, ErrLost and ctx's cause; after
// that one Next may be called again.
func (in *In) Next(ctx context.Context, dir wire.Direction) (wire.Message, error) {
	if ctx.Err() != nil {
		return wire.Message{}, context.Cause(ctx)
	}
	done := interrupt(ctx, in.st.SetReadDeadline)
	defer done()
	m, err := in.next(in.st, dir)
	var frame *wire.FrameError
	if err == nil || err == io.EOF || errors.As(err, &frame) {
		return m, err
	}
	return m, fault(ctx, err)
}

func (in *In) next(r io.Reader, dir wire.Direction) (wire.Message, error) {
	for in.got < headSize {
		n, err := r.Read(in.head[in.got:])
		in.got += n
		if in.got == headSize {
			break
		}
		if err == io.EOF && in.got > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return wire.Message{}, err
		}
	}
	kind, size := in.head[0], int(binary.BigEndian.Uint32(in.head[1:]))
	m := wire.Message{ID: in.id}
	if kind == kindFrame {
		return in.frame(r, size, dir)
	}
	max := wire.MaxChunk
	switch {
	case kind > kindLastInput:
		return m, &wire.FrameError{ID: in.id, Reason: "unknown kind"}
	case size > max:
		return m, &wire.FrameError{ID: in.id, Reason: fmt.Sprintf("more than %d bytes of data", max)}
	case (kind == kindInput || kind == kindLastInput) && dir == wire.ToHub, streams[kind] != "" && dir == wire.ToMachine:
		return m, &wire.FrameError{ID: in.id, Reason: "this end does not take this kind"}
	}
	if in.data == nil {
		in.data, in.have = in.room(size), 0
	}
	for in.have < size {
		n, err := r.Read(in.data[in.have:])
		in.have += n
		if err == io.EOF && in.have < size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && in.have < size {
			return m, err
		}
	}
	data := in.data
	in.data, in.got = nil, 0
	switch kind {
	case kindChunk, kindLastChunk:
		m.Type, m.Payload = wire.TypeFileChunk, &wire.FileChunk{Data: data, Last: kind == kindLastChunk}
	case kindInput, kindLastInput:
		m.Type, m.Payload = wire.TypeProcessInput, &wire.ProcessInput{Data: data, End: kind == kindLastInput}
	default:
		m.Type, m.Payload = wire.TypeProcessOutput, &wire.ProcessOutput{Stream: streams[kind], Data: data}
	}
	return m, nil
}

func (in *In) room(size int) []byte {
	if !in.Reuse {
		return make([]byte, size)
	}
	if cap(in.buf) < size {
		in.buf = make([]byte, size)
	}
	return in.buf[:size]
}

// frame reads a frame that is no data. Its room grows as it comes: its length
// is only what the other end says.
func (in *In) frame(r io.Reader, size int, dir wire.Direction) (wire.Message, error) {
	if size > wire.MaxFrame {
		return wire.Message{}, &wire.FrameError{ID: in.id, Reason: fmt.Sprintf("more than %d bytes", wire.MaxFrame)}
	}
	if _, err := io.CopyN(&in.body, r, int64(size-in.body.Len())); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return wire.Message{}, err
	}
	m, err := wire.Decode(in.body.Bytes(), dir)
	in.body, in.got = bytes.Buffer{}, 0
	var frame *wire.FrameError
	switch {
	case errors.As(err, &frame):
		frame.ID = in.id
	case err == nil && m.ID != in.id:
		return wire.Message{}, &wire.FrameError{ID: in.id, Type: m.Type, Reason: "of another request"}
	}
	return m, err
}

// Close lets go of a stream that was read to its end.
func (in *In) Close() { in.s.later(func() { _ = in.st.Close() }) }

// Reset lets go of the stream: its sender learns that nobody reads it.
func (in *In) Reset() { in.s.later(func() { _ = in.st.Reset() }) }

// fault says what a multiplexer's error means.
func fault(ctx context.Context, err error) error {
	var reset *yamux.StreamError
	switch {
	case errors.Is(err, yamux.ErrTimeout) && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &reset), errors.Is(err, yamux.ErrStreamClosed):
		return fmt.Errorf("%w: %w", ErrReset, err)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// interrupt ends what a deadline ends when ctx does. done must be called.
func interrupt(ctx context.Context, deadline func(time.Time) error) (done func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	passed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = deadline(time.Unix(1, 0))
		close(passed)
	})
	return func() {
		if !stop() {
			<-passed
			_ = deadline(time.Time{})
		}
	}
}
