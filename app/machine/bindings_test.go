package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// The first look at folder names asks; a binding asks nothing and lends
// nothing; the chat's first request asks for the session, in that folder alone.
func TestAChatFromTheFirstLookToItsFirstFile(t *testing.T) {
	r := newChatRig(t)
	chat := "7d0c2f6e-1a34-4f0b-9a53-2f2f5f7c1b10"
	b := r.start(chat)
	if b.AllowedRoot != r.folder || b.Revision != 1 || b.SessionID != chat || !strings.HasPrefix(b.RootGrant, "v1.") {
		t.Errorf("bound %+v", b)
	}
	r.cards(1)
	first := r.card(1)
	if first.Capability != "folders" || first.Sentence != "AutoGPT wants to see the names of your folders." || first.Exact != os.Getenv("HOME") || fmt.Sprint(first.Scopes) != "[once session always]" {
		t.Errorf("the first card is %+v", first)
	}
	if n := len(r.m.sessions.list()); n != 0 {
		t.Errorf("%d sessions are open after a binding", n)
	}
	must(t, r.write(chat, "note.txt", "hello"))
	r.cards(2)
	card := r.card(2)
	if !card.FolderOnly || card.Folder != r.folder || card.Principal != (consent.Principal{ID: "platform", Name: "AutoGPT"}) || card.Claims.Title != "Chat 7d0c2f6e…" {
		t.Errorf("the session's card is %+v", card)
	}
	if info := r.m.cardInfo(card); !info.FolderOnly || fmt.Sprint(info.Folders) != fmt.Sprint([]string{r.folder}) {
		t.Errorf("it offers %+v", info)
	}
	if left := time.Until(card.Deadline); left < 9*time.Minute {
		t.Errorf("the card stays for %s", left)
	}
	if text, err := os.ReadFile(filepath.Join(r.folder, "note.txt")); err != nil || string(text) != "hello" {
		t.Errorf("written %q, %v", text, err)
	}
	// All of it is in the log, the newest first.
	var log []string
	for _, e := range r.m.Snapshot().Entries {
		log = append(log, e.What+": "+string(e.Outcome))
	}
	want := []string{"Write note.txt: done", "Open a session: done", "Connect a chat in " + r.folder + ": done", "Bind a chat to " + r.folder + ": done",
		"See the folders in " + os.Getenv("HOME") + ": done", "See the names of your folders: done"}
	if fmt.Sprint(log) != fmt.Sprint(want) {
		t.Errorf("the log is\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
}

func TestBrowsingIsOffUntilAllowed(t *testing.T) {
	r := newChatRig(t)
	list := func() error { _, err := r.c.List(t.Context(), autogpt.DirectoryList{}); return err }
	r.no()
	wantWord(t, list(), wire.CodeDenied)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Once), true })
	must(t, list())
	must(t, list()) // once is for one look
	r.cards(3)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Session), true })
	must(t, list())
	must(t, list())
	r.cards(4)
	r.m.link.set(func(v *linkState) { v.id = "https://other.example" })
	r.says(func(consent.Request) (consent.Answer, bool) {
		return consent.Answer{Choice: consent.Choice{Scope: consent.Session}}, true
	})
	wantWord(t, list(), wire.CodeDenied) // another hub has no part in it
	wantWord(t, list(), wire.CodeDenied)
	r.cards(5) // the no holds, too
}

// What is remembered for a folder holds for each chat that is bound to it, and
// for no other folder.
func TestAFolderRememberedForChats(t *testing.T) {
	r := newChatRig(t)
	other := filepath.Join(os.Getenv("HOME"), "other")
	must(t, os.Mkdir(other, 0o755))
	r.says(func(q consent.Request) (consent.Answer, bool) {
		a := r.yes(q, consent.Session)
		a.Choice.Remember = q.Capability == consent.CapabilitySession
		return a, true
	})
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	r.start("chat-2")
	must(t, r.write("chat-2", "b", "x"))
	r.cards(2)
	b := r.attach("chat-3", other)
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-3", Revision: b.Revision})
	must(t, err)
	must(t, r.write("chat-3", "c", "x"))
	if card := r.card(3); card.Folder != other {
		t.Errorf("the third card is for %s", card.Folder)
	}
}

