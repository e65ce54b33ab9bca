package machine

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel/wire"
)

// journal is the log as the windows draw it: step 7. The newest entries are in
// memory; what is older is read from the record. Safe for concurrent use.
type journal struct {
	m *Machine

	mu    sync.Mutex
	items []*item            // newest first, at most snapshot.MaxEntries; guarded by mu
	byID  map[string]*item   // guarded by mu
	joins map[string]*shared // connections; guarded by mu
	today snapshot.Traffic   // guarded by mu
	day   string             // of today; guarded by mu
}

type item struct {
	e snapshot.Entry
	// req and choice are known for requests of this run.
	req    *consent.Request
	choice consent.Choice
	began  time.Time
	live   *live
	reason string
	// others are the requests that share its line; see joined.go.
	others []string
	// session is where the processes run that it left behind (Entry.Left).
	session string
}

func newJournal(m *Machine) *journal { return &journal{m: m, byID: map[string]*item{}} }

// load reads the newest entries and today's traffic from the record.
func (j *journal) load(ctx context.Context) error {
	refs, err := j.refs(ctx, "", snapshot.MaxEntries)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := map[string]*shared{}
	for _, ref := range refs {
		entries, err := j.m.o.Store.EntriesByRef(ctx, ref)
		if err != nil {
			return err
		}
		if e, _, ok := entryOf(entries); ok {
			it := &item{e: e}
			j.joinLoaded(it, joinedAs(entries), lines)
			j.items = append(j.items, it)
			j.byID[it.e.ID] = it
		}
	}
	now := time.Now()
	j.day = now.Format(time.DateOnly)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	return j.m.o.Store.Since(ctx, record.KindOutcome, midnight, func(e consent.Entry) error {
		var o record.Outcome
		if json.Unmarshal(e.Body, &o) == nil {
			j.today.Sent += o.Sent
			j.today.Received += o.Received
		}
		return nil
	})
}

// refs are the requests of the newest entries that contain text.
func (j *journal) refs(ctx context.Context, text string, limit int) ([]string, error) {
	if text != "" {
		// As it stands in the record's JSON.
		b, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		text = string(b[1 : len(b)-1])
	}
	var out []string
	seen := map[string]bool{}
	err := j.m.o.Store.Newest(ctx, text, 4*limit, func(e consent.Entry) error {
		if e.Ref != "" && !seen[e.Ref] && len(out) < limit {
			seen[e.Ref] = true
			out = append(out, e.Ref)
		}
		return nil
	})
	return out, err
}

// entryOf makes a line of the log from a request's entries in the record.
func entryOf(entries []consent.Entry) (snapshot.Entry, snapshot.Detail, bool) {
	var d record.Decision
	var o record.Outcome
	decided, ended := false, false
	for _, e := range entries {
		switch e.Kind {
		case record.KindDecision:
			decided = json.Unmarshal(e.Body, &d) == nil
			ended = false
		case record.KindOutcome:
			ended = json.Unmarshal(e.Body, &o) == nil
		}
	}
	if !decided {
		return snapshot.Entry{}, snapshot.Detail{}, false
	}
	e := newEntry(d.Request)
	e.By = byWords(d.Decision.By)
	switch {
	case d.Decision.Outcome != consent.Allowed:
		e.Outcome = snapshot.Outcome(d.Decision.Outcome)
	case !ended:
		e.Outcome, e.Result = snapshot.Halted, "this program ended before it was done"
	default:
		e.Outcome, e.Result = snapshot.Outcome(o.State), o.Result
		e.Took, e.Sent, e.Received = o.Took, o.Sent, o.Received
	}
	return e, snapshot.Detail{Entry: e, Sentence: d.Request.Sentence, Where: where(d.Request, d.Decision.Choice), Exact: d.Request.Exact,
		Details: d.Request.Details, Notes: o.Notes, Reason: d.Decision.Reason, Output: o.Output}, true
}

// wholeOf names the whole exact text of a request whose decision holds only
// its head.
func wholeOf(entries []consent.Entry) (name string) {
	for _, e := range entries {
		var d record.Decision
		if e.Kind == record.KindDecision && json.Unmarshal(e.Body, &d) == nil {
			name = d.Request.Whole
		}
	}
	return name
}

