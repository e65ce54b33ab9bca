package shell

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"localpc/capabilities/shell/spawn"
	"localpc/tunnel/wire"
)

// process is one command with all its children, which end together.
type process struct {
	tree
	session string
	full    bool // with full access
	held    bool // guarded by Shell.holding
	pid     int  // of what was started here; alive as long as any child
	name    string
	// listener takes what a container wants to connect to that p has alone; nil
	// where it was not asked for.
	listener net.Listener
	proxy    *proxy // p's way out; nil for none
	number   int64  // of p in its box, for proxy

	// outputs are its standard output and error, or its terminal.
	outputs []output
	// stdin is where its input goes, or its terminal; nil where it takes none.
	stdin    *os.File
	terminal bool
	box      *box // the container that it is in with others; nil for none

	exited chan spawn.Event // one event: the command itself has ended
	gone   chan struct{}    // closed when no process is left

	mu       sync.Mutex
	children int                     // guarded by mu; left by an ended command
	stopped  bool                    // guarded by mu; ended by its session's end
	follower context.CancelCauseFunc // guarded by mu
}

// output is one pipe of a command, or its terminal.
type output struct {
	stream string // as wire.ProcessOutput names it
	r      *os.File
	told   chan struct{} // closed when its reader has sent all of the command's own output
	done   chan struct{} // closed when its reader has ended
}

func newOutput(stream string, r *os.File) output {
	return output{stream, r, make(chan struct{}), make(chan struct{})}
}

// drain lets the readers go on for d at most.
func (p *process) drain(d time.Duration) {
	for _, o := range p.outputs {
		o.until(time.Now().Add(d))
	}
}

// closeFiles is for a process whose output nobody has read.
func (p *process) closeFiles() {
	for _, o := range p.outputs {
		o.r.Close()
	}
	p.closeInput()
}

// closeOutput ends the readers of the output, after the last process: one that
// could not be ended may hold the pipes.
func (p *process) closeOutput() {
	for _, o := range p.outputs {
		<-o.told
		o.r.Close()
		<-o.done
	}
}

// launch is what to start: args[0] is the program, spec what it then runs.
type launch struct {
	args  []string
	files []*os.File // handed over after the four of localpc-spawn
	spec  spawn.Spec
	proxy *proxy // its way out, which is p's from the start on; nil for none
	box   *box   // where it starts instead of args; nil for none
	stdin bool   // it takes input
	full  bool   // with full access
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
