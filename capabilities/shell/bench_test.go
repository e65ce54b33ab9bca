//go:build linux

package shell_test

import (
	"os/exec"
	"testing"

	"localpc/capabilities/capabilitytest"
	"localpc/consent"
)

// BenchmarkTrue compares a command that does nothing with a bare fork and exec
// of the same.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("sh", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, choice := range modes {
		b.Run(name, func(b *testing.B) {
			s := newShell(b)
			ses := capabilitytest.NewSession(b, consent.ModeWork)
			for b.Loop() {
				sh(b, s, ses, choice, "true")
			}
		})
	}
	b.Run("contained, each in a container of its own", func(b *testing.B) {
		s := newShell(b)
		s.OneEach()
		ses := capabilitytest.NewSession(b, consent.ModeWork)
		for b.Loop() {
			sh(b, s, ses, contained, "true")
		}
	})
	b.Run("contained with a way out", func(b *testing.B) {
		_, s, ses := newWorld(b)
		for b.Loop() {
			sh(b, s, ses, contained, "true")
		}
	})
}