func newEntry(r consent.Request) snapshot.Entry {
	return snapshot.Entry{ID: r.ID, Time: r.Arrived, Who: r.Principal.Name, What: r.Title, Capability: r.Capability}
}

// byWords is consent.Decision.By for the log: what allowed a request, or
// refused it.
func byWords(by string) string {
	switch by {
	case "you":
		return "you"
	case "rule":
		return "a remembered answer"
	case "mode":
		return "session card"
	case "policy":
		return "--policy"
	case "settings":
		return "Settings"
	case "allow-next":
		return "Allow next time"
	case byPause:
		return "paused"
	}
	return ""
}

// where says under which terms a request runs.
func where(r consent.Request, c consent.Choice) string {
	home, _ := os.UserHomeDir() // without one, paths are whole
	folder := "folder " + consent.HomePath(home, r.Folder)
	if c.Folder != "" {
		folder = "folder " + consent.HomePath(home, c.Folder)
	}
	switch c.Contain {
	case consent.Contained:
		return "Kept inside its " + folder + " · network only as you allow"
	case consent.FullAccess:
		return "Full access · " + folder
	}
	if r.Folder == "" && c.Folder == "" {
		return ""
	}
	return strings.ToUpper(folder[:1]) + folder[1:]
}

func (j *journal) put(it *item) {
	if old := j.byID[it.e.ID]; old != nil {
		*old = *it
		return
	}
	j.items = append([]*item{it}, j.items...)
	j.byID[it.e.ID] = it
	// What still runs stays, however old it is.
	for i := len(j.items) - 1; i >= snapshot.MaxEntries; i-- {
		if e := j.items[i].e; e.Outcome != snapshot.Running && e.Outcome != snapshot.Asking {
			delete(j.byID, e.ID)
			j.items = append(j.items[:i], j.items[i+1:]...)
		}
	}
}

// asking notes a request that goes to the gate.
func (j *journal) asking(r consent.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Command != "" && j.join(r) {
		return
	}
	e := newEntry(r)
	e.Outcome = snapshot.Asking
	j.put(&item{e: e, req: &r, began: time.Now()})
}

// running notes that a request was granted, and returns where its output goes.
func (j *journal) running(r consent.Request, c consent.Choice, by string) *live {
	l := &live{changed: j.m.changed}
	j.mu.Lock()
	if j.joinRunning(r) {
		j.mu.Unlock()
		j.m.changed()
		return l
	}
	e := newEntry(r)
	e.Outcome, e.By, e.CanStop = snapshot.Running, byWords(by), true
	j.put(&item{e: e, req: &r, choice: c, began: time.Now(), live: l})
	j.mu.Unlock()
	j.m.changed()
	return l
}

func (j *journal) took(id string) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if began, ok := j.joinBegan(id); ok {
		return time.Since(began)
	}
	if it := j.byID[id]; it != nil {
		return time.Since(it.began)
	}
	return 0
}

// sent is how much of a request's contents has gone to the hub so far.
func (j *journal) sent(id string) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if it := j.byID[id]; it != nil && it.live != nil {
		return it.live.count()
	}
	return 0
}

func (j *journal) output(id string) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	if it := j.byID[id]; it != nil && it.live != nil {
		return it.live.bytes()
	}
	return nil
}

// refused notes a request that was not allowed.
func (j *journal) refused(r consent.Request, outcome consent.Outcome, by, reason string) {
	j.mu.Lock()
	j.joinRefused(r)
	e := newEntry(r)
	e.Outcome, e.By = snapshot.Outcome(outcome), byWords(by)
	e.CanAllowNext = (outcome == consent.Expired || outcome == consent.Undelivered) && len(r.Effects) > 0 || r.Capability == consent.CapabilitySession && outcome != consent.Denied && outcome != consent.Cancelled
	it := &item{e: e} // its detail is in the record
	if e.CanAllowNext {
		it.req, it.reason = &r, reason
	}
	j.put(it)
	j.mu.Unlock()
	j.m.changed()
}

// later notes a request that was allowed when its client had stopped waiting.
// once: the next of its kind runs without asking.
func (j *journal) later(r consent.Request, o record.Outcome, by string, once bool) {
	j.mu.Lock()
	e := newEntry(r)
	e.Outcome, e.Result, e.Took, e.By, e.AllowedNext = snapshot.Allowed, o.Result, o.Took, byWords(by), once
	j.put(&item{e: e})
	j.mu.Unlock()
	j.m.changed()
}

