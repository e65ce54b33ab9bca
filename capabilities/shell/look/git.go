package look

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"localpc/capabilities/shell/judge"
)

// quiet is git with nothing of the repository's settings that would run a
// program: only commands are asked that run no filters and no hooks.
var quiet = []string{"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false",
	"-c", "core.checkStat=minimal", "-c", "core.trustctime=false", "-c", "core.quotePath=false", "-c", "core.pager=cat"}

// gitCommand is a git command line: where, what, and its arguments.
func gitCommand(a judge.Act) (dir, sub string, args []string, ok bool) {
	dir = a.Dir
	argv := a.Argv
	if len(argv) > 0 && path.Base(argv[0]) == "git" {
		argv = argv[1:]
	}
	for len(argv) >= 2 && argv[0] == "-C" {
		if path.IsAbs(argv[1]) {
			dir = path.Clean(argv[1])
		} else {
			dir = path.Join(dir, argv[1])
		}
		argv = argv[2:]
	}
	if len(argv) == 0 || strings.HasPrefix(argv[0], "-") {
		return "", "", nil, false // other settings, another repository
	}
	return dir, argv[0], argv[1:], true
}

// askGit returns the top of the repository and git's answer.
func (l *looker) askGit(dir string, argv ...string) (top, answer string, ok bool) {
	cmd := append([]string{"/bin/sh", "-c", `q() { ` + quoted(quiet) + ` "$@"; }
t=$(q rev-parse --show-toplevel) || exit 1
printf '%s\0' "$t"
q "$@"`, "sh"}, argv...)
	out, ok := l.ask(dir, cmd)
	if !ok {
		return "", "", false
	}
	top, answer, ok = strings.Cut(string(out), "\x00")
	return top, answer, ok && path.IsAbs(top)
}

// gitClean counts what git clean removes: git itself says what.
func (l *looker) gitClean(a judge.Act) {
	dir, sub, args, ok := gitCommand(a)
	if ok && sub == "clean" {
		var ask []string
		for i, arg := range args {
			if arg == "--" {
				ask = append(ask, args[i:]...)
				break
			}
			if arg == "-i" || arg == "--interactive" {
				continue
			}
			if short, is := strings.CutPrefix(arg, "-"); is && !strings.HasPrefix(arg, "--") && !strings.HasPrefix(arg, "-e") {
				arg = "-" + strings.ReplaceAll(short, "i", "")
				if arg == "-" {
					continue
				}
			}
			ask = append(ask, arg)
		}
		var answer string
		if _, answer, ok = l.askGit(dir, append([]string{"clean", "-n"}, ask...)...); ok {
			l.tally(deletes, func(*tally) {})
			for line := range strings.Lines(answer) {
				name, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "Would remove ")
				if !is {
					continue
				}
				if strings.HasPrefix(name, `"`) {
					if u, err := strconv.Unquote(name); err == nil {
						name = u
					}
				}
				t := target{seen: path.Join(dir, name)}
				if t.spot, t.way = l.resolve(t.seen, false); !l.elsewhere(deletes, t) && t.spot.there {
					l.op(deletes, t.spot)
					l.remove(t.spot)
				}
			}
			return
		}
	}
	l.gitUnsure(deletes, "what git removes")
}

func (l *looker) gitUnsure(v verb, why string) {
	if l.more() {
		l.tally(v, func(y *tally) { y.more = true })
		return
	}
	l.note(unknown, why)
}

