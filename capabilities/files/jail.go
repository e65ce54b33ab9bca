package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// maxLinks is how many links one name may pass, as in Linux.
const maxLinks = 40

// jail is what one request may touch: the session's folder and its tmp. The
// kernel side of it is os.Root, which never leaves its directory whatever is
// swapped underneath it. The walk in resolve comes before it, so that links
// work that os.Root refuses although they stay inside: absolute ones, and
// those written for the view from a container.
type jail struct {
	session *capabilities.Session
	folder  *base
	tmpBase *base // nil until it is needed
	// notes are where a run's changes are noted, made what it noted of folders;
	// nil where nothing is.
	notes capabilities.Notes
	made  map[string]capabilities.Change
}

// base is one directory that may be touched, with all below it.
type base struct {
	root *os.Root
	real string // absolute, canonical
	tmp  bool
}

// openJail checks that the folder is still the one that was chosen.
func openJail(s *capabilities.Session) (*jail, error) {
	root, err := os.OpenRoot(s.Folder + "/") // with the slash the system waits for no pipe in the folder's place
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, wire.Wrap(err, wire.CodeForbidden, "This computer does not let the program into the session's folder %s any more.", shown(s.Folder))
		}
		return nil, folderGone(err, s.Folder)
	}
	j := &jail{session: s, folder: &base{root: root, real: s.Folder}}
	n, err := j.folder.lstat(".")
	if err != nil || !n.id.Same(s.FolderID) {
		root.Close()
		return nil, folderGone(err, s.Folder)
	}
	return j, nil
}

func folderGone(cause error, folder string) error {
	return wire.Wrap(cause, wire.CodeChanged, "The session's folder %s is not there any more: it was moved, replaced or deleted. Open a new session.", shown(folder))
}

func (j *jail) close() {
	j.folder.root.Close()
	if j.tmpBase != nil {
		j.tmpBase.root.Close()
	}
}

func (j *jail) tmp() (*base, error) {
	if j.tmpBase == nil {
		root, err := os.OpenRoot(j.session.Tmp)
		if err != nil {
			return nil, wire.Wrap(err, wire.CodePathNotFound, "The session's /tmp is not there.")
		}
		j.tmpBase = &base{root: root, real: j.session.Tmp, tmp: true}
	}
	return j.tmpBase, nil
}

// place is where a name leads.
type place struct {
	base *base
	// rel is free of links, slash-separated; "." is the base itself.
	rel string
	// missing is how many of its last components are not there. With 0 node
	// says what is.
	missing int
	node    node
	// via are the places of the links that were passed, each with what
	// followed it: other programs may know the file by those names.
	via []place
}

// key names a place in capabilities.Made, in rules, and to people.
func (p place) key() string {
	switch {
	case p.base.tmp && p.rel == ".":
		return tmpAlias
	case p.base.tmp:
		return tmpAlias + "/" + escaped(p.rel)
	}
	return escaped(p.rel)
}

func (p place) exists() bool  { return p.missing == 0 }
func (p place) isRoot() bool  { return p.rel == "." }
func (p place) dir() string   { return path.Dir(p.rel) }
func (p place) name() string  { return path.Base(p.rel) }
func (p place) abs() string   { return filepath.Join(p.base.real, filepath.FromSlash(p.rel)) }
func (p place) isDir() bool   { return p.exists() && p.node.mode.IsDir() }
func (p place) isLink() bool  { return p.exists() && p.node.mode&fs.ModeSymlink != 0 }
func (p place) regular() bool { return p.exists() && p.node.mode.IsRegular() }
func (p place) child(name string) place {
	return place{base: p.base, rel: path.Join(p.rel, name)}
}

// errNotFolder: a component before the last is neither a folder nor a link to
// one, so nothing can be below it.
var errNotFolder = errors.New("a component is not a folder")

