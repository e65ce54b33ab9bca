package machine

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/hub"
	hubstore "localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

// wayThere is the way between the machine and its hub, which can be cut.
type wayThere struct {
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	wg    sync.WaitGroup
}

func (n *wayThere) run(target string) {
	for {
		a, err := n.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", target)
		if err != nil {
			a.Close()
			continue
		}
		n.mu.Lock()
		n.conns = append(n.conns, a, b)
		n.mu.Unlock()
		n.wg.Go(func() { _, _ = io.Copy(b, a); b.Close() })
		n.wg.Go(func() { _, _ = io.Copy(a, b); a.Close() })
	}
}

func (n *wayThere) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

// elsewhere joins the machine to another hub, over a line, as its link does.
func (s *screensRig) elsewhere() (*hub.Hub, *wayThere) {
	s.t.Helper()
	h, url := tunneltest.Serve(s.t, hub.Options{Data: s.t.TempDir(), Name: "Another hub", Log: tunneltest.Log(s.t)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	n := &wayThere{l: l}
	n.wg.Go(func() { n.run(strings.TrimPrefix(url, "http://")) })
	s.t.Cleanup(func() { l.Close(); n.cut(); n.wg.Wait() })
	p := &tunneltest.Pair{Hub: h, URL: url, MachineID: "machine-2", States: make(chan tunnel.State, 1000)}
	p.Token, err = h.MachineToken(s.t.Context(), p.MachineID, "Mac-2")
	must(s.t, err)
	p.Client = tunneltest.Run(s.t, tunnel.Options{URL: "http://" + l.Addr().String(), Token: func(context.Context) (string, error) { return p.Token, nil },
		Hello: func() wire.Hello {
			return wire.Hello{Software: "localpc/test", Protocol: wire.Version, MachineID: p.MachineID, Platform: "linux", Arch: "amd64",
				Capabilities: []string{"files", "computer"}, Sessions: []string{}}
		},
		Status: func() wire.Status { return wire.Status{} }, Handler: s.m.dispatch, BackoffBase: 10 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Log: tunneltest.Log(s.t),
		OnState: func(st tunnel.State) {
			s.m.controls.void(st.Phase == tunnel.Offline)
			p.States <- st
		}})
	p.WaitFor(s.t, tunnel.Online)
	s.pair = p
	return h, n
}

func (s *screensRig) intend(in snapshot.Intent) {
	s.t.Helper()
	_, err := s.m.Intend(s.t.Context(), in)
	must(s.t, err)
}

// leave is what is remembered that allows an action.
func (s *screensRig) leave(action string) consent.Stored {
	s.t.Helper()
	all, err := s.m.o.Store.Remembered(s.t.Context(), "", "")
	must(s.t, err)
	i := slices.IndexFunc(all, func(g consent.Stored) bool {
		return g.Rule.Capability == consent.CapabilityComputer && g.Rule.Action == action
	})
	if i < 0 {
		s.t.Fatalf("there is no leave to %s among %+v", action, all)
	}
	return all[i]
}

// Each way in which sight and control end: what is under way stops, all that is
// held is let go, frame and strip go, all within a second, and what is asked for
// afterwards is refused.
func TestWhatEndsWithSight(t *testing.T) {
	const asked, goesOn = "asked", "goes on" // afterwards: the person is asked anew, nobody is
	for name, end := range map[string]struct {
		before func(*screensRig) // ready for it, at work already
		do     func(*screensRig)
		again  func(*screensRig) // what has to be mended before something is asked for
		after  string            // the code of a refusal, or one of the above
	}{
		"mouse revoked": {do: func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.Revoke, Text: s.leave("act").ID}) }, after: asked},
		"all revoked":   {do: func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.Revoke}) }, after: asked},
		"session ended": {do: func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.EndSession, Entry: "s1"}) }, after: string(wire.CodeSessionNotOpen)},
		"session closed": {do: func(s *screensRig) {
			_, err := s.call(wire.TypeSessionClose, &wire.SessionRef{SessionID: "s1"})
			must(s.t, err)
		}, after: string(wire.CodeSessionNotOpen)},
		"session's time over": {do: func(s *screensRig) {
			one, err := s.m.sessions.get("s1")
			must(s.t, err)
			s.m.sessions.setTTL(one, time.Millisecond)
		}, after: string(wire.CodeSessionNotOpen)},
		"paused":       {do: func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.Pause}) }, after: string(wire.CodePaused)},
		"stopped":      {do: func(s *screensRig) { s.intend(snapshot.Intent{Kind: snapshot.StopAll}) }, after: string(wire.CodePaused)},
		"stop key":     {do: func(s *screensRig) { s.d.tell(hands.Event{Stop: true}) }, after: string(wire.CodePaused)},
		"tunnel cut":   {do: func(s *screensRig) { s.line.cut() }, again: func(s *screensRig) { s.pair.WaitFor(s.t, tunnel.Online) }, after: goesOn},
		"hub gone":     {do: func(s *screensRig) { must(s.t, s.other.Close()) }, after: string(wire.CodeOffline)},
		"sign-in over": {do: func(s *screensRig) { s.m.link.fail(tunnel.ErrRevoked) }, after: goesOn},
		"shared screen removed": {do: func(s *screensRig) {
			s.d.set(func() { s.d.layout = space.Layout{Screens: s.d.layout.Screens[1:]} })
			s.d.tell(hands.Event{Screens: true, At: time.Now()})
		}, again: func(s *screensRig) {
			soon(s.t, "Activity says that the shared screen is gone", func() bool {
				_, ok := s.entry("Screen, mouse and keyboard: ended, the shared screen is gone")
				return ok
			})
		}, after: string(wire.CodePictureStale)},
		"a quarter of an hour over": {before: func(s *screensRig) {
			g := s.leave("act")
			g.Scope, g.Session, g.Created = consent.Minutes15, "", time.Now().Add(-consent.TrustedFor+1500*time.Millisecond)
			g.Expires = g.Created.Add(consent.TrustedFor)
			must(s.t, s.m.o.Store.Remember(s.t.Context(), g))
			s.m.changed()
		}, do: func(s *screensRig) { time.Sleep(time.Until(s.leave("act").Expires)) }, after: asked},
		"looking only": {do: func(s *screensRig) {
			s.intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "computer", Way: "see"})
		}, after: string(wire.CodeDenied)},
		"switched off": {do: func(s *screensRig) {
			s.intend(snapshot.Intent{Kind: snapshot.SetCapability, Text: "computer", Way: "off"})
		}, after: string(wire.CodeDenied)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{})
			s.other, s.line = s.elsewhere()
			_, err := s.see()
			must(t, err)
			must(t, s.act(wire.ActMouseDown))
			if end.before != nil {
				end.before(s)
			}
			stopped := make(chan error, 1)
			go func() {
				_, err := s.pair.Hub.Call(t.Context(), hubstore.Sandbox{User: hubstore.OwnerID, Machine: s.pair.MachineID}, wire.TypeInput,
					&wire.InputAction{SessionID: "s1", Action: wire.ActHoldKey, Key: "a", DurationMS: 300_000})
				stopped <- err
			}()
			soon(t, "the key is held", func() bool { return of(s.d, func() bool { return s.d.keys > 0 && s.d.button }) || len(stopped) > 0 })
			if c := s.m.Snapshot().Control; c == nil || !c.Acts || !s.d.frame().On {
				t.Fatalf("it acts, and %+v is in control, the frame is %+v", c, s.d.frame())
			}
			end.do(s)
			begin := time.Now()
			soon(t, "key and button are let go", func() bool { return !s.d.held() })
			soon(t, "the frame goes", func() bool { return !s.d.frame().On })
			// A pause keeps it, with Resume.
			soon(t, "the strip goes", func() bool { return (s.m.Snapshot().Control != nil) == (name == "paused") })
			if took := time.Since(begin); took > time.Second {
				t.Errorf("that took %v", took)
			}
			if err := within(t, "an answer", stopped); err == nil {
				t.Error("what was under way is said to be done")
			}
			if end.again != nil {
				end.again(s)
			}
			s.person.mu.Lock()
			s.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, true } // Deny
			s.person.mu.Unlock()
			cards, done := s.cards(), s.d.actions()
			err = s.act(wire.ActKey)
			switch {
			case end.after == goesOn:
				must(t, err)
				if !s.d.frame().On {
					t.Error("it acts without a frame")
				}
			case end.after == asked:
				wantCode(t, err, wire.CodeDenied)
			default:
				wantCode(t, err, wire.Code(end.after))
			}
			if again := s.cards() > cards; again != (end.after == asked) {
				t.Errorf("the person was asked again: %v", again)
			}
			if acted := s.d.actions() > done; acted != (end.after == goesOn) || end.after != goesOn && (s.d.held() || s.d.frame().On) {
				t.Errorf("it acted again: %v; held %v, frame %+v", acted, s.d.held(), s.d.frame())
			}
		})
	}
}

