package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

// A session lives an hour where its client names no time, a day at most.
const (
	defaultTTL = time.Hour
	maxTTL     = 24 * time.Hour
)

// maxSessions of one program may be open: each has rates of its own.
const maxSessions = 100

// lookEvery is how often it is looked whether a session's time is over: its
// timer stands still while the computer sleeps.
const lookEvery = 30 * time.Second

// session is one open session, with what only the machine knows of it.
type session struct {
	*capabilities.Session
	who    asker
	opened time.Time

	mu      sync.Mutex
	mode    consent.Mode  // guarded by mu; modeAt says what holds
	trusted time.Time     // guarded by mu: when consent.ModeTrusted was given
	over15  *time.Timer   // guarded by mu: tells that it is over
	until   time.Time     // guarded by mu
	asleep  time.Time     // guarded by mu: when its program paused it; zero: it did not
	rest    time.Duration // guarded by mu: what it has left when it goes on, while asleep
	timer   *time.Timer   // guarded by mu
	gone    bool          // guarded by mu: no request enters any more
	in      int           // guarded by mu: requests inside
	asked   time.Time     // guarded by mu: when the last of them came
	empty   chan struct{}
	over    chan struct{} // closed when it has ended
}

// enter counts a request in; false when the session is ending.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.in++
	s.asked = time.Now()
	return true
}

// seen is when its program was last heard of: at its opening, or by a request.
func (s *session) seen() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return later(s.opened, s.asked)
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in--
	if s.gone && s.in == 0 {
		close(s.empty)
	}
}

// ending tells whether no request enters any more.
func (s *session) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

func sessionGone() error {
	return wire.Errorf(wire.CodeSessionNotOpen, "This session is not open on this computer any more; open a new one.")
}

// sessions opens, keeps and ends sessions. It is the capability "session":
// its requests take the same seven steps as all others.
type sessions struct {
	m    *Machine
	look time.Duration // lookEvery; tests are less patient
	mu   sync.Mutex
	all  map[string]*session // guarded by mu

	pausing sync.Mutex // one pause or resumption at a time
}

var _ capabilities.Capability = (*sessions)(nil)

func newSessions(m *Machine) *sessions {
	return &sessions{m: m, look: lookEvery, all: map[string]*session{}}
}

func (ss *sessions) Name() string { return consent.CapabilitySession }

func (ss *sessions) Types() []wire.Type {
	return []wire.Type{wire.TypeSessionOpen, wire.TypeSessionTTL, wire.TypeSessionClose, wire.TypeSessionPause, wire.TypeSessionResume, wire.TypeMetrics}
}

func (ss *sessions) Running(string) int                       { return 0 }
func (ss *sessions) EndSession(context.Context, string) error { return nil }
func (ss *sessions) Close() error                             { return nil }

func (ss *sessions) get(id string) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.all[id]; s != nil {
		return s, nil
	}
	return nil, sessionGone()
}

// list returns the open sessions, oldest first.
func (ss *sessions) list() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	var out []*session
	for _, s := range ss.all {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *session) int { return a.opened.Compare(b.opened) })
	return out
}

