package e2b

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// pausedFor is how long a paused sandbox is kept: as long as a computer keeps
	// a session.
	pausedFor = maxTTL
	// stateWait bounds what a computer takes to stop or go on.
	stateWait = 15 * time.Second
	// lookAgain is how long until the next try after one that failed.
	lookAgain = time.Second
)

var errPaused = wire.Errorf(wire.CodePaused, "This sandbox is paused. Connect to it, which resumes it, and try again.")

// tell sends a request about a session whose answer says nothing.
func (f *Face) tell(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) error {
	s, err := f.o.Backend.Do(ctx, b, t, p)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Recv()
	return err
}

// pauseSandbox has the processes of a sandbox stand still, and keeps it for a
// day. At the end of its time it does so only if that is still near.
// store.ErrNotFound when it does not run, errPaused when it is paused.
func (f *Face) pauseSandbox(ctx context.Context, id string, atEnd bool) error {
	defer f.turns.take(id)()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateWait)
	defer cancel()
	b, err := f.o.Store.Sandbox(ctx, id)
	switch {
	case err != nil:
		return err
	case b.Ended:
		return store.ErrNotFound
	case b.Paused:
		return errPaused
	case atEnd && f.o.Store.PauseIn(b) > 0:
		return nil
	}
	left := time.Until(b.EndsAt)
	// Noted first: should the hub end in between, a sandbox that runs on counts
	// as paused, and a resume makes both true.
	if err := f.o.Store.Pause(ctx, id, pausedFor); err != nil {
		return err
	}
	err = f.setTTL(ctx, id, b, pausedFor)
	if err == nil {
		err = f.tell(ctx, b, wire.TypeSessionPause, &wire.SessionRef{SessionID: id})
		if err != nil && left > time.Second {
			_ = f.setTTL(ctx, id, b, left)
		}
	}
	if err == nil {
		return nil
	}
	f.lost(ctx, id, err)
	if back := f.o.Store.Unpause(ctx, id, b.EndsAt); back != nil && !errors.Is(back, store.ErrNotFound) {
		f.o.Log.Error("A pause could not be taken back", "session", id, "err", back)
	}
	return err
}

// wake has a sandbox run for life at least; a paused one goes on (resumed), for
// the time that it had before if life is 0.
func (f *Face) wake(ctx context.Context, id string, life time.Duration) (b store.Sandbox, resumed bool, err error) {
	defer f.turns.take(id)()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateWait)
	defer cancel()
	if b, err = f.o.Store.Sandbox(ctx, id); err != nil {
		return b, false, err
	}
	switch {
	case b.Ended:
		return b, false, store.ErrNotFound
	case b.Paused:
		if life == 0 {
			life = b.Life
		}
		err = f.tell(ctx, b, wire.TypeSessionResume, &wire.SessionRef{SessionID: id})
		if err == nil {
			err = f.setTTL(ctx, id, b, life)
		}
		if err == nil {
			err = f.o.Store.Resume(ctx, id, life)
		}
		resumed = true
	case time.Now().Add(life).After(b.EndsAt):
		err = f.o.Backend.SetTTL(ctx, b, life)
	default:
		return b, false, nil
	}
	if err != nil {
		f.lost(ctx, id, err)
		return b, false, err
	}
	f.endMoved()
	b, err = f.o.Store.Sandbox(ctx, id)
	return b, resumed, err
}

// setTTL tells the computer, and only it, how much time a session has.
func (f *Face) setTTL(ctx context.Context, id string, b store.Sandbox, left time.Duration) error {
	return f.tell(ctx, b, wire.TypeSessionTTL, &wire.SessionTTL{SessionID: id, TTLSeconds: int(left / time.Second)})
}

// lost notes that the computer has no such session any more, if err says so.
func (f *Face) lost(ctx context.Context, id string, err error) {
	if wire.CodeOf(err) != wire.CodeSessionNotOpen {
		return
	}
	if err := f.o.Store.EndSandbox(ctx, id, err.Error()); err != nil && !errors.Is(err, store.ErrNotFound) {
		f.o.Log.Error("End of a sandbox could not be noted", "session", id, "err", err)
	}
}

// endMoved has pauseAtEnd look anew.
func (f *Face) endMoved() {
	select {
	case f.ends <- struct{}{}:
	default:
	}
}

