package autogpt

import (
	"context"
	"strings"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// onControl sends a request on a machine's control connection. Its reply has
// the type T.
func onControl[T wire.Payload](ctx context.Context, f *Face, user, machine string, t msg.Type, p wire.Payload) (T, error) {
	var none T
	f.mu.Lock()
	c := f.controls[owned{user, machine}]
	f.mu.Unlock()
	if c == nil {
		return none, offline()
	}
	select {
	case <-c.settled:
	case <-c.done:
		return none, c.ended()
	case <-ctx.Done():
		return none, wire.Wrap(context.Cause(ctx), wire.CodeCancelled, "The request was cancelled.")
	}
	wait := f.o.ControlWait
	if t == msg.TypeDetach {
		wait = f.o.ForDetach
	}
	m, err := c.ask(ctx, t, p, wait)
	if err != nil {
		return none, err
	}
	reply, ok := m.Payload.(T)
	if !ok {
		return none, wire.Errorf(CodeInvalidReply, "The computer answered something else than was asked.")
	}
	return reply, nil
}

// Errors of the functions below are a *msg.Detailed for what the machine
// answers with ERROR, else a *wire.Error.

// Browse lists folders: the roots with an empty d, a folder with the ids of
// the listing that it was in, its next page with the cursor.
func (f *Face) Browse(ctx context.Context, user, machine string, d msg.DirectoryList) (*msg.Directory, error) {
	return onControl[*msg.Directory](ctx, f, user, machine, msg.TypeDirectoryList, &d)
}

// Attach binds a chat to a folder of a browse, which ends with it.
func (f *Face) Attach(ctx context.Context, user, machine string, a msg.Attach) (*msg.Binding, error) {
	b, err := onControl[*msg.Binding](ctx, f, user, machine, msg.TypeAttach, &a)
	if err == nil && b.SessionID != a.SessionID {
		err = wire.Errorf(CodeInvalidReply, "The computer bound another chat than was asked.")
	}
	return b, err
}

// Activate has a bound chat's data connection opened; Await waits for it.
func (f *Face) Activate(ctx context.Context, user, machine string, a msg.Activate) (*msg.Activated, error) {
	b, err := onControl[*msg.Activated](ctx, f, user, machine, msg.TypeActivate, &a)
	if err == nil && (b.SessionID != a.SessionID || b.Revision != a.Revision) {
		err = wire.Errorf(CodeInvalidReply, "The computer activated another chat than was asked.")
	}
	return b, err
}

// Restore gives a machine a binding that it has minted back, and has the data
// connection opened. The machine must answer with the very same binding.
func (f *Face) Restore(ctx context.Context, user, machine string, b msg.Binding) error {
	got, err := onControl[*msg.Binding](ctx, f, user, machine, msg.TypeRestore, &msg.Restore{SessionID: b.SessionID, RootGrant: b.RootGrant})
	if err == nil && *got != b {
		return wire.Errorf(CodeInvalidReply, "The computer restored another binding than was asked.")
	}
	return err
}

// Detach ends a chat's binding on its machine.
func (f *Face) Detach(ctx context.Context, user, machine, session string) error {
	_, err := onControl[*msg.Ack](ctx, f, user, machine, msg.TypeDetach, &msg.Detach{SessionID: session})
	return err
}

// Walk browses to the folder with that path, as the hub can submit none. It
// returns the ids that Attach takes.
func (f *Face) Walk(ctx context.Context, user, machine, path string) (browse, ref string, err error) {
	page, err := f.Browse(ctx, user, machine, msg.DirectoryList{})
	if err != nil {
		return "", "", err
	}
	browse = page.BrowseID
	var here *msg.DirectoryRef
	for here == nil || !samePath(here.Path, path) {
		next, cut, err := f.step(ctx, user, machine, page, here, path)
		switch {
		case err != nil:
			return "", "", err
		case next == nil && cut:
			return "", "", wire.Errorf(wire.CodePathNotFound, "The folder %s was not found: the computer does not list all of a folder above it.", path)
		case next == nil:
			return "", "", wire.Errorf(wire.CodePathNotFound, "The computer does not offer the folder %s. It has to be there, to be readable and writable, and to lie in the home folder or on another drive.", path)
		}
		here = next
		if samePath(here.Path, path) {
			break
		}
		if page, err = f.Browse(ctx, user, machine, msg.DirectoryList{BrowseID: &browse, DirectoryRef: &here.Ref}); err != nil {
			return "", "", err
		}
	}
	return browse, here.Ref, nil
}

// step finds, on page and those that follow it, the entry that is path or
// holds it: the deepest of them.
func (f *Face) step(ctx context.Context, user, machine string, page *msg.Directory, here *msg.DirectoryRef, path string) (*msg.DirectoryRef, bool, error) {
	for range maxPages {
		var found *msg.DirectoryRef
		for i := range page.Entries {
			e := &page.Entries[i]
			if holds(e.Path, path) && (found == nil || len(e.Path) > len(found.Path)) && (here == nil || len(e.Path) > len(here.Path)) {
				found = e
			}
		}
		if found != nil || page.NextCursor == nil || here == nil {
			return found, page.Truncated, nil
		}
		next, err := f.Browse(ctx, user, machine, msg.DirectoryList{BrowseID: &page.BrowseID, DirectoryRef: &here.Ref, Cursor: page.NextCursor})
		if err != nil {
			return nil, false, err
		}
		page = next
	}
	return nil, true, nil
}

// maxPages bounds how long one folder is looked through.
const maxPages = 64

// Paths of a machine are compared as they are written; on Windows, which is
// told by their form, without case.

func windows(path string) bool {
	return len(path) > 1 && path[1] == ':' || strings.HasPrefix(path, `\\`)
}

func plain(path string) string {
	if windows(path) {
		path = strings.ToLower(strings.ReplaceAll(path, "/", `\`))
		return strings.TrimRight(path, `\`)
	}
	return strings.TrimRight(path, "/")
}

func samePath(a, b string) bool { return plain(a) == plain(b) }

// holds tells whether path is dir or lies below it.
func holds(dir, path string) bool {
	sep := "/"
	if windows(dir) {
		sep = `\`
	}
	return samePath(dir, path) || strings.HasPrefix(plain(path), plain(dir)+sep)
}
