// Package look is step 3 for what a command would change: it looks at the
// files that the acts of package judge name, and counts what would happen to
// them. It changes nothing.
package look

import (
	"context"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/consent"
)

// Options say where to look. Session and Real are needed.
type Options struct {
	Session *capabilities.Session
	// Real is the path on this computer of a path as the command sees it; ok is
	// false for what lies outside of what the session may see.
	Real func(seen string) (real string, ok bool)
	// Ask runs a command that only reads, contained and with the folder
	// read-only, in a directory as the command sees it, and returns at most
	// 1 MiB of its output. Nil where nothing can be contained.
	Ask func(ctx context.Context, dir string, argv []string) ([]byte, error)
	// StartsUp tells whether a name in the folder is one that other programs
	// run on their own.
	StartsUp func(rel string) bool
}

// Found is what would happen, counted.
type Found struct {
	Effects []consent.Effect
	Steps   []string // one a part; judge's sentences with the counts in them
	// More: there is more than could be counted in the time, or than Max.
	More bool
	// Fingerprint is of all that was looked at: another one means that something
	// else would happen.
	Fingerprint string
}

// At counts what the acts of j would do. It is bounded by ctx.
func At(ctx context.Context, j judge.Judgement, o Options) Found {
	return Found{}
}
