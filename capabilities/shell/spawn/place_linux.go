package spawn

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// place is a thread in a network of its own, with nothing in it but itself, on
// which one command is forked. Making one takes about as long as all the rest of
// a start, so that the keeper has one ready.
type place struct {
	jobs  chan *nest
	ready chan struct{} // closed when what follows is known
	err   error         // why there is none
	door  int           // the listening socket of the network, until it is handed over
	done  chan error
}

func newPlace() *place {
	p := &place{jobs: make(chan *nest), ready: make(chan struct{}), door: -1, done: make(chan error, 1)}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		p.err = p.prepare()
		close(p.ready)
		if n := <-p.jobs; n != nil {
			var err error
			n.pid, err = n.start()
			p.done <- err
		}
	}()
	return p
}

func (p *place) prepare() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if err := loopback(); err != nil {
		return err
	}
	fd, err := listen()
	if err == nil {
		p.door = fd
	}
	return err
}

// start forks, once; an error has what could not be had. close follows. Without
// a way out nobody listens in there.
func (p *place) start(n *nest, proxy bool) (what string, err error) {
	if <-p.ready; p.err != nil {
		close(p.jobs)
		return FailedProxy, p.err
	}
	if !proxy {
		p.close()
	}
	p.jobs <- n
	if err := <-p.done; err != nil {
		p.close()
		return FailedExec, err
	}
	return "", nil
}

// handOver gives the listening socket away.
func (p *place) handOver() int {
	fd := p.door
	p.door = -1
	return fd
}

func (p *place) close() {
	if p.door >= 0 {
		unix.Close(p.door)
		p.door = -1
	}
}

// place gives one that is ready, or about to be.
func (k *keeper) place() *place {
	k.mu.Lock()
	p := k.spare
	k.spare = nil
	k.mu.Unlock()
	if p == nil {
		p = newPlace()
	}
	return p
}

// refill has one ready for the next command.
func (k *keeper) refill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.spare == nil {
		k.spare = newPlace()
	}
}
