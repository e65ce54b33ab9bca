//go:build linux

package shell_test

import (
	"testing"

	"localpc/capabilities/capabilitytest"
	"localpc/consent"
)

// Platforms set these for each of their commands. They take nothing from
// anywhere but the system, so nobody is asked for them; anything else in them is
// asked for.
func TestVariablesOfPlatforms(t *testing.T) {
	s := newShell(t)
	ses := capabilitytest.NewSession(t, consent.ModeWork)
	for _, c := range []struct {
		name, value string
		want        consent.Outcome
	}{
		{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", consent.Allowed},
		{"PATH", "/usr/local/sbin:/usr/local/bin", consent.Allowed},
		{"PATH", "/home/user/bin:/usr/bin", ""},
		{"PATH", "bin:/usr/bin", ""},
		{"PATH", ":/usr/bin", ""},
		{"PATH", "", ""},
		{"PATH", "/usr/bin/../../tmp", ""},
		{"path", "/usr/bin", ""},
		{"HOME", "/nonexistent", consent.Allowed},
		{"HOME", "/nonexistent/..", ""},
		{"HOME", "/tmp", ""},
	} {
		p := bash(ses, "ls")
		p.Env = map[string]string{c.name: c.value}
		if got := verdict(ses, describe(t, s, ses, p)); got != c.want {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	for _, text := range []string{`bash -c 'pwd; echo "$HOME"; echo oops >&2; python3 -c "print(6 * 7)"'`, `bash -c 'sleep 300 & sleep 300'`, "bash -c 'echo out; exit 3'"} {
		p := bash(ses, text)
		p.Env = map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "GIT_AUTHOR_NAME": "Ann"}
		if got := verdict(ses, describe(t, s, ses, p)); got != consent.Allowed {
			t.Errorf("%s: %q", text, got)
		}
	}
}
