package machine

import (
	"context"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

// A command that runs goes on when what allowed it is taken away: it was begun
// with leave, and has a button that stops it. A connection is closed: it is a
// door that stands open, and nobody looks for it among the commands. What is done
// at the screen ends too, also what was granted a moment ago and is not yet with
// its executor.

// cutAll ends all of a capability, and the questions about it.
func (m *Machine) cutAll(capability string, cause error) {
	m.flights.cut(func(r consent.Request) bool { return r.Capability == capability }, cause)
}

// cut ends what was allowed by what is gone now, and is by nothing else.
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
	}, stoppedBy("The person at this computer took away what allowed this."))
}

// asks notes what a connection, or something at the screen, is asked for as. It
// is noted before that is decided: what is taken away at this moment is not
// missed.
func (f *flights) asks(id string, r consent.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.all[id]; fl != nil && (fl.kind == flightConnection || r.Capability == consent.CapabilityComputer) {
		fl.asked = &r
	}
}

// cut cancels those of them that over holds for.
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
