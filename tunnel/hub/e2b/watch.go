package e2b

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"localpc/tunnel/hub/e2b/filesystem"
	"localpc/tunnel/wire"
)

const (
	// maxChanges and maxChangesSize, in bytes, bound what a watch keeps for a
	// client that does not take it.
	maxChanges     = 10_000
	maxChangesSize = 4 << 20
	// maxWatchers of one sandbox may be kept for clients that ask again.
	maxWatchers = 32
	// watcherIdle ends one that nobody asks any more.
	watcherIdle = 30 * time.Minute
)

func errOverflow() *connect.Error {
	return connect.NewError(connect.CodeDataLoss, sentence("More changed in the directory than could be told. Look at it anew, and watch it again."))
}

func errWatchGone() *connect.Error {
	return connect.NewError(connect.CodeNotFound, sentence("The watched directory is not there any more."))
}

func errNoWatcher() *connect.Error {
	return connect.NewError(connect.CodeNotFound, sentence("There is no such watcher in this sandbox; it has ended, or nobody asked it for too long."))
}

// watch is one directory that is watched. Its pump, one goroutine, takes what
// the machine tells as it comes, so that a client that is slow holds up nothing.
type watch struct {
	stream Stream
	done   chan struct{} // closed when the pump has ended
	more   chan struct{} // has a value after something came

	mu      sync.Mutex
	changes []*filesystem.FilesystemEvent // not yet taken; guarded by mu
	size    int                           // of changes, in bytes; guarded by mu
	err     *connect.Error                // how it ended; guarded by mu
}

// watch asks the machine to watch, and waits until it does. It watches on network
// mounts whether allow_network_mounts is set or not: what is changed on this
// computer is told there, too, and the session's folder may be one.
func (d directories) watch(ctx context.Context, c *call, path string, recursive, entries bool) (*watch, error) {
	s, err := d.f.o.Backend.Do(ctx, c.sandbox, wire.TypeFileWatch,
		&wire.FileWatch{SessionID: c.sandbox.ID, Path: path, Recursive: recursive, Entries: entries, WaitMS: d.f.wait(c)})
	if err != nil {
		return nil, rpcError(err)
	}
	msg, err := s.Recv()
	if err == nil && msg.Type != wire.TypeFileWatching {
		err = wire.Errorf(wire.CodeInternal, "The computer did not say that it watches the directory.")
	}
	if err != nil {
		s.Close()
		return nil, rpcError(err)
	}
	return &watch{stream: s, done: make(chan struct{}), more: make(chan struct{}, 1)}, nil
}

// pump runs until the watch has ended.
func (w *watch) pump() {
	defer close(w.done)
	defer w.stream.Close()
	for {
		msg, err := w.stream.Recv()
		if err != nil {
			w.end(rpcError(err))
			return
		}
		told, ok := msg.Payload.(*wire.FileChanges)
		if !ok {
			w.end(errWatchGone()) // ACK
			return
		}
		if !w.add(told) {
			return
		}
	}
}

// add keeps what was told; false: it was too much, and the watch has ended.
func (w *watch) add(told *wire.FileChanges) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.wake()
	for i := range told.Changes {
		e := event(&told.Changes[i])
		if w.size += proto.Size(e); len(w.changes) == maxChanges || w.size > maxChangesSize {
			w.err = errOverflow()
			return false
		}
		w.changes = append(w.changes, e)
	}
	if told.Overflow {
		w.err = errOverflow()
	}
	return !told.Overflow
}

func (w *watch) end(err *connect.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.wake()
}

func (w *watch) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// take gives what came since the last time; the error, if any, follows it.
func (w *watch) take() ([]*filesystem.FilesystemEvent, *connect.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := w.changes
	w.changes, w.size = nil, 0
	return changes, w.err
}

// stop ends the watch and waits for its pump.
func (w *watch) stop() {
	w.stream.Close()
	<-w.done
}

func event(c *wire.FileChange) *filesystem.FilesystemEvent {
	e := &filesystem.FilesystemEvent{Name: c.Name, Type: map[string]filesystem.EventType{
		"create": filesystem.EventType_EVENT_TYPE_CREATE, "write": filesystem.EventType_EVENT_TYPE_WRITE, "remove": filesystem.EventType_EVENT_TYPE_REMOVE,
		"rename": filesystem.EventType_EVENT_TYPE_RENAME, "chmod": filesystem.EventType_EVENT_TYPE_CHMOD}[c.Op]}
	if c.Entry != nil {
		e.Entry = entryInfo(c.Entry)
	}
	return e
}

