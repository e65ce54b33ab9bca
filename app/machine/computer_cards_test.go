package machine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/capabilities/computer"
	"localpc/capabilities/computer/hands"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// A card that lies over where the action goes shows what was there before.
func TestACardDoesNotHideWhatItAsksAbout(t *testing.T) {
	for name, before := range map[string]bool{"nothing lay there before": false, "another card lay there": true} {
		t.Run(name, func(t *testing.T) {
			s := newScreens(t, computer.Options{})
			if _, err := s.see(); err != nil {
				t.Fatal(err)
			}
			yes := true
			_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{PerAction: &yes}})
			must(t, err)
			s.d.set(func() { s.d.under = before })
			open := make(chan consent.Request, 1)
			s.person.answer = func(r consent.Request) (consent.Answer, bool) {
				s.d.set(func() { s.d.under = true })
				open <- r
				return consent.Answer{}, false
			}
			done := make(chan error, 1)
			go func() { done <- s.act(wire.ActMouseDown) }()
			card := within(t, "a card", open)
			var got consent.Look
			soon(t, "a picture", func() bool {
				all := s.l.seenLooks()
				if len(all) > 0 {
					got = all[len(all)-1]
				}
				return got.Request == card.ID
			})
			if said := strings.Contains(got.Note, "before this card opened"); said == before || len(got.Data) == 0 || len(got.Covers) > 0 != before {
				t.Errorf("the card's picture: %q, %d covered, %d bytes", got.Note, len(got.Covers), len(got.Data))
			}
			must(t, s.m.asks.Answer(card.ID, consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once}}))
			must(t, within(t, "the press", done))
		})
	}
}

// A card opens although the picture from before it is slow to come.
func TestACardDoesNotWaitForItsPicture(t *testing.T) {
	s := newScreens(t, computer.Options{})
	s.m.controls.find(t.Context())
	p := &wire.InputAction{SessionID: "s1", Action: wire.ActLeftClick, Coordinate: &wire.Point{70, 80}}
	r := consent.Request{Session: "s1", Looks: true}
	one, err := s.m.sessions.get("s1")
	must(t, err)
	defer s.m.controls.asks(r, capabilities.Call{Type: wire.TypeInput, Payload: p, Session: one.Session})()
	s.m.controls.ops.Lock() // the frame is being drawn
	opens := make(chan error, 1)
	go func() { s.m.controls.firstLook(t.Context(), r); opens <- nil }()
	select {
	case <-opens:
	case <-time.After(20 * time.Second):
		t.Error("the card waits for the frame")
	}
	s.m.controls.ops.Unlock()
}

