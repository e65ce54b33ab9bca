package shell

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/capabilities/shell/look"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// inside is the session's folder as a contained command sees it.
const inside = "/home/user"

// Where things are in a container, beside the folder at /home/user.
const (
	cacheInside = "/var/cache/user"
	spawnInside = "/.localpc-spawn"
	gitInside   = "/etc/gitconfig.user"
)

// plan is a command, looked at: what is shown and what runs both come from it.
type plan struct {
	argv   []string // what is started
	exact  string   // what is shown
	env    map[string]string
	real   string // working directory on this computer
	within string // the same in a container
	limit  time.Duration
	grace  time.Duration // from asking the tree to end at its limit, to ending it
	stdin  bool          // it takes input
	// terminal is the size of the one that it runs at, nil for none.
	terminal *wire.TerminalSize

	session     *capabilities.Session
	judged      judge.Judgement
	display     bool // it says which display it is to draw on
	found       look.Found
	scripts     []script
	fingerprint string // of all that was looked at
	noContain   string // why it can't be contained, or ""
	undo        string // how far what it loses can be undone; "" for not at all
	folder      capabilities.FileID
}

// payload is what decides what runs; the digest is of this.
type payload struct {
	Cmd     string            `json:"cmd"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	Timeout int               `json:"timeout_ms"`
	// What comes later is not part of what was shown: that it comes is.
	Stdin    bool `json:"stdin,omitempty"`
	Terminal bool `json:"terminal,omitempty"`
}

func (s *Shell) plan(ctx context.Context, sess *capabilities.Session, p *wire.ProcessStart) (*plan, error) {
	pl := &plan{session: sess, env: map[string]string{}, limit: time.Duration(p.TimeoutMS) * time.Millisecond, grace: time.Duration(p.GraceMS) * time.Millisecond, stdin: p.Stdin, terminal: p.PTY}
	maps.Copy(pl.env, sess.Env)
	maps.Copy(pl.env, p.Env)
	pl.argv, pl.exact = command(p)
	var err error
	if pl.folder, err = folderID(sess); err != nil {
		return nil, err
	}
	if err := pl.place(p.Cwd, p.CwdInside); err != nil {
		return nil, err
	}
	if pl.noContain, err = s.probe(ctx); err != nil {
		return nil, err
	}
	if pl.noContain != "" && sess.Mode == consent.ModeLook {
		return nil, wire.Errorf(wire.CodeUnconfined, "This session may only look, and a command that can't be contained could change files. %s", pl.noContain)
	}
	s.look(ctx, pl)
	return pl, nil
}

// systemBash are the names of the system's own bash. A program of that name
// somewhere else, in the session's folder say, is whatever its maker wanted.
var systemBash = map[string]bool{"bash": true, "/bin/bash": true, "/usr/bin/bash": true}

// command returns what is started and what is shown. Bash reads no start-up
// files; what the E2B SDK sends, bash -l -c TEXT, is shown as TEXT.
func command(p *wire.ProcessStart) (argv []string, exact string) {
	exact = quoteAll(append([]string{p.Cmd}, p.Args...))
	if !systemBash[p.Cmd] {
		return append([]string{p.Cmd}, p.Args...), exact
	}
	argv = []string{p.Cmd, "--noprofile", "--norc"}
	switch a := p.Args; {
	case len(a) == 3 && a[0] == "-l" && a[1] == "-c":
		return append(argv, "-c", a[2]), a[2]
	case len(a) == 2 && (a[0] == "-c" || a[0] == "-lc"):
		return append(argv, "-c", a[1]), a[1]
	}
	return append(argv, p.Args...), exact
}

// quoteAll writes argv so that a shell would read it back the same.
func quoteAll(argv []string) string {
	q := make([]string, len(argv))
	for i, a := range argv {
		q[i] = quote(a)
	}
	return strings.Join(q, " ")
}

func quote(s string) string {
	plain := s != ""
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@%", r)) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// place finds the working directory. /home/user and ~ are the session's
// folder; other absolute names are what they are where the command runs. With
// inFolder it is in the folder, or refused.
func (pl *plan) place(cwd string, inFolder bool) error {
	folder := pl.session.Folder
	rel, ours := "", false
	switch {
	case cwd == "" || cwd == "~":
		ours = true
	case strings.HasPrefix(cwd, "~/"):
		rel, ours = cwd[2:], true
	case under(cwd, inside):
		rel, ours = strings.TrimPrefix(cwd, inside), true
	case under(cwd, folder):
		rel, ours = strings.TrimPrefix(cwd, folder), true
	case !path.IsAbs(cwd):
		rel, ours = cwd, true
	}
	if ours {
		pl.real, pl.within = filepath.Join(folder, rel), path.Join(inside, rel)
	} else {
		pl.real = filepath.Clean(cwd)
		pl.within = pl.real
	}
	if inFolder && (!ours || !staysIn(folder, strings.TrimPrefix(pl.real, folder)) || !under(pl.real, folder)) {
		return wire.Errorf(wire.CodePathOutside, "The working directory %s leads outside the session's folder, and this session may work only inside it.", consent.Visible(cwd, false))
	}
	if !ours || !under(pl.real, folder) {
		return nil
	}
	// Only what is surely in the folder is looked at: whether something is
	// there outside of it is nobody's business before the person has agreed.
	at := folder
	for part := range strings.SplitSeq(strings.TrimPrefix(pl.real, folder), "/") {
		at = filepath.Join(at, part)
		fi, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return wire.Errorf(wire.CodeInvalid, "The working directory does not exist: %s", cwd)
		case err != nil:
			return wire.Wrap(err, wire.CodeInvalid, "The working directory can't be entered: %s", cwd)
		case fi.Mode().Type() == fs.ModeSymlink:
			return nil // its start says where it leads
		case !fi.IsDir():
			return wire.Errorf(wire.CodeInvalid, "The working directory is not a directory: %s", cwd)
		}
	}
	return nil
}

// staysIn tells whether rel, below folder, stays there through all the links
// that are on its way. Only links in the folder are read: whether something is
// there outside of it is not told. What is no link is left to the start.
func staysIn(folder, rel string) bool {
	var done []string
	todo := strings.Split(rel, "/")
	for links := 0; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			if len(done) > 0 {
				done = done[:len(done)-1]
				continue
			}
			// Above the folder, from where the rest may come back in.
			above := path.Dir(folder) + "/" + strings.Join(todo, "/")
			if !under(above, folder) {
				return false
			}
			todo = strings.Split(strings.TrimPrefix(above, folder), "/")
			continue
		}
		target, err := os.Readlink(filepath.Join(folder, filepath.Join(done...), c))
		if err != nil {
			done = append(done, c)
			continue
		}
		if links++; links > 40 { // as in Linux
			return false
		}
		switch {
		case !path.IsAbs(target):
		case under(target, folder):
			target, done = strings.TrimPrefix(target, folder), nil
		case under(target, inside):
			target, done = strings.TrimPrefix(target, inside), nil
		default:
			return false
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return true
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func (pl *plan) payload(p *wire.ProcessStart) payload {
	return payload{Cmd: p.Cmd, Args: p.Args, Env: pl.env, Cwd: pl.real, Timeout: p.TimeoutMS, Stdin: p.Stdin, Terminal: p.PTY != nil}
}

func (pl *plan) envLines() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(pl.env)) {
		out = append(out, k+"="+quote(pl.env[k]))
	}
	return out
}

// clip shortens s to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func itoa(n int) string { return strconv.Itoa(n) }

// inWords is a length of time for people: "90 seconds", "2 hours".
func inWords(d time.Duration) string {
	n, unit := d.Milliseconds(), "millisecond"
	switch {
	case d >= 2*time.Hour && d%time.Hour == 0:
		n, unit = int64(d.Hours()), "hour"
	case d >= 2*time.Minute && d%time.Minute == 0:
		n, unit = int64(d.Minutes()), "minute"
	case d%time.Second == 0:
		n, unit = int64(d.Seconds()), "second"
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.FormatInt(n, 10) + " " + unit
}

func folderGone(err error) error {
	return wire.Wrap(err, wire.CodeChanged, "The session's folder is not there any more, or another one has taken its place. Open a new session.")
}
