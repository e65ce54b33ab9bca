package policy_test

import (
	"slices"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/policy"
)

// bytesOf makes choices out of a fuzzer's bytes.
type bytesOf struct{ data []byte }

func (b *bytesOf) pick(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	v := int(b.data[0]) % n
	b.data = b.data[1:]
	return v
}

func (b *bytesOf) text(all ...string) string { return all[b.pick(len(all))] }

// Most bytes give the usual thing, so that what is made fits together.
func (b *bytesOf) rule() consent.Rule {
	return consent.Rule{Hub: b.text("this", "this", "this", "other"), Principal: b.text("p1", "p1", "p1", "p2"), Folder: b.text("/project", "/project", "/project", "/photos"),
		Capability: b.text("files", "shell", "files", "shell", "network", "hardware", consent.CapabilitySession), Action: b.text("run", "write", "run", "write", "open", "internet"),
		Exact: b.text("a", "a", "a", "b"), Env: b.text("", "", "", "A=1"), Cwd: b.text("", "", "", "/project/x")}
}

func (b *bytesOf) contain() consent.Containment {
	return consent.Containment(b.text("", "contained", "contained", "full", "odd"))
}

func (b *bytesOf) effect() consent.Effect {
	return consent.Effect{Own: b.pick(3) == 0, Kept: b.pick(3) == 0, Count: b.pick(13), Kind: consent.EffectKind(b.text("read", "create", "overwrite", "delete", "move", "startup", "run", "env", "own",
		"access", "connect", "settings", "install", "root", "unknown", "odd"))}
}

func (b *bytesOf) request() consent.Request {
	r := consent.Request{Rule: b.rule(), Session: b.text("s1", "s1", "s2", ""), Command: b.text("", "c1", "c2"), Mode: consent.Mode(b.text("look", "work", "ask", "trusted", "", "odd")),
		Risk: consent.Risk(1 + b.pick(4)), Containable: b.pick(2) == 0, FullOffered: b.pick(2) == 0}
	r.Principal.Name = b.text("Claude", "nightly")
	for range b.pick(4) {
		r.Effects = append(r.Effects, b.effect())
	}
	return settle(r)
}

// settle makes a request's parts fit each other, as the dispatcher does.
func settle(r consent.Request) consent.Request {
	r.Hub, r.Principal.ID, r.Folder, r.Capability, r.Action = r.Rule.Hub, r.Rule.Principal, r.Rule.Folder, r.Rule.Capability, r.Rule.Action
	r.Rule.Effects = kinds(r.Effects)
	return r
}

// stored is about r, mostly.
func (b *bytesOf) stored(id string, r consent.Request) consent.Stored {
	about := b.rule()
	if b.pick(4) > 0 {
		about = r.Rule
	}
	s := consent.Stored{ID: id, Rule: about, Deny: b.pick(4) == 0, Scope: consent.Scope(b.text("session", "15m", "always", "command", "once", "odd")),
		Session: b.text("s1", "s1", "s2", "c1", ""), Created: noon.Add(time.Duration(b.pick(3)-1) * time.Hour), Choice: consent.Choice{Mode: consent.Mode(b.text("work", "look", "trusted"))}}
	effects := slices.Clone(r.Effects)
	for range b.pick(4) {
		effects = append(effects, b.effect())
	}
	effects = effects[b.pick(len(effects)+1):]
	s.Rule.Effects, s.Rule.Contain = kinds(effects), b.contain()
	if b.pick(3) == 0 {
		s.Rule.Wide, s.Rule.Exact, s.Rule.Env, s.Rule.Cwd = true, "", "", ""
		s.Rule.Action = b.text("", "run", "write")
	}
	switch b.pick(4) {
	case 0:
		s.Expires = noon.Add(time.Duration(b.pick(3)-1) * 10 * time.Minute)
	case 1:
		s.Created = noon.Add(-consent.UnusedFor - time.Duration(b.pick(3)-1)*time.Hour)
		s.LastUsed = s.Created.Add(time.Duration(b.pick(2)) * 24 * time.Hour)
	}
	return s
}

