package machine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/capabilities"
	"localpc/capabilities/files"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// commands is the probe for commands alone, beside the real files.
type commands struct{ *probe }

func (commands) Types() []wire.Type { return []wire.Type{wire.TypeProcessStart} }

// line is the tunnel's end of one request: an exchange whose client waits, or
// has stopped waiting.
type line struct {
	mu     sync.Mutex
	gone   bool           // guarded by mu
	body   []byte         // of an upload
	frames []wire.Payload // guarded by mu
	begun  int            // guarded by mu
}

func (l *line) leave() { l.mu.Lock(); l.gone = true; l.mu.Unlock() }

func (l *line) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.begun++
	}
	return !l.gone
}

func (l *line) Send(_ context.Context, _ wire.Type, p wire.Payload) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = append(l.frames, p)
	return nil
}

func (l *line) Next(context.Context) (wire.Follow, error) {
	return &wire.FileChunk{Data: l.body, Last: true}, nil
}

// chatRig is a machine that is paired with a platform, with the real files.
type chatRig struct {
	*testing.T
	m      *Machine
	c      *chats
	probe  *probe
	person *person
	folder string
	mode   consent.Mode
}

func newChatRig(t *testing.T) *chatRig {
	t.Helper()
	r := &chatRig{T: t, m: newMachine(t)}
	r.folder = filepath.Join(os.Getenv("HOME"), "project")
	must(t, os.Mkdir(r.folder, 0o755))
	r.join()
	return r
}

// join has the machine paired and a person at it, who says yes.
func (r *chatRig) join() {
	r.probe, r.mode = &probe{}, consent.ModeWork
	r.c = r.m.chats
	r.c.browser.mounts = nil
	r.m.o.Executors = []capabilities.Capability{files.New(files.Options{Journal: r.TempDir()}), commands{r.probe}}
	r.m.registry = capabilities.NewRegistry(append([]capabilities.Capability{r.m.sessions, r.c}, r.m.o.Executors...)...)
	r.m.link.view.id, r.m.link.view.hub.Name = settings.HubAutoGPT, "AutoGPT"
	m := r.m
	r.person = &person{m: m}
	r.person.answer = func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Once), true }
	m.asks.Add(r.person)
	r.Cleanup(func() { ended(m) })
}

func ended(m *Machine) {
	m.chats.forget("The test is over.")
	m.sessions.endAll(context.Background(), "The test is over.")
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
}

func (r *chatRig) yes(q consent.Request, scope consent.Scope) consent.Answer {
	c := consent.Choice{Scope: scope}
	if q.Capability == consent.CapabilitySession {
		c = consent.Choice{Scope: consent.Session, Mode: r.mode, Folder: q.Folder}
	}
	return consent.Answer{Allow: true, Choice: c, Via: "card"}
}

// says sets how the person answers from now on.
func (r *chatRig) says(answer func(consent.Request) (consent.Answer, bool)) {
	r.person.mu.Lock()
	r.person.answer = answer
	r.person.mu.Unlock()
}

func (r *chatRig) no() {
	r.says(func(consent.Request) (consent.Answer, bool) { return consent.Answer{Via: "card"}, true })
}
func (r *chatRig) waits() {
	r.says(func(consent.Request) (consent.Answer, bool) { return consent.Answer{}, false })
}

// card waits for the n-th card, from 1.
func (r *chatRig) card(n int) consent.Request {
	r.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if cards := r.person.seen(); len(cards) >= n {
			return cards[n-1]
		}
	}
	r.Fatalf("no card %d: %+v", n, r.person.seen())
	panic("unreachable")
}

func (r *chatRig) cards(want int) {
	r.Helper()
	if got := r.person.seen(); len(got) != want {
		r.Errorf("%d cards, want %d: %+v", len(got), want, got)
	}
}

// find browses to a folder below the home, and returns its reference.
func (r *chatRig) find(path string) (browse, ref string) {
	r.Helper()
	d, err := r.c.List(r.Context(), autogpt.DirectoryList{})
	must(r.T, err)
	at := d.Entries[0]
	rest, ok := strings.CutPrefix(path, at.Path)
	if !ok {
		r.Fatalf("%s is not in the home %s", path, at.Path)
	}
next:
	for _, name := range strings.Split(strings.Trim(rest, "/"), "/") {
		if name == "" {
			continue
		}
		d, err := r.c.List(r.Context(), autogpt.DirectoryList{BrowseID: &d.BrowseID, DirectoryRef: &at.Ref})
		must(r.T, err)
		for _, e := range d.Entries {
			if e.Name == name {
				at = e
				continue next
			}
		}
		r.Fatalf("%s is not listed: %+v", name, d.Entries)
	}
	return d.BrowseID, at.Ref
}

// attach binds a chat to a folder.
func (r *chatRig) attach(chat, path string) autogpt.Binding {
	r.Helper()
	browse, ref := r.find(path)
	b, err := r.c.Attach(r.Context(), autogpt.Attach{SessionID: chat, BrowseID: browse, DirectoryRef: ref})
	must(r.T, err)
	must(r.T, b.Validate())
	return b
}

// start binds a chat to the folder and makes it active.
func (r *chatRig) start(chat string) autogpt.Binding {
	r.Helper()
	b := r.attach(chat, r.folder)
	_, err := r.c.Activate(r.Context(), autogpt.Activate{SessionID: chat, Revision: b.Revision})
	must(r.T, err)
	return b
}

func (r *chatRig) ask(ctx context.Context, x tunnel.Exchange, t wire.Type, p wire.Payload) error {
	_, _, err := r.c.Handler(ctx, wire.Message{Type: t, ID: consent.NewID(), Payload: p}, x)
	return err
}

func (r *chatRig) write(chat, path, text string) error {
	return r.ask(r.Context(), &line{body: []byte(text)}, wire.TypeFileWrite, &wire.FileWrite{SessionID: chat, Path: path})
}

func (r *chatRig) run(x tunnel.Exchange, chat string) error {
	return r.ask(r.Context(), x, wire.TypeProcessStart, &wire.ProcessStart{SessionID: chat, Cmd: "it"})
}

func wantWord(t *testing.T, err error, code wire.Code) {
	t.Helper()
	if autogpt.CodeOf(err) != code || err == nil || !strings.HasSuffix(err.Error(), ".") {
		t.Errorf("%v (%s), want %s and a sentence", err, autogpt.CodeOf(err), code)
	}
}

func (r *chatRig) until(what string, true func() bool) {
	r.Helper()
	for end := time.Now().Add(20 * time.Second); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("waited for %s in vain", what)
		}
	}
}

func (r *chatRig) decision(id string) consent.Decision {
	r.Helper()
	d, ok := decisionOf(r.T, r.m, id)
	if !ok {
		r.Fatalf("nothing is recorded of %s", id)
	}
	return d.Decision
}

// live are the chats that are active.
func (c *chats) live() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, b := range c.bound {
		if b.ctx != nil {
			out = append(out, b.chat)
		}
	}
	slices.Sort(out)
	return out
}
