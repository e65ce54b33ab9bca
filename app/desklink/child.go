package desklink

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrByHand means that the process was not started by localpc: its standard
// input and output are not the two pipes of a link.
var ErrByHand = errors.New("standard input and output are not a link to localpc")

// BadLine is one line that is no message. The link lives on.
type BadLine struct{ Cause error }

func (e *BadLine) Error() string { return "unreadable line on the link: " + e.Cause.Error() }
func (e *BadLine) Unwrap() error { return e.Cause }

// ErrLineTooLong is the cause of a BadLine above MaxLine, and what Send says
// of a message that would be one.
var ErrLineTooLong = fmt.Errorf("a message is longer than %d bytes", MaxLine)

// Child is localpc-desktop's side of the link. Receive belongs to one
// goroutine; Send and Close are safe for concurrent use.
type Child struct {
	in  *bufio.Reader
	rc  io.Closer
	mu  sync.Mutex // guards out
	out io.WriteCloser
}

// NewChild makes a Child of two ends; both are closed by Close.
func NewChild(in io.ReadCloser, out io.WriteCloser) *Child {
	return &Child{in: bufio.NewReaderSize(in, 64<<10), rc: in, out: out}
}

// Receive returns the next message. The error is io.EOF when the parent has
// closed its end, a *BadLine for a line that is no message (call again), or
// what reading failed with.
func (c *Child) Receive() (Down, error) {
	line, err := c.line()
	if err != nil {
		return Down{}, err
	}
	var d Down
	dec := json.NewDecoder(bytes.NewReader(line))
	if err := dec.Decode(&d); err != nil {
		return Down{}, &BadLine{err}
	}
	if dec.More() {
		return Down{}, &BadLine{errors.New("more than one value")}
	}
	if n := d.set(); n != 1 {
		return Down{}, &BadLine{fmt.Errorf("%d fields are set, not one", n)}
	}
	return d, nil
}

// line reads one line without its newline. One that is too long is read to
// its end and dropped.
func (c *Child) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := c.in.ReadSlice('\n')
		if !long && len(line)+len(part) > MaxLine {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err // a last line without its newline is half a message
		case long:
			return nil, &BadLine{ErrLineTooLong}
		}
		return bytes.TrimSuffix(line, []byte("\n")), nil
	}
}

// Send writes one message. It blocks while the parent does not read.
func (c *Child) Send(up Up) error {
	b, err := json.Marshal(up)
	if err != nil {
		return fmt.Errorf("encode a message to localpc: %w", err)
	}
	if len(b) >= MaxLine {
		return ErrLineTooLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.out.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write to localpc: %w", err)
	}
	return nil
}

// Close closes both ends; a Receive that waits returns.
func (c *Child) Close() error { return errors.Join(c.rc.Close(), c.out.Close()) }

// set counts the fields that are set.
func (d Down) set() int {
	n := 0
	for _, is := range []bool{d.Snapshot != nil, d.Show != nil, d.Card != nil, d.Close != nil,
		d.Raise != nil, d.Look != nil, d.Detail != nil, d.Found != nil, d.Told != nil, d.Removed != nil, d.Quit} {
		if is {
			n++
		}
	}
	return n
}
