package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func of(kinds ...consent.EffectKind) []consent.Effect {
	var out []consent.Effect
	for _, k := range kinds {
		out = append(out, consent.Effect{Kind: k})
	}
	return out
}

func made(kinds ...consent.EffectKind) []consent.Effect {
	out := of(kinds...)
	for i := range out {
		out[i].Own = true
	}
	return out
}

// kept are effects on so many files each, of which the old versions are kept.
func kept(n int, kinds ...consent.EffectKind) []consent.Effect {
	out := of(kinds...)
	for i := range out {
		out[i].Kept, out[i].Count = true, n
	}
	return out
}

// kinds names the kinds of effects as the dispatcher does.
func kinds(effects []consent.Effect) string {
	var all []string
	for _, e := range effects {
		k := string(e.Kind)
		if e.Own {
			k = "own " + k
		}
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func request(m consent.Mode, capability, action string, effects []consent.Effect) consent.Request {
	r := consent.Request{ID: "r", Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1", Mode: m, Folder: "/project",
		Capability: capability, Action: action, Effects: effects, Risk: consent.RiskNormal,
		Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: capability, Action: action, Exact: "npm test", Effects: kinds(effects)}}
	if action == "run" {
		r.Containable, r.FullOffered = true, m != consent.ModeLook
	}
	return r
}

const ask = consent.Outcome("")

// The table of design.md: what the session card settles, and what is asked.
func TestModes(t *testing.T) {
	files, shell := "files", "shell"
	cases := []struct {
		name                    string
		capability, action      string
		effects                 []consent.Effect
		look, work, ask, trusts consent.Outcome
	}{
		{"read in the folder", files, "read", of(consent.EffectRead), consent.Allowed, consent.Allowed, ask, consent.Allowed},
		{"make a file", files, "write", of(consent.EffectCreate), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"overwrite what was there", files, "write", of(consent.EffectOverwrite), consent.Denied, ask, ask, consent.Allowed},
		{"overwrite its own", files, "write", made(consent.EffectOverwrite), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"delete what was there", files, "delete", of(consent.EffectDelete), consent.Denied, ask, ask, consent.Allowed},
		{"delete its own", files, "delete", made(consent.EffectDelete), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"move what was there", files, "move", of(consent.EffectMove), consent.Denied, ask, ask, consent.Allowed},
		{"move its own over what was there", files, "move", append(made(consent.EffectMove), of(consent.EffectOverwrite)...), consent.Denied, ask, ask, consent.Allowed},
		{"overwrite what is kept", files, "write", kept(1, consent.EffectOverwrite), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"overwrite more than 10 that are kept", shell, "run", kept(300, consent.EffectOverwrite), ask, consent.Allowed, ask, consent.Allowed},
		{"overwrite what is kept, and what is not", shell, "run", append(kept(1, consent.EffectOverwrite), of(consent.EffectOverwrite)...), ask, ask, ask, consent.Allowed},
		{"delete 10 that are kept", files, "delete", kept(10, consent.EffectDelete), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"delete 11 that are kept", files, "delete", kept(11, consent.EffectDelete), consent.Denied, ask, ask, consent.Allowed},
		{"delete kept ones that were not counted", files, "delete", kept(0, consent.EffectDelete), consent.Denied, ask, ask, consent.Allowed},
		{"move 10 that are kept over one", files, "move", append(kept(10, consent.EffectMove), kept(1, consent.EffectOverwrite)...), consent.Denied, consent.Allowed, ask, consent.Allowed},
		{"move 11 that are kept", files, "move", kept(11, consent.EffectMove), consent.Denied, ask, ask, consent.Allowed},
		{"delete 6 that are kept, and move 5", shell, "run", append(kept(6, consent.EffectDelete), kept(5, consent.EffectMove)...), ask, ask, ask, consent.Allowed},
		{"delete 10 that are kept, and its own", shell, "run", append(kept(10, consent.EffectDelete), made(consent.EffectMove)...), ask, consent.Allowed, ask, consent.Allowed},
		{"change who may read, kept", shell, "run", kept(1, consent.EffectAccess), ask, ask, ask, consent.Allowed},
		{"change a start-up name, kept", files, "write", append(kept(1, consent.EffectOverwrite), kept(1, consent.EffectStartup)...), consent.Denied, ask, ask, ask},
		{"what can't be told, kept", shell, "run", kept(1, consent.EffectUnknown), ask, ask, ask, ask},
		{"a connection, kept", "network", "internet", kept(1, consent.EffectConnect), ask, ask, ask, ask},
		{"write a start-up name", files, "write", append(of(consent.EffectCreate), made(consent.EffectStartup)...), consent.Denied, ask, ask, ask},
		{"read and a thing of no known kind", files, "read", of(consent.EffectRead, "teleport"), consent.Denied, ask, ask, ask},
		{"no effects", files, "read", nil, consent.Denied, ask, ask, ask},
		{"a file request that would run something", files, "write", of(consent.EffectRun), consent.Denied, ask, ask, ask},
		{"run a command", shell, "run", of(consent.EffectRun), ask, consent.Allowed, ask, consent.Allowed},
		{"run what reads only", shell, "run", of(consent.EffectRead), ask, consent.Allowed, ask, consent.Allowed},
		{"run, make, install and connect", shell, "run", of(consent.EffectRun, consent.EffectRead, consent.EffectCreate, consent.EffectInstall, consent.EffectConnect), ask, consent.Allowed, ask, consent.Allowed},
		{"run and change its own", shell, "run", append(of(consent.EffectRun), made(consent.EffectOverwrite, consent.EffectDelete, consent.EffectMove, consent.EffectAccess)...), ask, consent.Allowed, ask, consent.Allowed},
		{"run with a telling variable", shell, "run", of(consent.EffectRun, consent.EffectEnv), ask, ask, ask, ask},
		{"run and overwrite", shell, "run", of(consent.EffectRun, consent.EffectOverwrite), ask, ask, ask, consent.Allowed},
		{"run and delete", shell, "run", of(consent.EffectRun, consent.EffectDelete), ask, ask, ask, consent.Allowed},
		{"run and move", shell, "run", of(consent.EffectMove), ask, ask, ask, consent.Allowed},
		{"run and change who may read", shell, "run", of(consent.EffectAccess), ask, ask, ask, consent.Allowed},
		{"run and change settings", shell, "run", of(consent.EffectRun, consent.EffectSettings), ask, ask, ask, ask},
		{"run as root", shell, "run", of(consent.EffectRun, consent.EffectRoot), ask, ask, ask, ask},
		{"run what can't be told", shell, "run", of(consent.EffectUnknown), ask, ask, ask, ask},
		{"run and change a start-up name of its own", shell, "run", made(consent.EffectStartup), ask, ask, ask, ask},
		{"run without effects", shell, "run", nil, ask, ask, ask, ask},
		{"signal its own process", shell, "signal", made(consent.EffectOwn), consent.Allowed, consent.Allowed, consent.Allowed, consent.Allowed},
		{"signal its own and another thing", shell, "signal", of(consent.EffectOwn, consent.EffectStartup), consent.Denied, ask, ask, ask},
		{"connect", "network", "internet", of(consent.EffectConnect), ask, ask, ask, ask},
		{"read from a device", "hardware", "read", of(consent.EffectRead), ask, ask, ask, ask},
	}
	for _, c := range cases {
		for mode, want := range map[consent.Mode]consent.Outcome{consent.ModeLook: c.look, consent.ModeWork: c.work, consent.ModeAsk: c.ask, consent.ModeTrusted: c.trusts} {
			r := request(mode, c.capability, c.action, c.effects)
			v := policy.Policy{}.Decide(r, nil, noon)
			if v.Outcome != want {
				t.Errorf("%s under %q: %q, want %q", c.name, policy.ModeWords(mode), v.Outcome, want)
			}
			if v.Outcome == consent.Denied && !strings.HasSuffix(v.Reason, ".") {
				t.Errorf("%s under %q: the reason %q is not a sentence", c.name, policy.ModeWords(mode), v.Reason)
			}
			if v.Outcome == consent.Allowed && c.action == "run" && v.Choice.Contain != consent.Contained {
				t.Errorf("%s under %q runs %q", c.name, policy.ModeWords(mode), v.Choice.Contain)
			}
			if r.Risk = consent.RiskHigh; v.By == "mode" && v.Outcome == consent.Allowed {
				if v := (policy.Policy{}).Decide(r, nil, noon); v.Outcome == consent.Allowed {
					t.Errorf("%s under %q, at high risk: allowed", c.name, policy.ModeWords(mode))
				}
			}
		}
	}
	for _, m := range []consent.Mode{"", "root"} {
		for _, r := range []consent.Request{request(m, files, "read", of(consent.EffectRead)), request(m, shell, "run", of(consent.EffectRun))} {
			if v := (policy.Policy{}).Decide(r, nil, noon); v.Outcome != ask {
				t.Errorf("mode %q: %q", m, v.Outcome)
			}
		}
	}
	r := request(consent.ModeWork, shell, "run", of(consent.EffectRun))
	r.Containable = false
	if v := (policy.Policy{}).Decide(r, nil, noon); v.Outcome != ask {
		t.Errorf("a command that can't be contained: %q", v.Outcome)
	}
}

func grantFor(r consent.Request, s consent.Scope, c consent.Containment) consent.Stored {
	g := consent.Stored{ID: "g1", Rule: r.Rule, Scope: s, Choice: consent.Choice{Scope: s, Contain: c}, Created: noon.Add(-time.Minute)}
	g.Rule.Contain = c
	if c == consent.FullAccess {
		g.Rule.Looked = r.Fingerprint
	}
	switch s {
	case consent.Session:
		g.Session = r.Session
	case consent.Minutes15:
		g.Expires = g.Created.Add(15 * time.Minute)
	}
	return g
}

func TestGrants(t *testing.T) {
	run := request(consent.ModeAsk, "shell", "run", of(consent.EffectRun))
	always := grantFor(run, consent.Always, consent.Contained)
	cases := []struct {
		name   string
		grant  func(*consent.Stored)
		change func(*consent.Request)
		ok     bool
	}{
		{"the same", nil, nil, true},
		{"another command", nil, func(r *consent.Request) { r.Rule.Exact = "npm test && rm -rf ." }, false},
		{"another folder", nil, func(r *consent.Request) { r.Rule.Folder = "/photos" }, false},
		{"another working directory", nil, func(r *consent.Request) { r.Rule.Cwd = "/project/sub" }, false},
		{"another environment", nil, func(r *consent.Request) { r.Rule.Env = "PATH=/project/bin" }, false},
		{"another program", nil, func(r *consent.Request) { r.Rule.Principal = "p2" }, false},
		{"another hub", nil, func(r *consent.Request) { r.Rule.Hub = "https://elsewhere" }, false},
		{"another action", nil, func(r *consent.Request) { r.Rule.Action = "signal" }, false},
		{"another capability", nil, func(r *consent.Request) { r.Rule.Capability = "hardware" }, false},
		{"a longer name", nil, func(r *consent.Request) { r.Rule.Folder = "/work2" }, false},
		{"it can't be contained now", nil, func(r *consent.Request) { r.Containable = false }, false},
		{"high risk", nil, func(r *consent.Request) { r.Risk = consent.RiskHigh }, false},
		{"high risk, for this session", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.Contained) }, func(r *consent.Request) { r.Risk = consent.RiskHigh }, true},
		{"this session", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.Contained) }, nil, true},
		{"another session", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.Contained) }, func(r *consent.Request) { r.Session = "s2" }, false},
		{"a session of no name", func(s *consent.Stored) {
			*s = grantFor(run, consent.Session, consent.Contained)
			s.Session = ""
		}, func(r *consent.Request) { r.Session = "" }, false},
		{"15 minutes", func(s *consent.Stored) { *s = grantFor(run, consent.Minutes15, consent.Contained) }, nil, true},
		{"15 minutes, over", func(s *consent.Stored) { s.Expires = noon }, nil, false},
		{"15 minutes without an end", func(s *consent.Stored) { s.Scope = consent.Minutes15 }, nil, false},
		{"a clock set back", func(s *consent.Stored) {
			*s = grantFor(run, consent.Minutes15, consent.Contained)
			s.Created, s.Expires = noon.Add(time.Hour), noon.Add(75*time.Minute)
		}, nil, false},
		{"full access, this session", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.FullAccess) }, nil, true},
		{"full access, another session", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.FullAccess) }, func(r *consent.Request) { r.Session = "s2" }, false},
		{"full access, always", func(s *consent.Stored) { *s = grantFor(run, consent.Always, consent.FullAccess) }, nil, false},
		{"full access, 15 minutes", func(s *consent.Stored) { *s = grantFor(run, consent.Minutes15, consent.FullAccess) }, nil, false},
		{"full access, not offered now", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.FullAccess) }, func(r *consent.Request) { r.FullOffered = false }, false},
		{"full access, what it names has changed", func(s *consent.Stored) { *s = grantFor(run, consent.Session, consent.FullAccess) }, func(r *consent.Request) { r.Fingerprint = "other scripts" }, false},
		{"contained, what it names has changed", nil, func(r *consent.Request) { r.Fingerprint = "other scripts" }, true},
		{"no containment said", func(s *consent.Stored) { s.Rule.Contain = "" }, nil, false},
		{"a containment of no kind", func(s *consent.Stored) { s.Rule.Contain = "mostly" }, nil, false},
		{"always, used yesterday", func(s *consent.Stored) {
			s.Created, s.LastUsed = noon.AddDate(-1, 0, 0), noon.AddDate(0, 0, -1)
		}, nil, true},
		{"always, not used for 30 days", func(s *consent.Stored) {
			s.Created, s.LastUsed = noon.AddDate(-1, 0, 0), noon.Add(-consent.UnusedFor)
		}, nil, false},
		{"always, never used, given 30 days ago", func(s *consent.Stored) { s.Created = noon.Add(-consent.UnusedFor) }, nil, false},
		{"always, never used, given 29 days ago", func(s *consent.Stored) { s.Created = noon.AddDate(0, 0, -29) }, nil, true},
		{"always, used while the clock was ahead", func(s *consent.Stored) {
			s.Created, s.LastUsed = noon.AddDate(-1, 0, 0), noon.AddDate(0, 0, 3)
		}, nil, true},
		{"15 minutes that last longer", func(s *consent.Stored) {
			s.Scope, s.Expires = consent.Minutes15, s.Created.Add(16*time.Minute)
		}, nil, false},
		{"this command", func(s *consent.Stored) { s.Scope, s.Session = consent.Command, "c1" }, func(r *consent.Request) { r.Command = "c1" }, true},
		{"another command of the session", func(s *consent.Stored) { s.Scope, s.Session = consent.Command, "c1" }, func(r *consent.Request) { r.Command = "c2" }, false},
		{"a command of no name", func(s *consent.Stored) { s.Scope = consent.Command }, nil, false},
		{"it does less than was told", func(s *consent.Stored) { s.Rule.Effects = "create, run" }, nil, true},
		{"it does more than was told", nil, func(r *consent.Request) {
			r.Effects = of(consent.EffectRun, consent.EffectDelete)
			r.Rule.Effects = kinds(r.Effects)
		}, false},
		{"it does to all what was told of its own", func(s *consent.Stored) { s.Rule.Effects = "own run" }, nil, false},
		{"it does to its own what was told of all", nil, func(r *consent.Request) {
			r.Effects = made(consent.EffectRun)
			r.Rule.Effects = kinds(r.Effects)
		}, true},
		{"once is never remembered", func(s *consent.Stored) { s.Scope = consent.Once }, nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, r := always, run
			if c.grant != nil {
				c.grant(&g)
			}
			if c.change != nil {
				c.change(&r)
			}
			v := policy.Policy{}.Decide(r, []consent.Stored{g}, noon)
			if (v.Outcome == consent.Allowed) != c.ok {
				t.Fatalf("%+v", v)
			}
			if c.ok && (v.Grant != "g1" || v.By != "rule" || v.Choice.Contain != g.Rule.Contain) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestFilesGrant(t *testing.T) {
	r := request(consent.ModeAsk, "files", "write", of(consent.EffectOverwrite))
	if v := (policy.Policy{}).Decide(r, []consent.Stored{grantFor(r, consent.Always, "")}, noon); v.Outcome != consent.Allowed {
		t.Errorf("a file's own grant: %+v", v)
	}
	// "Look only" was a promise; but what the person allowed by name holds.
	r.Mode = consent.ModeLook
	if v := (policy.Policy{}).Decide(r, nil, noon); v.Outcome != consent.Denied {
		t.Errorf("look only: %+v", v)
	}
}

// A broad rule does not outdo "Look only", which is chosen for one session.
func TestLookOnlyHoldsAgainstABroadRule(t *testing.T) {
	r := request(consent.ModeLook, "files", "write", of(consent.EffectOverwrite))
	g := grantFor(r, consent.Always, "")
	g.Rule.Exact, g.Rule.Action, g.Rule.Effects, g.Rule.Wide = "", "", "create, overwrite, read", true
	book := []consent.Stored{g}
	if v := (policy.Policy{}).Decide(r, book, noon); v.Outcome != consent.Denied || v.By != "mode" {
		t.Errorf("look only: %+v", v)
	}
	reads := request(consent.ModeLook, "files", "read", of(consent.EffectRead))
	r.Mode = consent.ModeAsk
	for _, r := range []consent.Request{r, reads} {
		if v := (policy.Policy{}).Decide(r, book, noon); v.Outcome != consent.Allowed || v.By != "rule" {
			t.Errorf("%s: %+v", r.Action, v)
		}
	}
}

func TestDenialWins(t *testing.T) {
	for _, mode := range []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk, consent.ModeTrusted} {
		r := request(mode, "shell", "run", of(consent.EffectRun))
		no := grantFor(r, consent.Session, "")
		no.ID, no.Deny = "no", true
		book := []consent.Stored{grantFor(r, consent.Always, consent.Contained), no, grantFor(r, consent.Session, consent.FullAccess)}
		for _, p := range []policy.Policy{{}, {Preset: policy.PresetContained, Folder: "/project"}, {Preset: policy.PresetFull, Folder: "/project"}} {
			v := p.Decide(r, book, noon)
			if v.Outcome != consent.Denied || v.Grant != "no" {
				t.Errorf("%q, --policy %q: %+v", mode, p.Preset, v)
			}
			r2 := r
			r2.Session = "s2"
			if v := p.Decide(r2, []consent.Stored{no}, noon); v.Outcome == consent.Denied {
				t.Errorf("%q, --policy %q: the denial holds in another session", mode, p.Preset)
			}
		}
	}
}

