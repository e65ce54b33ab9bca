package judge

import (
	"path"
	"slices"
	"strings"
)

// gitReads are subcommands that only show, as long as none of gitDanger is
// among their options.
const gitReads = " status log show diff blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file show-ref for-each-ref name-rev merge-base grep " +
	"whatchanged count-objects check-ignore check-attr cherry diff-tree diff-index diff-files version range-diff show-branch verify-commit merge-tree "

// gitDanger are options that write a file or run a program; git takes them by
// their beginnings too.
var gitDanger = []string{"ext-diff", "output", "textconv", "open-files-in-pager", "exec", "upload-pack", "receive-pack", "lost-found", "filters", "remote", "template", "config",
	"separate-git-dir", "reference", "super-prefix", "show-signature", "git-dir", "paginate", "editor", "sequence-editor", "gpg-sign", "recurse-submodules", "write-tree"}

// git judges git by its subcommand.
func git(c *call, _ *opts) {
	args := c.args[1:]
	for len(args) > 0 {
		a := args[0]
		if a.sureness != sure {
			c.unknown("what git does: " + loosely(a) + " decides it")
			return
		}
		if !strings.HasPrefix(a.text, "-") {
			break
		}
		args = args[1:]
		switch {
		case a.text == "-C" && len(args) > 0:
			if args[0].many {
				c.unknown("what git does: " + loosely(args[0]) + " decides it")
				return
			}
			c.inDir(args[0])
			args = args[1:]
		case a.text == "-c" && len(args) > 0:
			c.gitSetting(args[0])
			args = args[1:]
		case slices.Contains([]string{"--no-pager", "-P", "--no-replace-objects", "--literal-pathspecs", "--no-optional-locks", "--glob-pathspecs", "--icase-pathspecs"}, a.text):
		case a.text == "--version" || a.text == "-v" || a.text == "--help" && len(args) == 0:
			c.act(Act{Op: Read})
			return
		default:
			c.unknown("the option " + a.text + " of git may make it run programs")
			return
		}
	}
	if len(args) == 0 {
		c.act(Act{Op: Read})
		return
	}
	for _, a := range args {
		if strings.Contains(a.text, "::") && a.sureness == sure && !strings.Contains(a.text, " ") {
			c.unknown("git may run a program to reach " + a.text)
		}
	}
	c.gitSub(args[0].text, args[1:])
	if why := c.gitConfig(); why != "" {
		c.unknown(why)
	}
}

// gitSetting judges -c name=value.
func (c *call) gitSetting(w word) {
	name, v, _ := strings.Cut(strings.ToLower(w.text), "=")
	if w.sureness == sure {
		for _, ok := range []string{"user.name", "user.email", "core.quotepath", "init.defaultbranch", "log.date", "core.autocrlf", "core.safecrlf", "diff.renames", "status.showuntrackedfiles", "merge.conflictstyle", "pull.rebase", "push.default"} {
			if name == ok {
				return
			}
		}
		if strings.HasPrefix(name, "color.") || strings.HasPrefix(name, "advice.") || strings.HasSuffix(name, "gpgsign") && v == "false" || name == "core.pager" && (v == "cat" || v == "") {
			return
		}
	}
	c.unknown("the setting " + described(w) + " may make git run a program")
}

// gitConfig says whether the settings in the folder make git run programs. In
// a folder that came from somewhere else they can.
func (c *call) gitConfig() string {
	for _, d := range c.st.cwd {
		for d != "/" && d != "." {
			src, ok := c.w.readFile(path.Join(d, ".git/config"))
			if !ok {
				if d == c.w.cmd.Folder {
					break
				}
				d = path.Dir(d)
				continue
			}
			low := strings.ToLower(src)
			for _, key := range []string{"fsmonitor", "pager", "textconv", "external", "command", "[filter", "[alias", "[include", "hookspath", "editor", "askpass", "program", "[credential", "driver", "tool", "proxy", "hook", "worktree"} {
				if strings.Contains(low, key) && !(key == "fsmonitor" && strings.Contains(strings.ReplaceAll(low, " ", ""), "fsmonitor=false")) {
					return "the settings of git in the folder may make it run programs"
				}
			}
			break
		}
	}
	return ""
}