// A session that is just ending is waited for, and asked for anew.
func TestAChatWhoseSessionEnds(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	s := r.m.sessions.list()[0]
	must(t, r.m.sessions.end(t.Context(), s.ID, "The session's time is over.", ""))
	must(t, r.write("chat-1", "b", "x"))
	r.cards(3)
	// One request does not want to go; the next waits until the session is over.
	s = r.m.sessions.list()[0]
	if !s.enter() {
		t.Fatal("the session is ending already")
	}
	over := make(chan error, 1)
	go func() { over <- r.m.sessions.end(context.Background(), s.ID, "The session's time is over.", "") }()
	r.until("the session to end", s.ending)
	back := make(chan error, 1)
	go func() { back <- r.write("chat-1", "c", "x") }()
	select {
	case err := <-back:
		t.Fatalf("not waited for: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.leave()
	must(t, within(t, "the end", over))
	must(t, within(t, "the request", back))
	r.cards(4)
}

func TestBrowsingAllowedAlways(t *testing.T) {
	r := newChatRig(t)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Always), true })
	browse, ref := r.find(r.folder)
	ended(r.m)
	must(t, r.m.o.Store.Close())
	r.m = openMachine(t, r.m.o.Paths)
	r.join()
	r.no()
	browse, ref = r.find(r.folder)
	r.cards(0)
	stored, err := r.m.o.Store.Remembered(t.Context(), settings.HubAutoGPT, "platform")
	must(t, err)
	if len(stored) != 1 || stored[0].Scope != consent.Always {
		t.Fatalf("remembered: %+v", stored)
	}
	if words := policy.RuleWords(stored[0].Rule, stored[0].Choice); words != "See the names of folders on this computer" {
		t.Errorf("it reads %q", words)
	}
	// Revoked, it ends at once, a look that has begun with it too.
	if _, err := r.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.Revoke, Text: stored[0].ID}); err != nil {
		t.Fatal(err)
	}
	_, err = r.c.List(t.Context(), autogpt.DirectoryList{BrowseID: &browse, DirectoryRef: &ref})
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	_, err = r.c.List(t.Context(), autogpt.DirectoryList{})
	wantWord(t, err, wire.CodeDenied)
}

func TestPauseHoldsBindingsUp(t *testing.T) {
	r := newChatRig(t)
	b := r.start("chat-1")
	browse, ref := r.find(r.folder)
	must(t, r.m.pause(t.Context()))
	_, err := r.c.List(t.Context(), autogpt.DirectoryList{})
	wantWord(t, err, wire.CodePaused)
	_, err = r.c.List(t.Context(), autogpt.DirectoryList{BrowseID: &browse, DirectoryRef: &ref})
	wantWord(t, err, wire.CodePaused)
	_, err = r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat-2", BrowseID: browse, DirectoryRef: ref})
	wantWord(t, err, wire.CodePaused)
	_, err = r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	wantWord(t, err, wire.CodePaused)
	_, err = r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: b.RootGrant})
	wantWord(t, err, wire.CodePaused)
	wantWord(t, r.write("chat-1", "a", "x"), wire.CodePaused)
	// It says nothing lasting about the chat, and an end is always taken.
	must(t, r.m.resume(t.Context()))
	must(t, r.write("chat-1", "a", "x"))
	must(t, r.m.pause(t.Context()))
	must(t, r.c.Detach(t.Context(), "chat-1"))
}

func TestOneCardForAllThatWait(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.waits()
	ctx, leave := context.WithCancel(t.Context())
	back := make(chan error, 3)
	first := make(chan error, 1)
	go func() {
		first <- r.ask(ctx, &line{}, wire.TypeFileStat, &wire.FileStat{SessionID: "chat-1", Path: "."})
	}()
	card := r.card(2)
	for i := range 3 {
		go func() { back <- r.write("chat-1", fmt.Sprint("f", i), "x") }()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r.c.mu.Lock()
		o := r.c.bound["chat-1"].opening
		n := 0
		if o != nil {
			n = o.waiting
		}
		r.c.mu.Unlock()
		if n == 4 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d requests wait", n)
		}
	}
	// The one that raised it goes; the others wait on.
	leave()
	if err := within(t, "the first", first); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	must(t, r.m.asks.Answer(card.ID, r.yes(card, consent.Session)))
	for range 3 {
		must(t, within(t, "a request", back))
	}
	r.cards(2)
}

