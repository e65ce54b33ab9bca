package shell

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/capabilities/shell/look"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Looking stops this long before its time is over, so that what was found by
// then is told; and without an end it takes this long.
const (
	lookReserve = 50 * time.Millisecond
	maxLookTime = 3 * time.Second
)

// maxRead is how much of a script is judged.
const maxRead = 64 << 10

// look judges the command, and counts what it would do.
func (s *Shell) look(ctx context.Context, pl *plan) {
	root, err := os.OpenRoot(pl.session.Folder + "/") // with the slash it waits for no pipe in the folder's place
	if err != nil {
		pl.judged = judge.Judgement{Problem: "The session's folder can't be looked at."}
	} else {
		defer root.Close()
		c := judge.Command{
			Argv: pl.argv, Env: maps.Clone(pl.env), Dir: pl.within, Home: inside, Folder: inside,
			Read:  func(seen string) ([]byte, bool) { return pl.readIn(root, seen) },
			List:  func(seen string) ([]string, bool) { return pl.listIn(root, seen) },
			Link:  pl.linkAt,
			Typed: pl.stdin, Terminal: pl.terminal != nil,
		}
		maps.DeleteFunc(c.Env, func(k, _ string) bool { return harmlessNames[strings.ToUpper(k)] })
		if pl.noContain != "" {
			c.Dir, c.Home, c.Folder = pl.real, s.o.Home, pl.session.Folder
		}
		pl.judged = judge.Line(c)
		if pl.noContain == "" {
			pl.judged.Parts, pl.display = withoutDisplay(pl.judged.Parts)
		}
		pl.scripts = findScripts(root, pl)
	}
	o := look.Options{Session: pl.session, Real: pl.realOf, StartsUp: startsUp, Undo: func(ctx context.Context, bytes int64) string { return s.undoWords(ctx, pl, bytes) }}
	if pl.noContain == "" {
		o.Ask = func(ctx context.Context, dir string, argv []string) ([]byte, error) { return s.ask(ctx, pl, dir, argv) }
	}
	within := maxLookTime
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)-lookReserve)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	pl.found = look.At(ctx, pl.judged, o)
	pl.fingerprint = fingerprintOf(pl.folder, pl.scripts, pl.found.Fingerprint+pl.undo)
}

// withoutDisplay drops what a contained command says about the display: which
// one it is to draw on. Whatever the name, those within its reach are of its own
// session; the person's is neither in its network nor in its /tmp. dropped: there
// was something.
func withoutDisplay(parts []judge.Part) (left []judge.Part, dropped bool) {
	for i, p := range parts {
		parts[i].Acts = slices.DeleteFunc(p.Acts, func(a judge.Act) bool { return a.Op == judge.Env && a.What == "DISPLAY" })
		dropped = dropped || len(parts[i].Acts) < len(p.Acts)
	}
	return parts, dropped
}

// check passes what is found now to the grant. A look for a card may have had
// less time than this one: while nothing has changed, what it had seen by then
// is among what this one has seen on its way. What was allowed though it could
// not be undone may be undone.
func (pl *plan) check(g consent.Grant, d consent.Digest) error {
	err := g.Check(d, pl.fingerprint)
	for _, undo := range []string{pl.undo, ""} {
		for _, m := range append([]string{pl.found.Fingerprint}, pl.found.Marks...) {
			if err != consent.ErrChanged {
				return err
			}
			if err = g.Check(d, fingerprintOf(pl.folder, pl.scripts, m+undo)); err == nil {
				pl.undo = undo
			}
		}
	}
	return err
}

// realOf is where a path of a contained command is on this computer; without a
// container only the folder is looked at.
func (pl *plan) realOf(seen string) (string, bool) {
	sess := pl.session
	places := [][2]string{{inside, sess.Folder}, {"/tmp", sess.Tmp}, {"/var/tmp", sess.Tmp}, {cacheInside, sess.Cache}}
	if pl.noContain != "" {
		places = [][2]string{{sess.Folder, sess.Folder}}
	} else if !conflicts(sess.Folder, nil) {
		places = append(places, [2]string{sess.Folder, sess.Folder})
	}
	for _, p := range places {
		if under(seen, p[0]) {
			return p[1] + seen[len(p[0]):], true
		}
	}
	return "", false
}

// rel is a path of the command as a name in the folder.
func (pl *plan) rel(seen string) (string, bool) {
	real, ok := pl.realOf(seen)
	if !ok || !under(real, pl.session.Folder) {
		return "", false
	}
	if rel := strings.TrimPrefix(real[len(pl.session.Folder):], "/"); rel != "" {
		return rel, true
	}
	return ".", true
}

