//go:build unix

package e2b_test

import (
	"context"
	"strings"
	"testing"

	"localpc/tunnel/wire"
)

// A key that is revoked while its program waits for a sandbox is no key any more.
func TestCreateWithAKeyThatIsRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := newSDK(t, func(ctx context.Context, m wire.Message) error {
		if m.Type == wire.TypeSessionOpen {
			close(asked)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	done := make(chan response, 1)
	go func() { done <- control(t, s, "POST", "/sandboxes", `{}`) }()
	<-asked
	keys, err := s.Hub.Keys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("%+v, %v", keys, err)
	}
	if err := s.Hub.RevokeKey(t.Context(), keys[0].ID); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.status != 401 || !strings.Contains(r.body, "its key was revoked") {
		t.Errorf("%d %s", r.status, r.body)
	}
}