// pauseAtEnd pauses each sandbox that asked for it at the end of its time,
// shortly before the computer, whose clock it is, would end it. One whose
// computer cannot be reached just then ends there, and holds up no other.
func (f *Face) pauseAtEnd() {
	var pausing sync.WaitGroup
	defer pausing.Wait()
	var mu sync.Mutex
	var under []string // those that are being paused; guarded by mu
	for {
		mu.Lock()
		but := slices.Clone(under)
		mu.Unlock()
		b, err := f.o.Store.NextPause(f.ctx, but...)
		var left time.Duration
		switch {
		case f.ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrNotFound):
			left = time.Hour
		case err != nil:
			f.o.Log.Error("The next pause could not be looked up", "err", err)
			left = time.Minute
		default:
			left = f.o.Store.PauseIn(b)
		}
		if left <= 0 {
			mu.Lock()
			under = append(under, b.ID)
			mu.Unlock()
			pausing.Go(func() {
				f.pauseNow(b.ID)
				mu.Lock()
				under = slices.DeleteFunc(under, func(id string) bool { return id == b.ID })
				mu.Unlock()
				f.endMoved()
			})
			continue
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-f.ends:
		case <-f.ctx.Done():
		}
		t.Stop()
	}
}

// pauseNow pauses a sandbox at its end; where that fails, it waits for the time
// of the next try.
func (f *Face) pauseNow(id string) {
	err := f.pauseSandbox(f.ctx, id, true)
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, errPaused) {
		return
	}
	f.o.Log.Warn("A sandbox could not be paused at its end", "session", id, "err", err)
	sleep(f.ctx, lookAgain)
}

// pause serves POST …/pause; 409 is what the SDKs take for "paused already".
func (f *Face) pause(w http.ResponseWriter, r *http.Request, key store.Key) {
	var req struct {
		Memory *bool `json:"memory"`
	}
	if !readJSON(w, r, &req) {
		return
	}
	if req.Memory != nil && !*req.Memory {
		writeError(w, http.StatusBadRequest, noMemory)
		return
	}
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	switch err := f.pauseSandbox(r.Context(), b.ID, false); {
	case errors.Is(err, errPaused):
		writeError(w, http.StatusConflict, "The sandbox is paused already.")
	case err != nil:
		f.sessionError(w, r, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// connect finds a sandbox; its time is only ever made longer. One that is
// paused goes on.
func (f *Face) connect(w http.ResponseWriter, r *http.Request, key store.Key) {
	f.goOn(w, r, key, false)
}

// resume is the older way to have a paused sandbox go on.
func (f *Face) resume(w http.ResponseWriter, r *http.Request, key store.Key) {
	f.goOn(w, r, key, true)
}

func (f *Face) goOn(w http.ResponseWriter, r *http.Request, key store.Key, mustBePaused bool) {
	var req struct {
		Timeout *int  `json:"timeout"`
		Memory  *bool `json:"memory"`
	}
	if !readJSON(w, r, &req) {
		return
	}
	if req.Memory != nil && !*req.Memory {
		writeError(w, http.StatusBadRequest, "Starting a sandbox anew is not offered: its processes go on from where they are.")
		return
	}
	life, ok := ttl(w, req.Timeout, 0)
	if !ok {
		return
	}
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	if mustBePaused && !b.Paused {
		writeError(w, http.StatusConflict, "The sandbox is running already.")
		return
	}
	b, resumed, err := f.wake(r.Context(), b.ID, life)
	switch {
	case err != nil:
		f.sessionError(w, r, err)
	case resumed:
		writeJSON(w, http.StatusCreated, f.sandboxJSON(b))
	default:
		writeJSON(w, http.StatusOK, f.sandboxJSON(b))
	}
}

func (f *Face) sessionError(w http.ResponseWriter, r *http.Request, err error) {
	if wire.CodeOf(err) == wire.CodeSessionNotOpen || errors.Is(err, store.ErrNotFound) {
		f.notFound(w, r, store.ErrNotFound)
		return
	}
	httpError(w, err)
}

func (f *Face) setTimeout(w http.ResponseWriter, r *http.Request, key store.Key) {
	var req struct {
		Timeout *int `json:"timeout"`
	}
	if !readJSON(w, r, &req) {
		return
	}
	if req.Timeout == nil {
		writeError(w, http.StatusBadRequest, "The timeout is missing.")
		return
	}
	life, ok := ttl(w, req.Timeout, 0)
	if !ok {
		return
	}
	b, ok := f.own(w, r, key)
	if !ok {
		return
	}
	var err error
	switch {
	case b.Paused:
		err = errPaused
	case life > 0:
		err = f.o.Backend.SetTTL(r.Context(), b, life)
	case b.EndPauses:
		err = f.pauseSandbox(r.Context(), b.ID, false)
	default:
		err = f.o.Backend.End(r.Context(), b, "its program ended it")
	}
	if err != nil {
		f.sessionError(w, r, err)
		return
	}
	f.endMoved()
	w.WriteHeader(http.StatusNoContent)
}
