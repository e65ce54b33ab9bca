package look

import (
	"path"
	"slices"
	"strings"

	"localpc/capabilities/shell/judge"
)

// chosen are the names that an act is about: its paths, or what find chooses
// below them.
func (l *looker) chosen(a judge.Act, paths []judge.Path, v verb, follow bool) []target {
	all := l.targets(paths, follow && a.Find == nil)
	if a.Find == nil {
		return all
	}
	var out []target
	for _, t := range all {
		if t.way == in && t.spot.there {
			out = append(out, l.found(a.Find, t, v)...)
		} else {
			out = append(out, t)
		}
	}
	return out
}

// change counts what is written to by name, through links.
func (l *looker) change(a judge.Act, v verb, p judge.Part) {
	// Sed changes what is there only; what packs makes the archive.
	sed := v == edits && len(p.Argv) > 0 && path.Base(p.Argv[0]) == "sed"

	for _, t := range l.chosen(a, a.Paths, v, true) {
		s := t.spot
		switch {
		case l.elsewhere(v, t):
		case s.there && !s.node.mode.IsRegular():
			// A folder refuses it; a pipe or a device keeps nothing.
			l.nothing(v, s)
		case s.there:
			if s.away {
				l.tally(v, func(y *tally) { y.may = true })
			}
			l.op(v, s)
			l.hit(v, s)
		case s.made != 0 || sed:
			l.nothing(v, s)
		default:
			l.make(s, madeFile)
		}
	}
}

// make counts a name that is not there yet.
func (l *looker) make(s spot, m made) {
	s.made = m
	l.op(creates, s)
	if m == madeTree && s.name() == ".git" {
		l.print.add("makes", s.key())
		l.tally(creates, func(y *tally) { y.fresh(s) })
	} else {
		l.fresh(s)
	}
	l.over.makes(s, m)
}

// create counts what mkdir and touch make; what is there stays as it is.
func (l *looker) create(a judge.Act, p judge.Part) {
	kind := madeFile
	if len(p.Argv) > 0 {
		switch path.Base(p.Argv[0]) {
		case "mkdir", "install":
			kind = madeDir
		case "git": // init and clone: a new repository has nothing of anybody in it
			kind = madeTree
		}
	}
	for _, t := range l.chosen(a, a.Paths, creates, true) {
		s := t.spot
		switch {
		case t.way == outside:
			l.elsewhere(replaces, t)
		case l.elsewhere(creates, t):
		case s.there && !s.away || s.made != 0:
			l.nothing(creates, s)
		default:
			if kind == madeDir {
				l.folders(s)
			}
			l.make(s, kind)
		}
	}
}

// folders makes what is missing above s, as mkdir -p does.
func (l *looker) folders(s spot) {
	if s.rel == "." {
		return
	}
	var missing []spot
	cur := l.top(s.base)
	comps := strings.Split(s.rel, "/")
	for _, c := range comps[:len(comps)-1] {
		if cur = l.child(cur, c); !cur.there && cur.made == 0 {
			missing = append(missing, cur)
		}
	}
	for _, m := range missing {
		m.made = madeDir
		l.fresh(m)
		l.over.makes(m, madeDir)
	}
}

// destination is where a move, a copy or a link goes: into a folder, or to a
// name of its own.
func (l *looker) destination(a judge.Act, follow bool) (to target, into bool) {
	switch {
	case a.Into != nil:
		name := written(*a.Into)
		s, w := l.resolve(name, true)
		if w == in && !s.isDir() && !follow {
			s, w = l.resolve(name, false)
		}
		return target{spot: s, seen: name, way: w}, w == in && s.isDir()
	case len(a.Paths) > 0:
		name := written(a.Paths[0])
		if !a.Exact {
			// A folder of that name takes it.
			if s, w := l.resolve(name, !a.Itself); w != in || s.isDir() {
				return target{spot: s, seen: name, way: w}, w == in
			}
		}
		s, w := l.resolve(name, follow)
		return target{spot: s, seen: name, way: w}, false
	}
	return target{way: unsure}, false
}

