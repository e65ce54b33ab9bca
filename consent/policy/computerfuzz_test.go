package policy_test

import (
	"slices"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

func (b *bytesOf) computerEffect() consent.Effect {
	return consent.Effect{Own: b.pick(3) == 0, Kind: consent.EffectKind(b.text(string(consent.EffectSee), string(consent.EffectControl), string(consent.EffectClipboard), "read", "run", "own", "odd"))}
}

func (b *bytesOf) computerRule() consent.Rule {
	return consent.Rule{Hub: b.text("this", "this", "this", "other"), Principal: b.text("p1", "p1", "p1", "p2"), Folder: "/project", Capability: consent.CapabilityComputer,
		Action: b.text("see", "act", "see", "act", "launch", "clipboard-read", "clipboard-write", "check", "wait"), Exact: b.text("screens: DP-1", "screens: DP-1", "mouse and keyboard", "b")}
}

// FuzzDecideComputer makes a request about screen, mouse and keyboard, a policy
// and a book out of bytes, and holds the verdict against what must never be.
func FuzzDecideComputer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, data []byte) { computerHolds(t, &bytesOf{data}) })
}

// These run each time, and come to every kind of verdict.
func TestDecideComputerHolds(t *testing.T) {
	random := uint64(0x9e3779b97f4a7c15)
	outcomes := map[string]int{}
	for range 30_000 {
		data := make([]byte, 80)
		for i := range data {
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			data[i] = byte(random >> 32)
		}
		v := computerHolds(t, &bytesOf{data})
		outcomes[string(v.Outcome)+" by "+v.By]++
		if t.Failed() {
			return
		}
	}
	for _, want := range []string{"allowed by session", "allowed by rule", "allowed by mode", "allowed by policy", "denied by rule", "denied by settings", " by "} {
		if outcomes[want] < 20 {
			t.Errorf("%q came about %d times only: %v", want, outcomes[want], outcomes)
		}
	}
}

func computerHolds(t *testing.T, b *bytesOf) consent.Verdict {
	t.Helper()
	p := policy.Policy{Preset: policy.Preset(b.text("", "ask", "", "contained", "", "full")), Folder: "/project",
		Switches: policy.Switches{Shell: b.text("", "ask", "contained", "off", ""), Computer: b.text("", "", "ask", "see", "off")}}
	r := consent.Request{Rule: b.computerRule(), Session: b.text("s1", "s1", "s2", ""), Mode: consent.Mode(b.text("look", "work", "ask", "trusted", "odd")), Risk: consent.Risk(1 + b.pick(4))}
	for range b.pick(3) {
		r.Effects = append(r.Effects, b.computerEffect())
	}
	r = settle(r)
	var book []consent.Stored
	for i := range b.pick(4) {
		s := consent.Stored{ID: string(rune('a' + i)), Rule: r.Rule, Deny: b.pick(4) == 0, Scope: consent.Scope(b.text("session", "session", "15m", "always", "once")),
			Session: b.text("s1", "s1", "s2", ""), Created: noon.Add(-time.Minute)}
		if b.pick(3) == 0 {
			s.Rule = b.computerRule()
		}
		s.Rule.Effects = kinds(append(slices.Clone(r.Effects), b.computerEffect())[b.pick(2):])
		if b.pick(2) == 0 {
			s.Expires = s.Created.Add(time.Duration(b.pick(3)) * time.Minute)
		}
		book = append(book, s)
	}
	v := p.Decide(r, book, noon)
	fail := func(what string, more ...any) {
		t.Helper()
		t.Fatalf("%s\npolicy  %+v\nrequest %+v\nbook    %+v\nverdict %+v\n%+v", what, p, r, book, v, more)
	}
	only := func(kind consent.EffectKind) bool {
		return everyEffect(r, func(e consent.Effect) bool { return e.Kind == kind })
	}
	check := r.Action == "check" && r.Risk < consent.RiskHigh && only(consent.EffectRead)
	if v.Outcome != consent.Denied && !isOwn(r) {
		for _, s := range book {
			same := s.Rule.Hub == r.Hub && s.Rule.Principal == r.Principal.ID && s.Rule.Action == r.Action
			if exact := s.Rule.Exact == r.Rule.Exact; s.Deny && same && s.Scope == consent.Session && s.Session != "" && s.Session == r.Session && s.Expires.IsZero() && (exact || r.Action != "launch") {
				fail("a no of this session does not win", s)
			}
		}
	}
	if v.Outcome != consent.Allowed {
		return v
	}
	if c := p.Switches.Computer; !isOwn(r) && (c == policy.Off || c == policy.See && !only(consent.EffectSee) && !check) {
		fail("what is switched off is allowed")
	}
	if sh := p.Switches.Shell; r.Action == "launch" && !isOwn(r) && (sh == policy.Off || sh == policy.Contained) {
		fail("a program is started with commands switched off")
	}
	switch v.By {
	case "session":
		if !isOwn(r) {
			fail("allowed as its own")
		}
	case "mode":
		own := everyEffect(r, func(e consent.Effect) bool { return e.Kind == consent.EffectClipboard && e.Own })
		if !check && (!own || r.Risk >= consent.RiskHigh) {
			fail("a mode, which is about the folder, allows it")
		}
	case "policy":
		if p.Preset != policy.PresetFull {
			fail("allowed by no policy")
		}
	case "rule":
		i := slices.IndexFunc(book, func(s consent.Stored) bool { return s.ID == v.Grant })
		if i < 0 {
			fail("allowed by a rule that is not there")
		}
		ruleHolds(fail, r, book[i], v)
	default:
		fail("allowed by nobody")
	}
	return v
}
