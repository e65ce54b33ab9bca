package tray

import (
	"strings"
	"testing"
	"time"

	"localpc/app/snapshot"
)

// shown lists the labels of the menu as a person reads them.
func shown(v view) string {
	var out []string
	for _, e := range v.entries {
		if e.ticked {
			e.label = "✓ " + e.label
		}
		if e.shown {
			out = append(out, e.label)
		}
	}
	return strings.Join(out, " | ")
}

// capabilities are three, each with its extent.
func capabilities(files, shell, network string) []snapshot.Capability {
	ask, never := snapshot.Extent{Value: "ask", Label: "May be asked for"}, snapshot.Extent{Value: "off", Label: "Never"}
	return []snapshot.Capability{
		{Name: "files", Label: "Files", Extent: files, Extents: []snapshot.Extent{ask, {Value: "read", Label: "Reading only"}, never}},
		{Name: "shell", Label: "Commands", Extent: shell, Extents: []snapshot.Extent{ask, {Value: "contained", Label: "Contained only"}, never}},
		{Name: "network", Label: "Network", Extent: network, Extents: []snapshot.Extent{ask, never}},
	}
}

// A click on a capability switches it off, or on as far as it goes.
func TestCapabilityIntents(t *testing.T) {
	v := look(snapshot.Snapshot{Capabilities: capabilities("ask", "contained", "off")})
	for i, want := range []snapshot.Intent{
		{Kind: snapshot.SetCapability, Text: "files", Way: "off"},
		{Kind: snapshot.SetCapability, Text: "shell", Way: "off"},
		{Kind: snapshot.SetCapability, Text: "network", Way: "ask"},
	} {
		if got := v.entries[slotFirst+i].intent; got != want {
			t.Errorf("a click sends %+v, want %+v", got, want)
		}
	}
}

