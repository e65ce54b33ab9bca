package machine

import (
	"context"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

// A command that runs goes on when what allowed it is taken away: it was begun
// with leave, and has a button that stops it. A connection is closed: it is a
// door that stands open, and nobody looks for it among the commands.

// cutAll closes every connection, and the questions about others.
func (m *Machine) cutAll(cause error) {
	m.flights.cut(func(consent.Request) bool { return true }, cause)
}

// cut closes the connections that were allowed by what is gone now, and are by
// nothing else.
func (m *Machine) cut(ctx context.Context, gone []consent.Stored) {
	now := time.Now()
	m.flights.cut(func(r consent.Request) bool {
		if (policy.Policy{}).Decide(r, gone, now).Outcome != consent.Allowed {
			return false
		}
		left, err := m.o.Store.Remembered(ctx, r.Hub, r.Principal.ID)
		if err != nil {
			m.log.Error("What is remembered could not be read", "err", err)
			return true
		}
		return m.o.Policy.Decide(r, left, now).Outcome != consent.Allowed
	}, stoppedBy("The person at this computer took away what allowed this connection."))
}

// asks notes what a connection is asked for as. It is noted before that is
// decided: what is taken away at this moment is not missed.
func (f *flights) asks(id string, r consent.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.all[id]; fl != nil && fl.kind == flightConnection {
		fl.asked = &r
	}
}

// cut cancels the connections that over holds for.
func (f *flights) cut(over func(consent.Request) bool, cause error) {
	f.mu.Lock()
	open := map[*flight]consent.Request{}
	for _, fl := range f.all {
		if fl.asked != nil {
			open[fl] = *fl.asked
		}
	}
	f.mu.Unlock()
	for fl, r := range open {
		if over(r) {
			fl.cancel(cause)
		}
	}
}
