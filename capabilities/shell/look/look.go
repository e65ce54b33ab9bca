// Package look is step 3 for what a command would change: it looks at the
// files that the acts of package judge name, and counts what would happen to
// them. It changes nothing.
package look

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strconv"

	"localpc/capabilities"
	"localpc/capabilities/shell/judge"
	"localpc/consent"
)

// Bounds of one look, beside its context and Options.Max.
const (
	maxSpots = 20_000
	maxNames = 200_000 // names that are read
	maxDepth = 200
	maxSteps = 200 // that are told
)

// Options say where to look. Session and Real are needed.
type Options struct {
	Session *capabilities.Session
	// Real is the path on this computer of a path as the command sees it; ok is
	// false for what lies outside of what the session may see.
	Real func(seen string) (real string, ok bool)
	// Ask runs a command that only reads, contained and with the folder
	// read-only, in a directory as the command sees it, and returns at most
	// 1 MiB of its output. Nil where nothing can be contained.
	Ask func(ctx context.Context, dir string, argv []string) ([]byte, error)
	// Max is how many names are looked at; 0 means 20,000. A later look at the
	// same files comes exactly as far.
	Max int
	// Undo says how far the loss of so many bytes can be undone: "can be undone".
	// It is asked once, and only where something is changed, deleted or moved
	// that the session did not make; nil or "": it can't be.
	Undo func(ctx context.Context, bytes int64) string
	// StartsUp tells whether a name in the folder is one that other programs
	// run on their own.
	StartsUp func(rel string) bool
}

// Found is what would happen, counted.
type Found struct {
	Effects []consent.Effect // one a kind, the gravest first
	Steps   []string         // one a part; judge's sentences with the counts in them
	// Wants is the gravest of the effects that change something that is there,
	// as "delete 214 files in Pictures"; "" where there is none.
	Wants string
	// High: a part of it can't be told, or taken back, or reaches beyond what a
	// session may do on its own.
	High bool
	// More: there is more than could be counted in the time, or than the bounds.
	More bool
	// Fingerprint is of all that was looked at: another one means that something
	// else would happen. Marks are the fingerprints that looks of less time may
	// have had, while nothing changed.
	Fingerprint string
	Marks       []string
}

// looker is one look.
type looker struct {
	ctx    context.Context
	o      Options
	bases  []*base
	over   overlay
	print  *print
	all    *tallies // of the whole line
	part   *tallies // of the part at hand
	looked int
	listed int
	full   bool   // a bound was reached
	late   bool   // the time was over
	undone string // what Undo said
}

// At counts what the acts of j would do. It is bounded by ctx, and by numbers.
func At(ctx context.Context, j judge.Judgement, o Options) Found {
	if o.Max == 0 {
		o.Max = maxSpots
	}
	if o.StartsUp == nil {
		o.StartsUp = func(string) bool { return false }
	}
	l := &looker{ctx: ctx, o: o, print: newPrint(), all: &tallies{},
		over: overlay{deleted: map[string]bool{}, away: map[string]bool{}, moved: map[string]spot{}, made: map[string]made{}}}
	defer l.close()
	s := o.Session
	for _, b := range []base{{real: s.Folder}, {real: s.Tmp, pre: "/tmp/", own: true}, {real: s.Cache, pre: "/cache/", own: true}} {
		if b.real == "" {
			continue
		}
		// With the slash it waits for no pipe in the folder's place.
		if root, err := os.OpenRoot(b.real + "/"); err == nil {
			b.root = root
			l.bases = append(l.bases, &b)
		}
	}
	// What the judge found belongs to it: scripts and names in patterns may have
	// changed what the same text means.
	if b, err := json.Marshal(j); err == nil {
		l.print.add("judged", string(b))
	}
	var f Found
	if j.Problem != "" {
		l.part = &tallies{}
		l.note(unknown, j.Problem)
		f.Steps = append(f.Steps, j.Problem)
	}
	for _, p := range j.Parts {
		l.part = &tallies{}
		for _, a := range p.Acts {
			l.act(a, p)
		}
		if s := l.part.step(consent.Visible(p.Sentence, false), l.more()); len(f.Steps) == 0 || f.Steps[len(f.Steps)-1] != s {
			f.Steps = append(f.Steps, s)
		}
	}
	if n := len(f.Steps); n > maxSteps {
		f.Steps = append(f.Steps[:maxSteps-1], "And "+count(n-maxSteps+1, "more step", "more steps"))
	}
	f.More = l.more()
	f.Effects, f.High = l.all.effects(f.More, l.undo)
	f.Wants = l.all.wants()
	f.Fingerprint, f.Marks = l.print.sum("all"), l.print.marks
	if l.late {
		f.Fingerprint = l.print.last()
	}
	return f
}

func (l *looker) close() {
	for _, b := range l.bases {
		b.root.Close()
	}
}

// undo is how an effect ends that loses something in the folder.
func (l *looker) undo() string {
	if l.o.Undo == nil {
		return cannotUndo
	}
	if l.undone == "" {
		l.undone = cannotUndo
		bytes := int64(0)
		for v := range verbs {
			if v.takes() {
				bytes += l.all[v].bytes
			}
		}
		if words := l.o.Undo(l.ctx, bytes); words != "" {
			l.undone = "; " + words
		}
	}
	return l.undone
}

func (l *looker) more() bool { return l.full || l.late }

// step counts one more name to look at; false means: no further.
func (l *looker) step() bool {
	if l.more() {
		return false
	}
	if l.ctx.Err() != nil {
		l.late = true
		return false
	}
	if l.looked++; l.looked > l.o.Max {
		l.full = true
		return false
	}
	return true
}

