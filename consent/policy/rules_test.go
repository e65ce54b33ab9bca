package policy_test

import (
	"strings"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

func TestWideRules(t *testing.T) {
	rule := func(effects string) consent.Stored {
		return consent.Stored{ID: "w", Scope: consent.Always, Created: noon, Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project",
			Capability: "files", Effects: effects, Wide: true}}
	}
	const changes = "create, overwrite, own create, own overwrite, own read, read"
	cases := []struct {
		name   string
		grant  consent.Stored
		r      consent.Request
		change func(*consent.Stored, *consent.Request)
		ok     bool
	}{
		{"reading", rule("own read, read"), request(consent.ModeAsk, "files", "read", of(consent.EffectRead)), nil, true},
		{"listing", rule("own read, read"), request(consent.ModeAsk, "files", "list", of(consent.EffectRead)), nil, true},
		{"writing, where reading is allowed", rule("own read, read"), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), nil, false},
		{"writing", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectOverwrite)), nil, true},
		{"writing its own", rule(changes), request(consent.ModeAsk, "files", "write", made(consent.EffectOverwrite)), nil, true},
		{"writing, where its own is allowed", rule("own overwrite"), request(consent.ModeAsk, "files", "write", of(consent.EffectOverwrite)), nil, false},
		{"deleting, where writing is allowed", rule(changes), request(consent.ModeAsk, "files", "delete", of(consent.EffectDelete)), nil, false},
		{"writing and deleting", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectOverwrite, consent.EffectDelete)), nil, false},
		{"a start-up name", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate, consent.EffectStartup)), nil, false},
		{"no effects", rule(changes), request(consent.ModeAsk, "files", "write", nil), nil, false},
		{"high risk", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(_ *consent.Stored, r *consent.Request) { r.Risk = consent.RiskHigh }, false},
		{"high risk, for this session", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, r *consent.Request) {
			r.Risk, s.Scope, s.Session = consent.RiskHigh, consent.Session, "s1"
		}, false},
		{"another folder", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(_ *consent.Stored, r *consent.Request) { r.Rule.Folder = "/photos" }, false},
		{"another capability", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Rule.Capability = "hardware" }, false},
		{"another program", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(_ *consent.Stored, r *consent.Request) { r.Rule.Principal = "p2" }, false},
		{"another hub", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(_ *consent.Stored, r *consent.Request) { r.Rule.Hub = "https://elsewhere" }, false},
		{"the one action", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Rule.Action = "write" }, true},
		{"another action", rule(changes), request(consent.ModeAsk, "files", "mkdir", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Rule.Action = "write" }, false},
		{"not said to be wide", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Rule.Wide = false }, false},
		{"wide, with a text", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Rule.Exact = "x" }, false},
		{"once", rule(changes), request(consent.ModeAsk, "files", "write", of(consent.EffectCreate)), func(s *consent.Stored, _ *consent.Request) { s.Scope = consent.Once }, false},
		{"a command, contained", rule("own run, run"), request(consent.ModeAsk, "shell", "run", of(consent.EffectRun)), func(s *consent.Stored, _ *consent.Request) {
			s.Rule.Capability, s.Rule.Contain = "shell", consent.Contained
		}, true},
		{"a command that can't be contained", rule("own run, run"), request(consent.ModeAsk, "shell", "run", of(consent.EffectRun)), func(s *consent.Stored, r *consent.Request) {
			s.Rule.Capability, s.Rule.Contain, r.Containable = "shell", consent.Contained, false
		}, false},
		{"a command, full access", rule("own run, run"), request(consent.ModeAsk, "shell", "run", of(consent.EffectRun)), func(s *consent.Stored, _ *consent.Request) {
			s.Rule.Capability, s.Rule.Contain, s.Scope, s.Session = "shell", consent.FullAccess, consent.Session, "s1"
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(&c.grant, &c.r)
			}
			v := policy.Policy{}.Decide(c.r, []consent.Stored{c.grant}, noon)
			if (v.Outcome == consent.Allowed) != c.ok {
				t.Errorf("%+v", v)
			}
		})
	}
}

