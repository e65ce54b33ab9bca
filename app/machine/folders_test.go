package machine

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/settings"
	"localpc/capabilities"
	"localpc/consent"
	"localpc/consent/policy"
	"localpc/tunnel/wire"
)

func TestForbiddenFolders(t *testing.T) {
	m := newMachine(t)
	home, data := os.Getenv("HOME"), m.o.Paths.Data
	work := filepath.Join(home, "work")
	for _, d := range []string{work, filepath.Join(home, ".local", "other"), filepath.Join(data, "sub"), filepath.Join(home, "with\nnewline \u202e "+strings.Repeat("x", 200))} {
		must(t, os.MkdirAll(d, 0o755))
	}
	file := filepath.Join(home, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	link := func(name, to string) string {
		p := filepath.Join(work, name)
		must(t, os.Symlink(to, p))
		return p
	}
	run := os.Getenv("XDG_RUNTIME_DIR")
	agent := filepath.Join(home, "agent")
	must(t, os.Mkdir(agent, 0o700))
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(agent, "socket"))
	for folder, ok := range map[string]bool{
		work:                                   true,
		work + "/.":                            true,
		filepath.Join(home, ".local", "other"): false,
		filepath.Join(home, "with\nnewline \u202e "+strings.Repeat("x", 200)): true,
		link("self", work): true,

		"":                                       false,
		"work":                                   false,
		"/":                                      false,
		"//":                                     false,
		home:                                     false,
		home + "/":                               false,
		work + "/..":                             false,
		filepath.Dir(home):                       false,
		filepath.Dir(filepath.Dir(home)):         false,
		"/home":                                  false,
		data:                                     false,
		filepath.Join(data, "sub"):               false,
		m.o.Paths.Hub():                          false,
		filepath.Dir(data):                       false, // holds it
		filepath.Join(home, ".local"):            false,
		"/etc":                                   false,
		"/etc/ssl":                               false,
		"/usr/share":                             false,
		"/proc/self":                             false,
		"/proc/self/root":                        false,
		"/dev/shm":                               false,
		"/tmp":                                   false, // the display's socket is in it
		"/tmp/.X11-unix":                         false,
		agent:                                    false,
		"/var":                                   false,
		"/run":                                   false,
		"/run/user":                              false,
		run:                                      false,
		link("etc", "/etc"):                      false,
		link("root", "/"):                        false,
		link("home", home):                       false,
		link("data", data):                       false,
		link("deep", filepath.Join(data, "sub")): false,
		link("loop", "loop"):                     false,
		link("nowhere", "none"):                  false,
		file:                                     false,
		filepath.Join(home, "none"):              false,
		"\x00":                                   false,
		strings.Repeat("/x", 3000):               false,
	} {
		real, err := m.sessions.lendable(folder)
		switch {
		case ok && (err != nil || real != canonical(folder)):
			t.Errorf("%q can't be lent: %q, %v", folder, real, err)
		case !ok && err == nil:
			t.Errorf("%q is lent as %q", folder, real)
		case !ok && wire.CodeOf(err) == "":
			t.Errorf("%q: the error %v is not one for a person", folder, err)
		}
		if wish := m.sessions.wish(folder); (wish != "") != ok {
			t.Errorf("the wish %q becomes %q", folder, wish)
		}
		if _, err := m.sessions.prepare(folder); (err == nil) != (ok && canonical(folder) == filepath.Clean(folder)) {
			t.Errorf("%q is prepared: %v", folder, err)
		}
	}
	if got := m.sessions.wish("~/work"); got != work {
		t.Errorf("~/work becomes %q", got)
	}
	for _, odd := range []string{"~", "~/", "~/..", "~/../..", "~root/x"} {
		if got := m.sessions.wish(odd); got != "" {
			t.Errorf("%q becomes %q", odd, got)
		}
	}
}

// The home that the system knows is no session folder either when the program
// was started with another HOME, or with none.
func TestHomeWithoutHOME(t *testing.T) {
	t.Setenv("HOME", "")
	known := homes()
	if len(known) == 0 {
		return // the system knows no home of this user
	}
	m := newMachine(t)
	t.Setenv("HOME", "")
	if _, err := m.sessions.lendable(known[0]); err == nil {
		t.Errorf("%s is lent", known[0])
	}
	if got := m.sessions.suggestions(consent.Request{}); len(got) == 0 {
		t.Error("a card without any folder to choose")
	}
}