// named is where t goes at d.
func (l *looker) named(d target, into bool, t target) spot {
	if !into {
		return d.spot
	}
	name := path.Base(t.seen)
	if (name == ".." || name == ".") && t.way == in {
		name = t.spot.name()
	}
	return l.child(d.spot, name)
}

// move counts what mv and rename move, and replace.
func (l *looker) move(a judge.Act) {
	d, into := l.destination(a, false)
	for _, t := range l.chosen(a, a.From, moves, false) {
		s := t.spot
		if l.elsewhere(moves, t) {
			continue
		}
		if d.way == unsure {
			l.elsewhere(moves, d)
			continue
		}
		if d.way == outside {
			if !s.there {
				l.nothing(moves, s)
				continue
			}
			l.carry(s, nil)
			l.tally(moves, func(y *tally) { y.to, y.foreign = d.seen, true })
			l.noteOutside(moves, d.seen)
			l.over.away[s.disk()] = true
			continue
		}
		to := l.named(d, into, t)
		if !l.place(to) || s.there && to.there && s.disk() == to.disk() || s.rel == "." {
			l.nothing(moves, s) // it fails
			continue
		}
		if to.there && !to.away {
			if !a.Replaces || to.node.mode.IsDir() != s.isDir() || to.node.mode.IsDir() && !l.empty(to) {
				l.nothing(moves, to)
				continue
			}
			l.op(replaces, to)
			l.hit(replaces, to)
		}
		l.over.gone(spot{base: to.base, rel: to.rel, on: to.on, at: to.at, there: to.there && !to.away})
		if !s.there {
			l.nothing(moves, s)
			if s.made != 0 {
				l.over.gone(s)
				l.over.made[to.key()] = s.made
			}
			continue
		}
		l.carry(s, &to)
		l.tally(moves, func(y *tally) {
			y.to = d.spot.key()
			y.parting = y.parting || s.base.pre == "" && to.base.pre != ""
		})
		delete(l.over.moved, s.key())
		l.over.away[s.disk()] = true
		l.over.moved[to.key()] = spot{on: s.on, at: s.at, node: s.node, there: true}
	}
}

// carry counts s and all below it as moved, to where it goes.
func (l *looker) carry(s spot, to *spot) {
	if s.away {
		l.tally(moves, func(y *tally) { y.may = true })
	}
	l.op(moves, s)
	if !l.tree(s, func(c spot) {
		if !c.there {
			return
		}
		l.hit(moves, c)
		if to != nil {
			l.startup(spot{base: to.base, rel: to.rel + strings.TrimPrefix(c.rel, s.rel), on: to.base, at: to.rel + strings.TrimPrefix(c.rel, s.rel)})
		}
	}) {
		l.tally(moves, func(y *tally) { y.more = true })
	}
}

// place tells whether the folder that s is to be in is there by then.
func (l *looker) place(s spot) bool {
	if s.rel == "." {
		return true
	}
	p := l.top(s.base)
	if dir := path.Dir(s.rel); dir != "." {
		for c := range strings.SplitSeq(dir, "/") {
			p = l.child(p, c)
		}
	}
	return p.isDir()
}

// copy counts what cp makes and replaces.
func (l *looker) copy(a judge.Act, p judge.Part) {
	d, into := l.destination(a, true)
	// Rsync takes what is in a folder whose name ends so.
	contents := len(p.Argv) > 2 && path.Base(p.Argv[0]) == "rsync" &&
		slices.ContainsFunc(p.Argv[1:len(p.Argv)-1], func(a string) bool { return strings.HasSuffix(a, "/") })
	for _, t := range l.chosen(a, a.From, creates, !a.Recursive) {
		if d.way == unsure || d.way == outside {
			l.elsewhere(replaces, d)
			return
		}
		to := l.named(d, into, t)
		if contents {
			to = d.spot
		}
		s := t.spot
		switch {
		case t.way == outside:
			l.noteAt(reads, t.seen)
			l.copyFrom(a, to)
		case t.way == unsure:
			l.elsewhere(creates, t)
		case !s.there && s.made == 0 || s.isDir() && !a.Recursive:
			l.nothing(creates, s)
		case !s.there:
			l.copyFrom(a, to)
		default:
			l.copyTo(a, s, to)
		}
	}
}

