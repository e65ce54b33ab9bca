package policy_test

import (
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

func request(m consent.Mode, capability, action string, effects []consent.Effect) consent.Request {
	r := consent.Request{ID: "r", Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude"}, Session: "s1", Mode: m, Folder: "/project",
		Capability: capability, Action: action, Effects: effects, Risk: consent.RiskNormal,
		Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: capability, Action: action, Exact: "npm test"}}
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
		name               string
		capability, action string
		effects            []consent.Effect
		look, work, ask    consent.Outcome
	}{
		{"read in the folder", files, "read", of(consent.EffectRead), consent.Allowed, consent.Allowed, ask},
		{"make a file", files, "write", of(consent.EffectCreate), consent.Denied, consent.Allowed, ask},
		{"overwrite what was there", files, "write", of(consent.EffectOverwrite), consent.Denied, ask, ask},
		{"overwrite its own", files, "write", made(consent.EffectOverwrite), consent.Denied, consent.Allowed, ask},
		{"delete what was there", files, "delete", of(consent.EffectDelete), consent.Denied, ask, ask},
		{"delete its own", files, "delete", made(consent.EffectDelete), consent.Denied, consent.Allowed, ask},
		{"move what was there", files, "move", of(consent.EffectMove), consent.Denied, ask, ask},
		{"move its own over what was there", files, "move", append(made(consent.EffectMove), of(consent.EffectOverwrite)...), consent.Denied, ask, ask},
		{"write a start-up name", files, "write", append(of(consent.EffectCreate), made(consent.EffectStartup)...), consent.Denied, ask, ask},
		{"read and a thing of no known kind", files, "read", of(consent.EffectRead, "teleport"), consent.Denied, ask, ask},
		{"no effects", files, "read", nil, consent.Denied, ask, ask},
		{"run a command", shell, "run", of(consent.EffectRun), ask, consent.Allowed, ask},
		{"run with a telling variable", shell, "run", of(consent.EffectRun, consent.EffectEnv), ask, ask, ask},
		{"run and delete", shell, "run", of(consent.EffectRun, consent.EffectDelete), ask, ask, ask},
		{"run without effects", shell, "run", nil, ask, ask, ask},
		{"signal its own process", shell, "signal", made(consent.EffectOwn), consent.Allowed, consent.Allowed, consent.Allowed},
		{"signal its own and another thing", shell, "signal", of(consent.EffectOwn, consent.EffectDelete), consent.Denied, ask, ask},
	}
	for _, c := range cases {
		for mode, want := range map[consent.Mode]consent.Outcome{consent.ModeLook: c.look, consent.ModeWork: c.work, consent.ModeAsk: c.ask} {
			v := policy.Policy{}.Decide(request(mode, c.capability, c.action, c.effects), nil, noon)
			if v.Outcome != want {
				t.Errorf("%s under %q: %q, want %q", c.name, policy.ModeWords(mode), v.Outcome, want)
			}
			if v.Outcome == consent.Denied && !strings.HasSuffix(v.Reason, ".") {
				t.Errorf("%s under %q: the reason %q is not a sentence", c.name, policy.ModeWords(mode), v.Reason)
			}
			if v.Outcome == consent.Allowed && c.action == "run" && v.Choice.Contain != consent.Contained {
				t.Errorf("%s under %q runs %q", c.name, policy.ModeWords(mode), v.Choice.Contain)
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

func TestDenialWins(t *testing.T) {
	for _, mode := range []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk} {
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
	book = []consent.Stored{remembered("odd", "/project", "root", -time.Hour)}
	if v := decide("/project", nil); v.Outcome != ask {
		t.Errorf("a mode of no kind: %+v", v)
	}
}

func TestRuleWords(t *testing.T) {
	rule := consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Action: "run", Exact: "npm test", Contain: consent.Contained}
	if got, want := policy.RuleWords(rule, consent.Choice{}), "shell: run `npm test` in /project, contained"; got != want {
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

// FuzzDecide makes a request and a book of one out of bytes, and holds every
// verdict against what must never be.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte("0000000000000000000000000000"))
	f.Add([]byte{2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		pick := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0]) % n
			data = data[1:]
			return b
		}
		text := func(all ...string) string { return all[pick(len(all))] }
		rule := func() consent.Rule {
			return consent.Rule{Hub: text("this", "other"), Principal: text("p1", "p2"), Folder: text("/project", "/photos"),
				Capability: text("shell", "files", consent.CapabilitySession), Action: text("run", "write", "open"), Exact: text("a", "b"),
				Env: text("", "A=1"), Cwd: text("", "/project/x")}
		}
		contain := func() consent.Containment { return consent.Containment(text("", "contained", "full", "odd")) }
		r := consent.Request{Rule: rule(), Session: text("s1", "s2", ""), Mode: consent.Mode(text("look", "work", "ask", "", "odd")),
			Risk: consent.Risk(1 + pick(4)), Containable: pick(2) == 0, FullOffered: pick(2) == 0}
		r.Hub, r.Principal.ID, r.Folder, r.Capability, r.Action = r.Rule.Hub, r.Rule.Principal, r.Rule.Folder, r.Rule.Capability, r.Rule.Action
		for range pick(4) {
			r.Effects = append(r.Effects, consent.Effect{Own: pick(2) == 0, Kind: consent.EffectKind(text("read", "create", "overwrite", "delete", "move", "startup", "run", "env", "own", "odd"))})
		}
		var book []consent.Stored
		for i := range pick(4) {
			s := consent.Stored{ID: string(rune('a' + i)), Rule: rule(), Deny: pick(2) == 0, Scope: consent.Scope(text("session", "15m", "always", "once", "odd")),
				Session: text("s1", "s2", ""), Created: noon.Add(time.Duration(pick(3)-1) * time.Hour), Choice: consent.Choice{Mode: r.Mode, Contain: contain()}}
			s.Rule.Contain = contain()
			if pick(2) == 0 {
				s.Expires = noon.Add(time.Duration(pick(3)-1) * time.Hour)
			}
			book = append(book, s)
		}
		p := policy.Policy{Preset: policy.Preset(text("ask", "contained", "full", "")), Folder: "/project"}
		v := p.Decide(r, book, noon)

		switch v.Outcome {
		case consent.Allowed, consent.Denied, ask:
		default:
			t.Fatalf("outcome %q", v.Outcome)
		}
		all := func(ok func(consent.Effect) bool) bool {
			for _, e := range r.Effects {
				if !ok(e) {
					return false
				}
			}
			return len(r.Effects) > 0
		}
		own := all(func(e consent.Effect) bool { return e.Kind == consent.EffectOwn })
		for _, s := range book {
			want := r.Rule
			want.Contain = s.Rule.Contain
			if s.Deny && s.Scope == consent.Session && s.Session != "" && s.Session == r.Session && s.Rule == want && s.Expires.IsZero() && !own && r.Capability != consent.CapabilitySession && v.Outcome != consent.Denied {
				t.Fatalf("a denial does not win: %+v\n%+v\n%+v", r, s, v)
			}
		}
		if v.Outcome != consent.Allowed {
			return
		}
		switch v.By {
		case "session":
			if !own {
				t.Fatalf("allowed as its own: %+v", r.Effects)
			}
		case "policy":
			if p.Preset != policy.PresetFull && r.Capability != consent.CapabilitySession || p.Preset == policy.Ask || p.Preset == "" {
				t.Fatalf("allowed by --policy %q: %+v", p.Preset, r)
			}
		case "mode":
			if v.Choice.Contain == consent.FullAccess {
				t.Fatalf("full access by mode: %+v", r)
			}
			if !all(func(e consent.Effect) bool {
				switch e.Kind {
				case consent.EffectRead:
					return true
				case consent.EffectCreate:
					return r.Mode == consent.ModeWork
				case consent.EffectOverwrite, consent.EffectDelete, consent.EffectMove:
					return r.Mode == consent.ModeWork && e.Own
				case consent.EffectRun:
					return r.Mode == consent.ModeWork && r.Action == "run" && v.Choice.Contain == consent.Contained && r.Containable
				}
				return false
			}) {
				t.Fatalf("allowed by mode: %+v", r)
			}
		case "rule":
			var s consent.Stored
			for _, g := range book {
				if g.ID == v.Grant {
					s = g
				}
			}
			if s.ID == "" || s.Deny || !s.Expires.IsZero() && !noon.Before(s.Expires) {
				t.Fatalf("allowed by %+v", s)
			}
			if s.Rule.Hub != r.Hub || s.Rule.Principal != r.Principal.ID || s.Rule.Folder != r.Folder || s.Rule.Capability != r.Capability {
				t.Fatalf("a grant of another: %+v for %+v", s, r)
			}
			if r.Capability == consent.CapabilitySession {
				return
			}
			if s.Rule.Exact != r.Rule.Exact || s.Rule.Env != r.Rule.Env || s.Rule.Cwd != r.Rule.Cwd || s.Rule.Contain != v.Choice.Contain {
				t.Fatalf("another rule: %+v for %+v gives %+v", s, r, v)
			}
			if s.Scope == consent.Session && s.Session != r.Session {
				t.Fatalf("another session: %+v for %+v", s, r)
			}
			if r.Risk >= consent.RiskHigh && s.Scope == consent.Always {
				t.Fatalf("high risk, always: %+v", r)
			}
			if v.Choice.Contain == consent.FullAccess && (s.Scope != consent.Session || !r.FullOffered) || v.Choice.Contain == consent.Contained && !r.Containable {
				t.Fatalf("%q by %+v", v.Choice.Contain, s)
			}
		default:
			t.Fatalf("allowed by %q", v.By)
		}
	})
}