// Describe says what a session request would do. Only opening one asks.
func (ss *sessions) Describe(_ context.Context, c capabilities.Call) (capabilities.Description, error) {
	own := []consent.Effect{{Kind: consent.EffectOwn, Text: "ends or prolongs its own session", Own: true}}
	switch p := c.Payload.(type) {
	case *wire.Metrics:
		return describeMetrics(p), nil
	case *wire.SessionTTL:
		if time.Duration(p.TTLSeconds)*time.Second > maxTTL {
			return capabilities.Description{}, tooLong()
		}
		return capabilities.Description{Action: "time", Title: "Set the session's end", Payload: p, Effects: own, Risk: consent.RiskLow}, nil
	case *wire.SessionRef:
		if c.Type == wire.TypeSessionPause || c.Type == wire.TypeSessionResume {
			return describePause(c.Type, p), nil
		}
		return capabilities.Description{Action: "close", Title: "Close the session", Payload: p, Effects: own, Risk: consent.RiskLow}, nil
	}
	p := c.Payload.(*wire.SessionOpen)
	if time.Duration(p.TTLSeconds)*time.Second > maxTTL {
		return capabilities.Description{}, tooLong()
	}
	hub, _ := ss.m.link.hub()
	ss.mu.Lock()
	err := ss.room(p.SessionID, hub, p.PrincipalID)
	ss.mu.Unlock()
	if err != nil {
		return capabilities.Description{}, err
	}
	d := capabilities.Description{Action: "open", Title: "Open a session", Sentence: "%s wants to work on this computer.", Risk: consent.RiskNormal}
	if p.Folder != "" {
		if wish := ss.wish(p.Folder); wish == "" {
			d.Details = append(d.Details, "It asked for the folder "+p.Folder+", which is not there or can't be lent.")
		}
	}
	if n := len(p.Env); n > 0 {
		d.Details = append(d.Details, fmt.Sprintf("It sets %d variables for its commands: %s", n, envNames(p.Env)))
	}
	if p.FolderOnly {
		// Nobody is asked about what cannot be opened.
		switch real, err := ss.lendable(p.Folder); {
		case err != nil:
			return capabilities.Description{}, err
		case real != p.Folder:
			return capabilities.Description{}, leadsElsewhere(p.Folder)
		}
		// Nor opened in another folder that has taken its place meanwhile.
		id, err := capabilities.FolderID(p.Folder)
		if err != nil {
			return capabilities.Description{}, folderError(p.Folder, err)
		}
		d.Fingerprint = fingerprintOf(p.Folder, id)
		if err := ss.m.chats.fits(p.SessionID, d.Fingerprint); err != nil {
			return capabilities.Description{}, err
		}
	}
	// Ids and clocks do not decide what is opened.
	d.Payload = []any{p.Folder, p.FolderOnly, p.Env, p.TTLSeconds}
	return d, nil
}

func tooLong() error {
	return wire.Errorf(wire.CodeInvalid, "A session lives for %d hours at most.", int(maxTTL.Hours()))
}

func envNames(env map[string]string) string {
	names := make([]string, 0, len(env))
	for k := range env {
		names = append(names, k)
	}
	slices.Sort(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}

// Run opens a session, sets its end, or closes it.
func (ss *sessions) Run(ctx context.Context, c capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
	d, err := ss.Describe(ctx, c)
	if err != nil {
		return capabilities.Result{}, err
	}
	if err := g.Check(consent.DigestOf(d.Payload), d.Fingerprint); err != nil {
		return capabilities.Result{}, err
	}
	switch p := c.Payload.(type) {
	case *wire.Metrics:
		return ss.m.metrics.run(ctx, p)
	case *wire.SessionTTL:
		s, err := ss.get(p.SessionID)
		if err != nil {
			return capabilities.Result{}, err
		}
		ss.setTTL(s, ttlOf(p.TTLSeconds))
		return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "ends in " + inWords(ttlOf(p.TTLSeconds))}, nil
	case *wire.SessionRef:
		if c.Type == wire.TypeSessionPause || c.Type == wire.TypeSessionResume {
			return ss.sleep(p.SessionID, c.Type == wire.TypeSessionPause)
		}
		if err := ss.end(ctx, p.SessionID, "The program closed its session.", g.Request()); err != nil {
			return capabilities.Result{}, err
		}
		return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "closed"}, nil
	}
	return ss.open(ctx, c.Payload.(*wire.SessionOpen), d.Fingerprint, g)
}