var fuzzFiles = func() []*policy.File {
	var out []*policy.File
	for _, text := range []string{
		"folder = '/project'\n",
		"folder = '/project'\nmode = 'work'\notherwise = 'ask'\n[[allow]]\ncapability = 'files'\neffects = ['read', 'create', 'overwrite']\n[[deny]]\neffects = ['delete']\n",
		"folder = '/project'\nmode = 'look'\n[[allow]]\ncapability = 'shell'\nexact = 'a'\nfull = true\n[[allow]]\ncapability = 'shell'\n[[deny]]\nprogram = 'nightly'\n",
	} {
		f, err := policy.ParseFile([]byte(text))
		if err != nil {
			panic(err)
		}
		out = append(out, f)
	}
	return out
}()

func (b *bytesOf) policy() policy.Policy {
	p := policy.Policy{Preset: policy.Preset(b.text("", "ask", "", "contained", "full", "")), Folder: "/project",
		Switches: policy.Switches{Files: b.text("", "ask", "read", "off", ""), Shell: b.text("", "ask", "contained", "off", ""), Network: b.text("", "off")}}
	if n := b.pick(6); n < len(fuzzFiles) && p.Preset == "" {
		p.File = fuzzFiles[n]
	}
	return p
}

// FuzzDecide makes a policy, a request and a book out of bytes, and holds every
// verdict against what must never be.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte("0000000000000000000000000000"))
	f.Add([]byte{2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) { decideHolds(t, &bytesOf{data}) })
}

// A fuzzer's bytes rarely fit together; these do more often, and run each time.
func TestDecideHolds(t *testing.T) {
	random := uint64(0x9e3779b97f4a7c15)
	outcomes := map[string]int{}
	for range 60_000 {
		data := make([]byte, 120)
		for i := range data {
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			data[i] = byte(random >> 32)
		}
		v := decideHolds(t, &bytesOf{data})
		outcomes[string(v.Outcome)+" by "+v.By]++
		if t.Failed() {
			return
		}
	}
	for _, want := range []string{"allowed by session", "allowed by rule", "allowed by mode", "allowed by policy", "denied by rule", "denied by mode", "denied by policy", "denied by settings", " by "} {
		if outcomes[want] < 20 {
			t.Errorf("%q came about %d times only: %v", want, outcomes[want], outcomes)
		}
	}
}

func decideHolds(t *testing.T, b *bytesOf) consent.Verdict {
	t.Helper()
	p, r := b.policy(), b.request()
	var book []consent.Stored
	for i := range b.pick(5) {
		book = append(book, b.stored(string(rune('a'+i)), r))
	}
	v := p.Decide(r, book, noon)
	fail := func(what string, more ...any) {
		t.Helper()
		t.Fatalf("%s\npolicy  %+v\nrequest %+v\nbook    %+v\nverdict %+v\n%+v", what, p, r, book, v, more)
	}
	if v.Outcome != consent.Allowed && v.Outcome != consent.Denied && v.Outcome != ask {
		fail("an outcome of no kind")
	}

	// Removing a grant never allows more.
	for i, s := range book {
		if s.Deny {
			continue
		}
		less := p.Decide(r, slices.Delete(slices.Clone(book), i, i+1), noon)
		if less.Outcome == consent.Allowed && v.Outcome != consent.Allowed || v.Outcome == consent.Denied && less.Outcome != consent.Denied {
			fail("it is allowed more without a grant", s, less)
		}
	}
	// Nor does adding a denial.
	no := b.stored("no", r)
	no.Deny = true
	if more := p.Decide(r, append(slices.Clone(book), no), noon); more.Outcome == consent.Allowed && v.Outcome != consent.Allowed {
		fail("it is allowed since something was declined", no, more)
	}
	// Another effect never turns a question, or a no, into an allowance.
	if len(r.Effects) > 0 && v.Outcome != consent.Allowed {
		r2 := r
		r2.Effects = append(slices.Clone(r.Effects), b.effect())
		if more := p.Decide(settle(r2), book, noon); more.Outcome == consent.Allowed {
			fail("one more effect allows it", r2.Effects, more)
		}
	}
	// What is not kept, or of more files, is never allowed more.
	for i := range r.Effects {
		r2 := r
		r2.Effects = slices.Clone(r.Effects)
		if r2.Effects[i].Kept = false; b.pick(2) == 0 {
			r2.Effects[i] = r.Effects[i]
			r2.Effects[i].Count += 1 + b.pick(13)
		}
		if less := p.Decide(r2, book, noon); less.Outcome == consent.Allowed && v.Outcome != consent.Allowed && r.Effects[i].Count > 0 {
			fail("it is allowed since less is kept, or more is taken", r2.Effects, less)
		}
	}
	denialWins(fail, r, book, v)
	if v.Outcome == consent.Allowed {
		allowedRightly(fail, p, r, book, v)
	}
	return v
}

