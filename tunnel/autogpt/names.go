package autogpt

import (
	"path"
	"regexp"
	"strings"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// place is a chat's folder. A hub names real absolute paths; below the folder
// they are handed on as relative ones, so that a folder which lies in the
// directory that containers call their home is not mistaken for it. Names that
// the session has besides (/home/user, ~, /tmp) are handed on as they are:
// contained commands print them.
type place struct{ session, root string }

// to is a path for the handler.
func (p place) to(name string) string {
	if rel, ok := below(path.Clean(p.root), name); ok {
		return rel
	}
	return name
}

// below is name from root, "." for root itself. ".." components are left to
// the handler, which knows the links.
func below(root, name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	rest = strings.TrimLeft(rest, "/")
	if rest == "" {
		return ".", true
	}
	return rest, true
}

// aliases are names for the session's folder.
var aliases = []string{"/home/user", "~"}

// from is a path of a reply as the hub knows it: real and absolute.
func (p place) from(name string) string {
	if !strings.HasPrefix(name, "/") && name != "~" && !strings.HasPrefix(name, "~/") {
		return path.Join(p.root, name)
	}
	if _, ok := below(p.root, name); ok {
		return name
	}
	for _, a := range aliases {
		if rel, ok := below(a, name); ok {
			return path.Join(p.root, rel)
		}
	}
	return name
}

// cwd is a working directory for the handler. A command has the rights of its
// containment wherever it starts; still it does not start outside the folder.
func (p place) cwd(name string) (string, error) {
	rel := p.to(name)
	for _, a := range aliases {
		if r, ok := below(a, rel); ok {
			rel = r
		}
	}
	if strings.HasPrefix(rel, "/") || !strings.HasPrefix(path.Clean("/in/"+rel)+"/", "/in/") {
		return "", wire.Errorf(msg.CodePathOutside, "The working directory leads outside the session's folder, and this session may work only inside it.")
	}
	return rel, nil
}

// globPattern makes an expression of a shell pattern on a base name: *, ?,
// [..] and [!..], without an escape character.
func globPattern(glob string) *regexp.Regexp {
	glob = strings.ToValidUTF8(glob, "\ufffd")
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		switch c := glob[i]; c {
		case '*':
			b.WriteString(`.*`)
			i++
		case '?':
			b.WriteString(`.`)
			i++
		case '[':
			set, n := globSet(glob[i:])
			b.WriteString(set)
			i += n
		default:
			n := strings.IndexAny(glob[i:], "*?[")
			if n < 0 {
				n = len(glob) - i
			}
			b.WriteString(regexp.QuoteMeta(glob[i : i+n]))
			i += n
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return regexp.MustCompile(`\A` + regexp.QuoteMeta(glob) + `\z`)
	}
	return re
}

// globSet is [..] at the beginning of s, and its length; a bracket that is not
// closed is one itself.
func globSet(s string) (string, int) {
	i := 1
	if i < len(s) && s[i] == '!' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++ // first in the set, it is a member
	}
	end := strings.IndexByte(s[i:], ']')
	if end < 0 {
		return `\[`, 1
	}
	inner := s[1 : i+end]
	not := ""
	if strings.HasPrefix(inner, "!") {
		not, inner = "^", inner[1:]
	}
	inner = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(inner)
	return "[" + not + inner + "]", i + end + 1
}
