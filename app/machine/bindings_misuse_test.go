package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// What the person allowed one chat for next time is no other chat's, though
// both work in one folder.
func TestAllowNextIsOneChats(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.start("chat-2")
	r.waits()
	back := make(chan error, 1)
	go func() { back <- r.write("chat-1", "a", "x") }()
	card := r.card(3)
	r.m.asks.Lost(r.person)
	wantWord(t, within(t, "the request", back), wire.CodeUndelivered)
	_, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.AllowNext, Entry: card.ID})
	must(t, err)
	r.no()
	wantWord(t, r.write("chat-2", "a", "x"), wire.CodeDenied)
	r.cards(4)
	r.mode = consent.ModeAsk
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Once), true })
	must(t, r.write("chat-1", "a", "x"))
	if got := r.person.seen(); len(got) != 5 || got[4].Capability == consent.CapabilitySession {
		t.Errorf("the chat that it was allowed was asked again: %d cards", len(got))
	}
}

// A folder that takes the place of the one on the card, while it is open or
// before, is not what the person or the binding meant.
func TestTheFolderUnderACardIsReplaced(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before the card: ", before), func(t *testing.T) {
			r := newChatRig(t)
			r.start("chat-1")
			swap := func() {
				must(t, os.Rename(r.folder, r.folder+"-old"))
				must(t, os.Mkdir(r.folder, 0o755))
			}
			cards := 1
			if before {
				swap()
			} else {
				cards = 2
				r.says(func(q consent.Request) (consent.Answer, bool) { swap(); return r.yes(q, consent.Once), true })
			}
			wantWord(t, r.write("chat-1", "a", "x"), wire.CodeChanged)
			r.cards(cards)
			if len(r.m.sessions.list()) != 0 {
				t.Error("a session was opened")
			}
			for _, dir := range []string{r.folder, r.folder + "-old"} {
				if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
					t.Errorf("written in %s", dir)
				}
			}
		})
	}
}

// To activate what is active is no way around a no.
func TestActivatingAgainIsNoNewQuestion(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.no()
	wantWord(t, r.write("chat-1", "a", "x"), wire.CodeDenied)
	b := r.c.get("chat-1")
	for range 3 {
		_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
		must(t, err)
		_, err = r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: b.grant})
		must(t, err)
		wantWord(t, r.write("chat-1", "a", "x"), wire.CodeDenied)
	}
	r.cards(2)
}

// However much a chat asks before its session is allowed, what waits is
// bounded.
func TestFewWaitForASession(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.waits()
	ctx, cancel := context.WithCancelCause(t.Context())
	back := make(chan error, maxOfSession)
	for i := range maxOfSession {
		go func() {
			back <- r.ask(ctx, &line{body: []byte("x")}, wire.TypeFileWrite, &wire.FileWrite{SessionID: "chat-1", Path: fmt.Sprint("f", i)})
		}()
	}
	r.until("all to wait", func() bool {
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		b := r.c.get("chat-1")
		return b.opening != nil && b.opening.waiting == maxOfSession
	})
	wantWord(t, r.write("chat-1", "one more", "x"), wire.CodeOverloaded)
	r.card(2) // it is on its way
	r.cards(2)
	cancel(wire.Errorf(wire.CodeLost, "The connection was lost."))
	for range maxOfSession {
		wantWord(t, within(t, "a request", back), wire.CodeLost)
	}
	r.until("the card to go", func() bool { return r.m.asks.Waiting() == 0 })
}

// A binding that is forgotten for others takes its session along: nobody else
// would end it.
func TestAForgottenBindingsSessionEnds(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-0")
	must(t, r.write("chat-0", "a", "x"))
	r.c.Stopped("chat-0")
	for i := range maxBound {
		r.attach(fmt.Sprint("other-", i), r.folder)
	}
	r.until("the session to end", func() bool { return len(r.m.sessions.list()) == 0 })
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-0", Revision: 1})
	wantWord(t, err, autogpt.CodeNotAttached)
}

// What AutoGPT's platform was allowed always is not allowed a platform that is
// somewhere else, nor another client of it.
func TestAllowedAlwaysIsOnePlatforms(t *testing.T) {
	usual := settings.Settings{AutoGPT: settings.DefaultAutoGPT}
	if id := idOf(settings.HubAutoGPT, usual); id != settings.HubAutoGPT {
		t.Errorf("the public platform is %q", id)
	}
	if id := idOf("https://hub.example", usual); id != "https://hub.example" {
		t.Errorf("an own hub is %q", id)
	}
	seen := map[string]bool{settings.HubAutoGPT: true}
	for _, change := range []func(*settings.AutoGPT){
		func(a *settings.AutoGPT) { a.WS = "wss://other.example" }, func(a *settings.AutoGPT) { a.API = "https://other.example" },
		func(a *settings.AutoGPT) { a.Web = "https://other.example" }, func(a *settings.AutoGPT) { a.ClientID = "other" },
	} {
		s := usual
		change(&s.AutoGPT)
		id := idOf(settings.HubAutoGPT, s)
		if seen[id] {
			t.Errorf("%+v is %q, as another one", s.AutoGPT, id)
		}
		seen[id] = true
	}

	r := newChatRig(t)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Always), true })
	r.find(r.folder)
	r.cards(1)
	r.find(r.folder)
	r.cards(1)
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) {
		s.AutoGPT.WS = "ws://127.0.0.1:1"
	}))
	r.m.link.begin(settings.HubAutoGPT)
	t.Cleanup(r.m.link.end)
	r.no()
	_, err := r.c.List(t.Context(), autogpt.DirectoryList{})
	wantWord(t, err, wire.CodeDenied)
	r.cards(2)
}

// To end what is not there leaves no trace, however often it is asked for.
func TestDetachingNothingIsNotRecorded(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	seq, _ := r.m.o.Record.Head()
	for i := range 100 {
		must(t, r.c.Detach(t.Context(), fmt.Sprint("unknown-", i)))
	}
	if now, _ := r.m.o.Record.Head(); now != seq {
		t.Errorf("%d entries were written", now-seq)
	}
	must(t, r.c.Detach(t.Context(), "chat-1"))
	if now, _ := r.m.o.Record.Head(); now == seq {
		t.Error("the end of a chat is not in the record")
	}
}