// copyFrom counts a copy of what can't be looked at now.
func (l *looker) copyFrom(a judge.Act, to spot) {
	switch {
	case to.there && to.node.mode.IsDir():
		l.note(unknown, "what it replaces in "+words(to.key()))
	case to.there && a.Replaces:
		l.op(replaces, to)
		l.hit(replaces, to)
	case !to.there:
		l.make(to, madeUnsure)
	}
}

func (l *looker) copyTo(a judge.Act, s, to spot) {
	if to.there && to.node.isLink() {
		// It writes through a link.
		t := target{seen: to.key()}
		trail := (&glob{l: l}).trail(spot{base: to.base, rel: path.Dir(to.rel)})
		if t.spot, t.way = l.walkTo(trail, []string{to.name()}, true); l.elsewhere(replaces, t) {
			return
		}
		to = t.spot
	}
	switch {
	case !to.there:
		m := madeFile
		if s.node.isLink() {
			m = madeUnsure
		} else if s.isDir() {
			m = madeTree
		}
		to.made = m
		l.op(creates, to)
		if s.isDir() {
			if !l.tree(s, func(c spot) {
				if c.there {
					rel := to.rel + strings.TrimPrefix(c.rel, s.rel)
					n := spot{base: to.base, rel: rel, on: to.base, at: rel}
					if c.isDir() {
						n.made = madeDir
					}
					l.fresh(n)
				}
			}) {
				l.tally(creates, func(y *tally) { y.more = true })
			}
		} else {
			l.fresh(to)
		}
		l.over.makes(to, m)
	case s.isDir() && to.node.mode.IsDir():
		if !l.children(s, func(c spot) bool {
			if c.there {
				l.copyTo(a, c, l.child(to, c.name()))
			}
			return !l.more()
		}) {
			l.tally(replaces, func(y *tally) { y.more = true })
		}
	case s.isDir() || !to.node.mode.IsRegular() || !a.Replaces || s.disk() == to.disk():
		l.nothing(replaces, to)
	default:
		if to.away {
			l.tally(replaces, func(y *tally) { y.may = true })
		}
		l.op(replaces, to)
		l.hit(replaces, to)
	}
}

// link counts the names that ln makes and replaces.
func (l *looker) link(a judge.Act) {
	d, into := l.destination(a, false)
	if d.way != in {
		l.elsewhere(replaces, d)
		return
	}
	for _, from := range a.From {
		to := l.named(d, into, target{seen: from.Name})
		switch {
		case !to.there || to.away:
			l.make(to, madeUnsure)
		case a.Replaces && !to.node.mode.IsDir():
			l.op(replaces, to)
			l.hit(replaces, to)
			l.over.gone(to)
			l.over.made[to.key()] = madeUnsure
		default:
			l.nothing(replaces, to)
		}
	}
}

// access counts what chmod and chown change. What is named is followed, links
// below it are not.
func (l *looker) access(a judge.Act) {
	for _, t := range l.chosen(a, a.Paths, accesses, true) {
		s := t.spot
		switch {
		case l.elsewhere(accesses, t):
		case !s.there:
			l.nothing(accesses, s)
		case !a.Recursive:
			l.op(accesses, s)
			l.hit(accesses, s)
		default:
			l.op(accesses, s)
			if !l.tree(s, func(c spot) {
				if c.there && !c.node.isLink() {
					l.hit(accesses, c)
				}
			}) {
				l.tally(accesses, func(y *tally) { y.more = true })
			}
		}
	}
}
