package machine

import (
	"context"
	"fmt"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
)

// publishEvery bounds how often a snapshot goes out; between changes nothing
// wakes.
const publishEvery = 100 * time.Millisecond

// publisher makes a snapshot after each change, and hands it on.
type publisher struct {
	m    *Machine
	wake chan struct{}
	seq  uint64
}

func newPublisher(m *Machine) *publisher {
	return &publisher{m: m, wake: make(chan struct{}, 1)}
}

func (p *publisher) kick() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *publisher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		s := p.m.Snapshot()
		p.seq++
		s.Seq = p.seq
		if p.m.o.Hooks.Publish != nil {
			p.m.o.Hooks.Publish(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(publishEvery):
		}
	}
}

// Snapshot is the state at this moment.
func (m *Machine) Snapshot() snapshot.Snapshot {
	set := m.o.Settings.Get()
	s := snapshot.Snapshot{Machine: set.Name, Waiting: m.asks.Waiting(), Sessions: m.sessions.snapshot()}
	s.Grants, s.Programs, s.Capabilities, s.Settings = m.shownGrants(), m.programs(), m.shownCapabilities(), m.shownSettings(set)
	s.Entries, s.Today = m.journal.entries(m.leftIn)
	link := m.link.state()
	s.Hub, s.Secrets = link.hub, m.secretsAre()
	s.Problem, s.Fix, s.FixLabel = link.problem, link.fix, link.fixLabel
	m.mu.Lock()
	s.Paused, s.Stopped, s.Connect, s.Record = m.paused, m.stopped, m.connect, m.checked
	s.Warnings, s.Standing, s.Policy = m.loud(link.warning), m.o.Standing, m.o.Policy.Words()
	m.mu.Unlock()
	s.Connect.AutoGPT, s.Connect.AutoGPTUsual = shownAutoGPT(set.AutoGPT), shownAutoGPT(settings.DefaultAutoGPT)
	s.Connect.Clients, s.Connect.Any, s.Connect.AnyName = m.clients.shown(link.hub.Kind, link.hub.Address)
	s.Control = m.controls.shown()
	working := ""
	for _, sess := range s.Sessions {
		if sess.Running > 0 {
			working = consent.Visible(sess.Principal, false)
		}
	}
	switch {
	case s.Waiting > 0:
		s.State, s.Line = snapshot.NeedsYou, fmt.Sprintf("%d questions wait for you", s.Waiting)
		if s.Waiting == 1 {
			s.Line = "1 question waits for you"
		}
	case link.signIn:
		s.State, s.Line = snapshot.SignIn, "Sign in again"
	case s.Stopped != nil:
		s.State, s.Line = snapshot.Paused, "Everything stopped"
	case s.Paused && working != "":
		s.State, s.Line = snapshot.Paused, "Paused · "+working+" is still working"
	case s.Paused:
		s.State, s.Line = snapshot.Paused, "Paused · nothing new runs"
	case s.Control != nil && s.Control.Acts:
		s.State, s.Line = snapshot.Working, s.Control.Who+" uses mouse and keyboard"
	case s.Control != nil:
		s.State, s.Line = snapshot.Working, s.Control.Who+" sees your screen"
	case working != "":
		s.State, s.Line = snapshot.Working, working+" is working"
	case s.Hub.Online && len(s.Sessions) > 0:
		s.State, s.Line = snapshot.Online, "Online · 1 session open"
		if n := len(s.Sessions); n > 1 {
			s.Line = fmt.Sprintf("Online · %d sessions open", n)
		}
	case s.Hub.Online:
		s.State, s.Line = snapshot.Online, "Online · nothing is running"
	case !s.Hub.Paired:
		s.State, s.Line = snapshot.Offline, "Not paired yet"
	default:
		s.State, s.Line = snapshot.Offline, "Offline"
	}
	return s
}

// inWords is a length of time for people: "2 hours", "40 seconds".
func inWords(d time.Duration) string {
	n, unit := int(d.Seconds()), "second"
	switch {
	case d >= 2*time.Hour:
		n, unit = int(d.Hours()), "hour"
	case d >= 2*time.Minute:
		n, unit = int(d.Minutes()), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
