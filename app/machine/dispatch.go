package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/record"
	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// describeWithin bounds step 3: after that an executor says "more than N".
const describeWithin = 300 * time.Millisecond

// describeAtMost is when an executor that does not come back is given up.
const describeAtMost = 10 * time.Second

// A card lives 50 s where its client names no time, and an hour at most.
const (
	defaultWait = 50 * time.Second
	maxWait     = time.Hour
)

// maxOfSession is how many requests one session may have under way: fewer than
// the tunnel takes at once, so that one program does not shut out the others.
const maxOfSession = 24

// maxCommands is how many commands one session may have beside them, those that
// wait for a person among them: one that serves or watches goes on for long.
const maxCommands = 64

// maxWatches is how many watches one session may have beside them: they stay
// for long, and do nothing.
const maxWatches = 32

// asksAgain is how often one request is asked anew because what was looked at
// for its card has changed by the time it is to run.
const asksAgain = 3

// dispatch is the one way to run anything. A client's call has become a wire
// message in the hub (step 1), and the tunnel has decoded and validated it
// (step 2). It is called on a goroutine of its own, and is the tunnel.Handler.
func (m *Machine) dispatch(tunnelCtx context.Context, msg wire.Message, x tunnel.Exchange) (wire.Type, wire.Payload, error) {
	t, err := m.begin(tunnelCtx, msg)
	if err != nil {
		return "", nil, err
	}
	defer t.end()
	if err := t.spool(x); err != nil {
		return "", nil, err
	}
	if p, ok := msg.Payload.(*wire.ProcessStart); ok && (p.Stdin || p.PTY != nil) {
		t.call.Input = x
	}
	for n := range asksAgain {
		// Step 3: the executor says what would happen.
		d, err := t.describe()
		if err != nil {
			return "", nil, t.refused(err)
		}
		req := t.request(d)
		if n > 0 {
			req.Card = consent.NewID()
		}

		// Step 4: the gate asks the policy, and the person where that says so.
		// Its decision is recorded before this returns.
		m.journal.asking(req)
		m.flights.asks(t.id, req)
		forget := m.controls.asks(req, t.call)
		grant, err := m.gate.Authorize(t.ctx, req)
		forget()
		if err != nil {
			return "", nil, m.declined(req, err)
		}
		if !x.Begin() {
			return "", nil, m.later(req, grant)
		}

		// Step 5: the executor looks again, and runs what was granted.
		live := m.journal.running(req, grant.Choice(), grant.By())
		result, err := t.executor.Run(t.ctx, t.call, grant, output{x, live})
		if errors.Is(err, consent.ErrChanged) {
			m.finished(req, result, t.changed())
			continue
		}

		// Steps 6 and 7: the outcome is recorded, and shown.
		err = t.cause(err)
		m.finished(req, result, err)
		if err != nil {
			return "", nil, err
		}
		return result.Type, result.Payload, nil
	}
	return "", nil, t.changed()
}

// task is one request on its way through dispatch.
type task struct {
	m        *Machine
	id       string
	session  *session // nil for SESSION_OPEN, and for what binds folders
	executor capabilities.Capability
	call     capabilities.Call
	command  string // of a connection: the request whose command asks
	who      asker
	arrived  time.Time
	deadline time.Time
	ctx      context.Context
	end      func()
}

// asker is who asks, for whom.
type asker struct {
	hub, hubName string
	principal    consent.Principal
	claims       consent.Claims
	session      string
	mode         consent.Mode
	folder       string
}

