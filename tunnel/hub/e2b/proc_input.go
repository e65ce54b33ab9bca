package e2b

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
	"localpc/tunnel/wire"
)

// input is one thing that a process is to read.
type input struct {
	frames []wire.Follow
	done   chan error
}

// feed brings the process its input, in the order in which it came, until the
// end. A client that goes away meanwhile leaves nothing half sent.
func (p *proc) feed(s Stream) {
	for {
		select {
		case in := <-p.input:
			var err error
			for _, f := range in.frames {
				if err = s.Send(f); err != nil {
					break
				}
			}
			in.done <- err
		case <-p.ended:
			return
		}
	}
}

// bring hands frames to feed, and waits until they are on their way. A process
// that does not read makes it wait.
func (p *proc) bring(ctx context.Context, frames ...wire.Follow) error {
	in := input{frames, make(chan error, 1)}
	select {
	case p.input <- in:
	case <-p.ended:
		return p.over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-in.done: // it comes after the end, too
		if err != nil {
			return p.over()
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// over is what brings input to a process that has just ended.
func (p *proc) over() error {
	return precondition("The command has ended and reads no more.")
}

func precondition(text string) error {
	return connect.NewError(connect.CodeFailedPrecondition, sentence(text))
}

// write brings the process what a client sends it.
func (p *proc) write(ctx context.Context, in *process.ProcessInput) error {
	var data []byte
	switch i := in.GetInput().(type) {
	case *process.ProcessInput_Stdin:
		if p.terminal {
			return precondition("This command runs at a terminal: send its input to the terminal (pty), not to standard input.")
		}
		data = i.Stdin
	case *process.ProcessInput_Pty:
		if !p.terminal {
			return precondition("This command has no terminal: send its input to standard input (stdin).")
		}
		data = i.Pty
	default:
		return connect.NewError(connect.CodeInvalidArgument, sentence("There is no input in this call."))
	}
	if p.input == nil {
		return precondition("This command was started without standard input; start it with stdin to send it some.")
	}
	if p.closed.Load() {
		return precondition("The standard input of this command was closed.")
	}
	var frames []wire.Follow
	for part := range slices.Chunk(data, wire.MaxChunk) {
		frames = append(frames, &wire.ProcessInput{Data: part})
	}
	return p.bring(ctx, frames...)
}

// closeStdin ends what the process reads. Doing it again, or where it reads
// nothing, is no error.
func (p *proc) closeStdin(ctx context.Context) error {
	if p.terminal {
		return precondition("A terminal cannot be closed like that; send it the end-of-file character (Ctrl+D, 0x04) instead.")
	}
	if p.input == nil || p.closed.Load() {
		return nil
	}
	err := p.bring(ctx, &wire.ProcessInput{End: true})
	if err == nil {
		p.closed.Store(true)
	}
	return err
}

// resize sets the size of the process's terminal.
func (p *proc) resize(ctx context.Context, pty *process.PTY) error {
	if !p.terminal {
		return precondition("This command has no terminal, so there is no size to change.")
	}
	size, err := sizeOf(pty)
	if err != nil {
		return err
	}
	return p.bring(ctx, size)
}

// sizeOf is a terminal's size; what is left out is that of a usual one.
func sizeOf(pty *process.PTY) (*wire.TerminalSize, error) {
	size := &wire.TerminalSize{Cols: int(pty.GetSize().GetCols()), Rows: int(pty.GetSize().GetRows())}
	if size.Cols == 0 {
		size.Cols = 80
	}
	if size.Rows == 0 {
		size.Rows = 24
	}
	if err := size.Validate(); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the size of the terminal: "+err.Error()))
	}
	return size, nil
}