// gitShows judges a subcommand that only shows.
func (c *call) gitShows(sub string, args []word) {
	c.act(Act{Op: Read})
	for i, a := range args {
		if a.is("--") {
			return
		}
		switch {
		case a.mayBeOption() && a.sureness != sure || a.fromPattern() && !c.dashless(&program{}, a):
			c.unknown("which options git gets: " + loosely(a) + " decides them")
			return
		case a.sureness != sure:
		case strings.HasPrefix(a.text, "--"):
			name, _, _ := strings.Cut(a.text[2:], "=")
			for _, d := range gitDanger {
				if name != "" && name != "text" && name != "reverse" && name != "remotes" && strings.HasPrefix(d, name) {
					if sub == "rev-parse" && (name == "git-dir") || sub == "ls-files" && name == "recurse-submodules" || name == "show" {
						continue
					}
					c.unknown("the option --" + name + " of git may write a file or run a program")
				}
			}
		case sub == "grep" && strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "O") && (i == 0 || !args[i-1].is("-e")):
			c.unknown("the option -O of git runs a program")
		case (sub == "hash-object" || sub == "merge-tree") && strings.HasPrefix(a.text, "-w"):
			c.act(Act{Op: Run, Program: "git"})
		}
	}
}

// gitOperands leaves the options out; ok is false where they can't be told.
func (c *call) gitOperands(args []word) (options []string, rest []word) {
	after := false
	for _, a := range args {
		switch {
		case after:
			rest = append(rest, a)
		case a.is("--"):
			after = true
		case a.sureness == sure && strings.HasPrefix(a.text, "-") && a.text != "-":
			name, _, _ := strings.Cut(a.text, "=")
			options = append(options, name)
		case a.mayBeOption() || a.fromPattern() && !c.dashless(&program{is: mild}, a):
			c.unknown("which options git gets: " + loosely(a) + " decides them")
		default:
			rest = append(rest, a)
		}
	}
	for _, o := range options {
		for _, d := range gitDanger {
			if n := strings.TrimPrefix(o, "--"); n != o && len(n) > 2 && strings.HasPrefix(d, n) && d != "recurse-submodules" && n != "remote" && n != "config" {
				c.unknown("the option " + o + " of git may write a file or run a program")
			}
		}
	}
	return options, rest
}

// any tells whether one of the options is there; short ones in a bundle too.
func anyOption(options []string, names ...string) bool {
	for _, o := range options {
		for _, n := range names {
			if strings.HasPrefix(n, "--") {
				if len(o) > 3 && strings.HasPrefix(n, o) {
					return true
				}
				continue
			}
			if !strings.HasPrefix(o, "--") && strings.Contains(o, n[1:]) {
				return true
			}
		}
	}
	return false
}

func (c *call) gitRun() {
	c.act(Act{Op: Run, Program: "git", Dir: c.dir()})
}

// gitArgv is the act that git itself can tell more of.
func (c *call) gitArgv(op Op, sub string, args []word) {
	ts := known(args)
	if len(ts) != len(args) || len(c.st.cwd) == 0 {
		c.unknown("which files git changes is only known when it runs")
		return
	}
	for _, d := range c.st.cwd {
		c.act(Act{Op: op, Argv: append([]string{"git", sub}, ts...), Dir: d})
	}
}

// inGit notes what happens to a name in git's store: that of the folder it works
// in, or of one above. Many names may stand in one file there.
func (c *call) inGit(op Op, name string) {
	store := ""
	for _, d := range c.st.cwd {
		for d != "/" && d != "." && store == "" {
			if _, ok := c.w.readFile(path.Join(d, ".git")); ok {
				c.unknown("git's store is in another folder")
				return
			}
			if _, ok := c.w.readFile(path.Join(d, ".git/HEAD")); ok {
				store = path.Join(d, ".git")
			}
			if d == c.w.cmd.Folder {
				break
			}
			d = path.Dir(d)
		}
	}
	if store == "" {
		c.on(op, lit(path.Join(".git", name)))
		return
	}
	c.on(op, lit(path.Join(store, name)))
	packed, ok := c.w.readFile(path.Join(store, "packed-refs"))
	if op != Create && (strings.Contains(packed, " "+name+"\n") || !ok && c.there(path.Join(store, "packed-refs"))) {
		c.on(Edit, lit(path.Join(store, "packed-refs")))
	}
}