// read counts names that were read.
func (l *looker) read(n int) bool {
	if l.ctx.Err() != nil {
		l.late = true
	}
	if l.listed += n; l.listed > maxNames {
		l.full = true
	}
	return !l.more()
}

func (l *looker) act(a judge.Act, p judge.Part) {
	switch a.Op {
	case judge.Read:
		for _, at := range a.Paths {
			l.noteAt(reads, at.Name)
		}
		if len(a.Paths) == 0 {
			l.note(reads, "")
		}
	case judge.Create:
		l.create(a, p)
	case judge.Write:
		l.change(a, replaces, p)
	case judge.Append:
		l.change(a, appends, p)
	case judge.Edit:
		l.change(a, edits, p)
	case judge.Truncate:
		l.change(a, cuts, p)
	case judge.Delete:
		l.delete(a, p)
	case judge.Move:
		l.move(a)
	case judge.Copy:
		l.copy(a, p)
	case judge.Link:
		l.link(a)
	case judge.Access:
		l.access(a)
	case judge.Extract:
		l.extract(a, p)
	case judge.GitClean:
		l.gitClean(a)
	case judge.GitReset, judge.GitRestore:
		l.gitReset(a)
	case judge.Run:
		l.note(runs, shown(a.Program))
	case judge.Connect:
		host := cmp.Or(a.Host, "another computer")
		if a.Port != 0 {
			host += ":" + strconv.Itoa(a.Port)
		}
		l.note(connects, shown(host))
	case judge.Settings:
		l.note(settings, shown(a.What))
	case judge.Install:
		l.note(installs, shown(a.What))
	case judge.Env:
		l.note(env, shown(a.What))
	case judge.Root:
		l.note(root, "")
	default:
		l.note(unknown, a.Why)
	}
}

// target is a path of an act, looked up.
type target struct {
	spot spot
	seen string // as the command sees it
	way  way
	// linked: a pattern went through a link to get there, which may have gone by
	// the time the name is used.
	linked bool
}

// written is a name as the system reads it, step by step: a/../b is another
// name than b where a is a link.
func written(p judge.Path) string {
	if p.Raw != "" {
		return p.Raw
	}
	return p.Name
}

// targets looks up the paths of an act, patterns spelled out.
func (l *looker) targets(paths []judge.Path, follow bool) []target {
	var out []target
	for _, p := range paths {
		name := written(p)
		if p.Glob {
			out = append(out, l.expand(name, follow)...)
			continue
		}
		s, w := l.resolve(name, follow)
		out = append(out, target{spot: s, seen: name, way: w})
	}
	return out
}

// elsewhere deals with what could not be looked at, in the same way for every
// verb; true means that it was such.
func (l *looker) elsewhere(v verb, t target) bool {
	switch {
	case t.linked:
		l.tally(v, func(y *tally) { y.may = true })
		t.linked = false
		return l.elsewhere(v, t)
	case t.way == outside:
		l.noteOutside(v, t.seen)
	case t.way == unsure && l.more():
		l.tally(v, func(y *tally) { y.more = true })
	case t.way == unsure:
		l.note(unknown, "what "+shown(t.seen)+" leads to")
	default:
		return false
	}
	return true
}

// hit counts one name that v happens to.
func (l *looker) hit(v verb, s spot) {
	own := s.on.own || l.o.Session.Made != nil && l.o.Session.Made.Has(s.disk(), s.node.id)
	state := s.node.which()
	if v.loses() && !own && s.node.mode.IsRegular() {
		state = s.node.state()
	}
	unheld := v.takes() && !own && !s.holds()
	if unheld {
		state += " unheld"
	}
	l.print.add(v.name(), s.key(), s.disk(), state, strconv.FormatBool(own))
	l.tally(v, func(y *tally) {
		y.unheld = y.unheld || unheld
		y.hit(s, own)
	})
	if !own || v != deletes {
		l.startup(s)
	}
}

// fresh counts one name that is made.
func (l *looker) fresh(s spot) {
	l.print.add("makes", s.key())
	l.tally(creates, func(y *tally) { y.fresh(s) })
	l.startup(s)
}

// nothing notes a name that nothing happens to, as it is now.
func (l *looker) nothing(v verb, s spot) {
	state := "missing"
	if s.there {
		state = s.node.which()
	}
	l.print.add(v.name()+" nothing", s.key(), state)
	l.tally(v, func(*tally) {})
}

// op notes a name that the command gives by itself.
func (l *looker) op(v verb, s spot) {
	l.tally(v, func(y *tally) { y.op(s) })
}

func (l *looker) startup(s spot) {
	for _, k := range []spot{s, {base: s.on, rel: s.at}} {
		if k.base.pre == "" && k.rel != "." && l.o.StartsUp(k.rel) {
			l.tally(startup, func(y *tally) { y.startup(k.rel) })
			return
		}
	}
}

func (l *looker) tally(v verb, f func(*tally)) {
	f(l.all.of(v))
	f(l.part.of(v))
}

func (l *looker) note(v verb, what string) {
	l.tally(v, func(y *tally) { y.note(consent.Visible(what, false)) })
}

// noteAt notes a path that is not looked at.
func (l *looker) noteAt(v verb, seen string) {
	what := seen
	if b, rel, ok := l.locate(seen); ok {
		what = words(b.key(path.Clean(rel)))
	}
	l.note(v, shown(what))
}

func (l *looker) noteOutside(v verb, seen string) {
	if slices.Contains(harmlessDevices, seen) {
		return
	}
	l.print.add(v.name()+" outside", seen)
	l.tally(v, func(y *tally) { y.outside(seen) })
}

// harmlessDevices take and give without keeping.
var harmlessDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr",
	"/dev/tty", "/dev/fd/0", "/dev/fd/1", "/dev/fd/2", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}