// begin looks up the executor and the session of a message.
func (m *Machine) begin(tunnelCtx context.Context, msg wire.Message) (*task, error) {
	now := time.Now()
	t := &task{m: m, id: consent.NewID(), executor: m.registry.Lookup(msg.Type), arrived: now}
	if t.executor == nil {
		return nil, notTaken(msg)
	}
	t.call = capabilities.Call{Type: msg.Type, Payload: msg.Payload}
	kind := flightRequest
	if t.executor == capabilities.Capability(m.chats) {
		t.who = m.chats.who()
	} else if u, ok := msg.Payload.(*undoing); ok {
		t.who = m.undos.who(u)
	} else if open, ok := msg.Payload.(*wire.SessionOpen); ok {
		hub, name := m.link.hub()
		t.who = asker{hub: hub, hubName: name, session: open.SessionID, folder: m.sessions.wish(open.Folder),
			principal: consent.Principal{ID: open.PrincipalID, Name: open.PrincipalName},
			claims:    consent.Claims{Agent: open.Agent, Title: open.Title}}
	} else {
		s, err := m.sessions.get(sessionOf(msg.Payload))
		if err != nil {
			return nil, err
		}
		if s.late(now) {
			m.sessions.lookAt(s)
			return nil, sessionGone()
		}
		if c, ok := msg.Payload.(*capabilities.Connect); ok {
			t.command, kind = c.Command, flightConnection
			if m.flights.count(s.ID, kind) >= maxConnections {
				return nil, wire.Errorf(wire.CodeOverloaded, "This session already has %d connections; try again in a moment.", maxConnections)
			}
		} else if _, ok := msg.Payload.(*wire.FileWatch); ok {
			if kind = flightWatch; m.flights.count(s.ID, kind) >= maxWatches {
				return nil, wire.Errorf(wire.CodeOverloaded, "This session already watches %d folders; end one of its watches first.", maxWatches)
			}
		} else if _, ok := msg.Payload.(*wire.ProcessStart); ok {
			if kind = flightCommand; m.flights.count(s.ID, kind) >= maxCommands {
				return nil, wire.Errorf(wire.CodeOverloaded, "This session already has %d commands under way, which is as many as it may have at once; end one of them first, or wait until one has ended.", maxCommands)
			}
		} else if _, ok := msg.Payload.(*wire.ProcessSignal); ok {
			// However much is under way: it is how some of that is ended.
		} else if t.executor != capabilities.Capability(m.sessions) && m.flights.count(s.ID, kind) >= maxOfSession {
			return nil, wire.Errorf(wire.CodeOverloaded, "This session already has %d requests under way; try again in a moment.", maxOfSession)
		}
		t.session = s
		t.call.Session, t.who = s.now()
	}
	if err := t.wakesFirst(); err != nil {
		return nil, err
	}
	if err := m.rates.begins(t); err != nil {
		return nil, err
	}
	t.deadline = now.Add(waitOf(msg.Payload))
	t.ctx, t.end = m.flights.begin(tunnelCtx, t.id, t.who.session, kind)
	leave, end := func() {}, t.end
	if t.session != nil && t.executor != capabilities.Capability(m.sessions) {
		// The end of a session waits for what has entered it.
		if !t.session.enter() {
			end()
			return nil, sessionGone()
		}
		leave = t.session.leave
	}
	t.end = func() {
		if t.call.Upload != nil {
			m.unspool(t.call.Upload)
		}
		end()
		leave()
		m.changed()
	}
	return t, nil
}

// describe asks the executor, which keeps to the time it is given. Should a
// system call hang all the same (a network folder whose server has gone), the
// request is given up, and can be stopped.
func (t *task) describe() (capabilities.Description, error) {
	if t.session != nil {
		t.call.Session, t.who = t.session.now() // its mode may have changed since it came
	}
	within := describeWithin
	if t.command != "" {
		within = lookUpWithin
	}
	ctx, cancel := context.WithTimeout(t.ctx, within)
	defer cancel()
	type found struct {
		d   capabilities.Description
		err error
	}
	done := make(chan found, 1)
	if !t.m.background(func(context.Context) {
		d, err := t.executor.Describe(ctx, t.call)
		done <- found{d, err}
	}) {
		return capabilities.Description{}, stoppedBy("This computer's program was closed.")
	}
	select {
	case f := <-done:
		return f.d, f.err
	case <-t.ctx.Done():
	case <-time.After(describeAtMost):
	}
	select {
	case f := <-done:
		return f.d, f.err
	default:
		return capabilities.Description{}, wire.Errorf(wire.CodeInternal, "This computer could not look at what was asked for in time; is it on a network folder whose server does not answer?")
	}
}

