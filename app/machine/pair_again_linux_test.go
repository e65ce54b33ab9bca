package machine

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/snapshot"
	"localpc/tunnel/hub"
)

// slowKeychain holds up the first write of a renewed sign-in once it is armed.
type slowKeychain struct {
	Keychain
	mu      sync.Mutex
	reached chan struct{} // guarded by mu; nil: not armed
	release chan struct{}
}

func (k *slowKeychain) Set(ctx context.Context, item, value string) error {
	k.mu.Lock()
	reached := k.reached
	if strings.HasPrefix(item, "hub-token") && !strings.Contains(value, `"begun":true`) {
		k.reached = nil
	} else {
		reached = nil
	}
	k.mu.Unlock()
	if reached != nil {
		close(reached)
		<-k.release
	}
	return k.Keychain.Set(ctx, item, value)
}

// Signing in again while the earlier sign-in is being renewed keeps the new
// one: what the renewal still writes does not take its place.
func TestSignInAgainWhileRenewing(t *testing.T) {
	a, p := newOwnHub(t, func(o *hub.Options) { o.AccessTTL = 3 * time.Second }), newPaired(t)
	p.signIn(a)
	p.quit()
	p.m = openMachine(t, p.m.o.Paths)
	slow := &slowKeychain{Keychain: p.m.o.Keychain, release: make(chan struct{})}
	p.m.o.Keychain = slow
	p.run()
	p.online()
	first, err := p.tokens(a.url)
	must(t, err)
	reached := make(chan struct{})
	slow.mu.Lock()
	slow.reached = reached
	slow.mu.Unlock()
	select {
	case <-reached:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is renewed")
	}
	done := p.pair(snapshot.Intent{Text: a.url})
	now := p.stage(snapshot.SignInBrowser)
	p.page()
	a.agree(now.URL, now.Match, "yes")
	time.Sleep(500 * time.Millisecond) // the new sign-in is there, the old renewal not over
	close(slow.release)
	p.says(done, "Paired")
	// It is renewed twice, which only the new one can be.
	second, err := p.tokens(a.url)
	must(t, err)
	if second.Refresh == first.Refresh {
		t.Error("the first sign-in is still kept")
	}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if s := p.m.Snapshot(); s.State == snapshot.SignIn {
			t.Fatalf("it asks to sign in again: %+v", s)
		}
	}
	p.online()
}
