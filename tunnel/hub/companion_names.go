package hub

import (
	"path"
	"strings"
)

// home is what programs call the session's folder.
const home = "/home/user"

// realName is the computer's own path for a name that a program uses, in a
// session whose folder is root: the computer takes absolute paths alone, and
// would look for others beside itself. Whether it lies inside is for the
// computer to say.
func realName(root, name string) string {
	sep := "/"
	if windowsPath(root) {
		sep = `\`
	}
	var rest string
	switch {
	case name == "" || name == "~" || name == home:
	case name == root || strings.HasPrefix(name, strings.TrimSuffix(root, sep)+sep):
		return name
	case strings.HasPrefix(name, home+"/"):
		rest = name[len(home)+1:]
	case strings.HasPrefix(name, "~/"):
		rest = name[2:]
	case strings.HasPrefix(name, "/") || windowsPath(name):
		return name
	default:
		rest = name
	}
	if rest = strings.Trim(rest, "/"); rest == "" {
		return root
	}
	if sep == `\` {
		rest = strings.ReplaceAll(rest, "/", sep)
	}
	return strings.TrimSuffix(root, sep) + sep + rest
}

func windowsPath(p string) bool {
	return len(p) > 1 && p[1] == ':' || strings.HasPrefix(p, `\\`)
}

// relative is a path below dir, with slashes; "" when it is not below it.
func relative(dir, p string) string {
	if windowsPath(dir) {
		dir, p = strings.ReplaceAll(dir, `\`, "/"), strings.ReplaceAll(p, `\`, "/")
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	if !ok {
		return ""
	}
	return rest
}

// baseName is the last element of a name that a program uses.
func baseName(name string) string {
	if windowsPath(name) {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	return path.Base(name)
}