func everyEffect(r consent.Request, ok func(consent.Effect) bool) bool {
	return len(r.Effects) > 0 && !slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return !ok(e) })
}

// taken is how many files of others are deleted and moved; many where one of
// the effects does not say.
func taken(r consent.Request) int {
	n := 0
	for _, e := range r.Effects {
		if e.Own || e.Kind != consent.EffectDelete && e.Kind != consent.EffectMove {
			continue
		}
		if n += e.Count; e.Count == 0 {
			n += 1000
		}
	}
	return n
}

func isOwn(r consent.Request) bool {
	return everyEffect(r, func(e consent.Effect) bool { return e.Kind == consent.EffectOwn })
}

func denialWins(fail func(string, ...any), r consent.Request, book []consent.Stored, v consent.Verdict) {
	if isOwn(r) || v.Outcome == consent.Denied {
		return
	}
	for _, s := range book {
		same := s.Rule.Hub == r.Hub && s.Rule.Principal == r.Principal.ID && s.Rule.Capability == r.Capability
		switch {
		case !s.Deny || !same:
		case r.Capability == consent.CapabilitySession:
			if s.Scope == consent.Minutes15 && s.Rule.Folder == r.Folder && !s.Created.After(noon) && s.Expires.After(noon) && !s.Expires.After(s.Created.Add(consent.TrustedFor)) {
				fail("a declined session is not denied", s)
			}
		case s.Scope == consent.Session && s.Session != "" && s.Session == r.Session && !s.Rule.Wide && s.Expires.IsZero() &&
			s.Rule.Folder == r.Folder && s.Rule.Action == r.Action && s.Rule.Exact == r.Rule.Exact && s.Rule.Env == r.Rule.Env && s.Rule.Cwd == r.Rule.Cwd:
			fail("a denial does not win", s)
		}
	}
}

