package look

import (
	"path"
	"slices"
	"strings"

	"localpc/consent"
)

// verb is what happens to a name; several may be one kind of effect.
type verb int

// In the order of their gravity, the gravest first.
const (
	unknown verb = iota
	root
	settings
	env
	startup
	deletes
	replaces
	edits
	cuts
	appends
	moves
	stashes
	accesses
	installs
	connects
	runs
	creates
	reads
	verbs
)

var verbInfo = [verbs]struct {
	kind  consent.EffectKind
	third string // "deletes"
	plain string // "delete"
	after string // behind the count
}{
	unknown:  {consent.EffectUnknown, "", "", ""},
	root:     {consent.EffectRoot, "asks for administrator rights", "get administrator rights", ""},
	settings: {consent.EffectSettings, "changes settings", "change settings", ""},
	env:      {consent.EffectEnv, "sets", "set", ", which changes what programs run"},
	startup:  {consent.EffectStartup, "changes", "change", ", which other programs run"},
	deletes:  {consent.EffectDelete, "deletes", "delete", cannotUndo},
	replaces: {consent.EffectOverwrite, "replaces", "replace", cannotUndo},
	edits:    {consent.EffectOverwrite, "changes", "change", cannotUndo},
	cuts:     {consent.EffectOverwrite, "cuts", "cut", cannotUndo},
	appends:  {consent.EffectOverwrite, "adds to", "add to", ""},
	moves:    {consent.EffectMove, "moves", "move", "; they can be moved back"},
	stashes:  {consent.EffectMove, "puts aside the changes of", "put aside the changes of", "; git stash pop brings them back"},
	accesses: {consent.EffectAccess, "changes who may use", "change who may use", ""},
	installs: {consent.EffectInstall, "installs", "install", ""},
	connects: {consent.EffectConnect, "connects to", "connect to", ""},
	runs:     {consent.EffectRun, "runs", "run", ""},
	creates:  {consent.EffectCreate, "makes", "make", ""},
	reads:    {consent.EffectRead, "reads", "read", ""},
}

func (v verb) name() string { return string(verbInfo[v].kind) + " " + verbInfo[v].third }

// loses tells whether what is in a file is lost by v.
func (v verb) loses() bool {
	return v == deletes || v == replaces || v == edits || v == cuts
}

// takes tells whether v leaves something else, or nothing, where a file was.
func (v verb) takes() bool { return v >= deletes && v <= stashes }

// high: never settled by how a session may work.
func (v verb) high() bool { return v <= startup }

// touches: v is about names in the folder, and is counted.
func (v verb) touches() bool {
	return v >= deletes && v <= accesses || v == creates
}

// tally is what was counted for one verb.
type tally struct {
	used        bool
	files, dirs int // links and whatever is no folder count as files
	bytes       int64
	foreign     bool // not all of it is the session's own
	may         bool // fewer may be meant than were counted, or others
	upto        bool // fewer may be chosen than were counted
	more        bool // not counted to the end
	ops         []spot
	nops        int      // of the names that the command gives, or finds
	where       string   // the folder that all of it is in, by key
	notes       []string // words for what is not counted
	outs        []string // outside, as the command sees it
	to          string   // moves: where to
	parting     bool     // moves: out of the folder
	passing     bool     // some of it is in the session's own places
	unheld      bool     // some of it can't be held before the command
	seen        map[string]bool
}

const maxNotes = 3 // names in a sentence

func (y *tally) hit(s spot, own bool) {
	k := s.disk()
	if y.seen == nil {
		y.seen = map[string]bool{}
	}
	if y.seen[k] {
		return
	}
	y.seen[k] = true
	y.foreign = y.foreign || !own
	y.passing = y.passing || s.on.own
	y.add(s, s.node.mode.IsDir())
	if s.node.mode.IsRegular() {
		y.bytes += s.node.size
	}
}

func (y *tally) fresh(s spot) {
	if y.seen == nil {
		y.seen = map[string]bool{}
	}
	if k := s.key(); !y.seen[k] {
		y.seen[k] = true
		y.add(s, s.made == madeDir)
	}
}

func (y *tally) add(s spot, dir bool) {
	in := s.base.key(path.Dir(s.rel))
	if s.rel == "." {
		in = s.key()
	}
	if y.files+y.dirs == 0 {
		y.where = in
	}
	y.where = common(y.where, in)
	if dir {
		y.dirs++
	} else {
		y.files++
	}
}

