package machine

import (
	"encoding/json"
	"fmt"
	"slices"
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
	ended bool // its command has ended: nothing more joins
}

// leave takes a connection out. Called with journal.mu held.
func (f *shared) leave(j *journal, r consent.Request) {
	delete(f.began, r.ID)
	if f.open--; f.open == 0 && f.ended {
		delete(j.joins, joinKey(r))
	}
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
		if f.id == r.ID {
			return false
		}
		j.m.flights.shownAs(r.ID, f.id)
		j.byID[f.id].share(r.ID)
		return true
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
	f.leave(j, r)
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
	f.leave(j, r)
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
		e.Result, e.Took = f.words(), time.Since(e.Time)
	}
	switch {
	case f.open > 0:
		e.Outcome, e.CanStop = snapshot.Running, true
	case f.done > 0 && o.State != string(snapshot.Halted):
		e.Outcome, e.CanStop = snapshot.Done, false
	default:
		e.Outcome, e.CanStop = snapshot.Outcome(o.State), false
	}
	it.e, it.live, it.session = e, nil, r.Session
	if f.open == 0 {
		it.req = nil // its detail is in the record
	}
	return true
}

func (f *shared) words() string {
	s := fmt.Sprintf("%d connections", f.over)
	if failed := f.over - f.done; failed > 0 {
		s += fmt.Sprintf(", %d of them failed", failed)
	}
	return s
}

// maxOthers bounds what an entry knows of the requests that share its line:
// after that a search finds them one by one.
const maxOthers = 10_000

func (it *item) share(id string) {
	if len(it.others) < maxOthers {
		it.others = append(it.others, id)
	}
}

// joinedAs names the line of a connection that is in the record; "" for what
// has a line of its own.
func joinedAs(entries []consent.Entry) (key string) {
	for _, e := range entries {
		var d record.Decision
		if e.Kind != record.KindDecision || json.Unmarshal(e.Body, &d) != nil {
			continue
		}
		key = ""
		if d.Request.Command != "" && d.Decision.Outcome == consent.Allowed {
			key = joinKey(d.Request)
		}
	}
	return key
}

// joinLoaded puts it, from the record, into the line that it shares with those
// that came before. Called with mu held.
func (j *journal) joinLoaded(it *item, key string, lines map[string]*shared) {
	if key == "" {
		return
	}
	f := lines[key]
	if f == nil {
		f = &shared{}
		lines[key] = f
	}
	f.over++
	if it.e.Outcome == snapshot.Done {
		f.done++
	}
	if line := j.byID[f.id]; line != nil {
		j.items = slices.DeleteFunc(j.items, func(o *item) bool { return o == line })
		delete(j.byID, f.id)
		first, then := it.e, line.e
		if then.Time.Before(first.Time) {
			first, then = then, first
		}
		end := first.Time.Add(first.Took)
		if e := then.Time.Add(then.Took); e.After(end) {
			end = e
		}
		it.e, it.others = first, line.others
		it.share(then.ID)
		it.e.Sent, it.e.Received = first.Sent+then.Sent, first.Received+then.Received
		it.e.Result, it.e.Took = f.words(), end.Sub(first.Time)
		if f.done > 0 {
			it.e.Outcome = snapshot.Done
		}
	}
	f.id = it.e.ID
}

// joinBegan is when a connection began. Called with mu held.
func (j *journal) joinBegan(id string) (time.Time, bool) {
	for _, f := range j.joins {
		if began, ok := f.began[id]; ok {
			return began, true
		}
	}
	return time.Time{}, false
}

// commandEnded closes the lines of a command's connections.
func (j *journal) commandEnded(command string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key, f := range j.joins {
		if !strings.HasPrefix(key, command+" ") {
			continue
		}
		if f.ended = true; f.open == 0 {
			delete(j.joins, key)
		}
	}
}
