package shell

import (
	"context"
	"slices"

	"localpc/capabilities"
	"localpc/consent"
)

// harmless are the effects of commands that leave the folder as it is.
var harmless = []consent.EffectKind{consent.EffectRead, consent.EffectOwn, consent.EffectConnect}

// mayChange tells whether a command may change files: by what is known of it, or
// since what it does is its own.
func (pl *plan) mayChange() bool {
	return pl.session.Mode != consent.ModeLook && slices.ContainsFunc(pl.found.Effects, func(e consent.Effect) bool { return !slices.Contains(harmless, e.Kind) })
}

// undoWords is what a card says of so many bytes that a command loses: that it
// can be undone, and "" where it can't. It is looked up once, when it is needed.
func (s *Shell) undoWords(ctx context.Context, pl *plan, bytes int64) string {
	if s.o.Keep == nil || pl.session.Mode == consent.ModeLook {
		return ""
	}
	ok, but := s.o.Keep.WouldSnapshot(ctx, pl.session)
	switch {
	case !ok || !s.o.Keep.Would(pl.session, bytes):
		pl.undo = ""
	case but != "":
		pl.undo = "can be undone, but not in " + but
	default:
		pl.undo = "can be undone"
	}
	return pl.undo
}

// hold has the folder held as it is before a command that may change it. What
// its card promised and can't be is asked about again; without a promise the
// command runs.
func (s *Shell) hold(ctx context.Context, pl *plan, request string) (capabilities.Snapshot, error) {
	if s.o.Keep == nil || !pl.mayChange() {
		return nil, nil
	}
	snap, err := s.o.Keep.Snapshot(ctx, pl.session, request)
	switch {
	case err == nil:
		return snap, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case pl.undo != "":
		return nil, consent.ErrChanged
	}
	return nil, nil
}
