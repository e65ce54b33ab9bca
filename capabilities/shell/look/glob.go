package look

import (
	"path"
	"slices"
	"strings"
)

// expand spells a pattern out as bash does: a name that begins with a dot is
// fitted by a pattern that does, links to folders on the way are followed, and
// a pattern that fits nothing stands for itself.
func (l *looker) expand(pattern string, follow bool) []target {
	comps := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	n := 0
	for n < len(comps) && !strings.ContainsAny(comps[n], `*?[\`) {
		n++
	}
	if n == len(comps) {
		s, w := l.resolve(pattern, follow)
		return []target{{spot: s, seen: pattern, way: w}}
	}
	dir := "/" + strings.Join(comps[:n], "/")
	s, w := l.resolve(dir, true)
	if w != in {
		return []target{{spot: s, seen: dir, way: w}}
	}
	g := &glob{l: l, follow: follow}
	g.down(s, dir, comps[n:], 0)
	if len(g.out) == 0 {
		s, w := l.resolve(pattern, follow)
		return []target{{spot: s, seen: pattern, way: w}}
	}
	slices.SortFunc(g.out, func(a, b target) int { return strings.Compare(a.seen, b.seen) })
	return g.out
}

type glob struct {
	l      *looker
	follow bool
	linked bool // on the way down, through a link
	out    []target
}

func (g *glob) down(dir spot, seen string, comps []string, depth int) {
	if depth > maxDepth {
		return
	}
	c, rest := comps[0], comps[1:]
	if c == "**" {
		// No folder, or any number of them; links are not gone through.
		if len(rest) > 0 {
			g.down(dir, seen, rest, depth+1)
		} else if depth > 0 {
			g.out = append(g.out, target{spot: dir, seen: seen, way: in, linked: g.linked})
		}
		g.each(dir, seen, func(s spot, seen string) {
			switch {
			case s.isDir() && !s.node.isLink():
				g.down(s, seen, comps, depth+1)
			case len(rest) == 0:
				g.end(dir, s, seen)
			}
		}, "*")
		return
	}
	g.each(dir, seen, func(s spot, seen string) {
		if len(rest) == 0 {
			g.end(dir, s, seen)
			return
		}
		d, w := g.l.walkTo(g.trail(dir), []string{s.name()}, true)
		switch {
		case w == in && d.isDir():
			was := g.linked
			g.linked = was || s.node.isLink()
			g.down(d, seen, rest, depth+1)
			g.linked = was
		case w != in && s.node.isLink():
			// It may lead to a folder somewhere else.
			g.out = append(g.out, target{spot: d, seen: seen, way: w, linked: g.linked})
		}
	}, c)
}

func (g *glob) end(dir, s spot, seen string) {
	t := target{spot: s, seen: seen, way: in, linked: g.linked}
	if g.follow {
		t.spot, t.way = g.l.walkTo(g.trail(dir), []string{s.name()}, true)
	}
	g.out = append(g.out, t)
}

// trail is dir with what is above it, for links that lead upwards.
func (g *glob) trail(dir spot) []spot {
	trail := []spot{g.l.top(dir.base)}
	if dir.rel == "." {
		return trail
	}
	for c := range strings.SplitSeq(dir.rel, "/") {
		trail = append(trail, g.l.child(trail[len(trail)-1], c))
	}
	return trail
}

// each calls f for what in dir fits c.
func (g *glob) each(dir spot, seen string, f func(spot, string), c string) {
	names, ok := g.l.names(dir)
	if !ok && !g.l.more() {
		g.out = append(g.out, target{spot: dir, seen: seen, way: unsure, linked: g.linked})
		return
	}
	slices.Sort(names)
	for _, n := range names {
		if strings.HasPrefix(n, ".") && !strings.HasPrefix(strings.TrimPrefix(c, `\`), ".") {
			continue
		}
		fits, err := path.Match(c, n)
		if err != nil {
			g.out = append(g.out, target{spot: dir, seen: path.Join(seen, c), way: unsure, linked: g.linked})
			return
		}
		if !fits {
			continue
		}
		if !g.l.step() {
			g.out = append(g.out, target{spot: dir, seen: path.Join(seen, c), way: unsure, linked: g.linked})
			return
		}
		if s := g.l.child(dir, n); s.there && !s.away || s.made != 0 || s.denied {
			f(s, path.Join(seen, n))
		}
	}
}
