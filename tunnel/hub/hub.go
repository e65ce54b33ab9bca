// Package hub is step 1, the platform end: it accepts computers, knows which
// are there, and turns each call of a client into one wire request for one of
// them. It decides nothing about what may run; that is the computer's.
//
// hub.New puts the faces together. A main serves its Handler; localpc embeds
// one as "this computer only".
package hub

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/e2b"
	"localpc/tunnel/hub/mcp"
	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/hub/web"
	"localpc/tunnel/wire"
)

// Options build a Hub. Only Data is needed.
type Options struct {
	// Data is the directory of the database; it is made when missing.
	Data string
	// PublicURL is the address that clients use, such as https://hub.example.
	// Its name, and names below it, are taken in the Host header; without it
	// only localhost and plain IP addresses are.
	PublicURL string
	// Name is what computers show their person as the hub's name. "" is the
	// host of PublicURL, or "This computer".
	Name string
	Log  *slog.Logger
	// Pages: people sign in here, with a browser. An embedded hub has nobody
	// but its owner, and no pages.
	Pages bool
	// Wait is how long a person may take to answer, counted from the arrival
	// of the call, when the client would wait that long. 0 means 50 s.
	Wait time.Duration
	// Patience is how long they may take where the client does not have to wait
	// (MCP). 0 means 10 minutes.
	Patience time.Duration
	// Heartbeat, PongTimeout and HelloTimeout are wire's when 0.
	Heartbeat, PongTimeout, HelloTimeout time.Duration
	// AccessTTL, RefreshTTL, CodeTTL and DeviceTTL are oauth's when 0.
	AccessTTL, RefreshTTL, CodeTTL, DeviceTTL time.Duration
	// Strict drops a computer of AutoGPT's wire at every breach of it, for tests
	// of such programs; otherwise a harmless one is only logged.
	Strict bool
	// NoBulk has computers send data over their first connection, too.
	NoBulk bool
	// Meter counts what the hub does; nil counts nothing.
	Meter Meter
	// MCP changes how the face for MCP clients is made, for tests of the protocol.
	MCP func(*mcp.Options)
}

// Hub is a running hub. Its methods are safe for concurrent use.
type Hub struct {
	o       Options
	log     *slog.Logger
	store   *store.Store
	e2b     *e2b.Face
	mcp     *mcp.Face
	chats   *autogpt.Face
	hosts   []string // names that Host may have besides localhost
	handler http.Handler
	oauth   *oauth.Face // nil without pages
	web     *web.Face   // nil without pages
	unlock  func()      // lets go of the data
	watched func()      // waits for the watch for changes by other processes

	ctx    context.Context // until Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections of machines, and work on them

	drawing chan struct{} // holds one for each picture that is being worked on

	enrolling sync.Mutex // epochs and machines rise in the same order

	asking sync.Mutex
	asked  time.Time // when the data was last asked whether it can be used; guarded by asking
	answer error     // what it said; guarded by asking

	mu       sync.Mutex
	closed   bool                // guarded by mu
	machines map[string]computer // guarded by mu
	arriving *machine            // being enrolled, so that a revocation finds it; guarded by mu
	seen     map[string]int64    // signs of life that are to be written down; guarded by mu
	openings map[string]question // questions for sessions, by the session's id; guarded by mu
}

// New opens the data and puts the faces together. The hub ends with ctx or
// Close; Close must be called.
func New(ctx context.Context, o Options) (*Hub, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	if o.Wait == 0 {
		o.Wait = 50 * time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = wire.Heartbeat
	}
	if o.PongTimeout == 0 {
		o.PongTimeout = wire.PongTimeout
	}
	if o.HelloTimeout == 0 {
		o.HelloTimeout = wire.HelloTimeout
	}
	h := &Hub{o: o, log: o.Log, machines: map[string]computer{}, seen: map[string]int64{}, openings: map[string]question{}, drawing: make(chan struct{}, drawnAtOnce)}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%q is not a public address: it must look like https://hub.example", o.PublicURL)
		}
		h.hosts = append(h.hosts, strings.ToLower(u.Hostname()))
		if h.o.Name == "" {
			h.o.Name = u.Host
		}
	}
	if h.o.Name == "" {
		h.o.Name = "This computer"
	}
	if len(h.o.Name) > wire.MaxText {
		return nil, fmt.Errorf("the hub's name has %d bytes, at most %d are allowed", len(h.o.Name), wire.MaxText)
	}
	unlock, err := store.Lock(o.Data)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, o.Data)
	if err != nil {
		unlock()
		return nil, err
	}
	h.store, h.unlock = st, unlock
	h.ctx, h.cancel = context.WithCancel(ctx)
	h.chats = h.newCompanions()
	err = st.ResetPresence(ctx)
	if err == nil && o.PublicURL != "" {
		err = st.SetAddress(ctx, strings.TrimSuffix(o.PublicURL, "/"))
	}
	if err == nil && o.Pages {
		err = h.openPages()
	}
	if err == nil {
		h.mcp, err = mcp.New(h.ctx, h.mcpOptions())
	}
	if err == nil {
		h.watched, err = st.Pokes(h.ctx, o.Log, h.recheckAll)
	}
	if err != nil {
		h.cancel()
		if h.mcp != nil {
			h.mcp.Close()
		}
		h.closePages()
		st.Close()
		unlock()
		return nil, fmt.Errorf("hub data %s: %w", o.Data, err)
	}
	h.spawn(h.keepPresence)
	h.e2b = e2b.New(h.ctx, e2b.Options{Backend: backend{h}, Store: st, Wait: o.Wait, Log: o.Log})
	h.handler = usual.handler(h.doors(h.routes()))
	return h, nil
}

// Handler serves every face.
func (h *Hub) Handler() http.Handler { return h.handler }