func TestLook(t *testing.T) {
	paired := snapshot.Hub{Paired: true, Kind: "this"}
	for _, c := range []struct {
		name string
		s    snapshot.Snapshot
		want string
	}{
		{"nothing known", snapshot.Snapshot{},
			"Offline | Pause | Stop everything | Activity… | Permissions… | Settings… | Pair… | Quit"},
		{"not paired", snapshot.Snapshot{State: snapshot.Offline, Line: "Not paired yet", Machine: "Workshop PC"},
			"Not paired yet · Workshop PC | Pause | Stop everything | Activity… | Permissions… | Settings… | Pair… | Quit"},
		{"paired", snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: paired},
			"Online | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"a card waits", snapshot.Snapshot{State: snapshot.NeedsYou, Line: "Claude waits for you", Waiting: 2, Hub: paired},
			"Claude waits for you | 2 waiting: show | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"paused", snapshot.Snapshot{State: snapshot.Paused, Paused: true, Hub: paired},
			"Paused | Resume | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"stopped", snapshot.Snapshot{State: snapshot.Paused, Line: "Everything stopped", Stopped: &snapshot.Stopped{}, Hub: paired},
			"Everything stopped | Resume | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"another copy took over", snapshot.Snapshot{State: snapshot.Offline, Line: "Connected elsewhere", Hub: paired,
			Fix: snapshot.Reconnect, FixLabel: "Connect here"},
			"Connected elsewhere | Connect here | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"a fix that is in the menu already", snapshot.Snapshot{State: snapshot.Paused, Paused: true,
			Fix: snapshot.Resume, FixLabel: "Resume"},
			"Paused | Resume | Stop everything | Activity… | Permissions… | Settings… | Pair… | Quit"},
		{"paired with a platform", snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: snapshot.Hub{Paired: true, Kind: "autogpt"}},
			"Online | Pause | Stop everything | Activity… | Permissions… | Settings… | Use in AutoGPT… | Unpair | Quit"},
		{"signing in", snapshot.Snapshot{State: snapshot.Offline, Line: "Not paired yet", Machine: "Workshop PC",
			Connect: snapshot.Connect{SignIn: &snapshot.SigningIn{Kind: "own", Hub: "https://hub.example"}}},
			"Signing in… · Workshop PC | Pause | Stop everything | Activity… | Permissions… | Settings… | Show the sign-in… | Quit"},
		{"a card waits during a sign-in", snapshot.Snapshot{State: snapshot.NeedsYou, Line: "Claude waits for you", Waiting: 1, Hub: paired,
			Connect: snapshot.Connect{SignIn: &snapshot.SigningIn{Kind: "own", Hub: "https://hub.example"}}},
			"Claude waits for you | 1 waiting: show | Pause | Stop everything | Activity… | Permissions… | Settings… | Show the sign-in… | Unpair | Quit"},
		{"trusted, and denied", snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: paired, Sessions: []snapshot.Session{
			{Principal: "Claude", TrustedUntil: time.Date(2026, 5, 1, 14, 5, 30, 0, time.Local)}, {Principal: "Other\nagent", Denied: snapshot.DeniedOften}, {Denied: 1}}},
			"Online | Trusted until 14:05 | Other agent keeps being denied: show | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"capabilities", snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: paired, Capabilities: capabilities("ask", "contained", "off")},
			"Online | Pause | Stop everything | Capabilities | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit | " +
				"Ticked: may be asked for | ✓ Files | ✓ Commands: contained only | Network"},
		{"seen", snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: paired, Control: &snapshot.Control{Who: "Claude", Sees: true}},
			"Claude sees your screen | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"used", snapshot.Snapshot{State: snapshot.Working, Line: "Claude is working", Hub: paired, Control: &snapshot.Control{Who: "Claude\n", Sees: true, Acts: true}},
			"Claude is using this computer | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"taken over", snapshot.Snapshot{State: snapshot.Online, Hub: paired, Control: &snapshot.Control{Who: "Claude", Acts: true, Person: true}},
			"You took over; Claude waits | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"a card waits while it sees", snapshot.Snapshot{State: snapshot.NeedsYou, Line: "Claude waits for you", Waiting: 1, Hub: paired, Control: &snapshot.Control{Who: "Claude", Sees: true}},
			"Claude waits for you | 1 waiting: show | Pause | Stop everything | Activity… | Permissions… | Settings… | Connect a program… | Unpair | Quit"},
		{"sign in again", snapshot.Snapshot{State: snapshot.SignIn, Hub: snapshot.Hub{Paired: true, Kind: "own"},
			Fix: snapshot.Pair, FixLabel: "Sign in"},
			"Sign in again | Pause | Stop everything | Activity… | Permissions… | Settings… | Sign in again… | Unpair | Quit"},
	} {
		if got := shown(look(c.s)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// While a program sees or uses the computer, the icon says so between two of its
// actions, too.
func TestControlIcon(t *testing.T) {
	c := &snapshot.Control{Who: "Claude", Sees: true}
	for state, want := range map[snapshot.State]snapshot.State{snapshot.Online: snapshot.Working, snapshot.NeedsYou: snapshot.NeedsYou, snapshot.Paused: snapshot.Paused} {
		if got := look(snapshot.Snapshot{State: state, Control: c}).icon; got != string(want) {
			t.Errorf("%s: the icon is %s", state, got)
		}
	}
}

// Every entry but the state line does something, and what it says.
func TestIntents(t *testing.T) {
	s := snapshot.Snapshot{State: snapshot.NeedsYou, Waiting: 1}
	want := map[string]snapshot.Intent{
		"1 waiting: show": {Kind: snapshot.ShowCard},
		"Pause":           {Kind: snapshot.Pause},
		"Stop everything": {Kind: snapshot.StopAll, Text: snapshot.WindowActivity},
		"Activity…":       {Kind: snapshot.ShowWindow, Text: snapshot.WindowActivity},
		"Permissions…":    {Kind: snapshot.ShowWindow, Text: snapshot.WindowPermissions},
		"Settings…":       {Kind: snapshot.ShowWindow, Text: snapshot.WindowSettings},
		"Pair…":           {Kind: snapshot.ShowWindow, Text: snapshot.WindowPair},
		"Quit":            {Kind: snapshot.Quit},
	}
	for slot, e := range look(s).entries {
		if slot == slotState || !e.shown {
			continue
		}
		if e.intent != want[e.label] {
			t.Errorf("%s sends %+v", e.label, e.intent)
		}
		delete(want, e.label)
	}
	for label := range want {
		t.Errorf("there is no %s", label)
	}
	s.Hub.Paired, s.Paused = true, true
	v := look(s)
	if want := (snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowPair}); v.entries[slotConnect].intent != want {
		t.Errorf("Connect a program sends %+v", v.entries[slotConnect].intent)
	}
	s.State, s.Fix = snapshot.SignIn, snapshot.Pair
	if e := look(s).entries[slotConnect]; e.label != "Sign in again…" || e.intent != v.entries[slotConnect].intent {
		t.Errorf("a sign-in that has ended offers %+v", e)
	}
	if v.entries[slotPair].intent.Kind != snapshot.Unpair || v.entries[slotPause].intent.Kind != snapshot.Resume {
		t.Error("Unpair or Resume sends something else")
	}
}

func TestPlain(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Claude is working", "Claude is working"},
		{"  two\n lines\t ", "two lines"},
		{"bell\a and \x1b[31mred", "bell and [31mred"},
		{"turned \u202eround\u2066", "turned round"},
		{"zero\u200bwidth", "zerowidth"},
		{strings.Repeat("x", 300), strings.Repeat("x", 20) + "…"},
		{"naïve 世界", "naïve 世界"},
		{"\xff\xfe", "��"},
		{"", ""},
	} {
		if got := plain(c.in, 20); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

// What a snapshot does not change in the tray must not wake it.
func TestUpdateWakesOnlyForAChange(t *testing.T) {
	tr := New(Options{Intent: func(snapshot.Intent) {}})
	s := snapshot.Snapshot{State: snapshot.Online, Line: "Online"}
	tr.Update(s)
	<-tr.wake
	s.Seq, s.Entries = 7, []snapshot.Entry{{ID: "1"}}
	s.Sessions = []snapshot.Session{{ID: "1", Running: 3}}
	tr.Update(s)
	select {
	case <-tr.wake:
		t.Error("an entry of the log woke the tray")
	default:
	}
	s.Waiting = 1
	tr.Update(s)
	select {
	case <-tr.wake:
	default:
		t.Error("a waiting card did not wake the tray")
	}
}