// What the person declined for the session is declined however it would be done
// the next time, and against all that would allow it.
func TestADenialIsOfTheText(t *testing.T) {
	r := request(consent.ModeTrusted, "files", "write", of(consent.EffectOverwrite))
	no := grantFor(r, consent.Session, "")
	no.ID, no.Deny, no.Rule.Effects = "no", true, ""
	wide := consent.Stored{ID: "w", Scope: consent.Always, Created: noon, Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project",
		Capability: "files", Effects: "create, overwrite", Wide: true}}
	for _, effects := range [][]consent.Effect{of(consent.EffectOverwrite), of(consent.EffectCreate, consent.EffectOverwrite), made(consent.EffectOverwrite)} {
		r.Effects, r.Rule.Effects = effects, kinds(effects)
		if v := (policy.Policy{}).Decide(r, []consent.Stored{wide, no}, noon); v.Outcome != consent.Denied || v.Grant != "no" {
			t.Errorf("%s: %+v", kinds(effects), v)
		}
	}
	r.Rule.Exact = "another name"
	if v := (policy.Policy{}).Decide(r, []consent.Stored{no}, noon); v.Outcome != consent.Allowed {
		t.Errorf("another name: %+v", v)
	}
}

func TestADeclinedSession(t *testing.T) {
	open := request("", consent.CapabilitySession, "open", nil)
	open.Folder, open.Rule.Folder = "", ""
	no := consent.Stored{ID: "no", Deny: true, Scope: consent.Minutes15, Created: noon.Add(-8 * time.Minute), Expires: noon.Add(7 * time.Minute),
		Rule: consent.Rule{Hub: "this", Principal: "p1", Capability: consent.CapabilitySession, Action: "open"}}
	yes := consent.Stored{ID: "yes", Scope: consent.Always, Created: noon.Add(-time.Hour), Choice: consent.Choice{Mode: consent.ModeWork},
		Rule: consent.Rule{Hub: "this", Principal: "p1", Capability: consent.CapabilitySession, Action: "open", Folder: "/project"}}
	decide := func(folder string, change func(*consent.Stored, *consent.Request)) consent.Verdict {
		r, s := open, no
		r.Folder = folder
		if change != nil {
			change(&s, &r)
		}
		return policy.Policy{}.Decide(r, []consent.Stored{yes, s}, noon)
	}
	for _, folder := range []string{"", "/project", "/photos"} {
		v := decide(folder, nil)
		if v.Outcome != consent.Denied || v.By != "rule" || v.Grant != "no" || !strings.Contains(v.Reason, "7 minutes") || !strings.HasSuffix(v.Reason, ".") {
			t.Errorf("folder %q: %+v", folder, v)
		}
	}
	for name, change := range map[string]func(*consent.Stored, *consent.Request){
		"15 minutes later": func(s *consent.Stored, _ *consent.Request) { s.Expires = noon },
		"another program":  func(_ *consent.Stored, r *consent.Request) { r.Principal.ID = "p2" },
		"another hub":      func(_ *consent.Stored, r *consent.Request) { r.Hub = "https://elsewhere" },
		"without an end":   func(s *consent.Stored, _ *consent.Request) { s.Expires = time.Time{} },
		"always":           func(s *consent.Stored, _ *consent.Request) { s.Scope = consent.Always },
	} {
		if v := decide("", change); v.Outcome == consent.Denied {
			t.Errorf("%s: %+v", name, v)
		}
	}
	only := func(s *consent.Stored, _ *consent.Request) { s.Rule.Folder = "/photos" }
	if v := decide("/photos", only); v.Outcome != consent.Denied {
		t.Errorf("the one folder: %+v", v)
	}
	if v := decide("/project", only); v.Outcome != consent.Allowed {
		t.Errorf("another than the one folder: %+v", v)
	}
}