// request is everything the policy judges, the card shows and the record keeps.
func (t *task) request(d capabilities.Description) consent.Request {
	name := consent.Visible(t.who.principal.Name, false)
	r := consent.Request{
		ID: t.id, Hub: t.who.hub, HubName: t.who.hubName, Principal: t.who.principal, Claims: t.who.claims,
		Session: t.who.session, Mode: t.who.mode, Folder: t.who.folder,
		Capability: t.executor.Name(), Action: d.Action,
		Title: d.Title, Sentence: strings.Replace(d.Sentence, "%s", name, 1), Exact: d.Exact, Steps: d.Steps, Details: d.Details,
		Effects: d.Effects, Risk: d.Risk, Digest: consent.DigestOf(d.Payload), Fingerprint: d.Fingerprint,
		Containable: d.Containable, FullOffered: d.FullOffered, Scopes: append([]consent.Scope{consent.Once}, d.Scopes...),
		Rule: consent.Rule{Hub: t.who.hub, Principal: t.who.principal.ID, Folder: t.who.folder,
			Capability: t.executor.Name(), Action: d.Action, Exact: d.Rule.Exact, Env: d.Rule.Env, Cwd: d.Rule.Cwd, Effects: effectKinds(d.Effects)},
		Command: t.command, Arrived: t.arrived, Deadline: t.deadline,
	}
	r.Screens, r.Looks = d.Screens, d.Looks
	if d.NoOnce {
		r.Scopes = d.Scopes
	}
	if d.Wide != nil {
		r.Wide = &consent.Rule{Hub: t.who.hub, Principal: t.who.principal.ID, Folder: t.who.folder, Capability: t.executor.Name(),
			Action: d.Wide.Action, Effects: joinKinds(d.Wide.Effects), Wide: true}
		r.WideWords = d.Wide.Words
	}
	if open, opens := t.call.Payload.(*wire.SessionOpen); opens {
		// A program opens a session of another name each time it asks. A chat has
		// one of its own, and what it was allowed is no other chat's.
		if r.FolderOnly = open.FolderOnly; !r.FolderOnly {
			r.RepeatKey = "open"
		}
	}
	return t.m.switches().Offer(r)
}