// A screen that is away for a moment, while the screens are changed, takes nothing
// along but what was under way.
func TestScreensThatComeBack(t *testing.T) {
	s := newScreens(t, computer.Options{})
	_, err := s.see()
	must(t, err)
	must(t, s.act(wire.ActMouseDown))
	before := s.d.layout
	s.d.set(func() { s.d.layout = space.Layout{Screens: before.Screens[1:]} })
	s.d.tell(hands.Event{Screens: true, At: time.Now()})
	soon(t, "the button is let go", func() bool { return !s.d.held() })
	s.d.set(func() { s.d.layout = before })
	s.d.tell(hands.Event{Screens: true, At: time.Now()})
	time.Sleep(screensStay + 300*time.Millisecond)
	cards := s.cards()
	_, err = s.see()
	must(t, err)
	must(t, s.act(wire.ActKey))
	if s.cards() != cards || !s.d.frame().On {
		t.Errorf("%d questions more; the frame is %+v", s.cards()-cards, s.d.frame())
	}
}

// What something else still allows goes on when leave for a quarter of an hour
// is over, or is taken away.
func TestWhatIsAllowedTwiceGoesOn(t *testing.T) {
	for name, end := range map[string]func(*screensRig, consent.Stored){
		"over":    func(s *screensRig, g consent.Stored) { time.Sleep(time.Until(g.Expires) + 700*time.Millisecond) },
		"revoked": func(s *screensRig, g consent.Stored) { s.intend(snapshot.Intent{Kind: snapshot.Revoke, Text: g.ID}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{})
			_, err := s.see()
			must(t, err)
			must(t, s.act(wire.ActMouseDown))
			for _, action := range []string{"see", "act"} {
				g := s.leave(action)
				g.ID, g.Scope, g.Session, g.Created = consent.NewID(), consent.Minutes15, "", time.Now().Add(-consent.TrustedFor+1500*time.Millisecond)
				g.Expires = g.Created.Add(consent.TrustedFor)
				must(t, s.m.o.Store.Remember(t.Context(), g))
				s.m.changed()
				end(s, g)
				if !s.d.held() || !s.d.frame().On || s.m.Snapshot().Control == nil {
					t.Errorf("leave to %s has ended what the session was allowed", action)
				}
			}
			cards := s.cards()
			if _, err := s.see(); err != nil || s.act(wire.ActKey) != nil || s.cards() != cards {
				t.Errorf("%v, and the person was asked again: %v", err, s.cards() > cards)
			}
		})
	}
}

// Leave for a time ends although what is remembered can't be read.
func TestATimeEndsUnread(t *testing.T) {
	s := newScreens(t, computer.Options{})
	must(t, s.act(wire.ActKey))
	g := s.leave("act")
	g.Scope, g.Session, g.Created, g.Expires = consent.Minutes15, "", time.Now(), time.Now().Add(consent.TrustedFor)
	must(t, s.m.o.Store.Remember(t.Context(), g))
	c := newControls(s.m) // with a clock of the test's own
	if c.overdue(); len(c.timed) != 1 {
		t.Fatalf("held are %+v", c.timed)
	}
	must(t, s.m.o.Store.Close())
	s.m.lists.mu.Lock()
	s.m.lists.known = false
	s.m.lists.mu.Unlock()
	if wait := c.overdue(); len(c.timed) != 1 || wait > overdueAgain {
		t.Errorf("held are %+v, it looks again after %v", c.timed, wait)
	}
	g.Expires = time.Now().Add(-time.Second)
	c.timed[g.ID] = g
	if c.overdue(); len(c.timed) != 0 || s.m.Snapshot().Control != nil {
		t.Errorf("its time is over; held are %+v, in control is %+v", c.timed, s.m.Snapshot().Control)
	}
}
