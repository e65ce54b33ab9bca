package judge

import (
	"path"
	"slices"
	"strings"
)

// runs notes a program whose doing is its own, with the file that decides it.
func (c *call) runs(scripts ...word) {
	a := Act{Op: Run, Program: c.name, Dir: c.dir()}
	for _, s := range scripts {
		if s.is(procFile) {
			c.unknown("the program it runs is what another command prints")
			continue
		}
		if ps, why := c.w.paths(c.st, s); why == "" {
			for _, p := range ps {
				a.Scripts = append(a.Scripts, p.Name)
			}
		}
	}
	c.act(a)
	c.outputs()
	c.inPlace()
}

// module is python -m.
func (c *call) module(args []word) {
	switch {
	case args[0].is("pip"):
		d := *c
		d.args, d.name, d.emitted = args, "pip", true
		pip(&d, nil)
		c.acts = d.acts
	default:
		c.runs()
		if c.w.fed() && args[0].sureness != sure || c.in.typed && obedient[args[0].text] {
			c.takesOrders()
		}
		if args[0].is("http.server") {
			c.act(Act{Op: Connect})
		}
		if _, ok := tidiers[args[0].text]; ok && args[0].sureness == sure {
			c.hands(args)
		}
	}
}

// deciders are the files that say what a runner does.
var deciders = map[string][]string{
	"npm": {"package.json"}, "npx": {"package.json"}, "make": {"Makefile", "makefile", "GNUmakefile"}, "just": {"justfile", "Justfile"},
	"rake": {"Rakefile"}, "gradle": {"build.gradle", "build.gradle.kts"}, "gradlew": {"build.gradle"}, "mvn": {"pom.xml"}, "cargo": {"Cargo.toml", "build.rs"}, "tox": {"tox.ini"},
	"pytest": {"conftest.py", "pyproject.toml", "pytest.ini"}, "composer": {"composer.json"}, "go": {"go.mod"}, "bundle": {"Gemfile"}, "poetry": {"pyproject.toml"}, "uv": {"pyproject.toml"},
	"cmake": {"CMakeLists.txt"}, "ant": {"build.xml"}, "meson": {"meson.build"}, "nox": {"noxfile.py"}, "hatch": {"pyproject.toml"}, "rspec": {".rspec"}, "jest": {"package.json"}, "vitest": {"package.json"},
	"tsc": {"tsconfig.json"}, "webpack": {"webpack.config.js"}, "vite": {"vite.config.js", "vite.config.ts"}, "mix": {"mix.exs"}, "dotnet": {}, "docker": {"Dockerfile"}, "swift": {"Package.swift"}, "sbt": {"build.sbt"}, "ninja": {"build.ninja"},
	"task": {"Taskfile.yml"}, "grunt": {"Gruntfile.js"}, "gulp": {"gulpfile.js"}, "eslint": {"eslint.config.js"}, "pre-commit": {".pre-commit-config.yaml"},
}

// decided notes a runner with those of its files that are there.
func (c *call) decided() {
	a := Act{Op: Run, Program: c.name, Dir: c.dir()}
	for _, f := range deciders[c.name] {
		for _, d := range c.st.cwd {
			name := path.Join(d, f)
			if c.runsInput(lit(name)) {
				c.takesOrders()
			}
			if c.w.cmd.Read == nil {
				a.Scripts = append(a.Scripts, name)
				break
			}
			if _, ok := c.w.cmd.Read(name); ok {
				a.Scripts = append(a.Scripts, name)
			}
		}
	}
	c.act(a)
	c.outputs()
	c.tidies()
}

// installer is a runner of which some subcommands bring in packages.
func installer(installs, settings, connects string) func(*call, *opts) {
	return func(c *call, o *opts) {
		ws := operands(c.args[1:])
		sub := ""
		if len(ws) > 0 {
			sub = ws[0].text
			if ws[0].sureness != sure {
				c.unknown("what " + c.name + " does: " + loosely(ws[0]) + " decides it")
			}
		} else if c.name == "npm" && programOf(c.args) == "yarn" {
			sub = "install"
		}
		what := strings.Join(known(ws[min(1, len(ws)):]), " ")
		switch {
		case slices.Contains(strings.Fields(installs), sub):
			c.act(Act{Op: Install, What: strings.TrimSpace(what)})
			c.act(Act{Op: Connect}) // where to is the person's setting
			c.decided()
			if sub == "x" || sub == "dlx" || sub == "run" {
				c.handsOn(sub)
			}
		case slices.Contains(strings.Fields(settings), sub):
			c.act(Act{Op: Settings, What: c.name})
		case slices.Contains(strings.Fields(connects), sub):
			c.act(Act{Op: Connect})
			c.decided()
		case len(c.args) == 2 && (c.args[1].is("--version") || c.args[1].is("-v") || c.args[1].is("--help")):
			c.act(Act{Op: Read})
		case slices.Contains([]string{"run", "exec", "x", "dlx"}, sub):
			c.decided()
			c.handsOn(sub)
		default:
			c.decided()
			c.project(sub, ws)
		}
	}
}

