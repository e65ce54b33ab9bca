package settings_test

import (
	"os"
	"strings"
	"testing"

	"localpc/app/settings"
)

func TestHubAddress(t *testing.T) {
	for typed, want := range map[string]string{
		"hub.example":               "https://hub.example",
		" https://hub.example/ ":    "https://hub.example",
		"HTTPS://Hub.Example:443//": "https://hub.example",
		"hub.example:8443":          "https://hub.example:8443",
		"hub.example/base/":         "https://hub.example/base",
		"wss://hub.example":         "https://hub.example",
		"ws://hub.example":          "http://hub.example",
		"http://hub.example:80":     "http://hub.example",
		"http://192.168.1.5:4417":   "http://192.168.1.5:4417",
		"192.168.1.5:4417":          "https://192.168.1.5:4417",
		"localhost:4417":            "http://localhost:4417",
		"127.0.0.1:4417":            "http://127.0.0.1:4417",
		"[::1]:4417":                "http://[::1]:4417",
		"https://127.0.0.1:4417":    "https://127.0.0.1:4417",
		"nas":                       "https://nas",
		"xn--hb-xka.example":        "https://xn--hb-xka.example",
	} {
		if got, err := settings.HubAddress(typed); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", typed, got, err, want)
		}
	}
	for _, typed := range []string{"", " ", "ftp://hub.example", "file:///etc/passwd", "javascript:alert(1)", "https://", "https://:443", "https://anna:pw@hub.example",
		"hub.example?x=y", "hub.example#x", "two words", "hub.example/a b", "https://hub.example\nHost: x"} {
		if got, err := settings.HubAddress(typed); err == nil || got != "" {
			t.Errorf("%q became %q", typed, got)
		}
	}
}

func TestAutoGPTProfile(t *testing.T) {
	if got := (settings.AutoGPT{}).Fill(); got != settings.DefaultAutoGPT || got.Check() != nil {
		t.Errorf("%+v, %v", got, got.Check())
	}
	own := settings.AutoGPT{Web: "https://web.example/", API: " https://api.example:8443/base// ", WS: "ws://127.0.0.1:8001/", ClientID: "mine", Scope: "A B", FirstPort: 5000, LastPort: 5000}.Fill()
	if want := (settings.AutoGPT{Web: "https://web.example", API: "https://api.example:8443/base", WS: "ws://127.0.0.1:8001", ClientID: "mine", Scope: "A B", FirstPort: 5000, LastPort: 5000}); own != want || own.Check() != nil {
		t.Errorf("%+v, %v", own, own.Check())
	}
	for name, change := range map[string]func(*settings.AutoGPT){
		"web address must begin with https":   func(a *settings.AutoGPT) { a.Web = "http://web.example" },
		"API address must begin":              func(a *settings.AutoGPT) { a.API = "https://user@api.example" },
		"WebSocket address must begin with w": func(a *settings.AutoGPT) { a.WS = "https://ws.example" },
		"ws:// is for this computer only":     func(a *settings.AutoGPT) { a.WS = "ws://ws.example" },
		"nothing but a host":                  func(a *settings.AutoGPT) { a.Web = "https://web.example?x=y" },
		"client id":                           func(a *settings.AutoGPT) { a.ClientID = "a b" },
		"scope":                               func(a *settings.AutoGPT) { a.Scope = " " },
		"ports":                               func(a *settings.AutoGPT) { a.FirstPort, a.LastPort = 5001, 5000 },
		"1024":                                func(a *settings.AutoGPT) { a.FirstPort = 80 },
		"100 ports":                           func(a *settings.AutoGPT) { a.FirstPort, a.LastPort = 2000, 9000 },
	} {
		a := settings.DefaultAutoGPT
		change(&a)
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want something about %q", a, err, name)
		}
	}
	for s, want := range map[string][2]int{"": {0, 0}, "41899-41910": {41899, 41910}, " 5000 - 5002 ": {5000, 5002}, "5000": {5000, 5000}} {
		if first, last, err := settings.ParsePorts(s); err != nil || first != want[0] || last != want[1] {
			t.Errorf("%q: %d, %d, %v", s, first, last, err)
		}
	}
	for _, s := range []string{"x", "1-", "-5", "1-2-3", "5000,5001"} {
		if _, _, err := settings.ParsePorts(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
	if settings.DefaultAutoGPT.Ports() != "41899-41910" || own.Ports() != "5000" {
		t.Error("ports are written otherwise than they are read")
	}
}

// The file keeps the profile; what it leaves out has its usual value.
func TestAutoGPTInTheFile(t *testing.T) {
	p := newPaths(t)
	st := load(t, p)
	if st.Get().AutoGPT != settings.DefaultAutoGPT {
		t.Errorf("%+v", st.Get().AutoGPT)
	}
	must(t, st.Change(func(s *settings.Settings) {
		s.Hub, s.AutoGPT.API, s.CAFile = settings.HubAutoGPT, "https://backend.agpt.co", "/etc/ssl/own.pem"
	}))
	if got := load(t, p).Get(); got != st.Get() {
		t.Errorf("%+v", got)
	}
	data, err := os.ReadFile(p.File())
	must(t, err)
	must(t, os.WriteFile(p.File(), []byte(strings.Replace(string(data), "client_id", "# client_id", 1)), 0o600))
	if got := load(t, p).Get(); got != st.Get() {
		t.Errorf("%+v", got)
	}
	for name, change := range map[string]func(*settings.Settings){
		"AutoGPT": func(s *settings.Settings) { s.AutoGPT.WS = "ws://elsewhere.example" },
		"ca_file": func(s *settings.Settings) { s.CAFile = "own.pem" },
	} {
		if err := st.Change(change); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
