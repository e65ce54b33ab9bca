package shell

import (
	"maps"
	"os"
	"slices"
	"strings"

	"localpc/capabilities/shell/judge"
)

// execNames are variables that make a program run, load or read as code
// something that the command does not name.
var execNames = names(`PATH ENV BASH_ENV SHELLOPTS BASHOPTS PS0 PS1 PS4 PROMPT_COMMAND IFS CDPATH HOME SHELL
	EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE GCONV_PATH LOCPATH GLIBC_TUNABLES TERMINFO
	PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONUSERBASE PYTHONBREAKPOINT PYTHONWARNINGS PERL5LIB PERL5OPT PERL5DB PERLLIB
	RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH
	LUA_INIT LUA_PATH LUA_CPATH PHPRC PHP_INI_SCAN_DIR R_PROFILE R_ENVIRON CC CXX CPP LD AR AS RUSTC RUSTC_WRAPPER RUSTFLAGS
	MAKEFLAGS MAKEFILES GNUMAKEFLAGS SSH_ASKPASS SUDO_ASKPASS GPG_TTY GNUPGHOME XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS XDG_DATA_HOME
	OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES SSLKEYLOGFILE GTK_MODULES GTK_PATH QT_PLUGIN_PATH QML2_IMPORT_PATH GIO_EXTRA_MODULES
	DOTNET_STARTUP_HOOKS PYTHONPYCACHEPREFIX RIPGREP_CONFIG_PATH TAR_OPTIONS RSYNC_RSH GEM_HOME GEM_PATH BUNDLE_GEMFILE BUNDLE_PATH
	MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME KUBECONFIG DOCKER_CONFIG DOCKER_HOST GCC_EXEC_PREFIX COMPILER_PATH
	ZDOTDIR FPATH NVM_DIR PYENV_ROOT CARGO_HOME RUSTUP_HOME GOROOT GOPATH VIMINIT EXINIT`)

var execPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_", "NPM_CONFIG_", "YARN_", "PNPM_", "PIP_", "GO", "CARGO_", "RUSTUP_", "MALLOC_"}

// harmlessNames are what the prefixes would catch without need.
var harmlessNames = names(`GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
	GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GOOS GOARCH GOMAXPROCS GOGC GOMEMLIMIT CARGO_TERM_COLOR`)

func names(s string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(s) {
		m[n] = true
	}
	return m
}

// changesWhatRuns tells whether a variable has to be asked about.
func changesWhatRuns(name, value string) bool {
	n := strings.ToUpper(name) // npm reads its settings in either case
	switch {
	case harmlessNames[n], name == "PATH" && judge.SystemPath(value), name == "HOME" && value == judge.NoHome:
		return false
	}
	if execNames[n] {
		return true
	}
	for _, p := range execPrefixes {
		if strings.HasPrefix(n, p) {
			return true
		}
	}
	return false
}

// personNames are the variables of this program's own environment that a
// full-access command gets. What is not listed (tokens, for one) stays here.
var personNames = names(`HOME USER LOGNAME SHELL LANG LANGUAGE TZ DISPLAY WAYLAND_DISPLAY XAUTHORITY
	DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK DESKTOP_SESSION TMPDIR`)

func personEnv(home, loginPath string) map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if personNames[k] || strings.HasPrefix(k, "LC_") || strings.HasPrefix(k, "XDG_") {
			env[k] = v
		}
	}
	if env["HOME"] == "" {
		env["HOME"] = home // a service may have none
	}
	env["PATH"] = loginPath
	return env
}

// envBytes merges and sorts; later maps win.
func envBytes(envs ...map[string]string) [][]byte {
	all := map[string]string{}
	for _, e := range envs {
		maps.Copy(all, e)
	}
	var out [][]byte
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, []byte(k+"="+all[k]))
	}
	return out
}
