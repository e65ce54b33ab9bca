package shell

import (
	"context"
	"net"
	"os"
	"sync"

	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// process is one command with all its children, which end together.
type process struct {
	tree
	session string
	full    bool // with full access
	frozen  bool // guarded by Shell.freezing
	pid     int  // of what was started here; alive as long as any child
	name    string
	// listener takes what the container wants to connect to; nil where it was
	// not asked for, and proxy serves it.
	listener net.Listener
	proxy    *proxy

	stdout, stderr output

	exited chan spawn.Event // one event: the command itself has ended
	gone   chan struct{}    // closed when no process is left

	mu       sync.Mutex
	children int                     // guarded by mu; left by an ended command
	stopped  bool                    // guarded by mu; ended by its session's end
	follower context.CancelCauseFunc // guarded by mu
}

// output is one pipe of a command.
type output struct {
	r    *os.File
	told chan struct{} // closed when its reader has sent all of the command's own output
	done chan struct{} // closed when its reader has ended
}

func newOutput(r *os.File) output { return output{r, make(chan struct{}), make(chan struct{})} }

// closeOutput ends the readers of the output, after the last process: one that
// could not be ended may hold the pipes.
func (p *process) closeOutput() {
	for _, o := range []output{p.stdout, p.stderr} {
		<-o.told
		o.r.Close()
		<-o.done
	}
}

// launch is what to start: args[0] is the program, spec what it then runs.
type launch struct {
	args  []string
	files []*os.File // handed over after the three of localpc-spawn
	spec  spawn.Spec
	full  bool // with full access
}

func (p *process) left() int {
	select {
	case <-p.gone:
		return 0
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.children
}

// markStopped ends the request that follows the process, if one does.
func (p *process) markStopped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.follower != nil {
		p.follower(errStopped())
	}
}

// followedBy names what markStopped calls.
func (p *process) followedBy(stop context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follower = stop
	if p.stopped && stop != nil {
		stop(errStopped())
	}
}

func errStopped() error {
	return wire.Errorf(wire.CodeStopped, "The command was stopped on this computer, or its session ended.")
}