// note puts a line into the log that is no request's. reason is its detail.
func (j *journal) note(e snapshot.Entry, reason string) {
	j.mu.Lock()
	j.put(&item{e: e, reason: reason})
	j.mu.Unlock()
	j.m.changed()
}

// failed notes a request that could not be described.
func (j *journal) failed(r consent.Request, err error) {
	j.mu.Lock()
	e := newEntry(r)
	e.Outcome, e.Result = snapshot.Failed, err.Error()
	if wire.CodeOf(err) == "" {
		e.Result = "Something went wrong on this computer; its log says what."
	}
	j.put(&item{e: e, reason: e.Result})
	j.mu.Unlock()
	j.m.changed()
}

// finished notes how a request ended, and how many processes it left behind.
func (j *journal) finished(r consent.Request, o record.Outcome, left int) {
	j.mu.Lock()
	if !j.joinFinished(r, o) {
		it := j.byID[r.ID]
		if it == nil {
			it = &item{e: newEntry(r)}
		}
		e := it.e
		e.Outcome, e.Result, e.Took, e.Sent, e.Received, e.CanStop = snapshot.Outcome(o.State), o.Result, o.Took, o.Sent, o.Received, false
		e.Left = left
		j.put(&item{e: e, session: r.Session})
	}
	j.turnDay()
	j.today.Sent += o.Sent
	j.today.Received += o.Received
	j.mu.Unlock()
	j.m.changed()
}

// turnDay begins today's traffic anew after midnight. Called with mu held.
func (j *journal) turnDay() {
	if day := time.Now().Format(time.DateOnly); day != j.day {
		j.day, j.today = day, snapshot.Traffic{}
	}
}

// entries are the newest lines, as they are now, and today's traffic. left
// counts what is left behind in a session now.
func (j *journal) entries(left func(session string) int) ([]snapshot.Entry, snapshot.Traffic) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.turnDay()
	out := make([]snapshot.Entry, 0, min(len(j.items), snapshot.MaxEntries))
	for _, it := range j.items {
		if len(out) == snapshot.MaxEntries {
			break
		}
		if it.e.Left > 0 {
			it.e.Left = min(it.e.Left, left(it.session))
		}
		e := it.entry()
		j.m.undoable(&e)
		out = append(out, e)
	}
	return out, j.today
}

func (it *item) entry() snapshot.Entry {
	e := it.e
	if it.live != nil {
		e.Sent, e.Took = it.live.count(), time.Since(it.began)
	}
	return e
}

// title is what an entry asked for, in a few words.
func (j *journal) title(id string) string {
	j.mu.Lock()
	it := j.byID[id]
	j.mu.Unlock()
	if it != nil {
		return it.e.What
	}
	entries, err := j.m.o.Store.EntriesByRef(context.Background(), id)
	if err == nil {
		if e, _, ok := entryOf(entries); ok {
			return e.What
		}
	}
	return "an earlier request"
}

// unanswered is the request of an entry that may be allowed next time.
func (j *journal) unanswered(id string) (consent.Request, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	it := j.byID[id]
	if it == nil || it.req == nil || !it.e.CanAllowNext {
		return consent.Request{}, sentence("This question can't be allowed any more; the program has to ask again.")
	}
	return *it.req, nil
}

// allowedNext notes that the request of an entry is allowed next time.
func (j *journal) allowedNext(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if it := j.byID[id]; it != nil {
		it.e.CanAllowNext, it.e.AllowedNext = false, true
	}
}

