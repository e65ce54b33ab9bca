package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

const (
	// template marks the sessions of this face among all sandboxes.
	template = "mcp"
	// ttl is how long a session lives without a call. One that is used lives on,
	// for a day at most: then the person is asked again.
	ttl    = time.Hour
	maxAge = 24 * time.Hour
)

// where is part of the arguments of every tool.
type where struct {
	Machine string `json:"machine,omitempty" jsonschema:"the computer to use, by its name or id from list_machines; may be left out when only one is connected"`
}

// target finds the computer that a call means: the one named, or the only one
// that is connected, or the only one on which the program has a session.
func (f *Face) target(ctx context.Context, who Principal, name string) (store.Machine, error) {
	all, err := f.o.Store.Machines(ctx, who.User)
	if err != nil {
		return store.Machine{}, err
	}
	var found, online []store.Machine
	known := false
	for _, m := range all {
		named := m.ID == name || strings.EqualFold(m.Name, name)
		known = known || named
		if !m.Online {
			continue
		}
		online = append(online, m)
		if named {
			found = append(found, m)
		}
	}
	switch {
	case name == "" && len(online) == 0:
		return store.Machine{}, wire.Errorf(wire.CodeOffline, "No computer is connected to this hub. It has to be switched on, with Local PC Executor running.")
	case name == "" && len(online) == 1:
		return online[0], nil
	case name == "":
		return f.onlyOpen(ctx, who, online)
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return store.Machine{}, wire.Errorf(wire.CodeInvalid, "There are %d connected computers of that name; give the id of one instead (list_machines has them).", len(found))
	case known:
		return store.Machine{}, wire.Errorf(wire.CodeOffline, "The computer %s is not connected to the hub. It has to be switched on, with Local PC Executor running.", name)
	}
	return store.Machine{}, wire.Errorf(wire.CodeInvalid, "There is no computer %q; list_machines has those there are.", name)
}

func (f *Face) onlyOpen(ctx context.Context, who Principal, online []store.Machine) (store.Machine, error) {
	open, err := f.open(ctx, who)
	if err != nil {
		return store.Machine{}, err
	}
	var with []store.Machine
	var names []string
	for _, m := range online {
		names = append(names, m.Name)
		if _, ok := open[m.ID]; ok {
			with = append(with, m)
		}
	}
	if len(with) == 1 {
		return with[0], nil
	}
	return store.Machine{}, wire.Errorf(wire.CodeInvalid, "%d computers are connected (%s): say which one is meant with machine.", len(online), strings.Join(names, ", "))
}

// open are the running sessions of a program, by computer.
func (f *Face) open(ctx context.Context, who Principal) (map[string]store.Sandbox, error) {
	list, err := f.o.Store.Sandboxes(ctx, store.Query{Principal: who.ID, Template: template, Oldest: true, Limit: 1000})
	if err != nil {
		return nil, err
	}
	open := map[string]store.Sandbox{}
	for _, b := range list {
		if b.User == who.User {
			open[b.Machine] = b
		}
	}
	return open, nil
}

// opening is a question for a session, which all calls that need it wait for.
type opening struct {
	waiters int // guarded by the face's mu
	cancel  context.CancelFunc
	done    chan struct{}
	b       store.Sandbox // set before done is closed
	err     error
}

// session gives the program's session on a computer, asking the person for one
// if there is none.
func (f *Face) session(ctx context.Context, j *job, m store.Machine, agent string) (store.Sandbox, error) {
	open, err := f.open(ctx, j.who)
	if err != nil {
		return store.Sandbox{}, err
	}
	if b, ok := open[m.ID]; ok {
		if f.used(ctx, b) {
			return b, nil
		}
	}
	j.says(fmt.Sprintf("Waiting for the person at %s to allow: work on this computer", m.Name))
	key := j.who.ID + "\x00" + m.ID
	f.mu.Lock()
	o := f.openings[key]
	if o == nil {
		o = &opening{done: make(chan struct{})}
		if f.closed || f.ctx.Err() != nil {
			f.mu.Unlock()
			return store.Sandbox{}, stopped()
		}
		octx, cancel := context.WithCancel(f.ctx)
		o.cancel = cancel
		f.openings[key] = o
		f.wg.Go(func() { f.ask(octx, key, o, j.who, m, agent) })
	}
	o.waiters++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		if o.waiters--; o.waiters == 0 {
			o.cancel()
		}
		f.mu.Unlock()
	}()
	select {
	case <-o.done:
		return o.b, o.err
	case <-ctx.Done():
		return store.Sandbox{}, wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The call was cancelled.")
	}
}

// used lets a session that is used live on; false: the computer does not know it
// any more.
func (f *Face) used(ctx context.Context, b store.Sandbox) bool {
	if time.Until(b.EndsAt) > ttl/2 || time.Since(b.Started) > maxAge {
		return true
	}
	// That it lives no longer is no reason not to use it.
	return wire.CodeOf(f.o.Backend.SetTTL(ctx, b, ttl)) != wire.CodeSessionNotOpen
}

// looksAfter lets the session of a command live on whose program asks for it: at
// its end the command would end, too.
func (f *Face) looksAfter(ctx context.Context, c *command) {
	if !c.running() {
		return
	}
	if b, err := f.o.Store.Sandbox(ctx, c.b.ID); err == nil && !b.Ended {
		f.used(ctx, b)
	}
}

func (f *Face) ask(ctx context.Context, key string, o *opening, who Principal, m store.Machine, agent string) {
	o.b, o.err = f.o.Backend.Open(ctx, wire.SessionOpen{PrincipalID: who.ID, PrincipalName: who.Name, Agent: agent,
		TTLSeconds: int(ttl.Seconds()), WaitMS: int(f.o.Patience.Milliseconds())},
		store.Sandbox{User: who.User, Machine: m.ID, Principal: who.ID, Template: template})
	f.mu.Lock()
	delete(f.openings, key)
	close(o.done)
	f.mu.Unlock()
}

// within runs use in the program's session on the computer that is meant. A
// session that the computer does not know any more is opened anew, once.
func (f *Face) within(ctx context.Context, j *job, req *sdk.CallToolRequest, machine string, use func(m store.Machine, b store.Sandbox) (*sdk.CallToolResult, error)) (*sdk.CallToolResult, error) {
	m, err := f.target(ctx, j.who, machine)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		b, err := f.session(ctx, j, m, agentOf(j.who, req))
		if err != nil {
			return nil, err
		}
		j.says(fmt.Sprintf("Waiting for the person at %s to allow: %s", m.Name, j.title))
		result, err := use(m, b)
		if again || wire.CodeOf(err) != wire.CodeSessionNotOpen {
			return result, err
		}
		if err := f.o.Backend.End(ctx, b, err.Error()); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
}

// agentOf is what a client says of itself; it grants nothing. What its person
// read when they let it in goes before what it says now.
func agentOf(who Principal, req *sdk.CallToolRequest) string {
	if who.Agent != "" {
		return who.Agent
	}
	info := req.ClientInfo()
	if info == nil {
		return ""
	}
	name := info.Title
	if name == "" {
		name = info.Name
	}
	return atRune(strings.ToValidUTF8(strings.TrimSpace(name+" "+info.Version), ""), 200)
}

// patience is how long the person has, as the wire says it.
func (f *Face) patience() int { return int(f.o.Patience.Milliseconds()) }

// unary sends a request whose reply is one frame.
func (f *Face) unary(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) (wire.Payload, error) {
	s, err := f.o.Backend.Do(ctx, b, t, p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	msg, err := s.Recv()
	if err != nil {
		return nil, err
	}
	return msg.Payload, nil
}
