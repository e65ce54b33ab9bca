package machine

import (
	"fmt"
	"strings"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/consent/record"
)

// shared is one line of the log for all connections of a command to one place:
// the first one's. The record has each of them.
type shared struct {
	id    string // of the first
	open  int    // under way
	over  int
	done  int // of those over, the ones that worked
	began map[string]time.Time
}

func joinKey(r consent.Request) string { return r.Command + " " + r.Exact }

// join counts a connection in. It reports whether there is a line that it
// joins; otherwise r's own becomes it. Called with mu held.
func (j *journal) join(r consent.Request) bool {
	f := j.joins[joinKey(r)]
	if f != nil && j.byID[f.id] != nil {
		if _, again := f.began[r.ID]; !again {
			f.open++
		}
		f.began[r.ID] = time.Now()
		j.m.flights.shownAs(r.ID, f.id)
		return f.id != r.ID
	}
	if j.joins == nil {
		j.joins = map[string]*shared{}
	}
	j.joins[joinKey(r)] = &shared{id: r.ID, open: 1, began: map[string]time.Time{r.ID: time.Now()}}
	return false
}

// joinOf is the line that r has joined, nil for none. Called with mu held.
func (j *journal) joinOf(r consent.Request) *shared {
	if r.Command == "" {
		return nil
	}
	f := j.joins[joinKey(r)]
	if f == nil {
		return nil
	}
	if _, in := f.began[r.ID]; !in {
		return nil
	}
	return f
}

// joinRunning notes that a connection which has joined a line was granted.
// Called with mu held.
func (j *journal) joinRunning(r consent.Request) bool {
	f := j.joinOf(r)
	if f == nil || f.id == r.ID {
		return false
	}
	if it := j.byID[f.id]; it != nil {
		it.e.Outcome, it.e.CanStop = snapshot.Running, true
	}
	return true
}

// joinRefused takes a connection that was refused out of its line; the refusal
// has one of its own. Called with mu held.
func (j *journal) joinRefused(r consent.Request) {
	f := j.joinOf(r)
	if f == nil {
		return
	}
	delete(f.began, r.ID)
	f.open--
	if f.id == r.ID {
		delete(j.joins, joinKey(r))
		return
	}
	if it := j.byID[f.id]; it != nil && f.open == 0 && f.over > 0 && it.e.Outcome == snapshot.Running {
		it.e.Outcome, it.e.CanStop = snapshot.Done, false
	}
}

// joinFinished adds how a connection ended to its line. Called with mu held.
func (j *journal) joinFinished(r consent.Request, o record.Outcome) bool {
	f := j.joinOf(r)
	if f == nil {
		return false
	}
	delete(f.began, r.ID)
	f.open--
	f.over++
	if o.State == string(snapshot.Done) {
		f.done++
	}
	it := j.byID[f.id]
	if it == nil {
		return true
	}
	e := it.e
	e.Sent, e.Received = e.Sent+o.Sent, e.Received+o.Received
	e.Result, e.Took = o.Result, o.Took
	if f.over > 1 {
		e.Result = fmt.Sprintf("%d connections", f.over)
		if failed := f.over - f.done; failed > 0 {
			e.Result += fmt.Sprintf(", %d of them failed", failed)
		}
		e.Took = time.Since(e.Time)
	}
	switch {
	case f.open > 0:
		e.Outcome, e.CanStop = snapshot.Running, true
	case f.done > 0 && o.State != string(snapshot.Halted):
		e.Outcome, e.CanStop = snapshot.Done, false
	default:
		e.Outcome, e.CanStop = snapshot.Outcome(o.State), false
	}
	*it = item{e: e, session: r.Session}
	return true
}

// joinTook is how long a connection that has joined a line has gone on.
// Called with mu held.
func (j *journal) joinTook(id string) time.Duration {
	for _, f := range j.joins {
		if began, ok := f.began[id]; ok {
			return time.Since(began)
		}
	}
	return 0
}

// commandEnded closes the lines of a command's connections.
func (j *journal) commandEnded(command string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key, f := range j.joins {
		if f.open == 0 && strings.HasPrefix(key, command+" ") {
			delete(j.joins, key)
		}
	}
}
