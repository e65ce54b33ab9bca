package mcp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// maxJobs of one principal are worked on at once, those that wait for the
	// person and for which the client does not wait any more too.
	maxJobs = 32
	// maxWaitAgain is how long get_result waits at most.
	maxWaitAgain = 45 * time.Second
)

// job is what one call asked for. It goes on when its client does not wait any
// longer, and its result is kept then.
type job struct {
	id, title string
	who       Principal
	began     time.Time
	until     time.Time // its client is held until then
	ctx       context.Context
	cancel    context.CancelCauseFunc
	done      chan struct{}

	mu     sync.Mutex
	waits  string // what it waits for, for its client; guarded by mu
	kept   bool   // the client may ask for it; guarded by mu
	result *sdk.CallToolResult
}

func newID(prefix string) string {
	b := make([]byte, 10)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

func (j *job) says(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waits = what
}

func (j *job) waiting() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.waits
}

var errGone = errors.New("the client cancelled the call")

// do works on what a call asked for, until it is done or its client cannot wait
// any longer. title says what, as in "run `make`".
func (f *Face) do(ctx context.Context, req *sdk.CallToolRequest, who Principal, title string, work func(ctx context.Context, j *job) (*sdk.CallToolResult, error)) *sdk.CallToolResult {
	now := time.Now()
	j := &job{id: newID("r"), title: title, who: who, began: now, until: now.Add(f.o.Wait), done: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancelCause(f.ctx)
	if err := f.addJob(j); err != nil {
		j.cancel(nil)
		return refusal(err)
	}
	if !f.spawn(func() { f.work(j, work) }) {
		f.removeJob(j)
		j.cancel(nil)
		return refusal(stopped())
	}
	return f.await(ctx, req, j, f.o.Wait)
}

func (f *Face) addJob(j *job) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, other := range f.jobs {
		if other.who.ID == j.who.ID {
			n++
		}
	}
	if n >= maxJobs {
		return wire.Errorf(wire.CodeOverloaded, "This program already has %d calls under way; wait for one of them first (get_result lists them).", n)
	}
	f.jobs[j.id] = j
	return nil
}

func (f *Face) removeJob(j *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.jobs, j.id)
}

func (f *Face) job(who Principal, id string) *job {
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.jobs[id]; j != nil && j.who.ID == who.ID {
		return j
	}
	return nil
}

func (f *Face) work(j *job, work func(context.Context, *job) (*sdk.CallToolResult, error)) {
	defer j.cancel(nil)
	result, err := work(j.ctx, j)
	if err != nil {
		result = f.failed(j.ctx, err)
	}
	j.mu.Lock()
	j.result = result
	if j.kept {
		f.finish(j)
	}
	close(j.done)
	j.mu.Unlock()
	f.removeJob(j)
}

// keep notes a job in the store, so that its client can ask for it. Called
// with mu held.
func (f *Face) keep(j *job) error {
	if j.kept {
		return nil
	}
	// The call's own context may be over: nobody waits for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), 5*time.Second)
	defer cancel()
	if err := f.o.Store.AddResult(ctx, store.Result{ID: j.id, User: j.who.User, Principal: j.who.ID, Title: j.title}); err != nil {
		return err
	}
	j.kept = true
	return nil
}

// finish keeps the result of a job that was noted. Called with mu held. When
// the face is being closed, the next one says that it is lost.
func (f *Face) finish(j *job) {
	if f.ctx.Err() != nil {
		return
	}
	data, err := encodeResult(j.result)
	if err == nil {
		err = f.o.Store.FinishResult(f.ctx, j.id, data)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		f.o.Log.Error("A result could not be kept", "err", err)
	}
}

// await waits for a job as long as its client can, and tells it of the wait.
func (f *Face) await(ctx context.Context, req *sdk.CallToolRequest, j *job, wait time.Duration) *sdk.CallToolResult {
	call := callOf(ctx)
	over := time.NewTimer(wait)
	defer over.Stop()
	tick := time.NewTicker(f.o.Tick)
	defer tick.Stop()
	for {
		select {
		case <-j.done:
			return f.ended(ctx, call, j)
		case <-ctx.Done():
			return f.abandoned(j)
		case <-call.cancelled:
			return f.abandoned(j)
		case <-tick.C:
			f.progress(ctx, req, j)
		case <-over.C:
			return f.pending(j)
		}
	}
}