// handsOn judges the command behind the subcommand that starts it. What npm run
// starts stands in package.json.
func (c *call) handsOn(sub string) {
	if sub == "run" && !slices.Contains([]string{"uv", "poetry", "pdm", "conda", "mamba", "pipenv", "hatch", "rye", "pipx"}, c.name) {
		return
	}
	for i, a := range c.args[1:] {
		if a.is("-c") || a.is("--call") {
			if i+2 < len(c.args) {
				c.joinedPart(c.args[i+2])
			}
			return
		}
	}
	if i := slices.IndexFunc(c.args, func(w word) bool { return w.is(sub) }); i >= 0 {
		c.hands(c.args[i+1:])
	}
}

// project notes what subcommands do to the files that say what a project is.
func (c *call) project(sub string, ws []word) {
	switch {
	case c.name == "npm" && (sub == "version" && len(ws) > 1 || sub == "pkg" && len(ws) > 1 && !ws[1].is("get")):
		c.on(Edit, lit("package.json"))
	case c.name == "cargo" && sub == "clean":
		dir := lit("target")
		for i, a := range c.args[1:] {
			if a.is("--target-dir") && i+2 < len(c.args) {
				dir = c.args[i+2]
			} else if v, ok := strings.CutPrefix(a.text, "--target-dir="); ok {
				dir = lit(v)
			}
		}
		if ps, ok := c.names(opWhat(Delete), dir); ok {
			c.act(Act{Op: Delete, Paths: ps, Recursive: true})
		}
	}
}

func programOf(args []word) string {
	if len(args) == 0 {
		return ""
	}
	return path.Base(args[0].text)
}

func operands(ws []word) []word {
	var out []word
	for _, w := range ws {
		if w.sureness != sure || !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+") {
			out = append(out, w)
		}
	}
	return out
}

func pip(c *call, o *opts) {
	installer("install uninstall download sync compile add remove", "config cache", "search index")(c, o)
}

// runners do what a file of the folder says.
func runners() map[string]*program {
	m := map[string]*program{}
	for name := range deciders {
		m[name] = &program{is: free, says: "Runs the project's own tasks", do: func(c *call, o *opts) { c.decided() }}
	}
	set := func(name, installs, settings, connects string) {
		m[name] = &program{is: free, says: "Runs the project's own tasks", do: installer(installs, settings, connects)}
	}
	set("npm", "install i ci add uninstall remove rm un update up upgrade link unlink rebuild dedupe audit dlx create init x", "config set login logout adduser token", "publish unpublish view info search outdated ping whoami deprecate dist-tag owner access")
	set("cargo", "install uninstall add update fetch", "login logout", "publish search yank owner")
	set("go", "get install", "env", "")
	set("composer", "install update require remove create-project global", "config", "search show outdated")
	set("poetry", "install add update remove sync self lock", "config", "publish search")
	set("uv", "pip add remove sync tool python venv lock", "config", "publish")
	set("bundle", "install update add remove", "config", "outdated")
	m["npx"] = &program{is: free, says: "Runs a program of the project, or one it downloads first", do: func(c *call, o *opts) {
		c.act(Act{Op: Connect})
		c.decided()
		c.handsOn(c.args[0].text)
	}}
	m["go"] = &program{is: free, says: "Builds or checks the project", do: func(c *call, o *opts) {
		ws := operands(c.args[1:])
		switch {
		case len(ws) > 0 && ws[0].is("env") && slices.ContainsFunc(c.args, func(w word) bool { return w.is("-w") || w.is("-u") }):
			c.act(Act{Op: Settings, What: "go"})
		case len(ws) > 0 && (ws[0].is("version") || ws[0].is("env")):
			c.act(Act{Op: Run, Program: "go"})
		default:
			installer("get install", "", "")(c, o)
		}
	}}
	m["make"] = &program{is: free, says: "Builds the project", do: func(c *call, o *opts) {
		p := &program{short: "bBC:def:hiI:j?kl?LnoO?pqrRsStvwW:", long: "always-make directory= file= makefile= jobs? keep-going dry-run just-print silent quiet no-print-directory print-directory question touch trace version load-average? output-sync? eval="}
		q := c.options(p, c.args[1:])
		for _, d := range q.each("C", "directory") {
			c.inDir(d)
		}
		if q.bad != "" {
			c.unknown("the option " + q.bad + " of make is not one that is known here")
		}
		if q.has("eval") {
			c.unknown("make is given a text to run")
		}
		for _, w := range q.rest {
			n, v, eq := strings.Cut(w.text, "=")
			if eq && (mattersToPrograms(n) || n == "SHELL") {
				c.act(Act{Op: Env, What: n})
			}
			if eq && strings.ContainsAny(v, "$`") {
				c.unknown("make is given a text to run")
			}
		}
		if f := q.each("f", "file", "makefile"); len(f) > 0 {
			for _, w := range f {
				ps, _ := c.w.paths(c.st, w)
				switch {
				case w.is("-") && c.in.typed, !w.is("-") && c.runsInput(w):
					c.takesOrders()
				case w.is("-"), slices.ContainsFunc(ps, func(p Path) bool { at, _ := c.w.leads(p); return isOpen(at) }):
					c.unknown("make is given a text to run")
				}
			}
			c.runs(f...)
			return
		}
		c.decided()
	}}
	m["docker"] = &program{is: free, says: "Works with containers", do: docker}
	m["docker-compose"] = &program{is: free, says: "Works with containers", do: func(c *call, o *opts) {
		c.decided()
		c.unknown("what its containers do is not followed here")
	}}
	return m
}