func TestCardsShowWhatWouldBeSeen(t *testing.T) {
	s := newScreens(t, computer.Options{})
	open := make(chan consent.Request, 4)
	s.person.answer = func(r consent.Request) (consent.Answer, bool) { open <- r; return consent.Answer{}, false }
	done := make(chan error, 1)
	go func() { _, err := s.see(); done <- err }()
	card := within(t, "a card", open)
	soon(t, "both screens are pictured", func() bool {
		seen := map[string]bool{}
		for _, l := range s.l.seenLooks() {
			seen[l.Screen] = l.Request == card.ID && len(l.Data) > 0
		}
		return seen["DP-1"] && seen["HDMI-1"]
	})
	if f := s.d.frame(); f.On || !slices.Equal(f.Own, []int{ownPID}) {
		t.Errorf("before it is allowed the frame is %+v", f)
	}
	// While it is open the agent's hands are still, whoever has leave.
	must(t, s.m.o.Store.Remember(context.Background(), consent.Stored{ID: "g", Scope: consent.Session, Session: "s1", Created: time.Now(), Rule: consent.Rule{
		Hub: card.Hub, Principal: card.Principal.ID, Folder: card.Folder, Capability: "computer", Action: "act", Exact: "mouse and keyboard", Effects: "control"}}))
	wantCode(t, s.act(wire.ActKey), wire.CodePaused)
	if s.d.actions() != 0 {
		t.Error("it acted while a card was open")
	}
	soon(t, "that is in the log", func() bool {
		e, ok := s.entry("Press a")
		return ok && e.Outcome == snapshot.Failed
	})
	must(t, s.m.asks.Answer(card.ID, consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Session, Screens: "DP-1"}}))
	must(t, within(t, "the picture", done))
	must(t, s.act(wire.ActKey))
	shots := len(s.l.seenLooks())
	time.Sleep(1200 * time.Millisecond)
	if n := len(s.l.seenLooks()); n != shots {
		t.Errorf("%d pictures after the card had gone", n-shots)
	}

	// Each action by itself, with its target marked.
	yes := true
	_, err := s.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{PerAction: &yes}})
	must(t, err)
	click := func() error {
		_, err := s.call(wire.TypeInput, &wire.InputAction{SessionID: "s1", Action: wire.ActLeftClick, Coordinate: &wire.Point{70, 80}})
		return err
	}
	go func() { done <- click() }()
	card = within(t, "a card for the click", open)
	if card.Sentence != "Research agent wants to click at 70, 80 on screen 1." || len(card.Scopes) != 1 {
		t.Errorf("the card is %+v", card)
	}
	soon(t, "the target is marked", func() bool {
		marked := of(s.d, func() bool {
			a := s.d.asks[len(s.d.asks)-1]
			return len(a.Mark) == 1 && a.Mark[0].X == 70 && a.Mark[0].Y == 80
		})
		looks := s.l.seenLooks()
		return marked && looks[len(looks)-1].Request == card.ID
	})
	must(t, s.m.asks.Answer(card.ID, consent.Answer{Allow: true, Choice: consent.Choice{Scope: consent.Once}}))
	must(t, within(t, "the press", done))
	go func() { done <- click() }()
	card = within(t, "a card for the next", open)
	must(t, s.m.asks.Answer(card.ID, consent.Answer{}))
	wantCode(t, within(t, "the refusal", done), wire.CodeDenied)
}

// The system's own question is not asked anew each second where it was answered
// with no; where no system asks, a picture comes as soon as there is one.
func TestCardsTakeNoForAnAnswer(t *testing.T) {
	for _, system := range []string{"wayland", "x11"} {
		s := newScreens(t, computer.Options{})
		s.d.set(func() { s.d.system, s.d.shootErr = system, wire.Errorf(wire.CodeBlank, "It was answered with no.") })
		s.person.answer = func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false }
		go s.see()
		soon(t, "the card says why there is no picture", func() bool { return len(s.l.seenLooks()) > 1 })
		asked := of(s.d, func() int { return len(s.d.asks) })
		s.d.set(func() { s.d.shootErr = nil })
		if system == "x11" {
			soon(t, "there is a picture", func() bool { l := s.l.seenLooks(); return len(l[len(l)-1].Data) > 0 })
			continue
		}
		time.Sleep(2500 * time.Millisecond)
		if n := of(s.d, func() int { return len(s.d.asks) }); n != asked {
			t.Errorf("it was asked %d times more", n-asked)
		}
	}
}

// While the person reads the system's own question the card waits for its
// picture as long as it is open, and says where the question is.
func TestCardsWaitForTheSystemsQuestion(t *testing.T) {
	s := newScreens(t, computer.Options{})
	answered := make(chan struct{})
	s.d.set(func() { s.d.system, s.d.question = hands.Wayland, answered })
	open := make(chan consent.Request, 1)
	s.person.answer = func(r consent.Request) (consent.Answer, bool) { open <- r; return consent.Answer{}, false }
	go s.see()
	card := within(t, "a card", open)
	soon(t, "the card says where the question is", func() bool {
		said := map[string]bool{}
		for _, l := range s.l.seenLooks() {
			said[l.Screen] = l.Note == systemAsksWords && len(l.Data) == 0 && l.Request == card.ID
		}
		return said["DP-1"] && said["HDMI-1"]
	})
	if got, left := of(s.d, func() time.Duration { return s.d.patient }), time.Until(card.Deadline); got < left-time.Second {
		t.Errorf("the question may stay for %v, the card for %v more", got, left)
	}
	close(answered)
	soon(t, "both screens are pictured", func() bool {
		seen := map[string]bool{}
		for _, l := range s.l.seenLooks() {
			seen[l.Screen] = len(l.Data) > 0
		}
		return seen["DP-1"] && seen["HDMI-1"]
	})
}
