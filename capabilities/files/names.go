package files

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"localpc/capabilities"
	"localpc/tunnel/wire"
)

// The names that stand for the session's places, here and in its containers.
const (
	homeAlias = "/home/user"
	tmpAlias  = "/tmp"
)

// maxName is the longest component that file systems take, in bytes.
const maxName = 255

// maxDepth is how many components a name may have, links followed. Each is
// looked up from the top, so it bounds the work that a name can cause.
const maxDepth = 200

// asked is one name as it came in a request.
type asked struct {
	text string
	base *base
	// rest are the components below the base, ".." still among them.
	rest []string
	// prefix is what replies put before a path below the base: "/home/user",
	// "~", "/tmp", the folder's real path, or "" for a relative name.
	prefix string
}

// parse takes a name apart: "/home/user/…" and "~" are the session's folder,
// whoever else may have that name on this computer; a relative name starts in
// the folder; a real path inside the folder is taken as such; "/tmp/…" is the
// session's own. Anything else is outside.
func (j *jail) parse(name string) (asked, error) {
	if strings.ContainsRune(name, 0) {
		return asked{}, wire.Errorf(wire.CodePathChars, "A file name cannot contain a NUL character.")
	}
	a := asked{text: name, base: j.folder}
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		a.prefix, a.rest = "~", split(name[1:])
	case !strings.HasPrefix(name, "/"):
		a.rest = split(name)
	default:
		var err error
		if a.base, a.prefix, a.rest, err = j.absolute(name); err != nil {
			return asked{}, err
		}
		if a.base == nil {
			return asked{}, outside(name)
		}
	}
	for _, c := range a.rest {
		raw, is := unescaped(c)
		if len(c) > maxName && (!is || len(raw) > maxName) {
			return asked{}, tooLong(c)
		}
	}
	return a, nil
}

// escaped is a name as it goes over the wire: one that is not UTF-8 has \xHH for
// each byte that is none. A request gives it back the same way: where nothing
// has the name as it is written, the one with those bytes is meant.
func escaped(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unescaped is the name that escaped has made c of; false when it made none.
func unescaped(c string) (raw string, ok bool) {
	if !strings.Contains(c, `\x`) {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(c); {
		if strings.HasPrefix(c[i:], `\x`) && len(c) >= i+4 {
			if v, err := strconv.ParseUint(c[i+2:i+4], 16, 8); err == nil && v >= 0x80 {
				b.WriteByte(byte(v))
				i += 4
				continue
			}
		}
		b.WriteByte(c[i])
		i++
	}
	raw = b.String()
	return raw, raw != c && escaped(raw) == c
}

// absolute finds the base that an absolute path lies in; nil when in none.
func (j *jail) absolute(name string) (b *base, prefix string, rest []string, err error) {
	parts := split(name)
	real := split(j.folder.real)
	switch {
	case hasPrefix(parts, split(homeAlias)):
		return j.folder, homeAlias, parts[2:], nil
	case hasPrefix(parts, real):
		return j.folder, j.folder.real, parts[len(real):], nil
	case hasPrefix(parts, split(tmpAlias)):
		b, err := j.tmp()
		return b, tmpAlias, parts[1:], err
	}
	if clean := path.Clean(name); clean != "/"+strings.Join(parts, "/") {
		return j.absolute(clean)
	}
	// The folder under another of its names: through a link above it, or where
	// it is mounted a second time.
	if len(parts) > 0 && (parts[0] == "proc" || parts[0] == "dev" || parts[0] == "sys") {
		return nil, "", nil, nil
	}
	for n := len(parts); n > 0; n-- {
		above := "/" + strings.Join(parts[:n], "/")
		fi, err := os.Stat(above)
		if err != nil {
			continue
		}
		if id, ok := capabilities.FileIDOf(fi); ok && id.Same(j.session.FolderID) {
			return j.folder, above, parts[n:], nil
		}
	}
	return nil, "", nil, nil
}

// split gives the components of a path, without empty ones and ".".
func split(p string) []string {
	var parts []string
	for _, c := range strings.Split(p, "/") {
		if c != "" && c != "." {
			parts = append(parts, c)
		}
	}
	return parts
}

func hasPrefix(parts, prefix []string) bool {
	if len(parts) < len(prefix) {
		return false
	}
	for i := range prefix {
		if parts[i] != prefix[i] {
			return false
		}
	}
	return true
}

// path is rel, below the base that was asked for, in the form of name that was
// asked with.
func (a asked) path(rel string) string {
	rel = escaped(rel)
	switch {
	case rel == "." && a.prefix == "":
		return "."
	case rel == ".":
		return a.prefix
	case a.prefix == "":
		return rel
	}
	return a.prefix + "/" + rel
}

// reply is the name itself, tidied, as replies give it. p is what it turned
// out to be: with ".." in a name only that says where it leads.
func (a asked) reply(p place) string {
	for _, c := range a.rest {
		if c == ".." {
			return a.in(p.base, p.rel)
		}
	}
	if len(a.rest) == 0 {
		return a.path(".")
	}
	return a.path(strings.Join(a.rest, "/"))
}

// in names a path of any base, in the form asked with where that can be.
func (a asked) in(b *base, rel string) string {
	if b == a.base {
		return a.path(rel)
	}
	a.prefix = homeAlias
	if b.tmp {
		a.prefix = tmpAlias
	}
	return a.path(rel)
}