// gitReset counts the files that git reset --hard, checkout and restore
// replace, remove and make.
func (l *looker) gitReset(a judge.Act) {
	const why = "what git replaces"
	dir, sub, args, ok := gitCommand(a)
	if !ok {
		l.gitUnsure(replaces, why)
		return
	}
	tree, paths, sure := l.gitTree(dir, sub, args)
	if sub == "checkout" && sure && tree != "" && len(paths) == 0 && !slices.ContainsFunc(args, forces) {
		// Git keeps, or refuses to touch, what it does not have yet.
		l.note(runs, "git")
		return
	}
	ask := []string{"diff-index", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", tree, "--"}
	if tree == "" {
		ask = []string{"diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--"}
	}
	top, answer, ok := l.askGit(dir, append(ask, paths...)...)
	if !ok || !sure {
		l.gitUnsure(replaces, why)
		return
	}
	how := replaces
	if sub == "stash" {
		how = stashes
	}
	l.tally(how, func(*tally) {})
	overlay := sub == "checkout" && len(paths) > 0
	fields := strings.Split(answer, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(fields[i]) // :mode mode blob blob letter
		if len(f) != 5 {
			l.gitUnsure(replaces, why)
			return
		}
		t := target{seen: path.Join(top, fields[i+1])}
		if t.spot, t.way = l.resolve(t.seen, false); l.elsewhere(replaces, t) {
			continue
		}
		s := t.spot
		switch letter := f[4][0]; {
		case sub == "stash" && s.there:
			l.op(how, s)
			l.hit(how, s)
		case letter == 'A' && overlay:
		case letter == 'A' && s.there:
			l.op(deletes, s)
			l.remove(s)
		case !s.there && letter != 'A':
			l.make(s, madeUnsure)
		case s.there && s.node.mode.IsDir():
			l.op(deletes, s) // it has the name of a file
			l.remove(s)
		case s.there && l.isBlob(s, f[2]) && f[0][1:] == f[1]:
			l.nothing(replaces, s)
		case s.there:
			l.op(replaces, s)
			l.hit(replaces, s)
		}
	}
}

// gitTree is what the files are taken from ("" for the index), and which.
func (l *looker) gitTree(dir, sub string, args []string) (tree string, paths []string, sure bool) {
	var plain []string
	sure = true
	dashes := -1
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			dashes = len(plain)
			plain = append(plain, args[i+1:]...)
			i = len(args)
		case arg == "-s" && sub == "restore" && i+1 < len(args):
			i++
			tree = args[i]
		case strings.HasPrefix(arg, "--source="):
			tree = strings.TrimPrefix(arg, "--source=")
		case slices.Contains([]string{"--hard", "--keep", "--merge", "-q", "--quiet", "-f", "--force", "--discard-changes", "-W", "--worktree", "-S", "--staged",
			"-m", "--overlay", "--no-overlay", "--ours", "--theirs", "--no-progress", "--progress", "--detach", "-d"}, arg):
			if (arg == "--staged" || arg == "-S") && tree == "" {
				tree = "HEAD"
			}
		case strings.HasPrefix(arg, "-"):
			sure = false
		default:
			plain = append(plain, arg)
		}
	}
	switch sub {
	case "restore":
		return tree, plain, sure && !strings.HasPrefix(tree, "-")
	case "reset", "switch":
		if len(plain) == 0 {
			return "HEAD", nil, sure
		}
		return plain[0], nil, sure && len(plain) == 1 && !strings.HasPrefix(plain[0], "-")
	case "stash":
		// Put aside; what brings it back touches nothing that git does not have.
		push := len(plain) == 0 || plain[0] == "push" || plain[0] == "save"
		return "HEAD", nil, push
	case "checkout":
		switch {
		case dashes == 0:
			return "", plain, sure
		case dashes > 0:
			return plain[0], plain[dashes:], sure && dashes == 1
		case len(plain) == 0:
			return "HEAD", nil, sure
		}
		if s, w := l.resolve(path.Join(dir, plain[0]), false); w == in && s.there || strings.ContainsAny(plain[0], "*?[:") {
			return "", plain, sure
		}
		return plain[0], plain[1:], sure
	}
	return "", nil, false
}

func forces(arg string) bool {
	return arg == "-f" || arg == "--force" || arg == "--hard" || arg == "--discard-changes"
}

// maxBlob is how large a file is that is compared with what git has.
const maxBlob = 8 << 20

// isBlob tells whether a file still has the contents that git knows it by: git
// goes by times only here, since comparing itself could run a program.
func (l *looker) isBlob(s spot, id string) bool {
	if !s.node.mode.IsRegular() || s.node.size > maxBlob {
		return false
	}
	f, err := s.on.root.OpenFile(s.at, readFlags, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	var h hash.Hash = sha1.New()
	if len(id) == 64 {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", s.node.size)
	if _, err := io.Copy(h, slow{l.ctx, io.LimitReader(f, maxBlob)}); err != nil {
		return false
	}
	return hex.EncodeToString(h.Sum(nil)) == id
}

func quoted(argv []string) string {
	q := make([]string, len(argv))
	for i, a := range argv {
		q[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(q, " ")
}
