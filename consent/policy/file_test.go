package policy_test

import (
	"os"
	"strings"
	"testing"

	"localpc/consent"
	"localpc/consent/policy"
)

const example = `# What may be done on this computer at night.
folder = "/project"
mode = "look"
otherwise = "deny"

[[allow]]
capability = "files"
effects = ["read", "create", "overwrite"]

[[allow]]
program = "nightly"
capability = "shell"
exact = "make test"
contained = true

[[allow]]
capability = "shell"
exact = "systemctl restart app"
full = true

[[allow]]
capability = "network"
hosts = ["api.example.org:443", "example.org"]

[[deny]]
program = "stranger"

[[deny]]
capability = "files"
exact = "secret.txt"

[[deny]]
effects = ["delete"]
`

func parse(t *testing.T, text string) *policy.File {
	t.Helper()
	f, err := policy.ParseFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileDecides(t *testing.T) {
	p := policy.Policy{File: parse(t, example), Folder: "/project"}
	base := func(capability, action, exact string, effects ...consent.EffectKind) consent.Request {
		r := request(consent.ModeLook, capability, action, of(effects...))
		r.Rule.Exact, r.FullOffered = exact, action == "run"
		return r
	}
	as := func(name string, r consent.Request) consent.Request { r.Principal.Name = name; return r }
	with := func(r consent.Request, change func(*consent.Request)) consent.Request { change(&r); return r }
	high := func(r *consent.Request) { r.Risk = consent.RiskHigh }
	test, restart := base("shell", "run", "make test", consent.EffectRun), base("shell", "run", "systemctl restart app", consent.EffectSettings, consent.EffectRoot)
	site := func(to string) consent.Request { return base("network", "internet", to, consent.EffectConnect) }
	const yes, no = consent.Allowed, consent.Denied
	for _, c := range []struct {
		name    string
		r       consent.Request
		want    consent.Outcome
		contain consent.Containment
	}{
		{"read", base("files", "read", "a", consent.EffectRead), yes, ""},
		{"overwrite", base("files", "write", "a", consent.EffectOverwrite), yes, ""},
		{"move", base("files", "move", "a → b", consent.EffectMove), no, ""},
		{"a start-up name", base("files", "write", ".envrc", consent.EffectCreate, consent.EffectStartup), no, ""},
		{"at high risk", with(base("files", "write", "a", consent.EffectCreate), high), no, ""},
		{"without effects", base("files", "write", "a"), no, ""},
		{"what is denied by name", base("files", "read", "secret.txt", consent.EffectRead), no, ""},
		{"delete", base("files", "delete", "a", consent.EffectDelete), no, ""},
		{"a command, by its program", as("nightly", test), yes, consent.Contained},
		{"a command, by another program", test, no, ""},
		{"another command", as("nightly", base("shell", "run", "make tests", consent.EffectRun)), no, ""},
		{"the command, elsewhere", with(as("nightly", test), func(r *consent.Request) { r.Rule.Cwd = "/project/sub" }), no, ""},
		{"the command, with a variable", with(as("nightly", test), func(r *consent.Request) { r.Rule.Env = "A=1" }), no, ""},
		{"the command, at high risk", with(as("nightly", test), high), no, ""},
		{"the command, where it can't be contained", with(as("nightly", test), func(r *consent.Request) { r.Containable = false }), no, ""},
		{"the command, and it deletes now", as("nightly", base("shell", "run", "make test", consent.EffectRun, consent.EffectDelete)), no, ""},
		{"full access, by its text", with(restart, high), yes, consent.FullAccess},
		{"full access, not offered", with(restart, func(r *consent.Request) { r.FullOffered = false }), no, ""},
		{"full access, with a variable", with(restart, func(r *consent.Request) { r.Rule.Env = "LD_PRELOAD=x" }), no, ""},
		{"full access, another text", base("shell", "run", "systemctl restart app; id", consent.EffectRoot), no, ""},
		{"a host, at its port", site("api.example.org:443"), yes, ""},
		{"a host, in capitals", site("API.Example.ORG:443"), yes, ""},
		{"a host, at another port", site("api.example.org:80"), no, ""},
		{"a host, at any port", site("example.org:8080"), yes, ""},
		{"a longer host", site("example.org.evil.com:443"), no, ""},
		{"a host below", site("www.example.org:443"), no, ""},
		{"a host that is at home", with(site("example.org:443"), high), no, ""},
		{"a stranger", as("stranger", base("files", "read", "a", consent.EffectRead)), no, ""},
		{"another capability", base("hardware", "open", "a", consent.EffectRead), no, ""},
	} {
		v := p.Decide(c.r, nil, noon)
		if v.Outcome != c.want || v.Choice.Contain != c.contain {
			t.Errorf("%s: %+v", c.name, v)
		}
		if v.By != "policy" && !(v.By == "mode" && v.Outcome == no) {
			t.Errorf("%s: decided by %q", c.name, v.By)
		}
		if v.Outcome == no && !strings.HasSuffix(v.Reason, ".") {
			t.Errorf("%s: the reason %q is not a sentence", c.name, v.Reason)
		}
	}
}

// The file answers the session card, for its folder; a program that it denies
// gets none.
func TestFileAnswersTheSessionCard(t *testing.T) {
	p := policy.Policy{File: parse(t, example), Folder: "/project"}
	open := request("", consent.CapabilitySession, "open", nil)
	open.Folder = ""
	if v := p.Decide(open, nil, noon); v.Outcome != consent.Allowed || v.By != "policy" || v.Choice.Mode != consent.ModeLook || v.Choice.Folder != "/project" {
		t.Errorf("%+v", v)
	}
	other := open
	other.Folder = "/photos"
	if v := p.Decide(other, nil, noon); v.Outcome != consent.Denied || v.By != "policy" {
		t.Errorf("another folder: %+v", v)
	}
	open.Principal.Name = "stranger"
	if v := p.Decide(open, nil, noon); v.Outcome != consent.Denied || v.By != "policy" || !strings.Contains(v.Reason, "line 25") {
		t.Errorf("a stranger: %+v", v)
	}
}

// What no rule covers is denied, whatever was remembered; or asked, and then
// what was remembered counts.
func TestFileOtherwise(t *testing.T) {
	r := request(consent.ModeAsk, "shell", "run", of(consent.EffectRun))
	book := []consent.Stored{grantFor(r, consent.Always, consent.Contained)}
	deny := policy.Policy{File: parse(t, "folder = '/project'\n"), Folder: "/project"}
	asks := policy.Policy{File: parse(t, "folder = '/project'\notherwise = 'ask'\n"), Folder: "/project"}
	if v := deny.Decide(r, book, noon); v.Outcome != consent.Denied || v.By != "policy" {
		t.Errorf("otherwise denied: %+v", v)
	}
	if v := asks.Decide(r, book, noon); v.Outcome != consent.Allowed || v.By != "rule" {
		t.Errorf("otherwise asked, remembered: %+v", v)
	}
	if v := asks.Decide(r, nil, noon); v.Outcome != ask {
		t.Errorf("otherwise asked: %+v", v)
	}
	no := grantFor(r, consent.Session, "")
	no.Deny = true
	all := policy.Policy{File: parse(t, "folder = '/project'\n[[allow]]\ncapability = 'shell'\n"), Folder: "/project"}
	if v := all.Decide(r, nil, noon); v.Outcome != consent.Allowed || v.Choice.Contain != consent.Contained {
		t.Errorf("allowed by the file: %+v", v)
	}
	if v := all.Decide(r, []consent.Stored{no}, noon); v.Outcome != consent.Denied {
		t.Errorf("declined by the person: %+v", v)
	}
}

func TestWordsOfPolicies(t *testing.T) {
	f := parse(t, "folder = '/project'\n[[allow]]\ncapability = 'shell'\n")
	f.Name = "/etc/night\u202e.toml"
	for want, p := range map[string]policy.Policy{
		"": {Preset: policy.Ask},
		"--policy contained: \"Work in this folder\" in /project":                                                                            {Preset: policy.PresetContained, Folder: "/project"},
		"--policy full: everything is allowed, with full access":                                                                             {Preset: policy.PresetFull, Folder: "/project"},
		"the policy file /etc/night\\u202e.toml, read at the start: \"Ask me each time\" in /project, 1 rule; what no rule covers is denied": {File: f, Folder: "/project"},
	} {
		if got := p.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever is wrong is one line that says where, and what would be right.
func TestFileMistakes(t *testing.T) {
	const top = "folder = '/project'\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1: folder is missing"},
		{"no folder", "mode = 'look'\n", "line 1: folder is missing"},
		{"no TOML", "folder = \n", "line 1: "},
		{"cut off", top + "\n[[allow]\n", "line 4: "},
		{"a key twice", top + "mode = 'look'\nmode = 'work'\n", "line 3: "},
		{"an unknown key", top + "\n# x\ncolour = 'red'\n", "line 4: colour is not known"},
		{"an unknown key that can't be seen", top + "'a\u202e' = 1\n", `line 2: a\u202e is not known`},
		{"a folder without a root", "folder = 'project'\n", "line 1: folder must be an absolute path"},
		{"a folder with steps", "folder = '/project/../etc'\n", "line 1: folder must be an absolute path"},
		{"a number for a folder", "folder = 3\n", "line 1: folder must be a text in quotes"},
		{"trust", top + "mode = 'trusted'\n", "line 2: mode = \"trusted\" needs a person"},
		{"a mode of no kind", top + "mode = 'root'\n", "line 2: mode must be"},
		{"otherwise allowed", top + "otherwise = 'allow'\n", "line 2: otherwise must be"},
		{"one table", top + "[allow]\ncapability = 'files'\n", "line 2: write each rule below a line [[allow]]"},
		{"a word for rules", top + "deny = 'all'\n", "line 2: write each rule below a line [[deny]]"},
		{"an unknown key in the second rule", top + "[[allow]]\ncapability = 'files'\n\n[[allow]]\ncapability = 'shell'\nprogramm = 'x'\n", "line 7: programm is not known in a rule"},
		{"a bad value in the second rule", top + "[[allow]]\ncapability = 'files'\n\n[[allow]]\ncapability = 'screen'\n", "line 6: capability must be"},
		{"after a long text", top + "[[allow]]\ncapability = 'shell'\nexact = '''\n[[allow]]\ncapability = 1\n'''\n[[deny]]\nprogram = 3\n", "line 9: program must be"},
		{"the first of two mistakes", top + "[[deny]]\nprogram = 3\n[[allow]]\ncapability = 'x'\n", "line 3: program"},
		{"rules in one line", top + "allow = [{capability = 'x'}]\n", "line 2: write each rule below a line [[allow]]"},
		{"no capability", top + "[[allow]]\nexact = 'x'\n", "line 2: a rule that allows needs a capability"},
		{"an action of no capability", top + "[[deny]]\naction = 'read'\n", "line 2: action and exact need a capability"},
		{"everything denied", top + "[[deny]]\n", "line 2: a rule that denies everything"},
		{"an action of no kind", top + "[[deny]]\ncapability = 'files'\naction = 'remove'\n", "line 4: action of files must be one of: read"},
		{"an action of another", top + "[[deny]]\ncapability = 'files'\naction = 'run'\n", "line 4: action of files"},
		{"the home network", top + "[[allow]]\ncapability = 'network'\naction = 'home'\n", "line 4: only connections to the internet"},
		{"a text for a connection", top + "[[allow]]\ncapability = 'network'\nexact = 'example.org:443'\n", "line 4: name addresses with hosts"},
		{"hosts of a command", top + "[[allow]]\ncapability = 'shell'\nhosts = ['example.org']\n", "line 4: hosts are for"},
		{"a pattern for a host", top + "[[allow]]\ncapability = 'network'\nhosts = ['*.example.org']\n", "line 4: \"*.example.org\" is not a host"},
		{"an address for a host", top + "[[allow]]\ncapability = 'network'\nhosts = ['https://example.org']\n", "line 4: "},
		{"a port of no kind", top + "[[allow]]\ncapability = 'network'\nhosts = ['example.org:99999']\n", "line 4: "},
		{"a host in capitals", top + "[[deny]]\ncapability = 'network'\nhosts = ['Example.org']\n", "line 4: \"Example.org\" would never match; write it as \"example.org\""},
		{"a host with a dot at its end", top + "[[deny]]\ncapability = 'network'\nhosts = ['example.org.:443']\n", "line 4: \"example.org.:443\" would never match; write it as \"example.org:443\""},
		{"a host in its own letters", top + "[[deny]]\ncapability = 'network'\nhosts = ['bücher.example']\n", "write it as \"xn--bcher-kva.example\""},
		{"a long address", top + "[[deny]]\ncapability = 'network'\nhosts = ['[2001:db8:0::1]:443']\n", "write it as \"[2001:db8::1]:443\""},
		{"an address in another's clothes", top + "[[deny]]\ncapability = 'network'\nhosts = ['::ffff:192.0.2.1']\n", "write it as \"192.0.2.1\""},
		{"an old address", top + "[[deny]]\ncapability = 'network'\nhosts = ['192.0.513']\n", "line 4: \"192.0.513\" is not a host"},
		{"a long port", top + "[[deny]]\ncapability = 'network'\nhosts = ['example.org:0443']\n", "write it as \"example.org:443\""},
		{"no hosts", top + "[[allow]]\ncapability = 'network'\nhosts = []\n", "line 4: hosts must be a list"},
		{"one host", top + "[[allow]]\ncapability = 'network'\nhosts = 'example.org'\n", "line 4: hosts must be a list"},
		{"a host twice", top + "[[allow]]\ncapability = 'network'\nhosts = ['a.org', 'a.org']\n", "line 4: hosts has \"a.org\" twice"},
		{"an effect of no kind", top + "[[allow]]\ncapability = 'files'\neffects = ['reads']\n", "line 4: \"reads\" is not an effect"},
		{"start-up names", top + "[[allow]]\ncapability = 'files'\neffects = ['startup']\n", "line 4: startup can't be allowed beforehand"},
		{"full access to everything", top + "[[allow]]\ncapability = 'shell'\nfull = true\n", "line 4: full access is for one exact text"},
		{"full and contained", top + "[[allow]]\ncapability = 'shell'\nexact = 'x'\ncontained = true\nfull = true\n", "line 6: a rule is either"},
		{"full access and effects", top + "[[allow]]\ncapability = 'shell'\nexact = 'x'\neffects = ['read']\nfull = true\n", "line 5: with full access"},
		{"full access to files", top + "[[allow]]\ncapability = 'files'\nexact = 'x'\nfull = true\n", "line 2: contained and full are for capability = \"shell\""},
		{"full access denied", top + "[[deny]]\ncapability = 'shell'\nexact = 'x'\nfull = true\n", "line 2: contained and full are for rules that allow"},
		{"not full", top + "[[allow]]\ncapability = 'shell'\nexact = 'x'\nfull = false\n", "line 5: full must be true"},
		{"an empty text", top + "[[deny]]\ncapability = 'shell'\nexact = ''\n", "line 4: exact must be a text"},
		{"a rule twice", top + "[[deny]]\ncapability = 'files'\neffects = ['read', 'move']\n[[deny]]\neffects = ['move', 'read']\ncapability = 'files'\n", "line 5: this rule stands at line 2 already"},
	} {
		_, err := policy.ParseFile([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"the least":                    top,
		"denials of high effects":      top + "[[deny]]\neffects = ['startup', 'env', 'root', 'settings', 'unknown']\n",
		"the same, allowed and denied": top + "[[allow]]\ncapability = 'files'\n[[deny]]\ncapability = 'files'\n",
		"hosts of all kinds":           top + "[[allow]]\ncapability = 'network'\nhosts = ['example.org', 'example.org:443', '[2001:db8::1]:443', '2001:db8::1', '192.0.2.1:80']\n",
		"with Windows' line ends":      "folder = '/project'\r\nmode = 'look'\r\n[[allow]]\r\ncapability = 'files'\r\n",
	} {
		if _, err := policy.ParseFile([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("folder = '/project'\n[[allow]]\ncapability = 'shell'\nexact = '''\nx\n'''\nfull = true\n"))
	f.Add([]byte("folder = '/p'\n[allow]\n[[deny]\n\"\"\"'''"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := policy.ParseFile(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%q does not say where", err)
			}
			return
		}
		// Whatever it says, high risk goes only with full access.
		r := request(consent.ModeAsk, "shell", "run", of(consent.EffectRun))
		if r.Risk = consent.RiskHigh; file != nil {
			if v := (policy.Policy{File: file, Folder: file.Folder}).Decide(r, nil, noon); v.Outcome == consent.Allowed && v.Choice.Contain != consent.FullAccess {
				t.Errorf("high risk: %+v", v)
			}
		}
	})
}

// The example that people copy is one.
func TestFileOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```toml\nfolder = ")
	if !ok {
		t.Fatal("README has no policy file")
	}
	example, _, _ := strings.Cut(rest, "```")
	f := parse(t, "folder = "+example)
	p := policy.Policy{File: f, Folder: f.Folder}
	r := request(consent.ModeLook, "shell", "run", of(consent.EffectRun))
	r.Principal.Name, r.Rule.Exact = "nightly", "make test"
	if v := p.Decide(r, nil, noon); v.Outcome != consent.Allowed || v.Choice.Contain != consent.Contained {
		t.Errorf("%+v", v)
	}
	r.Rule.Exact = "make"
	if v := p.Decide(r, nil, noon); v.Outcome != consent.Denied {
		t.Errorf("another command: %+v", v)
	}
}
