//go:build linux

package main

import (
	"strings"
	"testing"
)

// What the terminal says at the start can be typed as it stands, and nobody is
// told to pair what is paired.
func TestGreeting(t *testing.T) {
	const pairs = "build/bin/localpc pair this"
	for _, c := range []struct {
		display, terminal, paired, says bool
	}{{true, true, false, false}, {false, true, false, true}, {false, true, true, false}, {false, false, false, true}} {
		got := greeting("build/bin/localpc pair this", c.display, c.terminal, c.paired)
		if strings.HasSuffix(got, pairs) != c.says || !strings.HasPrefix(got, "Local PC Executor is running") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
