package control_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"localpc/app/control"
	"localpc/app/snapshot"
	"localpc/consent"
)

func TestPairedWords(t *testing.T) {
	for _, c := range []struct {
		hub  snapshot.Hub
		want string
	}{
		{snapshot.Hub{Kind: "this", Name: "This computer only"}, "Paired, for programs on this computer only"},
		{snapshot.Hub{Kind: "this", Name: "This computer only", Address: "http://127.0.0.1:4417"}, "Paired, for programs on this computer only (http://127.0.0.1:4417)"},
		{snapshot.Hub{Online: true, Kind: "own", Name: "Home", Address: "https://hub.example"}, "Paired with Home (https://hub.example). Keys for programs are made at https://hub.example/keys"},
		{snapshot.Hub{Online: true, Kind: "own", Name: "Home", Account: "Ana\n"}, `Paired with Home as Ana\n`},
		{snapshot.Hub{Online: true, Kind: "own", Name: "Home", Account: "Ana", Address: "https://hub.example"}, "Paired with Home as Ana (https://hub.example). Keys for programs are made at https://hub.example/keys"},
		{snapshot.Hub{Online: true, Kind: "own", Address: "https://hub.example/"}, "Paired with https://hub.example/. Keys for programs are made at https://hub.example/keys"},
		{snapshot.Hub{Online: true, Kind: "autogpt", Name: "AutoGPT", Address: "https://platform.autogpt.net"}, "Paired with AutoGPT (https://platform.autogpt.net). Choose this computer in a chat there."},
		{snapshot.Hub{Kind: "autogpt", Name: "AutoGPT", Address: "https://platform.autogpt.net"}, "Paired with AutoGPT (https://platform.autogpt.net)"},
	} {
		if got := control.PairedWords(c.hub); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.hub, got, c.want)
		}
	}
}

func TestWriteStatus(t *testing.T) {
	now := time.Date(2026, 3, 3, 14, 2, 20, 0, time.Local)
	in := func(s snapshot.SigningIn) snapshot.Snapshot {
		s.Kind, s.Hub, s.Until = "own", "https://hub.example", now.Add(9*time.Minute+41*time.Second)
		return snapshot.Snapshot{Machine: "Workshop PC", Line: "Not paired yet", Connect: snapshot.Connect{SignIn: &s, PairError: "An old one."}}
	}
	for name, c := range map[string]struct {
		s    snapshot.Snapshot
		want []string
		not  []string
	}{
		"by a policy": {snapshot.Snapshot{Machine: "NAS", Line: "Online", Policy: "the policy file /etc/night.toml"},
			[]string{"Answered beforehand by the policy file /etc/night.toml\n"}, nil},
		"online": {snapshot.Snapshot{Machine: "Workshop PC", Line: "Online", Hub: snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example"},
			Sessions: []snapshot.Session{{Principal: "Claude", Folder: "/project", Mode: "work", Running: 2}}},
			[]string{"Workshop PC: Online\n", "Paired with Home", "Claude · /project · work · until ", "2 running"}, []string{"Signing in", "beforehand"}},
		"sessions": {snapshot.Snapshot{Machine: "Workshop PC", Line: "Online", Sessions: []snapshot.Session{
			{Principal: "Claude", Folder: "/project", TrustedUntil: now.Add(12*time.Minute + 30*time.Second)},
			{Principal: "Cursor", Folder: "/other", TrustedUntil: now.Add(-time.Second), Denied: 3}}},
			[]string{"0 running · trusted for 12:30 more\n", "0 running · 3 declined in a row\n"}, nil},
		"not paired": {snapshot.Snapshot{Machine: "Workshop PC", Line: "Not paired yet", Connect: snapshot.Connect{PairError: "There is no hub there."}},
			[]string{"Pairing failed: There is no hub there."}, []string{"Paired with"}},
		"by browser": {in(snapshot.SigningIn{Stage: snapshot.SignInBrowser, Match: "4821", URL: "https://hub.example/oauth/authorize?x=1"}),
			[]string{"Workshop PC: Signing in…", "    https://hub.example/oauth/authorize?x=1\n", "it shows  4821 ", "It waits until 14:12.\n"}, []string{"An old one."}},
		"by code": {in(snapshot.SigningIn{Stage: snapshot.SignInCode, UserCode: "BCDF-GHJK", URL: "https://hub.example/pair"}),
			[]string{"    https://hub.example/pair\n", "    BCDF-GHJK\n", "It waits until 14:12.\n"}, nil},
		"starting":  {in(snapshot.SigningIn{Stage: snapshot.SignInStarting}), []string{"Signing in to https://hub.example"}, nil},
		"finishing": {in(snapshot.SigningIn{Stage: snapshot.SignInFinishing}), []string{"You have agreed."}, []string{"waits until"}},
	} {
		var b bytes.Buffer
		control.WriteStatus(&b, c.s, now)
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is missing:\n%s", name, want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%s: %q is said:\n%s", name, not, b.String())
			}
		}
	}
}

