package shell

import (
	"context"
	"time"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

// feed gives a command what comes for its standard input, in order, until stop
// is called. A command that does not read holds up only its own input: nothing
// more of it is taken meanwhile, so that its sender gets no more credit. What
// comes once the command has closed its input goes nowhere.
func (p *process) feed(ctx context.Context, in capabilities.Input) (stop func()) {
	if in == nil || p.stdin == nil {
		p.closeInput()
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.pass(ctx, in)
	}()
	return func() {
		cancel()
		p.closeInput()
		<-done
	}
}

func (p *process) pass(ctx context.Context, in capabilities.Input) {
	closed, whole := false, true // whole: the last line typed has its end
	for {
		f, err := in.Next(ctx)
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *wire.TerminalSize:
			if p.terminal {
				p.resize(*f)
			}
		case *wire.ProcessInput:
			if n := len(f.Data); n > 0 && !closed {
				_, err := p.stdin.Write(f.Data)
				closed = err != nil
				whole = f.Data[n-1] == '\n' || f.Data[n-1] == '\r'
			}
			switch {
			case !f.End || closed:
			case p.terminal:
				p.endOfFile(whole)
				whole = true
			default:
				closed = true
				p.stdin.Close()
			}
		}
	}
}

// closeInput ends the input, and a write to it that waits. A terminal goes on
// for those that are still at it. It may be called again.
func (p *process) closeInput() {
	switch {
	case p.stdin == nil:
	case p.terminal:
		_ = p.stdin.SetWriteDeadline(time.Now())
	default:
		p.stdin.Close()
	}
}
