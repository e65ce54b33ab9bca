package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// act does what was looked at.
type act func(ctx context.Context) (capabilities.Result, error)

// Describe says what a request of the control connection would do. Only the
// beginning of a browse asks.
func (c *chats) Describe(_ context.Context, call capabilities.Call) (capabilities.Description, error) {
	d, _, err := c.look(call)
	return d, err
}

// Run does it. What was described is looked at again.
func (c *chats) Run(ctx context.Context, call capabilities.Call, g consent.Grant, _ capabilities.Output) (capabilities.Result, error) {
	if _, lists := call.Payload.(*autogpt.DirectoryList); !lists {
		c.ops.Lock()
		defer c.ops.Unlock()
	}
	d, do, err := c.look(call)
	if err != nil {
		return capabilities.Result{}, err
	}
	if err := g.Check(consent.DigestOf(d.Payload), d.Fingerprint); err != nil {
		return capabilities.Result{}, err
	}
	return do(ctx)
}

func (c *chats) look(call capabilities.Call) (capabilities.Description, act, error) {
	switch p := call.Payload.(type) {
	case *autogpt.DirectoryList:
		if p.BrowseID == nil {
			return c.lookBegin()
		}
		return c.lookList(p)
	case *autogpt.Attach:
		return c.lookAttach(p)
	case *autogpt.Activate:
		return c.lookActivate(p)
	case *autogpt.Restore:
		return c.lookRestore(p)
	case *autogpt.Detach:
		return c.lookDetach(p)
	}
	return capabilities.Description{}, nil, fmt.Errorf("folders: %s with a %T", call.Type, call.Payload)
}

// own describes what lends nothing: it is recorded, and asks nobody.
func own(action, title, text string, p any) capabilities.Description {
	return capabilities.Description{Action: action, Title: title, Sentence: "%s wants to " + text + ".", Exact: text, Risk: consent.RiskLow, Payload: p,
		Effects: []consent.Effect{{Kind: consent.EffectOwn, Text: text + "; lends nothing", Own: true}}}
}

func (c *chats) lookBegin() (capabilities.Description, act, error) {
	_, hub := c.m.link.hub()
	hub = consent.Visible(platform(hub).Name, false)
	var from []string
	for _, d := range c.browser.roots() {
		from = append(from, consent.Visible(d.path, false))
	}
	d := capabilities.Description{Action: "browse", Title: "See the names of your folders", Sentence: "%s wants to see the names of your folders.",
		Exact: strings.Join(from, "\n"), Risk: consent.RiskNormal, Scopes: []consent.Scope{consent.Session, consent.Always},
		Details: []string{"You choose a folder for a chat on " + hub + "'s page. It is shown the names of folders in these places, no files and no hidden folders.",
			"Choosing one lends nothing: the chat asks you before it does anything there."},
		Effects: []consent.Effect{{Kind: consent.EffectRead, Text: "shows the names of folders to " + hub}}, Payload: "browse"}
	return d, func(context.Context) (capabilities.Result, error) { return listed(c.browser.begin()) }, nil
}

func (c *chats) lookList(p *autogpt.DirectoryList) (capabilities.Description, act, error) {
	if p.DirectoryRef == nil {
		return capabilities.Description{}, nil, unknownRef()
	}
	dir, err := c.browser.folder(*p.BrowseID, *p.DirectoryRef)
	if err != nil {
		return capabilities.Description{}, nil, err
	}
	d := own("browse", "See the folders in "+dir.path, "see the names of the folders in "+consent.Visible(dir.path, false), p)
	return d, func(context.Context) (capabilities.Result, error) {
		return listed(c.browser.list(*p.BrowseID, *p.DirectoryRef, p.Cursor))
	}, nil
}

func listed(d *autogpt.Directory, err error) (capabilities.Result, error) {
	if err != nil {
		return capabilities.Result{}, err
	}
	words := fmt.Sprintf("%d folders named", len(d.Entries))
	if len(d.Entries) == 1 {
		words = "1 folder named"
	}
	return capabilities.Result{Type: wire.Type(autogpt.TypeDirectory), Payload: d, Outcome: words}, nil
}

func (c *chats) lookAttach(p *autogpt.Attach) (capabilities.Description, act, error) {
	c.mu.Lock()
	old := c.get(p.SessionID)
	c.mu.Unlock()
	dir, err := c.browser.folder(p.BrowseID, p.DirectoryRef)
	if err != nil {
		return capabilities.Description{}, nil, err
	}
	if err := dir.usable(); err != nil {
		return capabilities.Description{}, nil, err
	}
	if why := c.m.sessions.forbidden(dir.path); why != "" {
		return capabilities.Description{}, nil, wire.Errorf(autogpt.CodeUnavailable, "The folder %s can't be lent: %s.", dir.path, why)
	}
	d := own("attach", "Bind a chat to "+dir.path, "bind a chat to the folder "+consent.Visible(dir.path, false), p)
	d.Fingerprint = fingerprintOf(dir.path, dir.id)
	return d, func(ctx context.Context) (capabilities.Result, error) {
		revision := int64(1)
		if old != nil {
			revision = old.revision + 1
		}
		b := c.bind(p.SessionID, dir.path, d.Fingerprint, revision, "")
		b.grant = claims{AllowedRoot: b.root, Fingerprint: b.fingerprint, IssuedAt: time.Now().Unix(), MachineID: c.m.o.Settings.Get().MachineID,
			Revision: b.revision, SessionID: b.chat}.sign(c.secrets.get(ctx)[0])
		if !c.browser.consume(p.BrowseID) {
			return capabilities.Result{}, unknownRef()
		}
		if old != nil {
			// The tunnel asks for no chat that has a connection; the one it had
			// has ended.
			c.halt(old, idleStop)
		}
		c.replace(old, b)
		return capabilities.Result{Type: wire.Type(autogpt.TypeAttached), Payload: b.told(), Outcome: "bound; nothing is lent yet"}, nil
	}, nil
}