func (c *call) gitSub(sub string, args []word) {
	if strings.Contains(gitReads, " "+sub+" ") || sub == "hash-object" {
		c.gitShows(sub, args)
		return
	}
	first := ""
	if len(args) > 0 && args[0].sureness == sure {
		first = args[0].text
	}
	options, rest := c.gitOperands(args)
	opt := func(names ...string) bool { return anyOption(options, names...) }
	switch sub {
	case "add", "stage", "merge", "cherry-pick", "revert", "update-index", "bisect", "notes", "gc", "maintenance", "repack", "pack-refs", "fsck", "rerere", "commit-tree", "write-tree", "read-tree", "symbolic-ref":
		if sub == "bisect" && first == "run" {
			d := *c
			d.acts, d.emitted = nil, false
			d.startBare(args[1:])
		}
		if opt("--prune") || sub == "read-tree" {
			c.unknown("it throws away earlier versions for good")
		}
		c.gitRun()
	case "sparse-checkout":
		if first == "list" {
			c.act(Act{Op: Read})
			return
		}
		c.act(Act{Op: Settings, What: "which files of git are in the folder"})
	case "commit":
		c.gitRun()
	case "rebase":
		for i, a := range args {
			if a.sureness == sure && (a.text == "-x" || a.text == "--exec") && i+1 < len(args) {
				c.joinedPart(args[i+1])
			} else if v, ok := strings.CutPrefix(a.text, "--exec="); ok {
				c.joinedPart(lit(v))
			} else if strings.HasPrefix(a.text, "-x") || strings.HasPrefix(a.text, "--ex") {
				c.unknown("git runs a command")
			}
		}
		c.gitRun()
	case "init":
		dir := lit(".git")
		if len(rest) > 0 {
			dir = rest[0]
		}
		c.on(Create, dir)
	case "clone":
		if len(rest) == 0 || opt("-c", "-u", "-o", "--upload-pack", "--config") {
			c.unknown("it may run a program to reach the other computer")
		}
		c.remote(rest)
		if len(rest) > 1 {
			c.on(Create, rest[1])
		} else if len(rest) == 1 && rest[0].sureness == sure {
			c.on(Create, lit(strings.TrimSuffix(path.Base(strings.TrimRight(rest[0].text, "/")), ".git")))
		}
	case "fetch", "ls-remote":
		c.remote(rest)
		c.gitRun()
	case "pull":
		c.remote(rest)
		c.gitRun()
	case "push":
		c.remote(rest)
		c.gitRun()
		force := opt("-f", "-d", "--force", "--force-with-lease", "--delete", "--mirror", "--prune", "--receive-pack", "--exec")
		for _, r := range rest {
			force = force || strings.HasPrefix(r.text, "+") || strings.HasPrefix(r.text, ":")
		}
		if force {
			c.unknown("it may throw away versions on the other computer")
		}
	case "clean":
		if opt("-n", "--dry-run") && !opt("-e", "--exclude") {
			c.act(Act{Op: Read})
			return
		}
		c.gitArgv(GitClean, sub, args)
	case "reset":
		if opt("--hard", "--merge", "--keep") {
			c.gitArgv(GitReset, sub, args)
			return
		}
		c.gitRun()
	case "checkout", "restore":
		switch {
		case sub == "restore" && opt("--staged", "-S") && !opt("--worktree", "-W"):
			c.gitRun()
		case sub == "checkout" && opt("-b", "--orphan") && !opt("-f", "--force") && len(rest) <= 2:
			c.gitRun()
		case sub == "checkout" && opt("-B"):
			c.gitArgv(GitReset, sub, args)
		default:
			c.gitArgv(GitRestore, sub, args)
		}
	case "switch":
		if opt("-f", "-C", "--force", "--discard-changes", "--force-create") {
			c.gitArgv(GitReset, sub, args)
			return
		}
		c.gitRun()
	case "stash":
		switch first {
		case "list", "show":
			c.gitShows(sub, args[1:])
		case "drop", "clear":
			if slices.ContainsFunc(c.w.parts, func(p *part) bool { return p.name == "git" && slices.Contains(p.Argv, "stash") }) {
				c.unknown("it throws away changes that the same line puts aside")
			}
			c.inGit(Delete, "refs/stash")
		default:
			c.gitArgv(GitReset, sub, args)
		}
	case "rm":
		if opt("--cached") {
			c.gitRun()
			return
		}
		if opt("-n", "--dry-run") {
			c.act(Act{Op: Read})
			return
		}
		if ps, ok := c.names(opWhat(Delete), rest...); ok && len(ps) > 0 {
			c.act(Act{Op: Delete, Paths: ps, Recursive: opt("-r")})
		} else if len(rest) == 0 {
			c.unknown("which files git deletes is only known when it runs")
		}
	case "mv":
		c.transfer(Move, &opts{}, rest, !opt("-f", "--force"), true)
	case "branch":
		c.gitBranch(options, rest)
	case "tag":
		switch {
		case opt("-d", "--delete"):
			for _, r := range rest {
				c.gitRef(Delete, "refs/tags/", r)
			}
		case len(rest) == 0 && !opt("-a", "-s", "-u", "-F", "-m") || opt("-l", "--list", "--contains", "--points-at", "--merged"):
			c.gitShows(sub, args)
		default:
			if opt("-s", "-u", "-v") {
				c.gitRun()
			}
			if op := Create; len(rest) > 0 {
				if opt("-f", "--force") {
					op = Edit
				}
				c.gitRef(op, "refs/tags/", rest[0])
			}
		}
	case "remote":
		switch first {
		case "", "-v", "--verbose", "get-url":
			c.act(Act{Op: Read})
		case "show", "update", "prune":
			c.remote(nil)
			c.gitRun()
		default:
			c.inGit(Edit, "config")
		}
	case "config":
		c.gitConfigCommand(args, options, rest)
	case "worktree":
		switch {
		case first == "list":
			c.act(Act{Op: Read})
		case first == "add" && len(rest) > 1:
			c.on(Create, rest[1])
			c.gitRun()
		case first == "remove" && len(rest) > 1:
			if ps, ok := c.names(opWhat(Delete), rest[1]); ok {
				c.act(Act{Op: Delete, Paths: ps, Recursive: true})
			}
		default:
			c.gitRun()
		}
	case "submodule":
		if first == "foreach" {
			c.joinedPart(lit(strings.Join(known(rest[min(1, len(rest)):]), " ")))
		} else if first != "status" && first != "" {
			c.remote(nil)
		}
		c.gitRun()
	case "reflog":
		if first == "" || first == "show" || strings.HasPrefix(first, "-") {
			c.gitShows(sub, args)
			return
		}
		c.unknown("it throws away earlier versions for good")
	case "apply", "am":
		if opt("--check", "--stat", "--numstat", "--summary") && !opt("--apply") {
			c.act(Act{Op: Read})
			return
		}
		c.unknown("which files are changed stands in the patch")
	case "format-patch", "archive", "bundle":
		c.unknown("which files git writes is not clear")
	default:
		c.unknown("git " + sub + " is not one of the things git does that are known here")
	}
}

