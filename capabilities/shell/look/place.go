package look

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// base is a directory that the session may look at.
type base struct {
	real string
	pre  string // before its names in keys: "" for the folder, "/tmp/"
	root *os.Root
	own  bool // all of it belongs to the session
}

// key names rel in b, as capabilities.Made does.
func (b *base) key(rel string) string {
	if rel == "." {
		return strings.TrimSuffix(b.pre, "/")
	}
	return b.pre + rel
}

// spot is a name, looked up. Where it is and where it lies on the disk now
// differ for what this line moves before.
type spot struct {
	base *base
	rel  string // "." is the base itself
	// on and at are where it lies on the disk.
	on   *base
	at   string
	node node
	// there: it exists now. away: it does, and the line has moved it elsewhere
	// by then. made: the line makes it.
	there, away bool
	made        made
	denied      bool // it can't be looked at
}

func (s spot) key() string  { return s.base.key(s.rel) }
func (s spot) disk() string { return s.on.key(s.at) }
func (s spot) isDir() bool {
	return s.there && s.node.mode.IsDir() || !s.there && (s.made == madeDir || s.made == madeTree)
}
func (s spot) name() string { return path.Base(s.rel) }

// holds tells whether what lies there can be held by who looks: pipes and
// devices can't, nor a file that may not be read.
func (s spot) holds() bool {
	switch mode := s.node.mode; {
	case mode.IsDir(), s.node.isLink(), mode.IsRegular() && mode&0o444 == 0o444:
		return true
	case !mode.IsRegular():
		return false
	}
	f, err := s.on.root.OpenFile(s.at, readFlags, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// made is what a line makes of a name.
type made int

const (
	madeFile   made = iota + 1
	madeDir         // with nothing in it but what the line puts there
	madeTree        // a folder with contents that are not looked at
	madeUnsure      // a link, or it may be one: it may lead anywhere
)

// overlay is what the earlier parts of a line change.
type overlay struct {
	deleted map[string]bool // by disk key
	away    map[string]bool // by disk key
	moved   map[string]spot // by key: what is there then
	made    map[string]made // by key
	// fog are the keys of folders that got names which are not known.
	fog []string
}

// makes notes that the line makes what is at key.
func (o *overlay) makes(s spot, m made) {
	if !s.there || s.away {
		o.made[s.key()] = m
	}
}

// gone notes that what is at s is there no longer.
func (o *overlay) gone(s spot) {
	k := s.key()
	for m := range o.made {
		if m == k || strings.HasPrefix(m, k+"/") {
			delete(o.made, m)
		}
	}
	for m, from := range o.moved {
		if m == k || strings.HasPrefix(m, k+"/") {
			o.deleted[from.disk()] = true
			delete(o.moved, m)
		}
	}
	if s.there {
		o.deleted[s.disk()] = true
	}
}

// lost tells whether s, or a folder that it lies in, is there no longer.
func (o *overlay) lost(s spot) bool {
	if len(o.deleted) == 0 || !s.there {
		return false
	}
	for at := s.at; ; at = path.Dir(at) {
		if o.deleted[s.on.key(at)] {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// foggy tells whether s may be there for all that is known.
func (o *overlay) foggy(key string) bool {
	return slices.ContainsFunc(o.fog, func(f string) bool { return f == "" || strings.HasPrefix(key, f+"/") })
}

// way is how a lookup went.
type way int

const (
	in      way = iota
	outside     // of what the session may see
	unsure      // known only at run time
)

// locate finds the base of a path as the command sees it.
func (l *looker) locate(seen string) (*base, string, bool) {
	real, ok := l.o.Real(seen)
	if !ok {
		return nil, "", false
	}
	for _, b := range l.bases {
		if real == b.real {
			return b, ".", true
		}
		if rest, ok := strings.CutPrefix(real, b.real+"/"); ok {
			return b, rest, true
		}
	}
	return nil, "", false
}

func (l *looker) top(b *base) spot {
	s := spot{base: b, rel: ".", on: b, at: "."}
	if d, err := b.root.OpenFile(".", handleFlags, 0); err == nil {
		s.node, err = lstatIn(d, "")
		s.there = err == nil
		d.Close()
	}
	return s
}

// resolve looks a path up. A link at its end is followed with follow only;
// those on the way always are, as far as they stay inside.
func (l *looker) resolve(seen string, follow bool) (spot, way) {
	b, rel, ok := l.locate(seen)
	if !ok {
		return spot{}, outside
	}
	above := strings.TrimSuffix(seen, "/"+rel)
	if rel == "." {
		above = ""
	}
	return l.walkFrom(above, []spot{l.top(b)}, strings.Split(rel, "/"), follow)
}

// walkTo goes on from the last of trail.
func (l *looker) walkTo(trail []spot, todo []string, follow bool) (spot, way) {
	return l.walkFrom("", trail, todo, follow)
}

// walkFrom is walkTo where the top of trail has the name above, so that a name
// that leads out of it and back in is found: ../user/a in /home/user.
func (l *looker) walkFrom(above string, trail []spot, todo []string, follow bool) (spot, way) {
	trail = slices.Clone(trail)
	for links := 0; len(todo) > 0; {
		c := todo[0]
		todo = todo[1:]
		cur := trail[len(trail)-1]
		switch c {
		case "", ".":
			continue
		case "..":
			if len(trail) == 1 {
				if todo = backIn(above, todo); todo == nil {
					return spot{}, outside
				}
				continue
			}
			trail = trail[:len(trail)-1]
			continue
		}
		if !l.step() {
			return spot{}, unsure
		}
		s := l.child(cur, c)
		if s.denied {
			return s, unsure
		}
		if s.there && !s.away && s.node.isLink() && (len(todo) > 0 || follow) {
			target, err := s.on.root.Readlink(s.at)
			if links++; err != nil || links > 40 { // as in Linux
				return s, unsure
			}
			l.print.add("link", s.disk(), target)
			if path.IsAbs(target) {
				b, rel, ok := l.locate(path.Clean(target))
				if !ok {
					return s, outside
				}
				trail, target, above = []spot{l.top(b)}, rel, ""
			}
			todo = append(strings.Split(target, "/"), todo...)
			continue
		}
		if s.made == madeUnsure && !(s.there && !s.away) && (len(todo) > 0 || follow) {
			return s, unsure
		}
		trail = append(trail, s)
	}
	return trail[len(trail)-1], in
}

// backIn is what is left of a way that has gone up from above, when it comes
// back to it; nil when it does not.
func backIn(above string, todo []string) []string {
	way := strings.Split(strings.Trim(above, "/"), "/")
	n := 1
	for ; len(todo) > 0 && (todo[0] == ".." || todo[0] == "." || todo[0] == ""); todo = todo[1:] {
		if todo[0] == ".." {
			n++
		}
	}
	if above == "" || n > len(way) || len(todo) < n || !slices.Equal(todo[:n], way[len(way)-n:]) {
		return nil
	}
	return append([]string{"."}, todo[n:]...)
}

// child looks up one name.
func (l *looker) child(dir spot, name string) spot {
	s := below(dir, name)
	if m, ok := l.over.moved[s.key()]; ok {
		m.base, m.rel, m.away = s.base, s.rel, false
		return m
	}
	s.made = l.over.made[s.key()]
	if s.made == 0 && (dir.made == madeTree || dir.made == madeUnsure || l.over.foggy(s.key())) {
		s.made = madeUnsure
	}
	if !dir.there || !dir.node.mode.IsDir() {
		return s
	}
	d, err := dir.on.root.OpenFile(dir.at, handleFlags, 0)
	if err != nil {
		s.denied = !errors.Is(err, fs.ErrNotExist)
		return s
	}
	defer d.Close()
	l.fill(&s, d)
	return s
}

func below(dir spot, name string) spot {
	return spot{base: dir.base, rel: path.Join(dir.rel, name), on: dir.on, at: path.Join(dir.at, name)}
}

// fill looks at what s is in d.
func (l *looker) fill(s *spot, d *os.File) {
	n, err := lstatIn(d, path.Base(s.at))
	switch k := s.disk(); {
	case errors.Is(err, fs.ErrNotExist) || l.over.deleted[k]:
	case err != nil:
		s.denied = true
	default:
		s.node, s.there, s.away = n, true, l.over.away[k]
	}
}

// names lists what is in dir by then, in the order of the disk; ok is false
// when it could not be read to its end.
func (l *looker) names(dir spot) (names []string, ok bool) {
	ok = l.eachName(dir, func(_ *os.File, batch []string) bool {
		names = append(names, batch...)
		return true
	})
	return append(names, l.added(dir, names)...), ok
}

// eachName reads the names on the disk, a few hundred at a time.
func (l *looker) eachName(dir spot, f func(d *os.File, batch []string) bool) bool {
	if !dir.there || !dir.node.mode.IsDir() {
		return true
	}
	d, err := dir.on.root.OpenFile(dir.at, folderFlags, 0)
	if err != nil {
		return false
	}
	defer d.Close()
	if n, err := lstatIn(d, ""); err != nil || !n.id.Same(dir.node.id) {
		return false // another one has taken its place
	}
	for {
		batch, err := d.Readdirnames(256)
		if !l.read(len(batch)) {
			return false
		}
		if !f(d, batch) {
			return false
		}
		if err == io.EOF || err == nil && len(batch) == 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// added are the names that the line puts into dir.
func (l *looker) added(dir spot, have []string) []string {
	var out []string
	take := func(key string) {
		if path.Dir(key) != path.Clean(dir.key()) {
			return
		}
		if n := path.Base(key); !slices.Contains(have, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	for k := range l.over.moved {
		take(k)
	}
	for k := range l.over.made {
		take(k)
	}
	slices.Sort(out)
	return out
}

// children looks at everything in dir. What the line has moved away before is
// among it, marked.
func (l *looker) children(dir spot, f func(spot) bool) bool {
	var all []string
	var dirs []spot
	ok := l.eachName(dir, func(d *os.File, batch []string) bool {
		all = append(all, batch...)
		for _, n := range batch {
			if !l.step() {
				return false
			}
			s := below(dir, n)
			if m, ok := l.over.moved[s.key()]; ok {
				m.base, m.rel, m.away = s.base, s.rel, false
				dirs = append(dirs, m)
				continue
			}
			s.made = l.over.made[s.key()]
			if l.fill(&s, d); s.denied {
				return false
			}
			if s.there && s.node.mode.IsDir() {
				// Later, with the directory closed.
				dirs = append(dirs, s)
			} else if !f(s) {
				return false
			}
		}
		return true
	})
	if !ok {
		return false
	}
	for _, s := range dirs {
		if !f(s) {
			return false
		}
	}
	if len(l.over.moved)+len(l.over.made) == 0 {
		return true
	}
	for _, n := range l.added(dir, all) {
		if s := l.child(dir, n); !f(s) {
			return false
		}
	}
	return true
}

// tree calls f for s and everything below it, links not followed.
func (l *looker) tree(s spot, f func(spot)) bool { return l.treeDown(s, f, 0) }

func (l *looker) treeDown(s spot, f func(spot), depth int) bool {
	f(s)
	if !s.isDir() {
		return true
	}
	if depth > maxDepth {
		return false
	}
	return l.children(s, func(c spot) bool { return l.treeDown(c, f, depth+1) })
}
