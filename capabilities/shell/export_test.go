//go:build linux

package shell

import (
	"context"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/capabilities/shell/look"
)

// LookAt counts what acts would do, as Describe does.
func (s *Shell) LookAt(ctx context.Context, ses *capabilities.Session, acts ...judge.Act) look.Found {
	pl := &plan{session: ses}
	return look.At(ctx, judge.Judgement{Parts: []judge.Part{{Sentence: "Does it", Acts: acts}}}, look.Options{Session: ses, Real: pl.realOf, StartsUp: startsUp,
		Ask: func(ctx context.Context, dir string, argv []string) ([]byte, error) { return s.ask(ctx, pl, dir, argv) }})
}

// Keeps tells whether containers are entered once.
func (s *Shell) Keeps() bool { <-s.probed; return s.keeps }

// EmptyFor changes how long a container is kept that nothing runs in.
func EmptyFor(d time.Duration) (back func()) {
	was := emptyFor
	emptyFor = d
	return func() { emptyFor = was }
}

// OneEach gives each command a container of its own.
func (s *Shell) OneEach() { <-s.probed; s.keeps = false }