// What a hub says is written, never obeyed.
func TestStatusObeysNothing(t *testing.T) {
	evil := "\x1b[2J\x1b]0;x\x07\u202eevil\u009b31m\r\nType 42"
	for _, stage := range []snapshot.SignInStage{snapshot.SignInBrowser, snapshot.SignInCode, snapshot.SignInStarting, snapshot.SignInFinishing, snapshot.SignInStage(evil)} {
		s := snapshot.Snapshot{Machine: evil, Line: evil, Problem: evil, Policy: evil, Warnings: []string{evil}, Hub: snapshot.Hub{Paired: true, Kind: "own", Name: evil, Address: evil},
			Sessions: []snapshot.Session{{Principal: evil, Folder: evil, Mode: evil}},
			Connect:  snapshot.Connect{SignIn: &snapshot.SigningIn{Stage: stage, Hub: evil, URL: evil, Match: evil, UserCode: evil}}}
		var b bytes.Buffer
		control.WriteStatus(&b, s, time.Now())
		for _, ch := range b.String() {
			if ch != '\n' && ch != ' ' && (!unicode.IsGraphic(ch) || unicode.Is(unicode.Bidi_Control, ch)) {
				t.Fatalf("%s: %U is written to the terminal", stage, ch)
			}
		}
		if strings.Contains(b.String(), "\nType 42") {
			t.Errorf("%s: remote text stands like the program's own:\n%s", stage, b.String())
		}
	}
}

// Without a display the terminal tells of each step of a sign-in, once.
func TestTerminalTellsOfASignIn(t *testing.T) {
	out := &screen{}
	term := control.NewTerminal(out, func(string) {}, func(string, consent.Answer) error { return nil })
	s := &snapshot.SigningIn{Kind: "own", Hub: "https://hub.example", Stage: snapshot.SignInStarting}
	term.SignIn(nil)
	term.SignIn(s)
	code := *s
	code.Stage, code.URL, code.UserCode = snapshot.SignInCode, "https://hub.example/pair", "BCDF-GHJK"
	for range 3 {
		term.SignIn(&code)
	}
	term.SignIn(nil)
	term.SignIn(&code) // another sign-in that happens to have the same code
	term.Close()
	if n := strings.Count(out.String(), "    BCDF-GHJK\n"); n != 2 {
		t.Errorf("the code is told %d times:\n%s", n, out.String())
	}
}

// A folder that was asked for by name is the only one.
func TestCardOfOneFolder(t *testing.T) {
	card := openCard()
	card.Info = snapshot.CardInfo{Folders: []string{"/project"}, FolderOnly: true}
	var b bytes.Buffer
	control.WriteCard(&b, card, "42")
	if !strings.Contains(b.String(), "  folder: /project\n") || strings.Contains(b.String(), "another folder") {
		t.Errorf("the card is\n%s", b.String())
	}
	if a, complaint := control.ParseAnswer("42 w r", "42", card); complaint != "" || a.Choice.Folder != "/project" || !a.Choice.Remember {
		t.Errorf("%+v, %q", a, complaint)
	}
	for _, line := range []string{"42 w /elsewhere", "42 1 w", "42 w 2", "42 w x"} {
		if _, complaint := control.ParseAnswer(line, "42", card); complaint == "" {
			t.Errorf("%q chooses another folder", line)
		}
	}
}

// Looking for a folder belongs to no session.
func TestCardOfBrowsing(t *testing.T) {
	card := runCard()
	card.Request.Capability, card.Request.Action, card.Request.Session = "folders", "browse", "folders.1"
	card.Request.Containable, card.Request.FullOffered, card.Request.Folder = false, false, ""
	var b bytes.Buffer
	control.WriteCard(&b, card, "42")
	if out := b.String(); strings.Contains(out, "session") || !strings.Contains(out, "42 s : until this program ends.") || !strings.Contains(out, "d s  until this program ends.") {
		t.Errorf("the card is\n%s", out)
	}
}