// When nobody waits any more the card goes, and the record says so.
func TestACardIsWithdrawnWithItsConnection(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.waits()
	ctx, drop := context.WithCancelCause(t.Context())
	back := make(chan error, 2)
	for range 2 {
		go func() {
			back <- r.ask(ctx, &line{}, wire.TypeFileStat, &wire.FileStat{SessionID: "chat-1", Path: "."})
		}()
	}
	card := r.card(2)
	drop(wire.Errorf(wire.CodeLost, "The connection to the hub was lost."))
	for range 2 {
		wantWord(t, within(t, "a request", back), wire.CodeLost)
	}
	r.until("the card to go", func() bool { return r.m.asks.Waiting() == 0 })
	r.until("its record", func() bool {
		for _, e := range r.m.Snapshot().Entries {
			if e.ID == card.ID {
				return e.Outcome == snapshot.Cancelled
			}
		}
		return false
	})
	if d := r.decision(card.ID); d.Outcome != consent.Cancelled {
		t.Errorf("the record says %+v", d)
	}
	if len(r.m.sessions.list()) != 0 {
		t.Error("a session was opened")
	}
}

func TestADeclinedChatAsksNoMore(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	r.no()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { wantWord(t, r.write("chat-1", fmt.Sprint("f", i), "x"), wire.CodeDenied) })
	}
	wg.Wait()
	wantWord(t, r.write("chat-1", "g", "x"), wire.CodeDenied)
	r.cards(2)
	// Connected anew it may ask again.
	r.c.Stopped("chat-1")
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	must(t, err)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Once), true })
	must(t, r.write("chat-1", "g", "x"))
	r.cards(3)
}

// The card offers one folder, and an answer with another one is none.
func TestNoOtherFolderThanTheOne(t *testing.T) {
	r := newChatRig(t)
	other := filepath.Join(os.Getenv("HOME"), "other")
	must(t, os.Mkdir(other, 0o755))
	r.start("chat-1")
	r.says(func(q consent.Request) (consent.Answer, bool) {
		a := r.yes(q, consent.Once)
		a.Choice.Folder = other
		return a, true
	})
	wantWord(t, r.write("chat-1", "a", "x"), wire.CodeUndelivered)
	// Nobody is asked about a folder that has gone meanwhile.
	must(t, os.Rename(r.folder, r.folder+"2"))
	must(t, os.Symlink(other, r.folder))
	wantWord(t, r.write("chat-1", "a", "x"), wire.CodeChanged)
	r.cards(2)
	if _, err := os.Stat(filepath.Join(other, "a")); err == nil {
		t.Error("written in another folder")
	}
}

// Allowed when nobody waited any more, it does not run; the repeat does, once.
func TestAllowedLateRunsOnceWhenRepeated(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x")) // the session is open
	var mu sync.Mutex
	ran := 0
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		mu.Lock()
		ran++
		mu.Unlock()
		return exited(), nil
	}
	r.waits()
	x, back := &line{}, make(chan error, 1)
	go func() { back <- r.run(x, "chat-1") }()
	card := r.card(3)
	x.leave() // told that the person is still being asked
	must(t, r.m.asks.Answer(card.ID, r.yes(card, consent.Once)))
	wantWord(t, within(t, "the late one", back), wire.CodePending)
	if e := r.m.Snapshot().Entries[0]; e.ID != card.ID || e.Outcome != snapshot.Allowed || !e.AllowedNext || e.Result != "allowed; runs when it is asked again" || e.By != "you" || e.CanStop || e.CanAllowNext {
		t.Errorf("the log shows %+v", e)
	}
	if d := r.decision(card.ID); d.Outcome != consent.Allowed || d.By != "you" {
		t.Errorf("the record says %+v", d)
	}
	if ran != 0 {
		t.Fatal("it ran though nobody waited")
	}
	// Three at once: one runs, the others are asked about.
	r.no()
	all := make(chan error, 3)
	for range 3 {
		go func() { all <- r.run(&line{}, "chat-1") }()
	}
	worked := 0
	for range 3 {
		if err := within(t, "a repeat", all); err == nil {
			worked++
		} else {
			wantWord(t, err, wire.CodeDenied)
		}
	}
	if worked != 1 || ran != 1 {
		t.Errorf("%d repeats worked, it ran %d times", worked, ran)
	}
	r.cards(5)
}