// ended gives the result of a job. When nobody is there to take it, it is kept.
func (f *Face) ended(ctx context.Context, call *httpCall, j *job) *sdk.CallToolResult {
	select {
	case <-call.gone:
	default:
		return j.result
	}
	if ctx.Err() != nil {
		return j.result // it was cancelled
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.kept {
		if err := f.keep(j); err != nil {
			f.o.Log.Error("A result could not be kept", "err", err)
		} else {
			f.finish(j)
		}
	}
	return j.result
}

// abandoned ends a job whose client cancelled it, unless the client was told
// that it goes on.
func (f *Face) abandoned(j *job) *sdk.CallToolResult {
	j.mu.Lock()
	kept := j.kept
	j.mu.Unlock()
	if !kept {
		j.cancel(errGone)
		<-j.done
	}
	return refusal(wire.Errorf(wire.CodeCancelled, "The call was cancelled."))
}

func (f *Face) pending(j *job) *sdk.CallToolResult {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.done:
		return j.result
	default:
	}
	if err := f.keep(j); err != nil {
		j.cancel(errGone)
		f.o.Log.Error("A call that waits could not be noted", "err", err)
		return refusal(wire.Errorf(wire.CodeInternal, "The hub could not note that this call waits, so it was cancelled."))
	}
	pending := map[string]any{"status": "pending", "id": j.id, "waits": j.waits, "say": f.saysPending(j)}
	return &sdk.CallToolResult{StructuredContent: pending, Content: []sdk.Content{text(asJSON(pending))}}
}

// saysPending is called with mu held.
func (f *Face) saysPending(j *job) string {
	return fmt.Sprintf("%s. After that it goes on by itself. Tell the person if they are being asked, then get what comes of it with get_result and this id.", j.waits)
}

// progress tells a client that wants to hear of it what its call waits for.
func (f *Face) progress(ctx context.Context, req *sdk.CallToolRequest, j *job) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: time.Since(j.began).Seconds(), Message: j.waiting()})
}

type getResult struct {
	ID   string  `json:"id,omitempty" jsonschema:"the id of a pending call; leave it out to list the calls of the last hour"`
	Wait float64 `json:"wait_s,omitempty" jsonschema:"how many seconds to wait for it, at most 45 (default 45)"`
}

// getResult gives what came of a call that was pending.
func (f *Face) getResult(ctx context.Context, req *sdk.CallToolRequest, who Principal, in getResult) *sdk.CallToolResult {
	if in.ID == "" {
		return f.listResults(ctx, who)
	}
	wait := maxWaitAgain
	if in.Wait > 0 {
		wait = min(wait, time.Duration(in.Wait*float64(time.Second)))
	}
	if j := f.job(who, in.ID); j != nil {
		return f.await(ctx, req, j, min(wait, f.o.Wait))
	}
	r, err := f.o.Store.Result(ctx, who.ID, in.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return refusal(wire.Errorf(wire.CodeInvalid, "There is no call with the id %q; results are kept for an hour. get_result without an id lists them.", in.ID))
	case err != nil:
		return f.failed(ctx, err)
	case r.Done.IsZero():
		return refusal(wire.Errorf(wire.CodeLost, "The hub could not keep what came of this call. Call the tool again if it is still needed."))
	}
	result, err := decodeResult(r.Data)
	if err != nil {
		return f.failed(ctx, err)
	}
	return result
}

func (f *Face) listResults(ctx context.Context, who Principal) *sdk.CallToolResult {
	list, err := f.o.Store.Results(ctx, who.ID)
	if err != nil {
		return f.failed(ctx, err)
	}
	var b strings.Builder
	rows := []map[string]any{}
	for _, r := range list {
		status := "done"
		if r.Done.IsZero() {
			status = "pending"
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", r.ID, status, r.Title)
		rows = append(rows, map[string]any{"id": r.ID, "status": status, "title": r.Title, "began": r.Created.UTC().Format(time.RFC3339)})
	}
	if len(list) == 0 {
		b.WriteString("No call of the last hour was pending.")
	}
	return &sdk.CallToolResult{Content: []sdk.Content{text(b.String())}, StructuredContent: map[string]any{"results": rows}}
}
