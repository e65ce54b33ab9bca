package machine

import (
	"context"
	"slices"
	"testing"

	"localpc/app/settings"
	"localpc/app/snapshot"
)

// A warning that was dismissed is not said again before the next start; what
// stands can't be dismissed.
func TestDismissedWarnings(t *testing.T) {
	m := openMachine(t, settings.Paths{Data: t.TempDir()}, func(o *Options) {
		o.Warnings, o.Standing = []string{"No container.", "No keychain."}, []string{"Everything is allowed."}
	})
	for _, w := range []string{"No container.", "Everything is allowed."} {
		if _, err := m.Intend(context.Background(), snapshot.Intent{Kind: snapshot.Dismiss, Text: w}); err != nil {
			t.Fatal(err)
		}
	}
	m.Warn("No container.")
	s := m.Snapshot()
	if !slices.Equal(s.Warnings, []string{"No keychain."}) || !slices.Equal(s.Standing, []string{"Everything is allowed."}) {
		t.Errorf("it warns %q, and always %q", s.Warnings, s.Standing)
	}
}
