package shell

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

const (
	readSize  = 32 << 10
	maxQueued = 1 << 20
	// lastRead bounds what is still taken from a pipe that a child holds after
	// the command has ended: twice what a pipe holds.
	lastRead = 128 << 10
)

// pump carries output from the pipes to the reply, with bounded memory: while
// the reply takes nothing, a full queue holds the command up, and after stall
// it leaves output out rather than hold it up any longer.
type pump struct {
	stall time.Duration

	mu        sync.Mutex // guards all below
	changed   *sync.Cond
	queue     []piece
	size      int
	moved     time.Time // when the queue last got shorter, or was empty
	leaving   bool      // leaves out until there is room again
	truncated bool
	finished  bool  // nothing more will be pushed
	err       error // the reply has gone
	kept      capabilities.Keeper
	sent      int64
}

type piece struct {
	stream string
	data   []byte
}

func newPump(stall time.Duration) *pump {
	p := &pump{stall: stall, moved: time.Now()}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func (p *pump) push(stream string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(data) == 0 {
		return
	}
	if p.size == 0 {
		p.moved = time.Now()
	}
	for p.err == nil && !p.leaving && p.size+len(data) > maxQueued {
		wait := p.stall - time.Since(p.moved)
		if wait <= 0 {
			p.leaving = true
			break
		}
		wake := time.AfterFunc(wait, p.changed.Broadcast)
		p.changed.Wait()
		wake.Stop()
	}
	if p.err != nil || p.leaving {
		p.truncated = true
		return
	}
	p.queue = append(p.queue, piece{stream, append([]byte(nil), data...)})
	p.size += len(data)
	p.changed.Broadcast()
}

// next waits for a piece, with what follows of the same stream, up to
// wire.MaxChunk.
func (p *pump) next() (piece, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.finished && p.err == nil {
		p.changed.Wait()
	}
	if len(p.queue) == 0 || p.err != nil {
		return piece{}, false
	}
	out, n := p.queue[0], 1
	for n < len(p.queue) && p.queue[n].stream == out.stream && len(out.data)+len(p.queue[n].data) <= wire.MaxChunk {
		out.data = append(out.data, p.queue[n].data...)
		n++
	}
	clear(p.queue[:n])
	p.queue = p.queue[n:]
	return out, true
}

// send carries pieces until finish was called and the queue is empty, or the
// reply has gone.
func (p *pump) send(ctx context.Context, out capabilities.Output) {
	for {
		c, ok := p.next()
		if !ok {
			return
		}
		err := out.Send(ctx, wire.TypeProcessOutput, &wire.ProcessOutput{Stream: c.stream, Data: c.data})
		p.mu.Lock()
		if err != nil {
			p.err = err
		} else {
			p.sent += int64(len(c.data))
			p.size -= len(c.data)
			p.moved = time.Now()
			if p.size <= maxQueued/2 {
				p.leaving = false
			}
			_, _ = p.kept.Write(c.data)
		}
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// finish says that nothing more comes, and waits until all is sent (done is
// closed then) or the reader stalls; giveUp ends the sending.
func (p *pump) finish(done <-chan struct{}, giveUp func()) {
	p.mu.Lock()
	p.finished = true
	if p.size == 0 { // it may have been for long, and who sends is told only now
		p.moved = time.Now()
	}
	p.changed.Broadcast()
	p.mu.Unlock()
	for {
		p.mu.Lock()
		left := p.stall - time.Since(p.moved)
		p.mu.Unlock()
		t := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-done:
			t.Stop()
			return
		case <-t.C:
		}
		p.mu.Lock()
		stalled := time.Since(p.moved) >= p.stall
		if stalled {
			p.truncated = true
		}
		p.mu.Unlock()
		if stalled {
			giveUp()
			<-done
			return
		}
	}
}

// read takes all of a pipe, or of a terminal. It closes o.told when the pipe has ended, or when
// its read deadline has passed (the command has ended, a child holds the pipe)
// and what was in it is taken; then it goes on to read what children write,
// for nobody, so that they are not held up.
func (p *pump) read(o output) {
	defer close(o.done)
	r := o.r
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		p.push(o.stream, buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			close(o.told)
			return
		}
	}
	// Bounded in bytes and in waiting: a child may go on writing for ever.
	for left, wait := lastRead, 50*time.Millisecond; left > 0 && wait > 0; {
		begin := time.Now()
		_ = r.SetReadDeadline(begin.Add(min(wait, 20*time.Millisecond)))
		n, err := r.Read(buf)
		wait -= time.Since(begin)
		p.push(o.stream, buf[:n])
		left -= n
		if err != nil {
			break
		}
	}
	close(o.told)
	_ = r.SetReadDeadline(time.Time{})
	for {
		if _, err := r.Read(buf); err != nil {
			return
		}
	}
}