// replace remembers a binding. The session of one to another folder ends.
func (c *chats) replace(old, b *binding) {
	c.remember(b)
	if old != nil && old.session != b.session {
		c.endSession(old, "The chat was bound to another folder.")
	}
}

func (c *chats) lookActivate(p *autogpt.Activate) (capabilities.Description, act, error) {
	c.mu.Lock()
	b := c.get(p.SessionID)
	running := b != nil && b.ctx != nil
	c.mu.Unlock()
	switch {
	case b == nil:
		return capabilities.Description{}, nil, wire.Errorf(autogpt.CodeNotAttached, "This chat is not bound to a folder of this computer.")
	case b.revision != p.Revision:
		return capabilities.Description{}, nil, otherRevision(b)
	}
	if !running {
		if err := c.check(b.root, b.fingerprint); err != nil {
			return capabilities.Description{}, nil, err
		}
	}
	d := own("activate", "Connect a chat in "+b.root, "connect a chat that is bound to "+consent.Visible(b.root, false), p)
	d.Fingerprint = b.fingerprint
	return d, func(context.Context) (capabilities.Result, error) {
		c.start(b)
		return capabilities.Result{Type: wire.Type(autogpt.TypeActivated), Payload: b.told(), Outcome: "connected; nothing is lent yet"}, nil
	}, nil
}

func (c *chats) lookRestore(p *autogpt.Restore) (capabilities.Description, act, error) {
	got, err := readGrant(p.RootGrant, c.secrets.get(c.m.ctx)...)
	switch {
	case err != nil:
		return capabilities.Description{}, nil, grantInvalid("this computer did not make it, or can't tell any more")
	case got.MachineID != c.m.o.Settings.Get().MachineID:
		return capabilities.Description{}, nil, grantInvalid("it is of another computer")
	case got.SessionID != p.SessionID:
		return capabilities.Description{}, nil, grantInvalid("it is of another chat")
	}
	b := c.bind(p.SessionID, got.AllowedRoot, got.Fingerprint, got.Revision, p.RootGrant)
	c.mu.Lock()
	old := c.get(p.SessionID)
	c.mu.Unlock()
	if old != nil && (got.Revision < old.revision || got.Revision == old.revision && got.Fingerprint != old.fingerprint) {
		return capabilities.Description{}, nil, otherRevision(old)
	}
	if err := c.check(b.root, b.fingerprint); err != nil {
		return capabilities.Description{}, nil, err
	}
	d := own("restore", "Connect a chat again in "+b.root, "connect a chat again that is bound to "+consent.Visible(b.root, false), []any{p.SessionID, p.RootGrant})
	d.Fingerprint = b.fingerprint
	return d, func(context.Context) (capabilities.Result, error) {
		switch {
		case old == nil:
			c.remember(b)
		case *old.told() == *b.told():
			b = old
		default:
			c.halt(old, "The chat's folder binding has changed.")
			c.replace(old, b)
		}
		c.start(b)
		return capabilities.Result{Type: wire.Type(autogpt.TypeRestored), Payload: b.told(), Outcome: "connected again; nothing new is lent"}, nil
	}, nil
}

func (c *chats) lookDetach(p *autogpt.Detach) (capabilities.Description, act, error) {
	c.mu.Lock()
	b := c.get(p.SessionID)
	c.mu.Unlock()
	d := own("detach", "Detach a chat", "detach a chat from its folder", p)
	if b != nil {
		d.Title = "Detach a chat from " + b.root
	}
	return d, func(context.Context) (capabilities.Result, error) {
		res := capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "it was not bound"}
		if b == nil {
			return res, nil
		}
		c.halt(b, "The chat was detached from its folder.")
		c.mu.Lock()
		delete(c.bound, autogpt.SessionKey(b.chat))
		c.mu.Unlock()
		c.endSession(b, "The chat was detached from its folder.")
		res.Outcome = "detached"
		return res, nil
	}, nil
}

// revisionError carries the revision that holds, for programs.
type revisionError struct {
	plain    *wire.Error
	detailed *autogpt.Detailed
}

func (e *revisionError) Error() string   { return e.plain.Message }
func (e *revisionError) Unwrap() []error { return []error{e.detailed, e.plain} }

func otherRevision(b *binding) error {
	text := fmt.Sprintf("This chat's folder binding has changed since; it is at revision %d.", b.revision)
	return &revisionError{plain: wire.Errorf(autogpt.CodeRevision, "%s", text),
		detailed: &autogpt.Detailed{Code: autogpt.CodeRevision, Message: text, Details: map[string]any{"current_revision": b.revision}}}
}
