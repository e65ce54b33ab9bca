package shell

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// gitKeys are the settings of the person's .gitconfig that a container sees;
// a section with an empty list is taken whole. Nothing here names a program, a
// file, an address or a secret.
var gitKeys = map[string][]string{
	"user":     {"name", "email"},
	"author":   {"name", "email"},
	"core":     {"autocrlf", "eol", "safecrlf", "ignorecase", "filemode", "quotepath", "whitespace", "abbrev", "commentchar"},
	"init":     {"defaultbranch"},
	"pull":     {"rebase", "ff"},
	"push":     {"default", "autosetupremote", "followtags"},
	"merge":    {"ff", "conflictstyle"},
	"rebase":   {"autosquash", "autostash", "updaterefs"},
	"fetch":    {"prune", "prunetags"},
	"branch":   {"sort", "autosetuprebase", "autosetupmerge"},
	"tag":      {"sort"},
	"status":   {"short", "branch", "showuntrackedfiles"},
	"log":      {"date", "decorate", "abbrevcommit"},
	"color":    nil,
	"column":   nil,
	"advice":   nil,
	"rerere":   {"enabled"},
	"commit":   {"verbose", "cleanup"},
	"diff":     {"algorithm", "renames", "colormoved", "mnemonicprefix"},
	"checkout": {"defaultremote"},
}

// gitConfig is the filtered copy. A value that goes on over a line's end, and
// every section with a subsection, is left out.
func gitConfig(home string) []byte {
	var out bytes.Buffer
	out.WriteString("[safe]\n\tdirectory = *\n")
	f, err := os.Open(filepath.Join(home, ".gitconfig"))
	if err != nil {
		f, err = os.Open(filepath.Join(home, ".config/git/config"))
	}
	if err != nil {
		return out.Bytes()
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, 64<<10))
	section, goesOn := "", false
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if goesOn {
			goesOn = strings.HasSuffix(line, `\`)
			continue
		}
		if strings.HasSuffix(line, `\`) {
			goesOn = true
			continue
		}
		if strings.HasPrefix(line, "[") {
			name, rest, closed := strings.Cut(line[1:], "]")
			section = strings.ToLower(strings.TrimSpace(name))
			if !closed || strings.TrimSpace(rest) != "" {
				section = ""
			}
			continue
		}
		keys, known := gitKeys[section]
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !known || !ok || !letters(key) {
			continue
		}
		take := keys == nil
		for _, k := range keys {
			take = take || strings.EqualFold(k, key)
		}
		if take {
			out.WriteString("[" + section + "]\n\t" + key + " =" + value + "\n")
		}
	}
	return out.Bytes()
}

func letters(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return s != ""
}