// effectKinds names the kinds of effects, each once; a kind that touches only
// what the session made itself is another one.
func effectKinds(effects []consent.Effect) string {
	var kinds []string
	for _, e := range effects {
		kind := string(e.Kind)
		if e.Own {
			kind = "own " + kind
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}

// joinKinds writes the kinds of a wide rule as effectKinds does; what concerns
// only what the session made itself is among them.
func joinKinds(kinds []consent.EffectKind) string {
	var all []consent.Effect
	for _, k := range kinds {
		all = append(all, consent.Effect{Kind: k}, consent.Effect{Kind: k, Own: true})
	}
	return effectKinds(all)
}

// refused notes a request that could not even be described, so that the log
// shows it too; nothing was asked and nothing ran.
func (t *task) refused(err error) error {
	err = t.cause(err)
	t.m.journal.failed(t.request(capabilities.Description{Action: strings.ToLower(string(t.call.Type)), Title: titleOf(t.call)}), err)
	if herr := t.m.o.Record.Happened(context.WithoutCancel(t.ctx), "refused before it was asked", t.who.principal.ID+": "+titleOf(t.call)); herr != nil {
		t.m.log.Error("A refusal could not be recorded", "err", herr)
	}
	return err
}

// cause replaces the error of a request that was ended from outside by why.
func (t *task) cause(err error) error {
	if err == nil {
		return nil
	}
	if t.ctx.Err() != nil {
		if c := context.Cause(t.ctx); wire.CodeOf(c) != "" {
			return c
		}
		return wire.Wrap(err, wire.CodeCancelled, "The request was cancelled.")
	}
	if wire.CodeOf(err) == "" {
		t.m.log.Error("A request failed", "capability", t.executor.Name(), "type", t.call.Type, "err", err)
	}
	return err
}

func (t *task) changed() error {
	return wire.Errorf(wire.CodeChanged, "What was shown to the person changed before it could be done, so it was not done: %s.", titleOf(t.call))
}

// declined turns a refusal into what crosses the tunnel, and shows it.
func (m *Machine) declined(req consent.Request, err error) error {
	var ref *consent.Refusal
	if !errors.As(err, &ref) {
		m.journal.refused(req, consent.Cancelled, "", "The request ended before anybody answered.")
		if wire.CodeOf(err) != "" {
			return err
		}
		return wire.Wrap(err, wire.CodeCancelled, "The request was cancelled.")
	}
	m.journal.refused(req, ref.Outcome, ref.By, ref.Reason)
	code := map[consent.Outcome]wire.Code{consent.Denied: wire.CodeDenied, consent.Expired: wire.CodeExpired}[ref.Outcome]
	switch {
	case ref.By == byPause:
		code = wire.CodePaused
	case code == "":
		code = wire.CodeUndelivered
	}
	return wire.Errorf(code, "%s", ref.Reason)
}

// later keeps what was allowed when its client had stopped waiting: the same
// request runs once without asking. What was allowed for longer, or had been
// before, is remembered already.
func (m *Machine) later(req consent.Request, g consent.Grant) error {
	o := record.Outcome{State: string(snapshot.Allowed), Result: "allowed; runs when it is asked again", Took: m.journal.took(req.ID)}
	if err := m.o.Record.Finished(context.Background(), req.ID, o); err != nil {
		m.log.Error("An outcome could not be recorded", "err", err)
		err := wire.Errorf(wire.CodeUndelivered, "This computer could not write its record (is the disk full?), so nothing was allowed.")
		m.journal.failed(req, err)
		return err
	}
	c := g.Choice()
	once := (g.By() == "you" || g.By() == "allow-next") && (c.Scope == consent.Once || c.Scope == "")
	if once {
		m.gate.AllowNext(req, c)
	}
	m.journal.later(req, o, g.By(), once)
	return wire.Errorf(wire.CodePending, "The person allowed this when its program had stopped waiting. Ask again: it is done then.")
}

// finished records how a request that was granted ended, and shows it.
func (m *Machine) finished(req consent.Request, result capabilities.Result, err error) {
	ctx := context.Background()
	o := record.Outcome{State: string(stateOf(result, err)), Result: result.Outcome, Took: m.journal.took(req.ID),
		Sent: result.Sent, Received: result.Received, Notes: result.Notes}
	if err != nil {
		o.Sent = max(o.Sent, m.journal.sent(req.ID)) // what had gone before it failed
		o.Result = err.Error()
		if wire.CodeOf(err) == "" {
			o.Result = "Something went wrong on this computer; its log says what."
		}
	}
	out := result.Output
	if out == nil {
		out = m.journal.output(req.ID)
	}
	name, kerr := m.o.Store.KeepOutput(out)
	if kerr != nil {
		m.log.Error("An output could not be kept", "err", kerr)
		o.Notes = append(o.Notes, "The output could not be kept; is the disk full?")
	}
	o.Output = name
	if rerr := m.o.Record.Finished(ctx, req.ID, o); rerr != nil {
		m.log.Error("An outcome could not be recorded", "err", rerr)
	}
	left := 0
	if exit, ok := result.Payload.(*wire.ProcessExited); ok {
		left = exit.Running
	}
	m.journal.finished(req, o, left)
}

func stateOf(result capabilities.Result, err error) snapshot.Outcome {
	switch wire.CodeOf(err) {
	case wire.CodeStopped:
		return snapshot.Halted
	case wire.CodeCancelled, wire.CodeLost:
		return snapshot.Cancelled
	}
	if err != nil || result.Failed {
		return snapshot.Failed
	}
	return snapshot.Done
}

// output is an executor's way back through the tunnel; the journal listens.
type output struct {
	x    tunnel.Exchange
	live *live
}

func (o output) Send(ctx context.Context, t wire.Type, p wire.Payload) error {
	if err := o.x.Send(ctx, t, p); err != nil {
		return err
	}
	o.live.sent(p)
	return nil
}