// allowedRightly holds an allowance against what gives one.
func allowedRightly(fail func(string, ...any), p policy.Policy, r consent.Request, book []consent.Stored, v consent.Verdict) {
	high, opens := r.Risk >= consent.RiskHigh, r.Capability == consent.CapabilitySession
	if !isOwn(r) && !opens {
		switch s := p.Switches; {
		case r.Capability == "files" && (s.Files == policy.Off || s.Files == policy.Read && !everyEffect(r, func(e consent.Effect) bool { return e.Kind == consent.EffectRead })),
			r.Capability == "shell" && s.Shell == policy.Off, r.Capability == "network" && s.Network == policy.Off,
			r.Action == "run" && s.Shell == policy.Contained && !r.Containable:
			fail("what is switched off is allowed")
		}
	}
	switch v.By {
	case "session":
		if !isOwn(r) {
			fail("allowed as its own")
		}
	case "policy":
		switch {
		case p.Preset == policy.PresetFull, opens && (p.Preset == policy.PresetContained || p.File != nil):
		case p.File == nil:
			fail("allowed by no policy")
		case v.Choice.Contain == consent.FullAccess && (r.Action != "run" || r.Rule.Exact != "a" || r.Rule.Env != "" || r.Rule.Cwd != "" || !r.FullOffered):
			fail("full access by a policy file")
		case high && v.Choice.Contain != consent.FullAccess:
			fail("high risk by a policy file")
		case p.File == fuzzFiles[2] && r.Principal.Name == "nightly", p.File == fuzzFiles[1] && slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return e.Kind == consent.EffectDelete }):
			fail("a denial of the policy file does not win")
		}
	case "mode":
		run, trusted := r.Action == "run", r.Mode == consent.ModeTrusted
		if high || v.Choice.Contain == consent.FullAccess || run && (v.Choice.Contain != consent.Contained || !r.Containable) {
			fail("high risk, or outside of the container, by mode")
		}
		if !everyEffect(r, func(e consent.Effect) bool {
			switch e.Kind {
			case consent.EffectRead:
				return r.Mode == consent.ModeWork || trusted || r.Mode == consent.ModeLook && !run
			case consent.EffectCreate:
				return r.Mode == consent.ModeWork || trusted
			case consent.EffectOverwrite:
				return r.Mode == consent.ModeWork && (e.Own || e.Kept) || trusted
			case consent.EffectDelete, consent.EffectMove:
				return r.Mode == consent.ModeWork && (e.Own || e.Kept && taken(r) <= 10) || trusted
			case consent.EffectAccess:
				return r.Mode == consent.ModeWork && e.Own || trusted
			case consent.EffectRun, consent.EffectConnect, consent.EffectInstall:
				return (r.Mode == consent.ModeWork || trusted) && run
			}
			return false
		}) {
			fail("an effect that its mode does not cover")
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
}

func ruleHolds(fail func(string, ...any), r consent.Request, s consent.Stored, v consent.Verdict) {
	if s.Deny || !s.Expires.IsZero() && !noon.Before(s.Expires) {
		fail("a rule that is none any more", s)
	}
	if s.Scope == consent.Always && !s.Expires.After(noon) && noon.Sub(s.Created) >= consent.UnusedFor && noon.Sub(s.LastUsed) >= consent.UnusedFor {
		fail("a rule that was not used for long", s)
	}
	if s.Rule.Hub != r.Hub || s.Rule.Principal != r.Principal.ID || s.Rule.Folder != r.Folder || s.Rule.Capability != r.Capability {
		fail("a rule of another", s)
	}
	if r.Capability == consent.CapabilitySession {
		if v.Choice.Mode == consent.ModeTrusted {
			fail("trust that was remembered", s)
		}
		return
	}
	high := r.Risk >= consent.RiskHigh
	if high && (s.Scope == consent.Always || s.Rule.Wide) {
		fail("high risk, always or by a wide rule", s)
	}
	if s.Rule.Wide {
		if s.Rule.Action != "" && s.Rule.Action != r.Action || v.Choice.Contain == consent.FullAccess || len(r.Effects) == 0 {
			fail("beyond its wide rule", s)
		}
	} else if s.Rule.Exact != r.Rule.Exact || s.Rule.Env != r.Rule.Env || s.Rule.Cwd != r.Rule.Cwd || s.Rule.Action != r.Action {
		fail("another rule", s)
	}
	if s.Scope == consent.Session && s.Session != r.Session || s.Scope == consent.Command && (s.Session != r.Command || s.Session == "") ||
		s.Scope == consent.Once || s.Scope == "odd" || s.Scope == consent.Minutes15 && s.Expires.IsZero() {
		fail("a rule of another scope", s)
	}
	if s.Rule.Contain != v.Choice.Contain || v.Choice.Contain == consent.FullAccess && (s.Scope != consent.Session || !r.FullOffered) || v.Choice.Contain == consent.Contained && !r.Containable {
		fail("another containment than the rule's", s)
	}
}