// Server is an HTTP server for Handler with the limits that suit it: slow
// headers and idle connections end, streams do not.
func (h *Hub) Server() *http.Server {
	return &http.Server{
		Handler:           h.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(serverLog{h.log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return h.ctx },
	}
}

// Close disconnects every machine, ends every request, and waits.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	h.cancel() // nothing is spawned after this
	h.mu.Unlock()
	h.wg.Wait()
	h.e2b.Close()
	h.mcp.Close()
	h.chats.Close()
	h.watched()
	h.closePages()
	defer h.unlock()
	return h.store.Close()
}

// Drain readies the hub for its end: no computer is taken any more, and those
// with nothing under way are sent off, to come back to the hub that follows.
// The others stay until Close.
func (h *Hub) Drain() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, c := range h.connected() {
		c.drain()
	}
}

// enter counts one more connection, unless the hub is being closed.
func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Add(1)
	return true
}

func (h *Hub) routes() http.Handler {
	mux := http.NewServeMux()
	healthy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /health", healthy)
	mux.HandleFunc("GET "+wire.Path, h.serveTunnel)
	mux.HandleFunc("GET "+wire.Path+"/{session}", h.serveTunnel)
	mux.HandleFunc("GET "+wire.BulkPath, h.serveBulk)
	mux.Handle("/api/", http.StripPrefix("/api", h.e2b.Control()))
	mux.Handle("/sbx/", http.StripPrefix("/sbx", h.e2b.Sandbox()))
	mux.Handle("/files", h.e2b.Sandbox())
	mux.Handle("/mcp", h.mcp.Handler())
	if h.o.Pages {
		h.pageRoutes(mux)
	} else {
		mux.HandleFunc("/", h.nothing)
	}
	return mux
}

// ready tells whether the hub takes requests: it is not being stopped, and its
// data can be used.
func (h *Hub) ready(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		writeError(w, http.StatusServiceUnavailable, "The hub is being stopped.")
		return
	}
	if err := h.usable(r.Context()); err != nil {
		writeError(w, http.StatusServiceUnavailable, "The hub cannot use its data; its log says why.")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// usableFor is how long the answer of the data to whether it can be used counts:
// anybody may ask.
const usableFor = 2 * time.Second

// usable tells whether the data can be read and written now.
func (h *Hub) usable(ctx context.Context) error {
	h.asking.Lock()
	defer h.asking.Unlock()
	if time.Since(h.asked) < usableFor {
		return h.answer
	}
	// Whoever asked may go away; the answer is for the next one, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usableFor)
	defer cancel()
	if h.answer = h.store.Ping(ctx); h.answer != nil {
		h.log.Error("Data cannot be used", "err", h.answer)
	}
	h.asked = time.Now()
	return h.answer
}

// Online is how many computers are connected now.
func (h *Hub) Online() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.machines)
}

// Size is how large the database is, in bytes.
func (h *Hub) Size() int64 { return h.store.Size() }

// nothing is at every other address, and only who has a key learns that.
func (h *Hub) nothing(w http.ResponseWriter, r *http.Request) {
	if _, err := e2b.Authenticate(h.store, r); err != nil {
		h.refuse(w, err)
		return
	}
	writeError(w, http.StatusNotFound, "There is nothing at this address.")
}

// MachineToken makes the token that the owner's computer connects with; its
// earlier tokens end, and so does a connection that was made with one.
func (h *Hub) MachineToken(ctx context.Context, machineID, name string) (string, error) {
	return h.machineToken(ctx, machineID, name, false)
}

// PassingToken mints a token that its machine keeps in memory, where there is
// no keychain or a locked one. The token in the keychain stays good.
func (h *Hub) PassingToken(ctx context.Context, machineID, name string) (string, error) {
	return h.machineToken(ctx, machineID, name, true)
}

func (h *Hub) machineToken(ctx context.Context, machineID, name string, passing bool) (string, error) {
	if err := (&wire.SessionRef{SessionID: machineID}).Validate(); err != nil {
		return "", fmt.Errorf("%q cannot be the id of a computer: %w", machineID, err)
	}
	token, err := h.store.AddMachineToken(ctx, store.OwnerID, machineID, name, passing)
	if err != nil {
		return "", err
	}
	h.disconnect(machineID)
	return token, nil
}

// RevokeMachine ends a computer's tokens and its connection, now. It is no
// error when it has none.
func (h *Hub) RevokeMachine(ctx context.Context, machineID string) error {
	err := h.store.RevokeMachine(ctx, "", machineID)
	h.disconnect(machineID)
	h.spawn(h.recheckChats)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (h *Hub) disconnect(machineID string) {
	for _, c := range h.present() {
		if c.machineID() == machineID {
			c.revoked()
		}
	}
}

// MakeKey makes a key for a program of the owner's and returns its secret, which is kept
// nowhere. The name is what the person sees as who asks.
func (h *Hub) MakeKey(ctx context.Context, name string) (secret string, err error) {
	k, err := h.store.AddKey(ctx, store.OwnerID, name)
	return k.Secret, err
}

// Keys lists everybody's keys that are not revoked.
func (h *Hub) Keys(ctx context.Context) ([]store.Key, error) { return h.store.Keys(ctx, "") }

// RevokeKey ends a key, and the sandboxes that were opened with it.
// store.ErrNotFound when there is none.
func (h *Hub) RevokeKey(ctx context.Context, id string) error {
	if err := h.store.RevokeKey(ctx, "", id); err != nil {
		return err
	}
	h.recheckAll()
	return nil
}

// Machines lists everybody's computers that this hub knows.
func (h *Hub) Machines(ctx context.Context) ([]store.Machine, error) {
	return h.store.Machines(ctx, "")
}