// resolve follows a name to where it leads, also through its last component
// when follow is set. Every step that would leave the jail is refused, for
// what does not exist yet too.
func (j *jail) resolve(a asked, follow bool) (place, error) {
	p := place{base: a.base}
	var done []string
	todo := a.rest
	links := 0
	for len(todo) > 0 {
		if len(done)+len(todo) > maxDepth {
			return place{}, wire.Errorf(wire.CodePathChars, "A path of %d folders is too deep: at most %d are allowed.", len(done)+len(todo), maxDepth)
		}
		c := todo[0]
		todo = todo[1:]
		if c == ".." {
			if len(done) > 0 {
				done = done[:len(done)-1]
				continue
			}
			// Above the base: its real parent, from where the rest may come
			// back in.
			var err error
			above := path.Dir(p.base.real) + "/" + strings.Join(todo, "/")
			if p.base, todo, err = j.jump(p.base, above, a.text); err != nil {
				return place{}, err
			}
			continue
		}
		done = append(done, c)
		rel := strings.Join(done, "/")
		fi, err := p.base.root.Lstat(rel)
		if err != nil {
			if raw, is := unescaped(c); is {
				as := path.Join(path.Dir(rel), raw)
				if there, rerr := p.base.root.Lstat(as); rerr == nil {
					done[len(done)-1], rel, fi, err = raw, as, there, nil
				}
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all := append(done, todo...)
			if slices.Contains(todo, "..") {
				// What is not there has no parent to go back to, so the name
				// is taken as text.
				return j.resolve(asked{text: a.text, base: p.base, rest: split(path.Join(all...))}, follow)
			}
			p.missing, p.rel = 1+len(todo), strings.Join(all, "/")
			return p, nil
		case err != nil:
			return place{}, fileError(err, a.text)
		case fi.Mode()&fs.ModeSymlink != 0 && (follow || len(todo) > 0):
			if links++; links > maxLinks {
				return place{}, wire.Errorf(wire.CodePathKind, "%s cannot be followed: its links go round in circles.", shown(a.text))
			}
			p.via = append(p.via, place{base: p.base, rel: path.Join(append([]string{rel}, todo...)...)})
			target, err := p.base.root.Readlink(rel)
			if err != nil {
				return place{}, fileError(err, a.text)
			}
			done = done[:len(done)-1]
			if strings.HasPrefix(target, "/") {
				done = nil
				var rest []string
				if p.base, rest, err = j.jump(p.base, target, a.text); err != nil {
					return place{}, err
				}
				todo = append(rest, todo...)
			} else {
				todo = append(split(target), todo...)
			}
		case len(todo) > 0 && !fi.IsDir():
			return place{}, wire.Wrap(errNotFolder, wire.CodePathKind, "%s is not a folder, so nothing can be in it.", shown(a.in(p.base, rel)))
		}
	}
	p.rel = "."
	if len(done) > 0 {
		p.rel = strings.Join(done, "/")
	}
	n, err := p.base.lstat(p.rel)
	if err != nil {
		return place{}, fileError(err, a.text)
	}
	p.node = n
	return p, nil
}

// open opens a folder that resolve found, free of links, to work in. It goes
// down one component at a time and makes sure of each that what was opened is
// the folder of that name and not one behind a link that took its place: what
// a card said of a path holds for where the change is made.
func (b *base) open(rel string) (*os.Root, error) {
	dir, err := b.root.OpenRoot(".")
	if err != nil || rel == "." {
		return dir, err
	}
	for _, c := range strings.Split(rel, "/") {
		next, err := openReal(dir, c)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// openReal opens the folder name in dir, never through a link.
func openReal(dir *os.Root, name string) (*os.Root, error) {
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !want.IsDir() {
		return nil, consent.ErrChanged
	}
	next, err := openFolder(dir, name)
	if err != nil {
		return nil, err
	}
	if got, err := next.Stat("."); err != nil || !os.SameFile(got, want) {
		next.Close()
		return nil, consent.ErrChanged
	}
	return next, nil
}

// jump takes the walk from a base to an absolute path. A link to /tmp that was
// made in a container means the session's own, one that the person made means
// the computer's: it counts as the session's where the name is there.
func (j *jail) jump(from *base, target, text string) (*base, []string, error) {
	b, _, rest, err := j.absolute(target)
	if err != nil {
		return nil, nil, err
	}
	if b != nil && b.tmp && b != from && len(rest) > 0 {
		if _, err := b.root.Lstat(rest[0]); err != nil {
			b = nil
		}
	}
	if b == nil {
		return nil, nil, outside(text)
	}
	return b, rest, nil
}

// at parses and resolves a name.
func (j *jail) at(name string, follow bool) (asked, place, error) {
	a, err := j.parse(name)
	if err != nil {
		return asked{}, place{}, err
	}
	p, err := j.resolve(a, follow)
	return a, p, err
}

// own tells whether the session itself made what is at p: known from its file
// requests, or in its own /tmp.
func (j *jail) own(p place, n node) bool {
	return p.base.tmp || j.session.Made.Has(p.key(), n.id)
}

// shown is a name as it stands in a sentence.
func shown(name string) string { return consent.Visible(name, false) }
