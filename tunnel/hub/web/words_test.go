package web

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"localpc/tunnel/hub/store"
)

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"never": {}, "just now": now.Add(-59 * time.Second), "1 minute ago": now.Add(-61 * time.Second), "3 hours ago": now.Add(-200 * time.Minute),
		"1 day ago": now.Add(-25 * time.Hour), "on 1 October 2026": time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got := ago(at, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAgentName(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36":                          "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36 Edg/156.0":      "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19 Mobile Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 15.0; rv:150.0) Gecko/20100101 Firefox/150.0":                                            "Firefox on macOS",
		"curl/8.5": "A browser", "": "A browser",
	} {
		if got := agentName(agent); got != want {
			t.Errorf("%q is called %q", agent, got)
		}
	}
}

// Whoever guesses the password of one person has the guesses of one person,
// however they write the name.
func TestGuessesAreCountedByPerson(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	token, err := s.SetupToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const password = "a quiet harbour at noon"
	if _, err := s.Claim(t.Context(), token, store.Claim{Name: "Ana", Password: password}); err != nil {
		t.Fatal(err)
	}
	guesses := func(name string) string {
		_, key := new(Face).guesses(httptest.NewRequest("POST", "/login", nil), name)
		return key
	}
	same := 0
	for _, name := range []string{"Anna", "Ana", "ana", "ANA", " ana ", "Ａｎａ", "ａna", "𝐀𝐧𝐚", "Aⓝa", "ᴬna"} {
		if _, err := s.LogIn(t.Context(), name, password); err == nil != (guesses(name) == guesses("Ana")) {
			t.Errorf("%q logs in: %v, and is counted as %q", name, err, guesses(name))
		} else if err == nil {
			same++
		}
	}
	if same < 6 {
		t.Errorf("only %d ways to write the name", same)
	}
	for _, nobody := range []string{"", "\x00", strings.Repeat("x", 100)} {
		if guesses(nobody) != guesses("") {
			t.Errorf("%.10q is counted as %.10q", nobody, guesses(nobody))
		}
	}
}