func (ss *sessions) open(ctx context.Context, p *wire.SessionOpen, fingerprint string, g consent.Grant) (_ capabilities.Result, err error) {
	choice := g.Choice()
	if p.FolderOnly && choice.Folder != p.Folder {
		return capabilities.Result{}, wire.Errorf(wire.CodeDenied, "Only the folder %s was asked for, and another one was allowed.", p.Folder)
	}
	folder, err := ss.prepare(choice.Folder)
	if err != nil {
		return capabilities.Result{}, err
	}
	id, err := capabilities.FolderID(folder)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && p.FolderOnly && fingerprintOf(folder, id) != fingerprint:
		return capabilities.Result{}, wire.Wrap(err, wire.CodeChanged, "The folder %s was replaced at this moment, so no session was opened there.", folder)
	case err != nil:
		return capabilities.Result{}, folderError(folder, err)
	}
	own := filepath.Join(ss.m.o.Paths.Sessions(), g.Request())
	defer func() {
		if err != nil {
			_ = os.RemoveAll(own)
		}
	}()
	for _, d := range []string{own, filepath.Join(own, "tmp"), filepath.Join(own, "cache")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return capabilities.Result{}, folderError(d, err)
		}
	}
	hub, hubName := ss.m.link.hub()
	now := time.Now()
	s := &session{
		Session: &capabilities.Session{ID: p.SessionID, Folder: folder, FolderID: id, Tmp: filepath.Join(own, "tmp"), Cache: filepath.Join(own, "cache"),
			Env: p.Env, Made: capabilities.NewMade(0)},
		who: asker{hub: hub, hubName: hubName, session: p.SessionID, folder: folder,
			principal: consent.Principal{ID: p.PrincipalID, Name: p.PrincipalName}, claims: consent.Claims{Agent: p.Agent, Title: p.Title}},
		opened: now, until: now.Add(ttlOf(p.TTLSeconds)), empty: make(chan struct{}), over: make(chan struct{}),
	}
	if err := ss.add(ctx, s); err != nil {
		return capabilities.Result{}, err
	}
	ss.put(s, choice.Mode)
	ttl := ttlOf(p.TTLSeconds)
	ss.setTTL(s, ttl)
	return capabilities.Result{Type: wire.TypeSessionOpened, Outcome: policy.ModeWords(choice.Mode) + " · " + folder,
		Payload: &wire.SessionOpened{Folder: folder, Mode: string(settled(choice.Mode)), TTLSeconds: int(ttl.Seconds())}}, nil
}

// add keeps a new session. Whoever ends all sessions has cancelled their
// requests before: one that was to open comes in before that, or not at all.
func (ss *sessions) add(ctx context.Context, s *session) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := ss.room(s.ID, s.who.hub, s.who.principal.ID); err != nil {
		return err
	}
	ss.all[s.ID] = s
	return nil
}

// room tells whether a program may open a session of that name. Called with mu
// held.
func (ss *sessions) room(id, hub, principal string) error {
	if _, taken := ss.all[id]; taken {
		return wire.Errorf(wire.CodeInvalid, "A session of this name is open already.")
	}
	n := 0
	for _, s := range ss.all {
		if s.who.hub == hub && s.who.principal.ID == principal {
			n++
		}
	}
	if n >= maxSessions {
		return wire.Errorf(wire.CodeOverloaded, "This program has %d sessions open on this computer already; close one first.", n)
	}
	return nil
}

func ttlOf(seconds int) time.Duration {
	if seconds == 0 {
		return defaultTTL
	}
	return time.Duration(seconds) * time.Second
}

// setTTL sets what is left of a session, counted from now.
func (ss *sessions) setTTL(s *session, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if !s.asleep.IsZero() {
		s.rest = ttl // counts from when it goes on
		return
	}
	s.until = time.Now().Add(ttl)
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(min(ttl, ss.look), func() { ss.lookAt(s) })
}

// lookAt ends a session whose time is over, and looks again later at one that has
// some left.
func (ss *sessions) lookAt(s *session) {
	s.mu.Lock()
	left := s.left(time.Now())
	if left > 0 && !s.gone {
		s.timer.Reset(min(left, ss.look))
	}
	s.mu.Unlock()
	if left > 0 {
		return
	}
	ss.m.background(func(ctx context.Context) {
		_ = ss.end(ctx, s.ID, "The session's time is over.", "")
	})
}

