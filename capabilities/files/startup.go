package files

import (
	"io"
	"os"
	"path"
	"strings"
)

// Names that other programs run, or take commands from, without being asked:
// writing one is running something later. The list is of names, not of kinds:
// a Makefile or a package.json is run by somebody who means to.
//
// startupFiles are files by their path from any folder; startupDirs are
// folders of which everything counts.
var (
	startupFiles = fold(
		".git", ".git/config", ".git/config.worktree", ".git/commondir",
		".gitconfig", ".config/git/config",
		".envrc",
		".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".config/fish/config.fish",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment",
		".ssh/config", ".ssh/rc", ".ssh/authorized_keys",
		".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json",
		".devcontainer.json", ".devcontainer/devcontainer.json", ".zed/tasks.json", ".zed/settings.json",
		".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".emacs.d/init.el", ".dir-locals.el",
		".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".claude/settings.json", ".claude/settings.local.json",
	)
	startupDirs = fold(
		".git/hooks", ".husky", ".idea",
		".config/fish/conf.d", ".config/autostart", ".config/systemd/user", ".config/environment.d",
	)
)

func fold(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// folded makes names equal that a case-folding file system takes for one. It
// is used everywhere: where the file system does not fold, a question more is
// asked for a name that nobody uses.
func folded(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// startup tells whether other programs may run what is at p, going by its name
// alone. The session's /tmp is looked into by nobody else.
func startup(p place) bool {
	if p.base.tmp {
		return false
	}
	parts := strings.Split(folded(p.rel), "/")
	for i := range parts {
		from := parts[i:]
		if startupFiles[strings.Join(from, "/")] {
			return true
		}
		for n := 1; n <= min(3, len(from)); n++ {
			if startupDirs[strings.Join(from[:n], "/")] {
				return true
			}
		}
		// The git folders of submodules and worktrees.
		if from[0] == ".git" && len(from) > 2 && (from[1] == "modules" || from[1] == "worktrees") {
			last := from[len(from)-1]
			if strings.HasPrefix(last, "config") || strings.Contains(strings.Join(from, "/"), "/hooks") {
				return true
			}
		}
	}
	return false
}

// startupName gives the name by which other programs would run what a request
// changes at p: its own, that of a link it was reached through, or that of a
// start-up name in a folder above which is a link to it, or the same file. ""
// when none. Links in folders beside are not looked for.
func (j *jail) startupName(p place) string {
	for _, q := range append([]place{p}, p.via...) {
		if startup(q) {
			return q.key()
		}
	}
	if p.base.tmp || p.isRoot() {
		return ""
	}
	for dir := p.dir(); ; dir = path.Dir(dir) {
		if name := j.startupLink(dir, p); name != "" {
			return name
		}
		if dir == "." {
			return ""
		}
	}
}

// startupLink looks whether a start-up name below dir leads to p.
func (j *jail) startupLink(dir string, p place) string {
	d, err := handle(j.folder.root, dir)
	if err != nil {
		return ""
	}
	defer d.Close()
	for first, names := range startupFirst {
		if _, err := lstatIn(d, first); err != nil {
			continue
		}
		for _, name := range names {
			full := path.Join(dir, name)
			if j.leadsTo(full, p) {
				return full
			}
			if !startupDirs[name] {
				continue
			}
			hit, seen := "", 0
			_ = eachEntry(j.folder.root, full, func(_ *os.File, entry string) error {
				if seen++; seen > maxHooks {
					return io.EOF
				}
				if q := path.Join(full, entry); j.leadsTo(q, p) {
					hit = q
					return io.EOF
				}
				return nil
			})
			if hit != "" {
				return hit
			}
		}
	}
	return ""
}

// maxHooks is how many names of one start-up folder are followed.
const maxHooks = 200

// startupFirst has the start-up names by their first component, so that one
// look tells whether any of them is there.
var startupFirst = func() map[string][]string {
	m := map[string][]string{}
	for _, set := range []map[string]bool{startupFiles, startupDirs} {
		for name := range set {
			first, _, _ := strings.Cut(name, "/")
			m[first] = append(m[first], name)
		}
	}
	return m
}()

// leadsTo tells whether name is a link to p or to a folder above it, or the
// same file under another name.
func (j *jail) leadsTo(name string, p place) bool {
	q, err := j.resolve(asked{text: name, base: j.folder, rest: split(name)}, true)
	if err != nil {
		return false
	}
	if len(q.via) > 0 && q.base == p.base && strings.HasPrefix(p.rel+"/", q.rel+"/") {
		return true
	}
	return q.regular() && p.exists() && q.node.id.Same(p.node.id)
}
