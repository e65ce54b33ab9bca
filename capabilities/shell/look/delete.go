package look

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"localpc/capabilities/shell/judge"
)

// delete counts what rm, rmdir, unlink and find remove.
func (l *looker) delete(a judge.Act, p judge.Part) {
	if a.Find != nil {
		l.findDelete(a, p)
		return
	}
	for _, t := range l.targets(a.Paths, false) {
		s := t.spot
		switch {
		case l.elsewhere(deletes, t):
		case !s.there:
			l.nothing(deletes, s)
			l.over.gone(s)
		case l.over.lost(s):
		case !s.node.mode.IsDir() && len(p.Argv) > 0 && path.Base(p.Argv[0]) == "rmdir":
			l.nothing(deletes, s)
		case s.node.mode.IsDir() && !a.Recursive:
			if removesFolders(p) && l.empty(s) {
				l.op(deletes, s)
				l.remove(s)
			} else {
				l.nothing(deletes, s)
			}
		default:
			l.op(deletes, s)
			l.remove(s)
		}
	}
}

// remove counts s and everything below it as deleted.
func (l *looker) remove(s spot) {
	ok := l.tree(s, func(c spot) {
		if !c.there {
			return
		}
		if c.away {
			l.tally(deletes, func(y *tally) { y.may = true })
		}
		l.hit(deletes, c)
	})
	if !ok {
		l.tally(deletes, func(y *tally) { y.more = true })
	}
	l.over.gone(s)
}

// removesFolders: rmdir and rm -d remove a folder that is empty.
func removesFolders(p judge.Part) bool {
	if len(p.Argv) == 0 {
		return false
	}
	if path.Base(p.Argv[0]) == "rmdir" {
		return true
	}
	return slices.ContainsFunc(p.Argv[1:], func(a string) bool {
		return a == "--dir" || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "d")
	})
}

func (l *looker) empty(s spot) bool {
	n := 0
	ok := l.children(s, func(c spot) bool {
		if c.there || c.made != 0 {
			n++
		}
		return n == 0
	})
	return ok && n == 0
}

// finder goes through what a find command does.
type finder struct {
	l     *looker
	f     *judge.Find
	whole bool // folders that fit go with all that is in them
	dirs  bool // folders that fit go when nothing is left in them
}

func (l *looker) findDelete(a judge.Act, p judge.Part) {
	l.tally(deletes, func(y *tally) { y.upto = y.upto || loose(a.Find) })
	started := slices.ContainsFunc(p.Via, func(v string) bool { return v == "find" || v == "xargs" || v == "fd" })
	f := &finder{l: l, f: a.Find, whole: a.Recursive, dirs: !started || removesFolders(p)}
	// Neither find nor rm removes ".".
	here := slices.Contains(strings.Fields(p.Text), ".")
	for _, t := range l.targets(a.Paths, false) {
		switch {
		case l.elsewhere(deletes, t):
		case !t.spot.there:
			l.nothing(deletes, t.spot)
		default:
			f.delete(t.spot, t.seen, 0, here || t.spot.rel == ".")
		}
	}
}

// delete goes down first, as find does, and tells whether s itself goes.
func (f *finder) delete(s spot, seen string, depth int, keep bool) bool {
	if !s.there || f.l.over.lost(s) {
		return !s.there
	}
	fits := fits(f.f, s, seen, depth)
	if fits && f.whole && s.isDir() && !keep {
		f.l.op(deletes, s)
		f.l.remove(s)
		return true
	}
	empty := true
	if s.isDir() && (f.f.MaxDepth < 0 || depth < f.f.MaxDepth) {
		if depth > maxDepth || !f.l.children(s, func(c spot) bool {
			if !f.delete(c, path.Join(seen, c.name()), depth+1, false) {
				empty = false
			}
			return !f.l.more()
		}) {
			f.l.tally(deletes, func(y *tally) { y.more = true })
			return false
		}
	} else if s.isDir() {
		empty = fits && f.dirs && f.l.empty(s)
	}
	if !fits || keep || s.isDir() && (!f.dirs || !empty) {
		return false
	}
	f.l.op(deletes, s)
	if s.away {
		f.l.tally(deletes, func(y *tally) { y.may = true })
	}
	f.l.hit(deletes, s)
	f.l.over.gone(s)
	return true
}

// found lists what a find command chooses.
func (l *looker) found(f *judge.Find, t target, v verb) (out []target) {
	l.tally(v, func(y *tally) { y.upto = y.upto || loose(f) })
	var down func(s spot, seen string, depth int) bool
	down = func(s spot, seen string, depth int) bool {
		if fits(f, s, seen, depth) {
			out = append(out, target{spot: s, seen: seen, way: in})
		}
		if !s.isDir() || f.MaxDepth >= 0 && depth >= f.MaxDepth {
			return true
		}
		return depth < maxDepth && l.children(s, func(c spot) bool { return down(c, path.Join(seen, c.name()), depth+1) })
	}
	if !down(t.spot, t.seen, 0) {
		l.tally(v, func(y *tally) { y.more = true })
	}
	return out
}

// loose: fewer may be chosen than fit here. Where find looks is written in its
// own way in what -path is held against.
func loose(f *judge.Find) bool {
	return len(f.Others) > 0 || slices.ContainsFunc(f.Paths, func(p string) bool { return !strings.HasPrefix(p, "*") })
}

// fits tells whether find's tests choose s.
func fits(f *judge.Find, s spot, seen string, depth int) bool {
	name := path.Base(seen)
	if depth < f.MinDepth || f.MaxDepth >= 0 && depth > f.MaxDepth {
		return false
	}
	any := func(patterns []string, is func(string) bool) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, is)
	}
	// In find a star fits dots and slashes, too.
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") }
	return any(f.Names, func(p string) bool { return matches(p, name) }) &&
		any(f.FoldNames, func(p string) bool { return matches(strings.ToLower(p), strings.ToLower(name)) }) &&
		any(f.Paths, func(p string) bool {
			return matches(flat(p), flat(seen)) || matches("*"+flat("/"+strings.TrimPrefix(p, "./")), flat(seen))
		}) &&
		(f.Types == "" || strings.ContainsRune(f.Types, letter(s.node.mode)))
}

// matches is true for a pattern that can't be read: too many is the safe side.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// letter is find's for a type of file.
func letter(m fs.FileMode) rune {
	switch m.Type() {
	case 0:
		return 'f'
	case fs.ModeDir:
		return 'd'
	case fs.ModeSymlink:
		return 'l'
	case fs.ModeNamedPipe:
		return 'p'
	case fs.ModeSocket:
		return 's'
	case fs.ModeDevice | fs.ModeCharDevice:
		return 'c'
	}
	return 'b'
}
