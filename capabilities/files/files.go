// Package files is steps 3 and 5 for files: it reads, writes, lists, searches,
// watches, makes, moves and deletes below a session's folder and the session's
// own /tmp, and nowhere else.
//
// One request is one op. Its look resolves the names, inspects what is there
// and describes what would happen; its run does it. Describe looks; Run looks
// again, holds what it finds against the grant, and runs the same op, so that
// what was shown is what runs.
package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Options build an Executor. The zero value works.
type Options struct {
	// Journal is a directory of this program's own, 0700, where a write notes
	// its temporary file, and keeps the old contents of a file that has to be
	// written in place. It is made when it is missing; Recover is called with
	// it before the first request. "": no notes, and a file that would have to
	// be written in place (one with several hard links, or with an owner who
	// would be lost) is refused.
	Journal string
	// LookFor bounds the counting in Run, as the dispatcher's deadline bounds
	// it in Describe. It is longer, so that what could be counted then can be
	// counted again. 0: one second.
	LookFor time.Duration
	// Keep holds what is replaced and deleted; nil: nothing is kept, and cards
	// say that it can't be undone.
	Keep capabilities.Keep
	// Log is for what people do not see; nil: slog.Default.
	Log *slog.Logger
}

// Executor is the files capability. It is safe for concurrent use.
type Executor struct {
	o       Options
	journal journal
	names   owners
	deleted departures

	mu     sync.Mutex
	closed bool               // guarded by mu
	work   map[*work]struct{} // guarded by mu
}

// work is one Run under way.
type work struct {
	session string
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

var _ capabilities.Capability = (*Executor)(nil)

// New makes an Executor.
func New(o Options) *Executor {
	if o.LookFor == 0 {
		o.LookFor = time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Executor{o: o, journal: journal{dir: o.Journal, inPlace: make(chan struct{}, 1)}, work: map[*work]struct{}{}}
}

// Name is "files".
func (*Executor) Name() string { return "files" }

// Types are the file requests.
func (*Executor) Types() []wire.Type {
	return []wire.Type{wire.TypeFileRead, wire.TypeFileWrite, wire.TypeFileStat, wire.TypeFileList,
		wire.TypeFileMkdir, wire.TypeFileDelete, wire.TypeFileMove, wire.TypeFileWatch, wire.TypeFileSearch}
}

// op is one request. look is called once, and before run; close after both.
type op interface {
	look(ctx context.Context) (capabilities.Description, error)
	run(ctx context.Context, out capabilities.Output) (capabilities.Result, error)
	// much is the fingerprint of a look that could not count to the end; "" for
	// a request that counts nothing.
	much() string
	// note has what run changes noted.
	note(n capabilities.Notes)
	close()
}

// open makes the op of a call inside its session's jail.
func (e *Executor) open(c capabilities.Call) (op, error) {
	j, err := openJail(c.Session)
	if err != nil {
		return nil, err
	}
	base := request{e: e, j: j}
	switch p := c.Payload.(type) {
	case *wire.FileRead:
		return &readOp{request: base, p: p}, nil
	case *wire.FileWrite:
		return &writeOp{request: base, p: p, up: c.Upload}, nil
	case *wire.FileList:
		return &listOp{request: base, p: p}, nil
	case *wire.FileMove:
		return &moveOp{request: base, p: p}, nil
	case *wire.FileStat:
		return &statOp{request: base, p: p}, nil
	case *wire.FilePath:
		return &mkdirOp{request: base, p: p}, nil
	case *wire.FileDelete:
		return &deleteOp{request: base, p: p}, nil
	case *wire.FileWatch:
		return &watchOp{request: base, p: p}, nil
	case *wire.FileSearch:
		return &searchOp{request: base, p: p}, nil
	}
	j.close()
	return nil, fmt.Errorf("files: %s with a %T", c.Type, c.Payload)
}

// request is what every op has.
type request struct {
	e *Executor
	j *jail
	// uncounted is what much returns.
	uncounted string
}

func (r *request) close()       { r.j.close() }
func (r *request) much() string { return r.uncounted }

// Describe looks and changes nothing. A name that leaves the session's folder,
// or that is not there where it has to be, is an error at once: nobody is
// asked about what cannot be done.
func (e *Executor) Describe(ctx context.Context, c capabilities.Call) (capabilities.Description, error) {
	o, err := e.open(c)
	if err != nil {
		return capabilities.Description{}, err
	}
	defer o.close()
	return o.look(ctx)
}

// Run does what was described. When it is cancelled or fails, a write, a
// making and a move have not happened; of a delete, and of a move to another
// file system that had begun to delete its source, a part may have.
func (e *Executor) Run(ctx context.Context, c capabilities.Call, g consent.Grant, out capabilities.Output) (capabilities.Result, error) {
	ctx, end, err := e.begin(ctx, c.Session.ID)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer end()
	o, err := e.open(c)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer o.close()
	looking, stop := context.WithTimeout(ctx, e.o.LookFor)
	d, err := o.look(looking)
	stop()
	if err != nil {
		return capabilities.Result{}, err
	}
	err = g.Check(consent.DigestOf(d.Payload), d.Fingerprint)
	if much := o.much(); errors.Is(err, consent.ErrChanged) && much != "" {
		// The card said "more than": that holds when all could be counted now.
		err = g.Check(consent.DigestOf(d.Payload), much)
	}
	if err != nil {
		return capabilities.Result{}, err
	}
	if e.o.Keep != nil {
		n := e.o.Keep.Begin(c.Session, g.Request())
		defer n.End()
		o.note(n)
	}
	res, err := o.run(ctx, out)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return res, err
}

// begin notes a Run, so that the end of its session can end it.
func (e *Executor) begin(ctx context.Context, session string) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, stopped()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{session: session, cancel: cancel, done: make(chan struct{})}
	e.work[w] = struct{}{}
	return ctx, func() {
		cancel(nil)
		e.mu.Lock()
		delete(e.work, w)
		e.mu.Unlock()
		close(w.done)
	}, nil
}

func stopped() error {
	return wire.Errorf(wire.CodeStopped, "The session ended before this was done.")
}

// Running is 0: nothing outlives its request.
func (*Executor) Running(string) int { return 0 }

// EndSession cancels the requests of a session and waits for them.
func (e *Executor) EndSession(ctx context.Context, session string) error {
	return e.stop(ctx, func(w *work) bool { return w.session == session })
}

// Close cancels everything and waits for it. Run refuses afterwards.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	return e.stop(context.Background(), func(*work) bool { return true })
}

func (e *Executor) stop(ctx context.Context, which func(*work) bool) error {
	e.mu.Lock()
	var list []*work
	for w := range e.work {
		if which(w) {
			list = append(list, w)
		}
	}
	e.mu.Unlock()
	for _, w := range list {
		w.cancel(stopped())
	}
	for _, w := range list {
		select {
		case <-w.done:
		case <-ctx.Done():
			return fmt.Errorf("files: still at work: %w", context.Cause(ctx))
		}
	}
	return nil
}