// left is how long a session has, by the clock that says less: the steady one,
// or the wall's. Called with mu held.
func (s *session) left(now time.Time) time.Duration {
	until := s.ends()
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// late tells whether a session's time is over.
func (s *session) late(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left(now) <= 0
}

// end ends a session: its requests, processes, grants and own directories. It
// waits until all that is done, or ctx ends. The request except is the one
// that asked for it.
func (ss *sessions) end(ctx context.Context, id, reason, except string) error {
	s, err := ss.get(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return sessionGone()
	}
	s.gone = true
	if s.in == 0 {
		close(s.empty)
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.over15 != nil {
		s.over15.Stop()
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	ss.m.flights.stop(id, stoppedBy(reason), except)
	var failed error
	for _, c := range ss.m.o.Executors {
		failed = errors.Join(failed, c.EndSession(ctx, id))
	}
	select {
	case <-s.empty:
	case <-ctx.Done():
		failed = errors.Join(failed, errors.New("requests of the session did not end"))
	}
	if err := ss.m.o.Store.EndSession(ctx, id); err != nil {
		failed = errors.Join(failed, err)
	}
	if err := os.RemoveAll(filepath.Dir(s.Tmp)); err != nil {
		ss.m.log.Warn("A session's own directory could not be removed", "err", err)
	}
	ss.mu.Lock()
	delete(ss.all, id)
	ss.mu.Unlock()
	close(s.over)
	ss.m.denied.over(id)
	ss.m.leave(s.Folder)
	if err := ss.m.o.Record.Happened(ctx, "session ended", s.who.principal.ID+": "+reason); err != nil {
		failed = errors.Join(failed, err)
	}
	if except == "" {
		ss.m.link.ended(id, reason)
	}
	ss.m.changed()
	if failed != nil {
		ss.m.log.Error("A session did not end cleanly", "err", failed)
		return wire.Wrap(failed, wire.CodeInternal, "The session has ended, but not everything of it could be cleared; this computer's log says what.")
	}
	return nil
}

func (ss *sessions) endAll(ctx context.Context, reason string) {
	var wg sync.WaitGroup
	for _, s := range ss.list() {
		wg.Go(func() { _ = ss.end(ctx, s.ID, reason, "") })
	}
	wg.Wait()
}

// ids are the open sessions, for HELLO.
func (ss *sessions) ids() []string {
	out := []string{}
	for _, s := range ss.list() {
		out = append(out, s.ID)
	}
	return out
}

func (ss *sessions) snapshot() []snapshot.Session {
	out := []snapshot.Session{}
	for _, s := range ss.list() {
		mode, trusted := s.modeAt(time.Now())
		s.mu.Lock()
		until, asleep := s.ends(), !s.asleep.IsZero()
		s.mu.Unlock()
		out = append(out, snapshot.Session{ID: s.ID, Principal: s.who.principal.Name, Agent: s.who.claims.Agent, Title: s.who.claims.Title,
			Folder: s.Folder, Mode: policy.ModeWords(mode), Since: s.opened, Until: until, Running: ss.m.runningIn(s.ID), Denied: ss.m.denied.of(s.ID), TrustedUntil: trusted, Asleep: asleep,
			CanUndo: ss.m.undoableIn(s.ID)})
	}
	return out
}

// folderError gives a folder's failure its sentence.
func folderError(folder string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.Wrap(err, wire.CodePathNotFound, "The folder %s is not there any more. Make it again, or choose another one.", folder)
	case errors.Is(err, fs.ErrPermission):
		return wire.Wrap(err, wire.CodeForbidden, "This computer's system does not let the folder %s be used.", folder)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return wire.Wrap(err, wire.CodeDiskFull, "This computer's disk is full, so no session can be opened.")
	}
	return wire.Wrap(err, wire.CodeInternal, "The folder %s can't be used; this computer's log says why.", folder)
}