func (c *call) gitRef(op Op, dir string, w word) {
	if w.sureness != sure || strings.Contains(w.text, "..") {
		c.unknown("which name in git's store changes: " + loosely(w) + " decides it")
		return
	}
	c.inGit(op, dir+w.text)
}

func (c *call) gitBranch(options []string, rest []word) {
	opt := func(names ...string) bool { return anyOption(options, names...) }
	switch {
	case opt("-d", "-D", "--delete"):
		for _, r := range rest {
			c.gitRef(Delete, "refs/heads/", r)
		}
	case opt("-m", "-M", "-c", "-C", "-f", "--move", "--copy", "--force"):
		for _, r := range rest {
			c.gitRef(Edit, "refs/heads/", r)
		}
	case opt("-u", "-t", "--set-upstream-to", "--unset-upstream", "--edit-description", "--track"):
		c.inGit(Edit, "config")
	case len(rest) == 0 || opt("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"):
		c.act(Act{Op: Read})
	default:
		c.gitRef(Create, "refs/heads/", rest[0])
	}
}

func (c *call) gitConfigCommand(args []word, options []string, rest []word) {
	opt := func(names ...string) bool { return anyOption(options, names...) }
	first := ""
	if len(rest) > 0 {
		first = rest[0].text
	}
	change := opt("--unset", "--unset-all", "--replace-all", "--add", "--rename-section", "--remove-section", "-e", "--edit")
	switch {
	case slices.ContainsFunc(args, func(w word) bool { return w.many }):
		c.unknown("which setting of git changes is only known when it runs")
	case !change && (opt("--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch") || first == "get" || first == "list" || len(rest) == 1 && first != "edit"):
		c.act(Act{Op: Read})
	case opt("-e", "--edit") || first == "edit":
		c.unknown("git opens an editor")
	default:
		c.act(Act{Op: Settings, What: "git"})
	}
}

// remote notes the computer that git reaches, where it stands there.
func (c *call) remote(rest []word) {
	a := Act{Op: Connect}
	if len(rest) > 0 && rest[0].sureness == sure {
		a.Host, a.Port = remoteHost(rest[0].text)
		if a.Host == "" && (strings.HasPrefix(rest[0].text, "/") || strings.HasPrefix(rest[0].text, ".")) {
			c.reads(rest[0])
			c.gitRun()
			return
		}
	}
	c.act(a)
}
