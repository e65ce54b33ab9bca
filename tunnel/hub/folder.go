package hub

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/hub/web"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// Browse implements web.Hub.
func (h connections) Browse(ctx context.Context, user, machine string, at web.Place) (web.Folders, error) {
	var d msg.DirectoryList
	if at.Look != "" {
		d.BrowseID, d.DirectoryRef = &at.Look, &at.Folder
	}
	if at.Page != "" {
		d.Cursor = &at.Page
	}
	got, err := h.chats.Browse(ctx, user, machine, d)
	if err != nil {
		return web.Folders{}, ofLook(err)
	}
	out := web.Folders{Look: got.BrowseID, Cut: got.Truncated}
	if at.Look != "" {
		if got.Current == nil || got.BrowseID != at.Look {
			return out, wire.Errorf(wire.CodeInternal, "")
		}
		out.Here = &web.Folder{Ref: got.Current.Ref, Name: got.Current.Name, Path: got.Current.Path}
	}
	for _, e := range got.Entries {
		out.List = append(out.List, web.Folder{Ref: e.Ref, Name: e.Name, Path: e.Path})
	}
	if got.NextCursor != nil {
		out.Next = *got.NextCursor
	}
	return out, nil
}

// UseFolder implements web.Hub. A computer may list a folder that it does not
// lend, the home for one: so a chat is bound to it for a moment.
func (h connections) UseFolder(ctx context.Context, user, machine string, at web.Place) (string, error) {
	got, err := h.Browse(ctx, user, machine, web.Place{Look: at.Look, Folder: at.Folder})
	if err != nil {
		return "", err
	}
	if got.Here == nil {
		return "", wire.Errorf(wire.CodeSessionNotOpen, "")
	}
	chat := uuid.NewString()
	if _, err := h.chats.Attach(ctx, user, machine, msg.Attach{SessionID: chat, BrowseID: at.Look, DirectoryRef: at.Folder}); err != nil {
		return "", ofLook(err)
	}
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.chats.Detach(later, user, machine, chat); err != nil {
		h.log.Info("Session could not be closed now", "machine", machine, "session", chat, "err", err)
	}
	return got.Here.Path, h.store.SetFolder(ctx, user, machine, got.Here.Path)
}

// ofLook gives an error of the 1.1 face the codes of web.Hub. Its message is
// what the computer said, "" when that said nothing.
func ofLook(err error) error {
	code := wire.CodeInternal
	switch msg.CodeOf(err) {
	case wire.CodeOffline, wire.CodeLost:
		code = wire.CodeOffline
	case msg.CodePending:
		code = wire.CodePending
	case msg.CodeNotGranted:
		code = wire.CodeDenied
	case msg.CodeReferenceInvalid, wire.CodeInvalid:
		code = wire.CodeSessionNotOpen
	case msg.CodeUnavailable:
		code = wire.CodePathNotFound
	case autogpt.CodeTimeout, wire.CodeCancelled, wire.CodeOverloaded:
		code = wire.CodeOverloaded
	}
	var said *msg.Detailed
	if errors.As(err, &said) {
		return wire.Wrap(err, code, "%s", said.Message)
	}
	return wire.Wrap(err, code, "")
}
