package shell

import (
	"path"
	"strings"
	"time"

	"localpc/capabilities"
)

// Bounds of one listing of a session's folder and temporary files.
const (
	maxListed   = 20_000
	maxListTime = 200 * time.Millisecond
)

// listing is what was in the session's folder at one moment.
type listing struct {
	complete bool
	files    map[string]listed // by path as Made keys it
}

type listed struct {
	id      capabilities.FileID
	size    uint64
	changed int64 // ctime, which a program can't set, in nanoseconds
	dir     bool
}

// startupNames are what other programs run on their own when they find it in
// a folder, by the end of a path.
var startupNames = []string{".git/config", ".git/config.worktree", ".git/commondir", ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout",
	".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".ssh/config", ".ssh/rc", ".ssh/authorized_keys",
	".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".vscode/mcp.json", ".zed/tasks.json", ".zed/settings.json",
	".devcontainer.json", ".devcontainer/devcontainer.json", ".mcp.json", ".cursor/mcp.json", ".claude/settings.json", ".claude/settings.local.json",
	".gitconfig", ".config/git/config", ".idea/workspace.xml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pre-commit-config.yaml",
	".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".emacs.d/init.el", ".dir-locals.el", ".gdbinit", ".mise.toml", ".tool-versions"}

// startupDirs are directories in which everything is run.
var startupDirs = []string{".git/hooks", ".husky", ".config/autostart", ".config/environment.d", ".config/fish", ".config/systemd/user", ".local/bin"}

func startsUp(p string) bool {
	for _, n := range startupNames {
		if p == n || strings.HasSuffix(p, "/"+n) {
			return true
		}
	}
	// A file of that name leads git to a folder elsewhere; those of submodules
	// and worktrees have their own settings and hooks.
	if path.Base(p) == ".git" {
		return true
	}
	if _, git, ok := strings.Cut("/"+p, "/.git/"); ok && (strings.HasPrefix(git, "modules/") || strings.HasPrefix(git, "worktrees/")) {
		if strings.HasPrefix(path.Base(p), "config") || strings.Contains(git, "/hooks/") {
			return true
		}
	}
	for _, d := range startupDirs {
		if strings.HasPrefix(p, d+"/") || strings.Contains(p, "/"+d+"/") {
			return true
		}
	}
	return false
}
