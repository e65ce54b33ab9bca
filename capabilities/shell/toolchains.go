package shell

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// toolchainDirs are what a container sees of the person's home, read-only.
// Only .cargo's programs: its credentials lie beside them.
var toolchainDirs = []string{".nvm", ".cargo/bin", ".rustup", ".pyenv", "go/bin", "sdk", ".local/bin",
	".local/share/pipx/venvs", ".local/share/uv/python", ".local/share/uv/tools", ".bun/bin", ".deno/bin", ".volta/bin", ".volta/tools", ".rbenv"}

// mount is one directory bound into a container.
type mount struct{ from, to string }

// toolchains returns what to mount, the directories for PATH, and variables.
// They keep their own names, because many a toolchain has its place written
// into its files; only a home whose name means something else inside has
// to give way, /home/user for one.
func toolchains(home, loginPath string) (mounts []mount, search []string, env map[string]string) {
	env = map[string]string{}
	if home == "" || home == "/" || !filepath.IsAbs(home) {
		return nil, nil, env
	}
	base := home
	if conflicts(home, nil) {
		base = "/opt/home"
	}
	realHome, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil, nil, env
	}
	for _, d := range toolchainDirs {
		if _, err := os.Lstat(filepath.Join(home, d)); err != nil {
			continue // not there: what follows takes much longer
		}
		from, err := filepath.EvalSymlinks(filepath.Join(home, d))
		if err != nil || under(realHome, from) {
			continue // a link to nowhere, or one that would show the home itself
		}
		if fi, err := os.Stat(from); err == nil && fi.IsDir() {
			mounts = append(mounts, mount{from, filepath.Join(base, d)})
		}
	}
	mounted := func(dir string) bool {
		for _, m := range mounts {
			if under(dir, m.to) {
				return true
			}
		}
		return false
	}
	seen := map[string]bool{}
	add := func(dir string) {
		if rest, ok := strings.CutPrefix(dir, home+"/"); ok {
			dir = filepath.Join(base, rest)
		}
		if mounted(dir) && !seen[dir] {
			seen[dir] = true
			search = append(search, dir)
		}
	}
	for _, dir := range filepath.SplitList(loginPath) {
		add(filepath.Clean(dir))
	}
	for _, d := range []string{".pyenv/shims", ".pyenv/bin", ".cargo/bin", "go/bin", ".rbenv/shims", ".bun/bin", ".deno/bin", ".volta/bin", ".local/bin"} {
		add(filepath.Join(home, d))
	}
	if nodes, _ := filepath.Glob(filepath.Join(home, ".nvm/versions/node/*/bin")); len(nodes) > 0 && !strings.Contains(strings.Join(search, ":"), "/.nvm/versions/") {
		sort.Strings(nodes)
		add(nodes[len(nodes)-1])
	}
	for k, d := range map[string]string{"PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup", "NVM_DIR": ".nvm", "RBENV_ROOT": ".rbenv"} {
		if dir := filepath.Join(base, d); mounted(dir) {
			env[k] = dir
		}
	}
	return mounts, search, env
}

// conflicts tells whether the folder's own name is taken in the container.
func conflicts(folder string, mounts []mount) bool {
	for _, d := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc", "/proc", "/dev", "/tmp", "/run", "/var/run", "/var/tmp", inside, cacheInside, spawnInside} {
		if under(folder, d) || under(d, folder) {
			return true
		}
	}
	for _, m := range mounts {
		if under(folder, m.to) || under(m.to, folder) {
			return true
		}
	}
	return false
}
