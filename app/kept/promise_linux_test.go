package kept_test

import (
	"errors"
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
)

// What was to be kept when it was decided about, and is not when it is to run,
// is not done.
func TestPromisesAreHeldWhenItRuns(t *testing.T) {
	for name, what := range map[string]func(r *rig) capabilities.Call{
		"overwrite": func(r *rig) capabilities.Call { return r.write("a", "new") },
		"delete":    func(r *rig) capabilities.Call { return r.remove("a") },
		"move":      func(r *rig) capabilities.Call { return r.move("a", "c") },
		"over":      func(r *rig) capabilities.Call { return r.move("b", "a") },
		"out":       func(r *rig) capabilities.Call { return r.move("a", "/tmp/a") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("a", "old")
			r.put("b", "old, too")
			before := r.tree()
			call := what(r)
			d, err := r.e.Describe(t.Context(), call)
			must(t, err)
			for _, e := range d.Effects {
				if !e.Kept {
					t.Errorf("it is not kept: %+v", e)
				}
			}
			g := capabilitytest.Grant(t, r.s, "files", d)
			r.limit.Store(0)
			if _, err = r.e.Run(t.Context(), call, g, &capabilitytest.Output{}); !errors.Is(err, consent.ErrChanged) || r.tree() != before {
				t.Fatalf("it ran: %v\n%s", err, r.tree())
			}
			if d, err = r.e.Describe(t.Context(), call); err != nil || d.Effects[0].Kept {
				t.Errorf("then it is said to be kept: %+v, %v", d.Effects, err)
			}
		})
	}
}
