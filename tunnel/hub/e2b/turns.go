package e2b

import "sync"

// turns has one goroutine at a time for each name. Its zero value is ready.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn // guarded by mu
}

type turn struct {
	mu      sync.Mutex
	waiting int // guarded by turns.mu
}

// take waits for the turn of name and returns what gives it up.
func (t *turns) take(name string) func() {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	one := t.all[name]
	if one == nil {
		one = &turn{}
		t.all[name] = one
	}
	one.waiting++
	t.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.waiting--; one.waiting == 0 {
			delete(t.all, name)
		}
	}
}