func (y *tally) op(s spot) {
	if slices.ContainsFunc(y.ops, func(o spot) bool { return o.key() == s.key() }) {
		return
	}
	if s.isDir() {
		// What was named in it before goes with it.
		n := len(y.ops)
		y.ops = slices.DeleteFunc(y.ops, func(o spot) bool { return strings.HasPrefix(o.key(), s.key()+"/") })
		y.nops -= n - len(y.ops)
	}
	if y.nops++; len(y.ops) < maxNotes {
		y.ops = append(y.ops, s)
	}
}

func (y *tally) note(what string) {
	if what != "" && !slices.Contains(y.notes, what) {
		y.notes = append(y.notes, what)
	}
}

func (y *tally) outside(seen string) {
	y.foreign = true
	if !slices.Contains(y.outs, seen) {
		y.outs = append(y.outs, seen)
	}
}

func (y *tally) startup(rel string) {
	y.foreign = true
	y.files++
	y.note(words(rel))
}

// common is the folder that both are in.
func common(a, b string) string {
	for a != b {
		if len(a) > len(b) {
			a = parent(a)
		} else {
			b = parent(b)
		}
	}
	return a
}

func parent(key string) string {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return ""
	}
	return key[:i]
}

// tallies are those of a part, or of a line.
type tallies [verbs]tally

func (t *tallies) of(v verb) *tally {
	t[v].used = true
	return &t[v]
}

// effects are one a kind.
func (t *tallies) effects(cut bool, undo func() string) (out []consent.Effect, high bool) {
	for v := range verbs {
		y := &t[v]
		if !y.used || v == startup && y.files == 0 {
			continue
		}
		y.more = y.more || cut && v.touches()
		high = high || v.high() || (v == deletes || v == moves) && len(y.outs) > 0
		e := consent.Effect{Kind: verbInfo[v].kind, Text: y.undoable(y.text(v), undo), Count: y.files + y.dirs, Bytes: y.bytes, Own: y.own(v), Kept: y.kept(v, undo)}
		if v == creates || v == accesses {
			e.Bytes = 0
		}
		if v == creates && e.Count == 0 && len(y.outs) == 0 && len(out) > 0 {
			continue
		}
		i := slices.IndexFunc(out, func(o consent.Effect) bool { return o.Kind == e.Kind })
		if i < 0 {
			out = append(out, e)
			continue
		}
		o := &out[i]
		o.Kept = (o.Kept || o.Own) && (e.Kept || e.Own)
		o.Text, o.Count, o.Bytes, o.Own = joined(o.Text, e.Text), o.Count+e.Count, o.Bytes+e.Bytes, o.Own && e.Own
	}
	return out, high
}

// wants is the one thing that a card's sentence says; "" where a part of the
// line is not known, and nothing gentler may stand for it.
func (t *tallies) wants() string {
	if t[unknown].used {
		return ""
	}
	for _, v := range []verb{root, settings, deletes, startup, replaces, edits, cuts, appends, moves, stashes, accesses} {
		y := &t[v]
		if y.used && (v.high() && v != startup || y.files+y.dirs+len(y.outs) > 0 || y.more) {
			return strings.ReplaceAll(strings.TrimSpace(verbInfo[v].plain+" "+y.what(v, false)), " :", ":")
		}
	}
	return ""
}

// own: all that it touches was made by the session, for sure.
func (y *tally) own(v verb) bool {
	return v.touches() && v != creates && !y.foreign && !y.more && !y.may && len(y.outs) == 0 && !y.parting
}

// kept: all of it that the session did not make is held before the command, for
// sure.
func (y *tally) kept(v verb, undo func() string) bool {
	return v.takes() && y.foreign && !y.more && !y.may && !y.passing && !y.unheld && len(y.outs) == 0 && undo() == canUndo
}

// canUndo ends an effect that can be undone, all of it.
const canUndo = "; can be undone"

// cannotUndo ends an effect that loses something for good.
const cannotUndo = "; cannot be undone"

// undoable says of what is lost in the folder that it can be undone, where it
// can. What is outside, or in the session's own places, is not kept.
func (y *tally) undoable(text string, undo func() string) string {
	lost, ok := strings.CutSuffix(text, cannotUndo)
	if !ok || len(y.outs) > 0 || y.passing {
		return text
	}
	return lost + undo()
}

// joined puts two sentences of one kind together; what can or cannot be undone
// is said once, at the end, and of all of it.
func joined(a, b string) string {
	a, one := cutUndo(a)
	b, two := cutUndo(b)
	switch {
	case one == cannotUndo || two == cannotUndo:
		one = cannotUndo
	case one == "":
		one = two
	}
	return a + ", " + b + one
}

func cutUndo(s string) (text, undo string) {
	for _, with := range []string{cannotUndo, canUndo} {
		if i := strings.LastIndex(s, with); i >= 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}
