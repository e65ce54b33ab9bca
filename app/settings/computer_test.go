package settings_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"localpc/app/settings"
)

func TestComputer(t *testing.T) {
	p := newPaths(t)
	must(t, os.WriteFile(p.File(), []byte(begin), 0o600))
	st := load(t, p)
	if c := st.Get().Computer; c != (settings.Computer{Clipboard: "own", HideUsual: true}) || st.Get().Rates.Computer != 240 {
		t.Errorf("an old file has %+v", c)
	}
	words := []string{" Signal ", "Signal", "", "=", "=keepassxc", `a "quoted" \ word`, "Sparkasse – Übersicht"}
	must(t, st.Change(func(s *settings.Settings) {
		s.Computer = settings.Computer{PerAction: true, Clipboard: "all", Hide: settings.WordsOf(words), RemoteAnswers: true}
	}))
	again := load(t, p).Get()
	if again != st.Get() || again.Computer.HideUsual {
		t.Errorf("it was %+v, and is %+v", st.Get().Computer, again.Computer)
	}
	if got := again.Computer.Hide.List(); !slices.Equal(got, []string{"Signal", "=keepassxc", `a "quoted" \ word`, "Sparkasse – Übersicht"}) {
		t.Errorf("hidden are %q", got)
	}
	data, err := os.ReadFile(p.File())
	must(t, err)
	if !strings.Contains(string(data), "\n  hide = [\"Signal\", ") && !strings.Contains(string(data), "\nhide = [\"Signal\", ") {
		t.Errorf("the file is\n%s", data)
	}
	for _, wrong := range [][]string{{"two\nlines"}, {strings.Repeat("x", settings.MaxHideWord+1)}, make([]string, settings.MaxHide+1), {"\xff"}} {
		if settings.CheckHide(wrong) == nil {
			t.Errorf("%.40q was taken", wrong)
		}
	}
	before := st.Get()
	if err := st.Change(func(s *settings.Settings) { s.Computer.Clipboard = "some" }); err == nil || st.Get() != before {
		t.Errorf("a value of no kind was taken: %v", err)
	}
}