// A repeat that nobody waits for either keeps what was allowed.
func TestAllowedLateTwice(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	for range 2 {
		x := &line{}
		x.leave()
		wantWord(t, r.run(x, "chat-1"), wire.CodePending)
	}
	r.no()
	must(t, r.run(&line{}, "chat-1"))
	wantWord(t, r.run(&line{}, "chat-1"), wire.CodeDenied)
	// For the whole session it is a rule, and not once besides.
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Session), true })
	r.probe.describe = func(capabilities.Call) capabilities.Description {
		return capabilities.Description{Action: "do", Title: "Do it", Sentence: "%s wants to do it.", Payload: "it", Scopes: []consent.Scope{consent.Session},
			Effects: []consent.Effect{{Kind: consent.EffectOverwrite, Text: "replaces a file"}}, Risk: consent.RiskNormal}
	}
	x := &line{}
	x.leave()
	wantWord(t, r.run(x, "chat-1"), wire.CodePending)
	if e := r.m.Snapshot().Entries[0]; e.Outcome != snapshot.Allowed || e.AllowedNext {
		t.Errorf("the log shows %+v", e)
	}
	_, err := r.m.o.Store.Revoke(t.Context(), "")
	must(t, err)
	r.no()
	wantWord(t, r.run(&line{}, "chat-1"), wire.CodeDenied)
}

// A restart shows what was allowed late as it was.
func TestAllowedLateInTheRecord(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	x := &line{}
	x.leave()
	wantWord(t, r.run(x, "chat-1"), wire.CodePending)
	id := r.card(3).ID
	ended(r.m)
	must(t, r.m.o.Store.Close())
	m := openMachine(t, r.m.o.Paths)
	must(t, m.journal.load(t.Context()))
	d, err := m.journal.detail(t.Context(), id)
	if err != nil || d.Entry.Outcome != snapshot.Allowed || d.Entry.Result != "allowed; runs when it is asked again" {
		t.Errorf("%+v, %v", d, err)
	}
}

// A new control connection ends what the chats do, and not the consent: the
// same chat with the same folder comes back and asks nothing.
func TestWorkEndsWithTheConnectionConsentDoesNot(t *testing.T) {
	r := newChatRig(t)
	b := r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	began, why := make(chan struct{}), make(chan error, 1)
	r.probe.run = func(ctx context.Context, _ capabilities.Call, _ consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
		close(began)
		<-ctx.Done()
		why <- context.Cause(ctx)
		return capabilities.Result{}, ctx.Err()
	}
	back := make(chan error, 1)
	go func() { back <- r.run(&line{}, "chat-1") }()
	within(t, "the command", began)
	browse, ref := r.find(r.folder)
	cards := len(r.person.seen())
	r.c.Reset()
	wantCode(t, within(t, "the cause", why), wire.CodeStopped)
	wantWord(t, within(t, "the command", back), wire.CodeStopped)
	_, err := r.c.List(t.Context(), autogpt.DirectoryList{BrowseID: &browse, DirectoryRef: &ref})
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	wantWord(t, r.write("chat-1", "b", "x"), wire.CodeSessionNotOpen)
	r.until("what it left running to end", func() bool {
		r.probe.mu.Lock()
		defer r.probe.mu.Unlock()
		return len(r.probe.ended) == 1
	})
	r.no()
	again, err := r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: b.RootGrant})
	must(t, err)
	if again != b {
		t.Errorf("restored %+v, want %+v", again, b)
	}
	must(t, r.write("chat-1", "b", "x"))
	r.cards(cards)
	// Detached, the consent ends too, and the revision goes on only while the
	// binding is remembered.
	must(t, r.c.Detach(t.Context(), "chat-1"))
	must(t, r.c.Detach(t.Context(), "chat-1")) // unknown, and no error
	wantWord(t, r.write("chat-1", "c", "x"), wire.CodeSessionNotOpen)
	_, err = r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	wantWord(t, err, autogpt.CodeNotAttached)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Once), true })
	if b := r.start("chat-1"); b.Revision != 1 {
		t.Errorf("bound again at revision %d", b.Revision)
	}
	must(t, r.write("chat-1", "c", "x"))
	r.cards(cards + 2)
}