func TestSwitches(t *testing.T) {
	read := request(consent.ModeWork, "files", "read", of(consent.EffectRead))
	write := request(consent.ModeWork, "files", "write", of(consent.EffectCreate))
	run := request(consent.ModeWork, "shell", "run", of(consent.EffectRun))
	connect := request(consent.ModeWork, "network", "internet", of(consent.EffectConnect))
	signal := request(consent.ModeWork, "shell", "signal", made(consent.EffectOwn))
	bare := run
	bare.Containable = false
	cases := []struct {
		name     string
		switches policy.Switches
		r        consent.Request
		want     consent.Outcome
		words    string
	}{
		{"files off, read", policy.Switches{Files: policy.Off}, read, consent.Denied, "Files are switched off in Settings on this computer."},
		{"files off, run", policy.Switches{Files: policy.Off}, run, consent.Allowed, ""},
		{"reading only, read", policy.Switches{Files: policy.Read}, read, consent.Allowed, ""},
		{"reading only, write", policy.Switches{Files: policy.Read}, write, consent.Denied, "Settings"},
		{"commands off, run", policy.Switches{Shell: policy.Off}, run, consent.Denied, "Commands are switched off in Settings on this computer."},
		{"commands off, write", policy.Switches{Shell: policy.Off}, write, consent.Allowed, ""},
		{"commands off, end one that runs", policy.Switches{Shell: policy.Off}, signal, consent.Allowed, ""},
		{"contained only, run", policy.Switches{Shell: policy.Contained}, run, consent.Allowed, ""},
		{"contained only, what can't be", policy.Switches{Shell: policy.Contained}, bare, consent.Denied, "Settings"},
		{"network off, connect", policy.Switches{Network: policy.Off}, connect, consent.Denied, "Connections are switched off in Settings on this computer."},
		{"network off, run", policy.Switches{Network: policy.Off}, run, consent.Allowed, ""},
		{"nothing off, connect", policy.Switches{Files: "ask", Shell: "ask", Network: "ask"}, connect, ask, ""},
	}
	for _, c := range cases {
		c.r = c.switches.Offer(c.r)
		v := policy.Policy{Switches: c.switches}.Decide(c.r, nil, noon)
		if v.Outcome != c.want || !strings.Contains(v.Reason, c.words) || c.want == consent.Denied && v.By != "settings" {
			t.Errorf("%s: %+v", c.name, v)
		}
		if c.want != consent.Denied {
			continue
		}
		// What is off stays off whatever else would allow it.
		book := []consent.Stored{grantFor(c.r, consent.Always, "")}
		if c.r.Containable {
			book = []consent.Stored{grantFor(c.r, consent.Always, consent.Contained)}
		}
		if v := (policy.Policy{Switches: c.switches}).Decide(c.r, book, noon); v.Outcome != consent.Denied {
			t.Errorf("%s, allowed always: %+v", c.name, v)
		}
		if v := (policy.Policy{Switches: c.switches, Preset: policy.PresetFull, Folder: "/project"}).Decide(c.r, nil, noon); v.Outcome != consent.Denied {
			t.Errorf("%s, --policy full: %+v", c.name, v)
		}
	}
	contained := policy.Switches{Shell: policy.Contained}
	if r := contained.Offer(run); r.FullOffered || !r.Containable {
		t.Errorf("contained only offers %+v", r)
	}
	if r := (policy.Switches{Shell: "ask"}).Offer(run); !r.FullOffered {
		t.Error("full access is not offered any more")
	}
	if v := (policy.Policy{Switches: contained}).Decide(run, nil, noon); v.Outcome != consent.Denied {
		t.Errorf("full access was offered before: %+v", v)
	}
	full := grantFor(run, consent.Session, consent.FullAccess)
	if v := (policy.Policy{Switches: contained}).Decide(contained.Offer(run), []consent.Stored{full}, noon); v.Choice.Contain == consent.FullAccess {
		t.Errorf("a grant of before: %+v", v)
	}
	if v := (policy.Policy{Switches: contained, Preset: policy.PresetFull, Folder: "/project"}).Decide(contained.Offer(run), nil, noon); v.Choice.Contain != consent.Contained {
		t.Errorf("--policy full: %+v", v)
	}
}

func TestWordsOfRules(t *testing.T) {
	rule := consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "files", Effects: "create, overwrite, own create, own overwrite, own read, read", Wide: true}
	for _, c := range []struct {
		rule consent.Rule
		want string
	}{
		{rule, "Use files in /project, as long as it only creates, replaces and reads, and the risk is not high"},
		{consent.Rule{Capability: "files", Action: "write", Exact: "a", Folder: "/project", Effects: "create, own overwrite"}, "Write `a` in /project, as long as it only creates and replaces its own"},
		{consent.Rule{Capability: "network", Action: "internet", Exact: "example.org:443", Folder: "/project", Effects: "connect"}, "Reach `example.org:443` on the internet, from /project"},
		{consent.Rule{Capability: consent.CapabilitySession}, "Open a session"},
		{consent.Rule{Capability: consent.CapabilitySession, Folder: "/photos"}, "Open a session in /photos"},
	} {
		if got := policy.RuleWords(c.rule, consent.Choice{}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := policy.ModeWords(consent.ModeTrusted); got != "Trusted for 15 minutes" {
		t.Errorf("%q", got)
	}
	if got := policy.ScopeWords(consent.Command); got != "until its command has ended" {
		t.Errorf("%q", got)
	}
}
