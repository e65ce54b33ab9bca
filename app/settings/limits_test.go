package settings_test

import (
	"os"
	"strings"
	"testing"

	"localpc/app/settings"
)

const begin = "machine_id = '" + id + "'\nname = 'x'\n"

// A file of before there were switches and rates loads, and nothing is off.
func TestLimitsOfAnOldFile(t *testing.T) {
	p := newPaths(t)
	must(t, os.WriteFile(p.File(), []byte(begin+"[capabilities]\nshell = 'contained'\n[rates]\nfiles = 5\n"), 0o600))
	s := load(t, p).Get()
	if s.Capabilities != (settings.Capabilities{Files: "ask", Shell: "contained", Network: "ask", Computer: "ask"}) {
		t.Errorf("%+v", s.Capabilities)
	}
	want := settings.UsualRates
	if want.Files = 5; s.Rates != want {
		t.Errorf("%+v", s.Rates)
	}
	if again := load(t, p).Get(); again != s {
		t.Errorf("the second start has %+v, the first %+v", again, s)
	}
}

func TestLimitsOfNoKind(t *testing.T) {
	for text, complaint := range map[string]string{
		"[capabilities]\nfiles = 'contained'\n": "files, below [capabilities]",
		"[capabilities]\nshell = 'read'\n":      "shell, below [capabilities]",
		"[capabilities]\nnetwork = 'on'\n":      "network, below [capabilities]",
		"[capabilities]\nfiles = false\n":       "can't be read",
		"[capabilities]\ncomputer = 'act'\n":    "computer, below [capabilities]",
		"[rates]\ncomputer = -1\n":              "computer, below [rates]",
		"[computer]\nclipboard = 'mine'\n":      "clipboard, below [computer]",
		"[computer]\nhide = 'bank'\n":           "list of texts",
		"[computer]\nhide = [1]\n":              "list of texts",
		"[rates]\nshell = -1\n":                 "shell, below [rates]",
		"[rates]\nsession = 100001\n":           "session, below [rates]",
	} {
		p := newPaths(t)
		must(t, os.WriteFile(p.File(), []byte(begin+text), 0o600))
		if _, err := settings.Load(p); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: the error %v does not say %q", text, err, complaint)
		}
	}
}

func TestChangeOfLimits(t *testing.T) {
	p := newPaths(t)
	st := load(t, p)
	must(t, st.Change(func(s *settings.Settings) { s.Capabilities.Network, s.Rates.Shell = "off", 100_000 }))
	if s := load(t, p).Get(); s.Capabilities.Network != "off" || s.Rates.Shell != 100_000 {
		t.Errorf("%+v %+v", s.Capabilities, s.Rates)
	}
	must(t, st.Change(func(s *settings.Settings) { s.Rates.Shell = 0 }))
	if s := st.Get(); s.Rates.Shell != settings.UsualRates.Shell {
		t.Errorf("the usual is %d", s.Rates.Shell)
	}
	before := st.Get()
	if err := st.Change(func(s *settings.Settings) { s.Capabilities.Shell = "full" }); err == nil || st.Get() != before {
		t.Errorf("a value of no kind was taken: %v, %+v", err, st.Get().Capabilities)
	}
}