func TestRevisions(t *testing.T) {
	r := newChatRig(t)
	other := filepath.Join(os.Getenv("HOME"), "other")
	must(t, os.Mkdir(other, 0o755))
	one := r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	r.c.Stopped("chat-1")
	two := r.attach("chat-1", other)
	if two.Revision != 2 || two.AllowedRoot != other {
		t.Fatalf("bound again: %+v", two)
	}
	r.until("the session in the first folder to end", func() bool { return len(r.m.sessions.list()) == 0 })
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	wantWord(t, err, autogpt.CodeRevision)
	var d *autogpt.Detailed
	if !errors.As(err, &d) || fmt.Sprint(d.Details["current_revision"]) != "2" {
		t.Errorf("%#v does not name the revision", err)
	}
	_, err = r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: one.RootGrant})
	wantWord(t, err, autogpt.CodeRevision)
	// The same revision of another folder.
	r.c.mu.Lock()
	r.c.bound["chat-1"].revision = 1
	r.c.mu.Unlock()
	_, err = r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: one.RootGrant})
	wantWord(t, err, autogpt.CodeRevision)
	// A newer one takes the place of one that is active.
	_, err = r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	must(t, err)
	if got, err := r.c.Restore(t.Context(), autogpt.Restore{SessionID: "chat-1", RootGrant: two.RootGrant}); err != nil || got != two {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, r.write("chat-1", "b", "x"))
	if _, err := os.Stat(filepath.Join(other, "b")); err != nil {
		t.Error(err)
	}
}

// A hub may name chats by more than the ids of localpc.v1 hold.
func TestLongChatNames(t *testing.T) {
	r := newChatRig(t)
	chat := strings.Repeat("c:.-_9", 42) + "abcd" // 256
	r.start(chat)
	must(t, r.write(chat, "a", "x"))
	short := autogpt.SessionKey(chat) // as the tunnel calls it
	must(t, (&wire.FileStat{SessionID: short, Path: "a"}).Validate())
	must(t, r.write(short, "a", "x"))
	s := r.m.sessions.list()
	if len(s) != 1 {
		t.Fatalf("%d sessions", len(s))
	}
	if err := (&wire.SessionRef{SessionID: s[0].ID}).Validate(); err != nil {
		t.Error(err)
	}
	wantWord(t, r.write(chat[:255], "a", "x"), wire.CodeSessionNotOpen)
}

func TestHowManyChats(t *testing.T) {
	r := newChatRig(t)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Session), true })
	for i := range maxLive + 1 {
		r.start(fmt.Sprint("live-", i))
	}
	// Of the tunnel's eight none is the first: its connection has ended.
	if live := r.c.live(); len(live) != maxLive || live[0] != "live-1" {
		t.Errorf("live: %v", live)
	}
	for i := range maxBound {
		r.attach(fmt.Sprint("more-", i), r.folder)
	}
	r.c.mu.Lock()
	n, first, last := len(r.c.bound), r.c.bound["live-0"], r.c.bound[fmt.Sprint("more-", maxBound-1)]
	r.c.mu.Unlock()
	if n != maxBound || first != nil || last == nil || len(r.c.live()) != maxLive {
		t.Errorf("%d are remembered, the first %v, the last %v, live %v", n, first, last, r.c.live())
	}
}

// Another hub has no part in the chats of the one before.
func TestChatsBelongToTheirHub(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	must(t, r.write("chat-1", "a", "x"))
	r.m.link.set(func(v *linkState) { v.id = "https://other.example" })
	wantWord(t, r.write("chat-1", "b", "x"), wire.CodeSessionNotOpen)
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	wantWord(t, err, autogpt.CodeNotAttached)
}

// Chats ask for what executors do, and open or end no sessions themselves.
func TestWhatChatsMayAsk(t *testing.T) {
	r := newChatRig(t)
	r.start("chat-1")
	for kind, p := range map[wire.Type]wire.Payload{
		wire.TypeSessionClose: &wire.SessionRef{SessionID: "chat-1"}, wire.TypeSessionOpen: &wire.SessionOpen{SessionID: "chat-1"},
		wire.Type(autogpt.TypeDetach): &autogpt.Detach{SessionID: "chat-1"},
	} {
		wantWord(t, r.ask(t.Context(), &line{}, kind, p), wire.CodeNotSupported)
	}
	must(t, r.write("chat-1", "a", "x"))
	x := &line{}
	must(t, r.ask(t.Context(), x, wire.TypeFileRead, &wire.FileRead{SessionID: "chat-1", Path: "a"}))
	var got bytes.Buffer
	for _, f := range x.frames {
		if c, ok := f.(*wire.FileChunk); ok {
			got.Write(c.Data)
		}
	}
	if got.String() != "x" || x.begun != 1 {
		t.Errorf("read %q, begun %d times", got.String(), x.begun)
	}
}
