package hub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Thousands of computers tell of themselves all the time. What they say is
// noted together, and what may have changed for them is looked up together:
// the database is not asked for each.

// noteEvery is how often signs of life are written down; store.Fresh is many
// times as long.
const noteEvery = 10 * time.Second

// saw notes a sign of life of the computer's newest connection, and has a look
// at it if something is open there. It does not wait: who reads the connection
// must not hang with the database.
func (h *Hub) saw(m *machine) {
	h.mu.Lock()
	if h.machines[m.id] == m {
		h.seen[m.id] = m.epoch
	}
	h.mu.Unlock()
	if !m.hasOpen(nil) {
		h.spawn(func() { h.recheck(h.ctx, m) })
	}
}

// keepPresence writes signs of life down until the hub ends, and looks at every
// computer now and then: a change may have come without a poke.
func (h *Hub) keepPresence() {
	note := time.NewTicker(noteEvery)
	defer note.Stop()
	look := time.NewTicker(h.o.Heartbeat + h.o.PongTimeout)
	defer look.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-note.C:
			h.notePresence()
		case <-look.C:
			h.recheckChats()
			h.lookAtAll()
		}
	}
}

func (h *Hub) notePresence() {
	h.mu.Lock()
	seen := h.seen
	h.seen = map[string]int64{}
	h.mu.Unlock()
	if len(seen) == 0 {
		return
	}
	if err := h.store.SeenAll(h.ctx, seen); err != nil && h.ctx.Err() == nil {
		h.log.Error("Presence could not be noted", "err", err)
	}
}

// checkers is how many computers are looked at together: one that hangs holds
// up whoever writes to it.
const checkers = 64

// recheckAll looks at every computer, without waiting: something was changed,
// by this process or another.
func (h *Hub) recheckAll() {
	h.spawn(h.recheckChats)
	h.spawn(h.lookAtAll)
}

// lookAtAll ends the questions and connections whose tokens were revoked, and
// what must not be open. It asks the database once, and again only for those for whom
// something seems to have changed.
func (h *Hub) lookAtAll() {
	h.recheckOpenings()
	// In this order: who connects after the list is looked at when it does.
	list := h.present()
	holds, err := h.store.Holds(h.ctx)
	if err != nil {
		if h.ctx.Err() == nil {
			h.log.Error("Tokens could not be checked", "err", err)
		}
		return
	}
	list = slices.DeleteFunc(list, func(c computer) bool {
		m, ok := c.(*machine)
		if !ok {
			return false // it keeps more than its sandboxes
		}
		p := m.proven()
		return holds.Proofs[p.token+p.signIn] && m.hasOpen(holds.Running[m.id])
	})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(checkers, len(list)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)) && h.ctx.Err() == nil; i = next.Add(1) - 1 {
				h.recheck(h.ctx, list[i])
			}
		})
	}
	wg.Wait()
}

// recheck ends a connection whose token was revoked, by this process or
// another, and ends what must not be open there.
func (h *Hub) recheck(ctx context.Context, c computer) {
	live, err := h.live(ctx, c.proven())
	switch {
	case err != nil:
		h.log.Error("Token could not be checked", "machine", c.machineID(), "err", err)
	case !live:
		c.revoked()
	default:
		c.reconcile(ctx)
	}
}

// hasOpen tells whether exactly these sessions are open there.
func (m *machine) hasOpen(ids []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(ids) != len(m.sessions) {
		return false
	}
	for _, id := range ids {
		if _, ok := m.sessions[id]; !ok {
			return false
		}
	}
	return true
}