// WatchDir tells a client of changes as they come, until it leaves or its time
// is over.
func (d directories) WatchDir(ctx context.Context, r *filesystem.WatchDirRequest, out *connect.ServerStream[filesystem.WatchDirResponse]) error {
	c := callOf(ctx)
	if err := rpcUser(ctx); err != nil {
		return err
	}
	// As with a command, the client hears nothing but the headers until it runs.
	if err := out.Send(nil); err != nil {
		return err
	}
	w, err := d.watch(ctx, c, r.GetPath(), r.GetRecursive(), r.GetIncludeEntry())
	if err != nil {
		return err
	}
	go w.pump()
	defer w.stop()
	if err := out.Send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Start{Start: &filesystem.WatchDirResponse_StartEvent{}}}); err != nil {
		return err
	}
	var over <-chan time.Time
	if c.timeout > 0 {
		t := time.NewTimer(c.timeout)
		defer t.Stop()
		over = t.C
	}
	idle := time.NewTicker(interval(ctx))
	defer idle.Stop()
	for {
		select {
		case <-w.more:
			changes, ended := w.take()
			for _, e := range changes {
				if err := out.Send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Filesystem{Filesystem: e}}); err != nil {
					return err
				}
			}
			if ended != nil {
				return ended
			}
		case <-idle.C:
			if err := out.Send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Keepalive{Keepalive: &filesystem.WatchDirResponse_KeepAlive{}}}); err != nil {
				return err
			}
		case <-over:
			return connect.NewError(connect.CodeDeadlineExceeded, sentence(fmt.Sprintf("The watch ended after its time limit of %g seconds.", c.timeout.Seconds())))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watcher is a watch that is kept for clients that ask for what came.
type watcher struct {
	*watch
	idle *time.Timer
}

func (d directories) CreateWatcher(ctx context.Context, r *filesystem.CreateWatcherRequest) (*filesystem.CreateWatcherResponse, error) {
	c := callOf(ctx)
	if err := rpcUser(ctx); err != nil {
		return nil, err
	}
	id := "w" + rand.Text()
	if !d.f.reserve(c.sandbox.ID, id) {
		return nil, connect.NewError(connect.CodeResourceExhausted, sentence(fmt.Sprintf("This sandbox has %d watchers already; remove one first.", maxWatchers)))
	}
	// It outlives the call, not the face; until it runs the call's end ends it.
	life, cancel := context.WithCancelCause(d.f.ctx)
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w, err := d.watch(life, c, r.GetPath(), r.GetRecursive(), r.GetIncludeEntry())
	if err == nil && !detach() {
		w.stream.Close()
		err = rpcError(wire.Errorf(wire.CodeCancelled, "The request was cancelled."))
	}
	if err != nil {
		detach()
		cancel(nil)
		d.f.forgetWatcher(c.sandbox.ID, id)
		return nil, err
	}
	d.f.keepWatcher(c.sandbox.ID, id, &watcher{w, time.AfterFunc(watcherIdle, func() {
		d.f.forgetWatcher(c.sandbox.ID, id)
		w.stream.Close()
	})})
	d.f.wg.Go(func() {
		defer cancel(nil)
		w.pump()
	})
	return &filesystem.CreateWatcherResponse{WatcherId: id}, nil
}

func (d directories) GetWatcherEvents(ctx context.Context, r *filesystem.GetWatcherEventsRequest) (*filesystem.GetWatcherEventsResponse, error) {
	sandbox := callOf(ctx).sandbox.ID
	w := d.f.findWatcher(sandbox, r.GetWatcherId())
	if w == nil {
		return nil, errNoWatcher()
	}
	w.idle.Reset(watcherIdle)
	changes, ended := w.take()
	if len(changes) == 0 && ended != nil {
		return nil, ended
	}
	return &filesystem.GetWatcherEventsResponse{Events: changes}, nil
}

func (d directories) RemoveWatcher(ctx context.Context, r *filesystem.RemoveWatcherRequest) (*filesystem.RemoveWatcherResponse, error) {
	w := d.f.forgetWatcher(callOf(ctx).sandbox.ID, r.GetWatcherId())
	if w == nil {
		return nil, errNoWatcher()
	}
	w.idle.Stop()
	w.stop()
	return &filesystem.RemoveWatcherResponse{}, nil
}

// watchers are those of all sandboxes, by sandbox and id; nil: one that is about
// to be.
type watchers struct {
	mu  sync.Mutex
	all map[string]map[string]*watcher // guarded by mu
}

// reserve makes room for one more.
func (f *Face) reserve(sandbox, id string) bool {
	f.watchers.mu.Lock()
	defer f.watchers.mu.Unlock()
	of := f.watchers.all[sandbox]
	if len(of) >= maxWatchers {
		return false
	}
	if of == nil {
		of = map[string]*watcher{}
		if f.watchers.all == nil {
			f.watchers.all = map[string]map[string]*watcher{}
		}
		f.watchers.all[sandbox] = of
	}
	of[id] = nil
	return true
}

func (f *Face) keepWatcher(sandbox, id string, w *watcher) {
	f.watchers.mu.Lock()
	defer f.watchers.mu.Unlock()
	f.watchers.all[sandbox][id] = w
}

func (f *Face) findWatcher(sandbox, id string) *watcher {
	f.watchers.mu.Lock()
	defer f.watchers.mu.Unlock()
	return f.watchers.all[sandbox][id]
}

// forgetWatcher takes one out, and returns it if it was there.
func (f *Face) forgetWatcher(sandbox, id string) *watcher {
	f.watchers.mu.Lock()
	defer f.watchers.mu.Unlock()
	of := f.watchers.all[sandbox]
	w := of[id]
	delete(of, id)
	if len(of) == 0 {
		delete(f.watchers.all, sandbox)
	}
	return w
}
