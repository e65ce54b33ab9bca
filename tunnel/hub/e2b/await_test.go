//go:build unix

package e2b_test

import (
	"context"
	"testing"
	"time"

	"localpc/tunnel/wire"
)

// The person takes their time: the SDK's own clock is 60 s, and nothing but
// the headers may come before the start.
func TestSDKLongWait(t *testing.T) {
	t.Parallel()
	s := newSDK(t, func(ctx context.Context, m wire.Message) error {
		if m.Type != wire.TypeProcessStart {
			return nil
		}
		select {
		case <-time.After(55 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	var got struct {
		Stdout string
		Took   int
	}
	s.js(t, `
const s = await Sandbox.create()
const began = Date.now()
const r = await s.commands.run('echo at last')
out({ stdout: r.stdout, took: Date.now() - began })`, &got)
	if got.Stdout != "at last\n" || got.Took < 55_000 {
		t.Errorf("got %+v", got)
	}
}