func TestPresets(t *testing.T) {
	open := request("", consent.CapabilitySession, "open", nil)
	open.Folder = ""
	other := open
	other.Folder = "/photos"
	full := policy.Policy{Preset: policy.PresetFull, Folder: "/project"}
	contained := policy.Policy{Preset: policy.PresetContained, Folder: "/project"}
	for _, p := range []policy.Policy{full, contained} {
		if v := p.Decide(open, nil, noon); v.Outcome != consent.Allowed || v.Choice.Mode != consent.ModeWork || v.Choice.Folder != "/project" {
			t.Errorf("--policy %s: %+v", p.Preset, v)
		}
		if v := p.Decide(other, nil, noon); v.Outcome != consent.Denied {
			t.Errorf("--policy %s, another folder: %+v", p.Preset, v)
		}
	}
	run := request(consent.ModeWork, "shell", "run", of(consent.EffectRun, consent.EffectEnv))
	if v := full.Decide(run, nil, noon); v.Outcome != consent.Allowed || v.Choice.Contain != consent.FullAccess || v.By != "policy" {
		t.Errorf("full: %+v", v)
	}
	if v := contained.Decide(run, nil, noon); v.Outcome != ask {
		t.Errorf("contained: %+v", v)
	}
	if v := (policy.Policy{}).Decide(open, nil, noon); v.Outcome != ask {
		t.Errorf("the first session card: %+v", v)
	}
}

