//go:build unix

package mcp_test

import (
	"context"
	"sync/atomic"
	"testing"

	"localpc/tunnel/wire"
)

// A program that is shut out in the middle of a call asks its person for
// nothing more: neither by the question that waits, nor by a new one.
func TestShutOutInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]wire.Type{"while the person is asked": wire.TypeSessionOpen, "while it works": wire.TypeFileList} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int32
			revoke := func() {}
			r := newRig(t, func(ctx context.Context, m wire.Message) error {
				if m.Type == wire.TypeSessionOpen {
					opened.Add(1)
				}
				if m.Type != at {
					return nil
				}
				revoke()
				if at == wire.TypeFileList {
					return wire.Errorf(wire.CodeSessionNotOpen, "The session is not open.")
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			s := r.client(t, r.Key, "")
			keys, err := r.Hub.Keys(t.Context())
			if err != nil || len(keys) != 1 {
				t.Fatalf("%+v, %v", keys, err)
			}
			revoke = func() {
				if err := r.Hub.RevokeKey(context.Background(), keys[0].ID); err != nil {
					t.Error(err)
				}
			}
			call(t, s, "list_directory", nil).fails("shut out")
			if n := opened.Load(); n != 1 {
				t.Errorf("the person was asked %d times", n)
			}
		})
	}
}