// readIn reads a script for the judge. It waits for no pipe.
func (pl *plan) readIn(root *os.Root, seen string) ([]byte, bool) {
	rel, ok := pl.rel(seen)
	if !ok {
		return nil, false
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxRead {
		return nil, false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	return b, err == nil && len(b) <= maxRead
}

// linkAt is what a link holds, for the judge.
func (pl *plan) linkAt(seen string) (string, bool) {
	real, ok := pl.realOf(seen)
	if !ok {
		return "", false
	}
	target, err := os.Readlink(real)
	return target, err == nil
}

// listIn lists a directory for the judge.
func (pl *plan) listIn(root *os.Root, seen string) ([]string, bool) {
	rel, ok := pl.rel(seen)
	if !ok {
		return nil, false
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|onlyDirectory, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, err := f.Readdirnames(maxListed + 1)
	if err == io.EOF {
		err = nil
	}
	slices.Sort(names)
	return names, err == nil && len(names) <= maxListed
}

// quietKinds are what a wide rule for commands holds for.
var quietKinds = []consent.EffectKind{consent.EffectRead, consent.EffectCreate, consent.EffectRun, consent.EffectInstall, consent.EffectConnect}

func (pl *plan) describe(p *wire.ProcessStart) capabilities.Description {
	d := capabilities.Description{
		Action:      "run",
		Title:       "Run " + clip(consent.Visible(pl.exact, false), 60),
		Sentence:    "%s wants to run a command on this computer.",
		Exact:       pl.exact,
		Steps:       pl.found.Steps,
		Effects:     pl.found.Effects,
		Risk:        consent.RiskNormal,
		Payload:     pl.payload(p),
		Fingerprint: pl.fingerprint,
		Containable: pl.noContain == "",
		FullOffered: pl.session.Mode != consent.ModeLook,
		Rule:        capabilities.RuleParts{Exact: pl.exact, Env: strings.Join(pl.envLines(), " ")},
		Scopes:      []consent.Scope{consent.Session, consent.Minutes15, consent.Always},
	}
	if w := pl.found.Wants; w != "" {
		d.Title = clip(upper(w), 60)
		d.Sentence = "%s wants to " + w + "."
	}
	if pl.found.High {
		d.Risk = consent.RiskHigh
	}
	// A rule for the same text without it is not for this.
	switch {
	case pl.terminal != nil:
		d.Rule.Env = strings.TrimSpace(d.Rule.Env + " a terminal")
		if pl.found.Wants == "" {
			d.Title = "Open a terminal: " + clip(consent.Visible(pl.exact, false), 44)
			d.Sentence = "%s wants to open a terminal on this computer."
		}
	case pl.stdin && (pl.judged.Typed || pl.judged.Problem != ""):
		d.Rule.Env = strings.TrimSpace(d.Rule.Env + " input that is sent later")
		if pl.found.Wants == "" {
			d.Sentence = "%s wants to run a command on this computer, and to send it more later."
		}
	}
	d.Details = append(d.Details, "Working in "+pl.real)
	if pl.real != pl.session.Folder {
		d.Rule.Cwd = pl.real
	}
	for _, line := range pl.envLines() {
		d.Details = append(d.Details, "With "+line)
	}
	for _, k := range slices.Sorted(maps.Keys(pl.env)) {
		if changesWhatRuns(k, pl.env[k]) && !slices.ContainsFunc(d.Effects, func(e consent.Effect) bool { return e.Kind == consent.EffectEnv && strings.Contains(e.Text, k) }) {
			d.Effects = append(d.Effects, consent.Effect{Kind: consent.EffectEnv, Text: "sets " + k + ", which changes what programs run"})
			d.Risk = consent.RiskHigh
		}
	}
	if len(d.Effects) == 0 {
		d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "reads and prints only"}}
	}
	for _, sc := range pl.scripts {
		if sc.hash != "" {
			d.Details = append(d.Details, sc.sentence())
		}
	}
	if s := runnerSentence(pl.exact); s != "" {
		d.Details = append(d.Details, s)
	}
	if pl.limit > 0 {
		d.Details = append(d.Details, "Ends after "+inWords(pl.limit)+" at the latest")
	}
	if d.FullOffered && d.Containable && (pl.display || pl.env["DISPLAY"] != "") {
		d.Details = append(d.Details, "With full access, DISPLAY may be your own screen")
	}
	if os.Geteuid() == 0 && d.FullOffered {
		d.Details = append(d.Details, "This program runs as root here, and with full access the command would too")
	}
	has := func(kinds ...consent.EffectKind) bool {
		return slices.ContainsFunc(d.Effects, func(e consent.Effect) bool { return slices.Contains(kinds, e.Kind) })
	}
	switch {
	case pl.noContain != "":
		d.Details = append(d.Details, "It can't be kept inside its folder, so it could do everything that you can do. "+pl.noContain)
		d.Risk, d.Scopes = consent.RiskHigh, []consent.Scope{consent.Session}
	case has(consent.EffectUnknown):
		d.Scopes = []consent.Scope{consent.Session}
	case d.Risk >= consent.RiskHigh:
		d.Scopes = []consent.Scope{consent.Session, consent.Minutes15}
	case !slices.ContainsFunc(d.Effects, func(e consent.Effect) bool { return !slices.Contains(quietKinds, e.Kind) }):
		d.Wide = &capabilities.Wide{Action: d.Action, Effects: quietKinds, Words: "commands kept inside this folder that read, make files, and run or install programs there; each connection is asked for"}
	}
	if d.FullOffered && d.Containable && namesDiffer(pl.exact) && has(consent.EffectDelete, consent.EffectOverwrite, consent.EffectMove, consent.EffectAccess, consent.EffectCreate) {
		d.Details = append(d.Details, "What is counted holds inside the folder. With full access ~ is your own home, and /tmp this computer's own")
	}
	return d
}

// namesDiffer: the text has a name that is something else without a container.
func namesDiffer(text string) bool {
	for _, n := range []string{"~", "HOME", "/tmp", "TMPDIR", inside} {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}

func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