func remembers(t *testing.T, m *Machine, folder string, at time.Time) consent.Stored {
	t.Helper()
	s := consent.Stored{ID: consent.NewID(), Scope: consent.Always, Created: at, Choice: consent.Choice{Mode: consent.ModeWork, Folder: folder},
		Rule: consent.Rule{Hub: "this", Principal: "p1", Capability: consent.CapabilitySession, Action: "open", Folder: folder}}
	must(t, m.o.Store.Remember(t.Context(), s))
	return s
}

func sessionRequest(folder string) consent.Request {
	return consent.Request{ID: consent.NewID(), Hub: "this", Principal: consent.Principal{ID: "p1", Name: "Claude Code"}, Capability: consent.CapabilitySession, Action: "open", Folder: folder}
}

func TestSuggestions(t *testing.T) {
	m := newMachine(t)
	home := os.Getenv("HOME")
	dir := func(name string) string {
		p := filepath.Join(home, name)
		must(t, os.MkdirAll(p, 0o755))
		return p
	}
	own := filepath.Join(home, "Local PC", "Claude Code")
	want := func(wish string, folders ...string) {
		t.Helper()
		if got := m.sessions.suggestions(sessionRequest(wish)); !slices.Equal(got, folders) {
			t.Errorf("%q suggested, want %q", got, folders)
		}
	}
	want("", own)
	older, newer, gone, set, wish := dir("older"), dir("newer"), filepath.Join(home, "gone"), dir("set"), dir("wish")
	remembers(t, m, older, time.Now().Add(-2*time.Hour))
	remembers(t, m, newer, time.Now().Add(-time.Hour))
	remembers(t, m, gone, time.Now())
	remembers(t, m, home, time.Now())
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Folder = set }))
	want("", newer, older, set, own)
	want(wish, wish, newer, older, set, own)
	want(older, older, newer, set, own)
	must(t, m.o.Settings.Change(func(s *settings.Settings) { s.Folder = home })) // can't be lent: not offered
	want("", newer, older, own)
	m.o.Folder = wish // --folder
	want("", newer, older, wish, own)
	if got, err := m.sessions.prepare(own); err != nil || got != own {
		t.Errorf("the folder for a new program is not made: %q, %v", got, err)
	}
	if _, err := m.sessions.prepare(filepath.Join(home, "elsewhere")); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("another folder is made: %v", err)
	}
}

// A remembered folder that has gone does not answer the card for good: the
// person is asked again.
func TestRememberedFolderThatHasGone(t *testing.T) {
	m := newMachine(t)
	folder := filepath.Join(os.Getenv("HOME"), "project")
	must(t, os.Mkdir(folder, 0o755))
	stored := []consent.Stored{remembers(t, m, folder, time.Now().Add(-time.Hour))}
	decide := func() consent.Verdict {
		return pausable{m, policy.Policy{}}.Decide(sessionRequest(""), stored, time.Now())
	}
	if v := decide(); v.Outcome != consent.Allowed || v.Choice.Folder != folder {
		t.Errorf("%+v", v)
	}
	must(t, os.Remove(folder))
	if v := decide(); v.Outcome != "" {
		t.Errorf("with the folder gone: %+v", v)
	}
	must(t, os.Symlink("/etc", folder))
	if v := decide(); v.Outcome != "" {
		t.Errorf("with the folder now leading to /etc: %+v", v)
	}
	own := filepath.Join(os.Getenv("HOME"), newFolders, "Claude Code")
	stored[0].Rule.Folder = own // this one is made when it is needed
	if v := decide(); v.Outcome != consent.Allowed {
		t.Errorf("a folder of ours: %+v", v)
	}
}