func docker(c *call, o *opts) {
	ws := operands(c.args[1:])
	sub := ""
	if len(ws) > 0 {
		sub = ws[0].text
	}
	switch sub {
	case "ps", "images", "version", "info", "logs", "inspect", "top", "stats", "port", "diff", "history", "":
		c.act(Act{Op: Run, Program: c.name})
	case "pull", "push", "login", "search":
		c.act(Act{Op: Connect})
		c.act(Act{Op: Run, Program: c.name})
	case "build":
		c.decided()
		c.act(Act{Op: Connect})
	default:
		c.act(Act{Op: Run, Program: c.name})
		c.unknown("what its containers do, or what happens to them, is not followed here")
	}
}

// system are programs that change how the computer works.
func system() map[string]*program {
	m := map[string]*program{}
	settings := func(what string) *program {
		return &program{is: free, do: func(c *call, o *opts) { c.act(Act{Op: Settings, What: what}) }}
	}
	for what, names := range map[string]string{
		"the system's services": "systemctl service initctl launchctl rc-service update-rc.d chkconfig loginctl",
		"what starts by itself": "crontab at batch atrm schtasks", "the desktop's settings": "gsettings dconf defaults xdg-mime xdg-settings kwriteconfig5 xfconf-query plutil scutil",
		"the system's settings":         "sysctl timedatectl hostnamectl localectl update-alternatives chsh reg netsh sc modprobe insmod rmmod swapon swapoff ldconfig setcap setenforce passwd chpasswd",
		"the accounts of this computer": "useradd userdel usermod groupadd groupdel groupmod adduser deluser visudo gpasswd dscl",
		"the network's settings":        "ip ifconfig iptables nft ufw firewall-cmd nmcli route iw iwconfig resolvectl rfkill networksetup",
		"the disks":                     "mount umount fdisk parted mkfs mkfs.ext4 mkfs.vfat mkfs.xfs mke2fs mkswap wipefs fsck losetup cryptsetup lvcreate lvremove diskutil sgdisk sfdisk hdparm blkdiscard format",
		"whether the computer runs":     "shutdown reboot halt poweroff init telinit",
	} {
		for n := range strings.FieldsSeq(names) {
			m[n] = settings(what)
		}
	}
	kill := func(c *call, o *opts) {
		if len(c.args) > 1 && (c.args[1].is("-0") || c.args[1].is("-l") || c.args[1].is("-L")) {
			c.act(Act{Op: Read})
			return
		}
		c.act(Act{Op: Run, Program: c.name})
	}
	for _, n := range []string{"kill", "pkill", "skill", "xkill", "renice"} {
		m[n] = &program{is: free, says: "Ends running programs", do: kill}
	}
	pkg := func(installs string) *program {
		return &program{is: free, says: "Looks for programs that can be installed", do: installer(installs, "", "")}
	}
	m["apt"] = pkg("install remove purge update upgrade full-upgrade dist-upgrade autoremove autopurge reinstall build-dep source download clean autoclean dselect-upgrade")
	m["dnf"] = pkg("install remove erase update upgrade autoremove reinstall downgrade groupinstall makecache clean")
	m["pacman"] = &program{is: free, do: func(c *call, o *opts) { c.act(Act{Op: Install, What: strings.Join(known(operands(c.args[1:])), " ")}) }}
	m["apk"] = pkg("add del update upgrade fix cache")
	m["zypper"] = pkg("install in remove rm update up dup refresh patch")
	m["brew"] = pkg("install uninstall remove rm upgrade update reinstall tap untap link unlink cask cleanup services bundle")
	m["snap"] = pkg("install remove refresh revert enable disable set unset connect disconnect")
	m["flatpak"] = pkg("install uninstall remove update override")
	m["gem"] = pkg("install uninstall update cleanup push")
	m["dpkg"] = &program{is: free, do: func(c *call, o *opts) {
		if len(c.args) > 1 && slices.Contains([]string{"-l", "-L", "-s", "-S", "--list", "--listfiles", "--status", "--search"}, c.args[1].text) && c.args[1].sureness == sure {
			c.act(Act{Op: Run, Program: c.name})
			return
		}
		c.act(Act{Op: Install, What: strings.Join(known(operands(c.args[1:])), " ")})
	}}
	m["rpm"] = m["dpkg"]
	m["conda"], m["mamba"], m["nix"] = pkg("install remove update upgrade create uninstall env profile"), pkg("install remove update create"), pkg("profile")
	m["winget"], m["choco"], m["scoop"] = pkg("install uninstall upgrade"), pkg("install uninstall upgrade"), pkg("install uninstall update")
	m["pip"] = &program{is: free, says: "Lists installed Python packages", do: pip}
	m["pipx"] = &program{is: free, says: "Lists installed Python programs", do: installer("install uninstall upgrade upgrade-all inject run reinstall", "", "")}
	return m
}