// detail is everything about one entry.
func (j *journal) detail(ctx context.Context, id string) (*snapshot.Detail, error) {
	j.mu.Lock()
	it := j.byID[id]
	var open *snapshot.Detail
	var now *snapshot.Entry
	if it != nil {
		e := it.entry()
		now = &e
	}
	if it != nil && it.req != nil {
		open = &snapshot.Detail{Entry: it.entry(), Sentence: it.req.Sentence, Where: where(*it.req, it.choice), Exact: it.req.Exact,
			Details: it.req.Details, Reason: it.reason}
		if it.live != nil {
			open.Output = string(it.live.bytes())
		}
	} else if it != nil && it.reason != "" {
		open = &snapshot.Detail{Entry: it.e, Reason: it.reason}
	}
	j.mu.Unlock()
	if open != nil {
		j.m.undoable(&open.Entry)
		return open, nil
	}
	entries, err := j.m.o.Store.EntriesByRef(ctx, id)
	if err != nil {
		j.m.log.Error("An entry could not be read", "err", err)
		return nil, sentence("This entry could not be read from the record.")
	}
	e, d, ok := entryOf(entries)
	if !ok {
		return nil, sentence("There is no such entry in the record.")
	}
	d.Entry = e
	if now != nil {
		d.Entry = *now // as the list has it, so that neither is news to the other
	}
	j.m.undoable(&d.Entry)
	if whole := wholeOf(entries); whole != "" {
		switch text, kept, err := j.m.o.Store.Output(whole); {
		case err != nil:
			j.m.log.Error("A long text could not be read", "err", err)
		case kept:
			d.Exact = string(text)
		}
	}
	if d.Output != "" {
		out, kept, err := j.m.o.Store.Output(d.Output)
		switch {
		case err != nil:
			j.m.log.Error("An output could not be read", "err", err)
			d.Notes = append(d.Notes, "The output could not be read.")
		case !kept:
			d.Notes = append(d.Notes, "The output is not kept any more.")
		}
		d.Output = string(out)
		if typ := pictureType(e, out); typ != "" {
			d.Output, d.Picture, d.PictureType = "", out, typ
		}
	}
	return &d, nil
}

// find searches what is in memory, as it is now, and the record, for text in
// what the log shows. Newest first.
func (j *journal) find(ctx context.Context, text, capability string) ([]snapshot.Entry, error) {
	matches := func(e snapshot.Entry, exact string) bool {
		return (capability == "" || e.Capability == capability) &&
			(contains(e.Who, text) || contains(e.What, text) || contains(exact, text) || contains(e.Result, text))
	}
	out := []snapshot.Entry{}
	seen := map[string]bool{}
	j.mu.Lock()
	for _, it := range j.items {
		for _, id := range it.others {
			seen[id] = true
		}
		exact := ""
		if it.req != nil {
			exact = it.req.Exact
		} else if it.reason == "" && len(it.others) == 0 {
			continue // whole in the record
		}
		if e := it.entry(); matches(e, exact) {
			out = append(out, e)
			seen[e.ID] = true
		}
	}
	j.mu.Unlock()
	// The record is searched as it is written, names of fields and all, so some
	// of what it gives does not match.
	refs, err := j.refs(ctx, text, 4*snapshot.MaxEntries)
	found := 0
	for _, ref := range refs {
		if seen[ref] || found == snapshot.MaxEntries {
			continue
		}
		var entries []consent.Entry
		if entries, err = j.m.o.Store.EntriesByRef(ctx, ref); err != nil {
			break
		}
		if e, d, ok := entryOf(entries); ok && matches(e, d.Exact) {
			out = append(out, e)
			found++
		}
	}
	if err != nil {
		j.m.log.Error("The record could not be searched", "err", err)
		return nil, sentence("The record could not be searched.")
	}
	slices.SortStableFunc(out, func(a, b snapshot.Entry) int { return b.Time.Compare(a.Time) })
	out = out[:min(len(out), snapshot.MaxEntries)]
	for i := range out {
		j.m.undoable(&out[i])
	}
	return out, nil
}

func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// live is the output of a running request, for who watches it.
type live struct {
	changed func()
	mu      sync.Mutex
	k       capabilities.Keeper // guarded by mu
	n       int64               // guarded by mu
}

func (l *live) sent(p wire.Payload) {
	l.mu.Lock()
	switch p := p.(type) {
	case *wire.ProcessOutput:
		_, _ = l.k.Write(p.Data)
		l.n += int64(len(p.Data))
	case *wire.FileChunk:
		l.n += int64(len(p.Data))
	}
	l.mu.Unlock()
	l.changed()
}

func (l *live) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.k.Bytes(); len(b) > 0 {
		return b
	}
	return nil
}

func (l *live) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// askingIn counts the requests of a session that wait for the person, but not
// its connections.
func (j *journal) askingIn(session string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, it := range j.items {
		if it.e.Outcome == snapshot.Asking && it.req != nil && it.req.Session == session && it.req.Command == "" {
			n++
		}
	}
	return n
}
