//go:build linux

package main

import (
	"strings"
	"testing"
)

// A hub that is not there has no address to show.
func TestPairedWords(t *testing.T) {
	if got := pairedWords("This computer only", ""); got != "Paired with This computer only" {
		t.Error(got)
	}
	if got := pairedWords("Home", "https://hub.example"); got != "Paired with Home (https://hub.example)" {
		t.Error(got)
	}
}

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
