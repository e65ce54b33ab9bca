// Package mcp is step 1 for MCP clients: tools with which a model uses a
// person's own computer (commands, files, search, its screen, mouse and
// keyboard), over streamable HTTP without sessions of the protocol. Each call becomes one wire request. A program has
// one session on each computer, opened by its first call. While the person is
// asked, the client hears of it; when it cannot wait any longer, it gets an id
// with which the result can be had later.
package mcp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// version is what the server says of itself.
const version = "1.0.0"

const instructions = `These tools work on a computer that belongs to a person, in a folder that they chose. ` +
	`The person decides: a call may wait until they have answered a question on their screen. ` +
	`A call that waits long answers {"status":"pending","id":...}: tell the person what you wait for, and ask with get_result. ` +
	`When the person declines, do not try to reach the same in another way; ask them. ` +
	`Relative paths start in the session's folder; /tmp is the session's own. ` +
	`Most commands run in a container that sees only this folder and has no network until the person allows it. ` +
	`The local_pc tools see the screen and use mouse and keyboard: take a picture first, aim at what it shows, and take another one after it. ` +
	`When a command or a file tool can do it, prefer that.`

// Backend is what the face needs of the hub. Errors are *wire.Error, except
// where store.ErrNotFound is named.
type Backend interface {
	// Do sends one request to a session's machine; the end of ctx cancels it there.
	Do(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) (wire.Stream, error)
	// Open asks for a session the person of b's user, on b.Machine.
	Open(ctx context.Context, o wire.SessionOpen, b store.Sandbox) (store.Sandbox, error)
	// SetTTL moves a session's end to ttl from now.
	SetTTL(ctx context.Context, b store.Sandbox, ttl time.Duration) error
	// End ends a session; store.ErrNotFound when it was not running.
	End(ctx context.Context, b store.Sandbox, reason string) error
	// Online tells whether a session's machine is connected.
	Online(b store.Sandbox) bool
}

// Scopes of OAuth access tokens. A key has all of them.
const (
	ScopeRead  = "machines:read"  // look: list, read, search
	ScopeUse   = "machines:use"   // run commands, change files
	ScopeInput = "machines:input" // the screen, mouse and keyboard, the clipboard
)

// Scopes are all there are.
var Scopes = []string{ScopeRead, ScopeUse, ScopeInput}

// Principal is who calls, as proven by a key or an access token.
type Principal struct {
	ID   string // of the key or the client; owns sessions and results
	Name string // as the person named it
	// Agent is what the program called itself when the person let it in; "" for a
	// key's. It proves nothing.
	Agent string
	User  string // whose computers it may use
	// Scopes are what it may do.
	Scopes []string
	// Expires is when its token ends; zero: it does not.
	Expires time.Time
}

// Options build a Face. Backend, Store and Log are needed.
type Options struct {
	Backend Backend
	Store   *store.Store
	// Verify finds whom an access token stands for that was made for Resource;
	// store.ErrNotFound when it is not good. nil: only keys are taken.
	Verify func(ctx context.Context, token string) (Principal, error)
	// Resource is the public address of this face, the audience of its tokens;
	// Issuer is the authorization server that makes them. Both "" without one.
	Resource, Issuer string
	// Name is the hub's, for clients.
	Name string
	// Wait is how long a call is held at most; 0 means 50 s.
	Wait time.Duration
	// Patience is how long a person may take to answer; 0 means 10 minutes.
	Patience time.Duration
	// Tick is how often a client hears that its call waits; 0 means 3 s.
	Tick time.Duration
	Log  *slog.Logger
	// Fixtures is for tests of the protocol: it may change how the server is
	// made, and adds to it.
	Fixtures func(*sdk.ServerOptions) (add func(*sdk.Server))
}

// Face serves MCP clients.
type Face struct {
	o      Options
	server *sdk.Server
	scope  map[string]string // of each tool
	ctx    context.Context   // jobs and commands outlive their calls, not the face
	cancel context.CancelFunc
	wg     sync.WaitGroup // jobs, commands, sessions being opened
	// The constants of these names; tests are less patient.
	bodyWithin, writeWithin, lookFor time.Duration

	mu       sync.Mutex
	closed   bool                    // guarded by mu: nothing new begins
	active   map[string]int          // requests of each principal; guarded by mu
	calls    map[callKey][]*httpCall // that may be cancelled by their id; guarded by mu
	jobs     map[string]*job         // under way, by id; guarded by mu
	openings map[string]*opening     // guarded by mu
	commands map[string]*command     // by handle; guarded by mu
	looks    map[lookOf]look         // guarded by mu
}

// New makes a face that ends with ctx or Close. What an earlier one left
// waiting in the store is answered: it will not come.
func New(ctx context.Context, o Options) (*Face, error) {
	if o.Wait == 0 {
		o.Wait = 50 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	if o.Tick == 0 {
		o.Tick = 3 * time.Second
	}
	lost, err := encodeResult(refusal(wire.Errorf(wire.CodeLost, "The hub was restarted while this waited, so nothing more will come of it. Call the tool again if it is still needed.")))
	if err != nil {
		return nil, err
	}
	if err := o.Store.AbandonResults(ctx, lost); err != nil {
		return nil, err
	}
	f := &Face{o: o, scope: map[string]string{}, active: map[string]int{}, calls: map[callKey][]*httpCall{}, jobs: map[string]*job{},
		openings: map[string]*opening{}, commands: map[string]*command{}, looks: map[lookOf]look{}, bodyWithin: bodyWithin, writeWithin: writeWithin, lookFor: lookFor}
	f.ctx, f.cancel = context.WithCancel(ctx)
	so := &sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}}
	more := func(*sdk.Server) {}
	if o.Fixtures != nil {
		more = o.Fixtures(so)
	}
	f.server = sdk.NewServer(&sdk.Implementation{Name: "localpc", Title: "Local PC Executor", Version: version}, so)
	f.addTools()
	more(f.server)
	return f, nil
}

// Close ends every call, command and question, and waits.
func (f *Face) Close() {
	f.mu.Lock()
	f.closed = true
	f.cancel()
	f.mu.Unlock()
	f.wg.Wait()
}

// spawn runs work that Close waits for; false when the face has been closed.
func (f *Face) spawn(work func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.ctx.Err() != nil {
		return false
	}
	f.wg.Go(work)
	return true
}