// media are programs that people know by what they do. What they do to files
// is theirs.
func media() map[string]*program {
	m := map[string]*program{}
	for name, says := range map[string]string{
		"ffprobe":  "Shows what is in a sound or video file",
		"identify": "Shows facts about pictures", "gs": "Converts documents",
		"pandoc": "Converts documents", "libreoffice": "Opens or converts documents", "soffice": "Opens or converts documents", "pdflatex": "Makes a document", "xelatex": "Makes a document", "latexmk": "Makes a document",
		"psql": "Works with a database", "mysql": "Works with a database", "redis-cli": "Works with a database", "mongosh": "Works with a database",
		"gcc": "Builds a program", "g++": "Builds a program", "clang": "Builds a program", "cc": "Builds a program", "ld": "Builds a program", "rustc": "Builds a program", "javac": "Builds a program", "gofmt": "Tidies up program text",
		"black": "Tidies up program text", "ruff": "Checks program text", "prettier": "Tidies up program text", "mypy": "Checks program text", "flake8": "Checks program text", "shellcheck": "Checks program text", "clang-format": "Tidies up program text",
		"info": "Shows the manual", "top": "Shows the running programs", "htop": "Shows the running programs",
		"xdg-open": "Opens a file or page with its program", "open": "Opens a file or page with its program", "code": "Opens an editor", "firefox": "Opens a browser", "chromium": "Opens a browser", "google-chrome": "Opens a browser",
		"gpg": "Signs, seals or opens files", "openssl": "Works with keys and certificates", "ssh-add": "Unlocks keys", "lspci": "Lists the parts of the computer", "lsusb": "Lists what is plugged in",
		"dmesg": "Shows messages of the system", "journalctl": "Shows messages of the system", "lsof": "Shows which files are open", "ss": "Shows the connections", "netstat": "Shows the connections", "nvidia-smi": "Shows how busy the graphics card is",
		"ollama": "Runs a language model", "terraform": "Changes rented computers", "kubectl": "Works with a cluster of computers", "ansible": "Sets up computers", "xmllint": "Checks XML", "xdotool": "Moves the mouse and types",
		"objdump": "Shows what is in a program", "nm": "Shows what is in a program", "ldd": "Shows what a program needs", "rclone": "Copies files to or from other computers", "wl-copy": "Changes the clipboard", "xclip": "Uses the clipboard", "notify-send": "Shows a message",
	} {
		m[name] = &program{says: says, is: free, do: func(c *call, o *opts) { c.opaque(nil) }}
	}
	return m
}