// A program that works in a folder can put a link in the place of one below
// it: what was remembered, offered or set for the old one does not open what
// the link leads to.
func TestFolderReplacedByALink(t *testing.T) {
	m := newMachine(t)
	home := os.Getenv("HOME")
	folder, private := filepath.Join(home, "project", "sub"), filepath.Join(home, "private")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.Mkdir(private, 0o755))
	stored := []consent.Stored{remembers(t, m, folder, time.Now())}
	offered := m.sessions.suggestions(sessionRequest(""))
	if offered[0] != folder {
		t.Fatalf("%q suggested", offered)
	}
	want, err := capabilities.FolderID(folder)
	must(t, err)
	must(t, os.Remove(folder))
	must(t, os.Symlink(private, folder))

	if v := (pausable{m, policy.Policy{}}).Decide(sessionRequest(""), stored, time.Now()); v.Outcome != "" {
		t.Errorf("the remembered answer still holds: %+v", v)
	}
	if got := m.sessions.suggestions(sessionRequest("")); slices.Contains(got, folder) {
		t.Errorf("%q suggested", got)
	}
	if got, err := m.sessions.prepare(folder); wire.CodeOf(err) != wire.CodeChanged {
		t.Errorf("the link opens %q, %v", got, err)
	}
	if id, err := capabilities.FolderID(folder); err == nil {
		t.Errorf("the link is taken for a folder: %v", id)
	}
	must(t, os.Rename(filepath.Dir(folder), filepath.Join(home, "moved")))
	must(t, os.Symlink(private, filepath.Dir(folder)))
	must(t, os.Mkdir(filepath.Join(private, "sub"), 0o755))
	if got, err := m.sessions.prepare(folder); wire.CodeOf(err) != wire.CodeChanged {
		t.Errorf("a link above opens %q, %v", got, err)
	}
	if id, err := capabilities.FolderID(folder); err == nil || id.Same(want) {
		t.Errorf("a folder below a link is taken for the one before: %v", id)
	}
	// Where the person's own settings name a link, the card shows where it leads.
	m.o.Folder = filepath.Dir(folder)
	if got := m.sessions.suggestions(sessionRequest("")); got[0] != private {
		t.Errorf("%q suggested", got)
	}
}

func TestFolderName(t *testing.T) {
	for name, want := range map[string]string{
		"Claude Code":      "Claude Code",
		"  my   agent ":    "my agent",
		"":                 "Program",
		"..":               "Program",
		"../../etc/passwd": "etcpasswd",
		"/":                "Program",
		".ssh":             "ssh",
		"a\x00b\nc":        "abc",
		"\u202egnp.exe":    "gnp exe",
		"\u3164\u200b":     "Program",
		"世界 Größe":         "世界 Größe",
		"C:\\Windows":      "CWindows",
		"-rf":              "-rf",
	} {
		got := folderName(name)
		if got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	if got := folderName(strings.Repeat("very long ", 40)); len(got) > 64 || !strings.HasPrefix(got, "very long very") {
		t.Errorf("a long name becomes %q", got)
	}
}

// A session whose request was ended meanwhile (Stop, Unpair, the end of the
// connection) does not come to be, and leaves nothing.
func TestSessionOfAnEndedRequest(t *testing.T) {
	m := newMachine(t)
	folder := filepath.Join(os.Getenv("HOME"), "project")
	must(t, os.Mkdir(folder, 0o755))
	open := func(ctx context.Context) error {
		t.Helper()
		g := granted(t, m, folder)
		_, err := m.sessions.open(ctx, &wire.SessionOpen{SessionID: "s1", PrincipalID: "k1"}, "", g)
		return err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stoppedBy("This computer was unpaired."))
	if err := open(ctx); wire.CodeOf(err) != wire.CodeStopped || len(m.sessions.list()) != 0 {
		t.Errorf("%v, and %d sessions are open", err, len(m.sessions.list()))
	}
	if left, err := os.ReadDir(m.o.Paths.Sessions()); err != nil || len(left) != 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
	must(t, open(t.Context()))
	if err := open(t.Context()); wire.CodeOf(err) != wire.CodeInvalid {
		t.Errorf("a second session of the name opens: %v", err)
	}
	if left, err := os.ReadDir(m.o.Paths.Sessions()); err != nil || len(left) != 1 {
		t.Errorf("%v is there, %v", left, err)
	}
	m.sessions.endAll(t.Context(), "The test is over.")
}

// granted is a grant for a session in folder, from a gate of its own.
func granted(t *testing.T, m *Machine, folder string) consent.Grant {
	t.Helper()
	gate := consent.New(consent.Options{Decider: policy.Policy{Preset: policy.PresetContained, Folder: folder},
		Prompter: m.asks, Recorder: m.o.Record, Book: m.o.Store})
	g, err := gate.Authorize(t.Context(), consent.Request{ID: consent.NewID(), Capability: consent.CapabilitySession, Folder: folder})
	must(t, err)
	return g
}