func TestRememberedSessions(t *testing.T) {
	open := request("", consent.CapabilitySession, "open", nil)
	remembered := func(id, folder string, m consent.Mode, at time.Duration) consent.Stored {
		return consent.Stored{ID: id, Scope: consent.Always, Created: noon.Add(at), Choice: consent.Choice{Mode: m, Folder: folder},
			Rule: consent.Rule{Hub: "this", Principal: "p1", Capability: consent.CapabilitySession, Action: "open", Folder: folder}}
	}
	book := []consent.Stored{remembered("old", "/project", consent.ModeLook, -2*time.Hour), remembered("new", "/photos", consent.ModeWork, -time.Hour)}
	decide := func(folder string, change func(*consent.Request)) consent.Verdict {
		r := open
		r.Folder = folder
		if change != nil {
			change(&r)
		}
		return policy.Policy{}.Decide(r, book, noon)
	}
	if v := decide("", nil); v.Grant != "new" || v.Choice.Folder != "/photos" || v.Choice.Mode != consent.ModeWork {
		t.Errorf("no folder named: %+v", v)
	}
	if v := decide("/project", nil); v.Grant != "old" || v.Choice.Mode != consent.ModeLook {
		t.Errorf("a remembered folder: %+v", v)
	}
	for name, v := range map[string]consent.Verdict{
		"another folder":  decide("/music", nil),
		"below one":       decide("/project/sub", nil),
		"another program": decide("", func(r *consent.Request) { r.Principal.ID = "p2" }),
		"another hub":     decide("", func(r *consent.Request) { r.Hub = "https://elsewhere" }),
	} {
		if v.Outcome != ask {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for _, m := range []consent.Mode{"root", consent.ModeTrusted, ""} {
		book = []consent.Stored{remembered("odd", "/project", m, -time.Hour)}
		if v := decide("/project", nil); v.Outcome != ask {
			t.Errorf("a remembered mode %q: %+v", m, v)
		}
	}
	book = []consent.Stored{remembered("unused", "/project", consent.ModeWork, -consent.UnusedFor)}
	if v := decide("/project", nil); v.Outcome != ask {
		t.Errorf("not used for 30 days: %+v", v)
	}
}

func TestRuleWords(t *testing.T) {
	rule := consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Action: "run", Exact: "npm test", Contain: consent.Contained}
	if got, want := policy.RuleWords(rule, consent.Choice{}), "Run `npm test` in /project, kept inside its folder"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Whatever is part of the match is part of the words.
	seen := map[string]string{policy.RuleWords(rule, consent.Choice{}): "nothing"}
	for name, change := range map[string]func(*consent.Rule){
		"folder":      func(r *consent.Rule) { r.Folder = "/photos" },
		"capability":  func(r *consent.Rule) { r.Capability = "hardware" },
		"action":      func(r *consent.Rule) { r.Action = "signal" },
		"exact":       func(r *consent.Rule) { r.Exact = "npm test " },
		"cwd":         func(r *consent.Rule) { r.Cwd = "/project/sub" },
		"environment": func(r *consent.Rule) { r.Env = "A=1" },
		"contain":     func(r *consent.Rule) { r.Contain = consent.FullAccess },
	} {
		r := rule
		change(&r)
		words := policy.RuleWords(r, consent.Choice{})
		if other, ok := seen[words]; ok {
			t.Errorf("a rule with another %s and one with another %s read the same: %s", name, other, words)
		}
		seen[words] = name
	}
	evil := consent.Rule{Folder: "/w\u202eork\n", Capability: "shell", Action: "run", Exact: "ls\x1b[2K", Cwd: "/w/\x07", Env: "A=\u200b"}
	for _, words := range []string{policy.RuleWords(evil, consent.Choice{}), policy.RuleWords(consent.Rule{Folder: evil.Folder, Capability: consent.CapabilitySession}, consent.Choice{Mode: consent.ModeLook})} {
		if words != consent.Visible(words, false) {
			t.Errorf("%q holds what can't be seen", words)
		}
	}
}

// How busy the computer is is told without a question in every mode, and is no
// answer to a session card.
func TestTheLoadIsToldQuietly(t *testing.T) {
	for _, p := range []policy.Policy{{}, {Preset: policy.PresetContained, Folder: "/project"}} {
		for _, m := range []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk} {
			r := request(m, consent.CapabilitySession, "metrics", of(consent.EffectRead))
			r.Risk = consent.RiskLow
			v := p.Decide(r, nil, time.Now())
			if v.Outcome != consent.Allowed || v.Choice.Scope != consent.Once || v.Choice.Folder != "" || v.By != "mode" {
				t.Errorf("%q: %+v", m, v)
			}
		}
	}
	if v := (policy.Policy{}).Decide(request("", consent.CapabilitySession, "open", nil), nil, time.Now()); v.Outcome == consent.Allowed {
		t.Errorf("a session was opened: %+v", v)
	}
}

// A file may name searches and watches, and they read.
func TestAFileNamesSearchesAndWatches(t *testing.T) {
	f, err := policy.ParseFile([]byte("folder = \"/project\"\n[[allow]]\ncapability = \"files\"\naction = \"search\"\neffects = [\"read\"]\n[[deny]]\ncapability = \"files\"\naction = \"watch\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[string]consent.Outcome{"search": consent.Allowed, "watch": consent.Denied} {
		if v := (policy.Policy{File: f}).Decide(request(consent.ModeAsk, "files", action, of(consent.EffectRead)), nil, time.Now()); v.Outcome != want {
			t.Errorf("%s: %+v", action, v)
		}
		if words := policy.RuleWords(consent.Rule{Capability: "files", Action: action, Exact: "src", Folder: "/project"}, consent.Choice{}); strings.Contains(words, "files:") {
			t.Errorf("%s has no words: %q", action, words)
		}
	}
}
