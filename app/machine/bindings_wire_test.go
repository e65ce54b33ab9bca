package machine

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/consent"
	"localpc/tunnel"
	client "localpc/tunnel/autogpt"
	platformend "localpc/tunnel/hub/autogpt"
	hubstore "localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// platformHub is what the other end of the protocol needs of a hub.
type platformHub struct {
	mu       sync.Mutex
	bindings map[string]hubstore.Binding // guarded by mu
	joined   chan struct{}
}

func (h *platformHub) Access(context.Context, string) (hubstore.Access, error) {
	return hubstore.Access{SignIn: "s", User: "u", Client: autogpt.ClientID, Scopes: []string{autogpt.Scope}, Expires: time.Now().Add(time.Hour)}, nil
}
func (h *platformHub) BindSignIn(context.Context, string, string) error { return nil }
func (h *platformHub) SignInLive(context.Context, string) (bool, error) { return true, nil }
func (h *platformHub) Left(*platformend.Machine)                        {}
func (h *platformHub) Heard(context.Context, *platformend.Machine)      {}
func (h *platformHub) Joined(context.Context, *platformend.Machine) error {
	h.joined <- struct{}{}
	return nil
}

func (h *platformHub) Binding(_ context.Context, session string) (hubstore.Binding, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.bindings[session]
	if !ok {
		return b, hubstore.ErrNotFound
	}
	return b, nil
}

func (h *platformHub) keep(machine string, b *autogpt.Binding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bindings[b.SessionID] = hubstore.Binding{Session: b.SessionID, User: "u", Machine: machine, Root: b.AllowedRoot, Fingerprint: b.Fingerprint, Revision: b.Revision, Grant: b.RootGrant}
}

// TestHelloOfADisplay: the platform is told of the computer's display just where
// there is one, the same each time.
func TestHelloOfADisplay(t *testing.T) {
	r := newChatRig(t)
	l := &link{m: r.m}
	if h := l.helloAutoGPT(); slices.Contains(h.Capabilities, autogpt.ComputerUse) || len(h.Features) > 0 || len(h.Coarse) > 0 || h.ScreenResolution != nil {
		t.Errorf("without a display: %+v", h)
	}
	d := Display{Does: autogpt.Does{Pictures: true, Input: true, Windows: true, Clipboard: true}, Width: 1920, Height: 1080}
	r.m.o.Display = func() Display { return d }
	h := l.helloAutoGPT()
	if !slices.Contains(h.Capabilities, autogpt.ComputerUse) || !slices.Equal(h.Coarse, autogpt.Coarse) || !slices.Equal(h.Features, autogpt.Features) || *h.ScreenResolution != (autogpt.Resolution{1920, 1080}) {
		t.Errorf("with one: %+v", h)
	}
	d = Display{Does: autogpt.Does{Clipboard: true}}
	if h := l.helloAutoGPT(); slices.Contains(h.Capabilities, autogpt.ComputerUse) || len(h.Coarse) > 0 {
		t.Errorf("with nothing to see and nothing to do: %+v", h)
	}
}

// TestChatsOverTheWire joins a strict hub, the tunnel and the machine with the
// real files: the hub hears that the person is still being asked, asks again,
// and what it asked for is done once.
func TestChatsOverTheWire(t *testing.T) {
	r := newChatRig(t)
	h := &platformHub{bindings: map[string]hubstore.Binding{}, joined: make(chan struct{}, 4)}
	face := platformend.New(t.Context(), platformend.Options{Hub: h, Strict: true, Log: r.m.log})
	srv := httptest.NewServer(face.Handler())
	defer srv.Close()
	defer face.Close()
	id := r.m.o.Settings.Get().MachineID
	tun, err := client.New(client.Options{URL: srv.URL, HubName: "AutoGPT", Log: r.m.log, Folders: r.c, Handler: r.c.Handler, OnStopped: r.c.Stopped,
		Token: func(context.Context) (string, error) { return "t", nil },
		Hello: func() autogpt.Hello {
			return autogpt.Hello{ShimVersion: "localpc-test", MachineID: id, DisplayName: "Mac-1", Platform: "linux", Arch: "x86_64", Capabilities: []string{autogpt.Shell, autogpt.Files}}
		},
		Timings: client.Timings{Asking: 300 * time.Millisecond, Running: 5 * time.Second, Control: 300 * time.Millisecond, BackoffBase: 10 * time.Millisecond}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- tun.Run(ctx) }()
	defer func() {
		cancel()
		must(t, within(t, "the tunnel to end", over))
	}()
	within(t, "the machine to join", h.joined)
	browse := func() (*autogpt.Directory, error) { return face.Browse(ctx, "u", id, autogpt.DirectoryList{}) }
	r.waits()
	r.until("the machine to be there", func() bool { _, err := browse(); return wire.CodeOf(err) != wire.CodeOffline })

	// The card stays while the hub is told to ask again.
	_, err = browse()
	wantWord(t, err, autogpt.CodePending)
	r.cards(1)
	card := r.card(1)
	must(t, r.m.asks.Answer(card.ID, r.yes(card, consent.Always)))
	r.until("folders to be named", func() bool { _, err := browse(); return err == nil })
	ref := func(path string) (string, string) {
		browse, ref, err := face.Walk(ctx, "u", id, path)
		must(t, err)
		return browse, ref
	}
	const chat = "7d0c2f6e-1a34-4f0b-9a53-2f2f5f7c1b10"
	br, at := ref(r.folder)
	b, err := face.Attach(ctx, "u", id, autogpt.Attach{SessionID: chat, BrowseID: br, DirectoryRef: at})
	must(t, err)
	h.keep(id, b)
	_, err = face.Activate(ctx, "u", id, autogpt.Activate{SessionID: chat, Revision: b.Revision})
	must(t, err)
	must(t, face.Await(ctx, chat, 10*time.Second))
	r.cards(1)

	write := func() error {
		_, err := face.Do(ctx, chat, autogpt.TypeFileWrite, &autogpt.FileWrite{Path: filepath.Join(r.folder, "sub", "a.txt"), Content: "hello", Encoding: autogpt.UTF8, CreateParents: true})
		return err
	}
	wantWord(t, write(), autogpt.CodePending)
	wantWord(t, write(), autogpt.CodePending)
	card = r.card(2)
	must(t, r.m.asks.Answer(card.ID, r.yes(card, consent.Session)))
	r.until("the file to be written", func() bool { return write() == nil })
	if text, err := os.ReadFile(filepath.Join(r.folder, "sub", "a.txt")); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	r.cards(2)

	// Out of the folder, and the root itself, in the protocol's own words.
	stat := func(path string) error {
		_, err := face.Do(ctx, chat, autogpt.TypeFileStat, &autogpt.FileStat{Path: path, FollowSymlinks: true})
		return err
	}
	must(t, stat(r.folder))
	wantWord(t, stat("/etc/passwd"), autogpt.CodePathOutside)
	_, err = face.Do(ctx, chat, autogpt.TypeFileDelete, &autogpt.FileDelete{Path: r.folder, Recursive: true})
	wantWord(t, err, autogpt.CodeInternal)

	must(t, face.Detach(ctx, "u", id, chat))
	r.until("the chat's session to end", func() bool { return len(r.m.sessions.list()) == 0 })
	for _, e := range r.m.Snapshot().Entries {
		if e.Outcome == snapshot.Asking || e.Outcome == snapshot.Running {
			t.Errorf("still open: %+v", e)
		}
	}
}

var _ client.Folders = (*chats)(nil)
var _ tunnel.Handler = (*chats)(nil).Handler
