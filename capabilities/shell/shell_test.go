//go:build linux

package shell_test

import (
	"testing"

	"localpc/capabilities"
	"localpc/capabilities/capabilitytest"
	"localpc/consent"
	"localpc/tunnel/wire"
)

func TestConformance(t *testing.T) {
	for name, choice := range map[string]consent.Choice{"contained": contained, "full access": full} {
		t.Run(name, func(t *testing.T) {
			call := func(text string) func(testing.TB, *capabilities.Session) capabilities.Call {
				return func(t testing.TB, s *capabilities.Session) capabilities.Call {
					return capabilitytest.NewCall(t, s, wire.TypeProcessStart, bash(s, text))
				}
			}
			capabilitytest.Run(t, capabilitytest.Suite{
				New:    func(t testing.TB) capabilities.Capability { return newShell(t) },
				Small:  call("echo hello; touch made"),
				Large:  call("head -c 30000000 /dev/zero"),
				Long:   call("while :; do echo more; sleep 0.05; done"),
				Choice: choice,
			})
		})
	}
}
