package judge

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// finish gives the parts their sentences.
func (w *walker) finish() []Part {
	var out []Part
	for _, p := range w.parts {
		p.Sentence = w.sentence(p)
		p.Acts = tidy(p.Acts)
		out = append(out, p.Part)
	}
	return out
}

// tidy leaves out what is said twice.
func tidy(acts []Act) []Act {
	named := slices.ContainsFunc(acts, func(a Act) bool { return a.Op == Read && len(a.Paths) > 0 })
	var out []Act
	read := -1
	bare := false
	for _, a := range acts {
		if a.Op == Read {
			if len(a.Paths) == 0 && (named || bare) {
				continue
			}
			bare = bare || len(a.Paths) == 0
			if read >= 0 {
				out[read].Paths = union(slices.Clone(out[read].Paths), a.Paths)
				continue
			}
			read = len(out)
		}
		out = append(out, a)
	}
	return out
}

// sentence is what a part does, in everyday words.
func (w *walker) sentence(p *part) string {
	var said []string
	say := func(s string) {
		if s != "" && !slices.Contains(said, s) {
			said = append(said, s)
		}
	}
	acts := slices.Clone(p.Acts)
	slices.SortStableFunc(acts, func(a, b Act) int { return rank(a.Op) - rank(b.Op) })
	changes := slices.ContainsFunc(acts, func(a Act) bool { return a.Op != Read && a.Op != Root && a.Op != Env && a.Op != Unknown })
	var reads []Path
	for _, a := range acts {
		if a.Op == Read {
			reads = append(reads, a.Paths...)
		}
	}
	for _, a := range acts {
		if a.Op != Read {
			say(w.words(p, a))
			continue
		}
		finds := slices.ContainsFunc(acts, func(a Act) bool { return a.Find != nil })
		if !changes || p.prog != nil && p.prog.says != "" && p.prog.is&alone == 0 && !finds {
			say(w.shows(p, reads))
		}
	}
	if len(said) == 0 {
		return w.nothing(p)
	}
	for i := 1; i < len(said); i++ {
		said[i] = strings.ToLower(said[i][:1]) + said[i][1:]
	}
	return strings.Join(said, "; ")
}

// rank is the order in which effects are told.
func rank(op Op) int {
	switch op {
	case Root:
		return 0
	case Env:
		return 1
	case Read:
		return 2
	case Unknown:
		return 9
	}
	return 3
}

// shows is the sentence of a program that reads.
func (w *walker) shows(p *part, reads []Path) string {
	says := ""
	if p.prog != nil {
		says = p.prog.says
	}
	if p.name == "git" {
		return gitSays(p.Argv)
	}
	if says == "" {
		if len(reads) == 0 {
			return ""
		}
		says = "Reads %"
	}
	if !strings.Contains(says, "%") {
		return says
	}
	if len(reads) == 0 {
		return strings.ReplaceAll(says, "%", "what it is given")
	}
	return strings.ReplaceAll(says, "%", w.list(reads))
}

// nothing is for parts without effects of their own.
func (w *walker) nothing(p *part) string {
	switch {
	case strings.HasPrefix(p.name, "="):
		return "Sets " + p.name[1:] + " for the commands after it"
	case p.name == "cd" || p.name == "pushd" || p.name == "popd":
		if len(p.Argv) > 1 {
			return "Goes to the folder " + p.Argv[len(p.Argv)-1]
		}
		return "Goes to another folder"
	case p.prog == quietBuiltin:
		return "Changes only how the commands after it run"
	case p.prog != nil && p.prog.says != "":
		return strings.ReplaceAll(p.prog.says, "%", "what it is given")
	}
	return "Does nothing by itself"
}

func (w *walker) words(p *part, a Act) string {
	switch a.Op {
	case Create:
		return "Makes " + w.list(a.Paths)
	case Write:
		return "Writes " + w.list(a.Paths)
	case Append:
		return "Adds to " + w.list(a.Paths)
	case Edit:
		return "Changes " + w.chosen(a)
	case Truncate:
		return "Cuts " + w.list(a.Paths) + " to a size"
	case Delete:
		return "Deletes " + w.chosen(a)
	case Access:
		return "Changes who may read, write or run " + w.chosen(a)
	case Move:
		return "Moves " + w.list(a.From) + " to " + w.goal(a)
	case Copy:
		if len(a.From) == 0 {
			return "Copies to " + w.goal(a)
		}
		return "Copies " + w.list(a.From) + " to " + w.goal(a)
	case Link:
		return "Makes " + w.goal(a) + " stand for " + w.list(a.From)
	case Extract:
		return "Unpacks " + w.list(a.From) + " into " + w.goal(a)
	case GitClean:
		return "Deletes files that git does not keep, in " + w.short(a.Dir)
	case GitReset:
		return "Takes back changes that were not committed, in " + w.short(a.Dir)
	case GitRestore:
		return "Puts earlier versions of files in the place of the present ones, in " + w.short(a.Dir)
	case Run:
		return w.running(p, a)
	case Connect:
		host := a.Host
		if host == "" {
			return "Connects to another computer"
		}
		if a.Port != 0 {
			host += ", port " + strconv.Itoa(a.Port)
		}
		return "Connects to " + host
	case Settings:
		return "Changes settings: " + a.What
	case Install:
		if a.What == "" {
			return "Installs or removes programs"
		}
		return "Installs or removes " + a.What
	case Env:
		return "Sets " + a.What + ", which changes what programs do"
	case Root:
		return "Asks for administrator rights"
	}
	if a.Why == typedAt || a.Why == sentLater {
		return a.Why
	}
	for _, asks := range []string{"what ", "where ", "which "} {
		if strings.HasPrefix(a.Why, asks) {
			return "It can't be told beforehand " + a.Why
		}
	}
	return "It can't be told beforehand what this does: " + a.Why
}

// running is the sentence for a program whose doing is its own.
func (w *walker) running(p *part, a Act) string {
	name := path.Base(a.Program)
	if p.name == "find" {
		return "Runs " + name + " for what it finds"
	}
	if name == "git" {
		return "Changes what git keeps, and runs what is set up for that"
	}
	if name == "kill" || name == "pkill" {
		return "Ends running programs"
	}
	task := name
	if len(p.Argv) > 1 && deciders[name] != nil && !strings.HasPrefix(p.Argv[1], "-") {
		task += " " + p.Argv[1]
	}
	does := ""
	if p.prog != nil && p.prog.says != "" {
		does = strings.ReplaceAll(p.prog.says, "%", "files")
	}
	if len(p.Argv) > 1 && deciders[name] != nil && slices.ContainsFunc(p.Argv[1:], func(s string) bool { return strings.HasPrefix(s, "test") }) {
		does = "Runs the program's own tests"
	}
	if len(a.Scripts) > 0 {
		var names []Path
		for _, s := range a.Scripts {
			names = append(names, Path{Name: s})
		}
		if deciders[name] != nil {
			if does == "" {
				does = "Runs the project's own tasks"
			}
			return task + ": " + strings.ToLower(does[:1]) + does[1:] + "; what that does stands in " + w.list(names)
		}
		return "Runs the program " + w.list(names) + "; what it does is its own"
	}
	if does != "" {
		return task + ": " + strings.ToLower(does[:1]) + does[1:]
	}
	return "Runs the program " + name + "; what it does is its own"
}

// goal is where something goes.
func (w *walker) goal(a Act) string {
	if a.Into != nil {
		return w.short(a.Into.Name)
	}
	return w.list(a.Paths)
}

// chosen is the names of an act, with what a find chooses.
func (w *walker) chosen(a Act) string {
	if a.Find == nil {
		s := w.list(a.Paths)
		if a.Recursive && (a.Op == Delete || a.Op == Access) {
			s += " with everything in it"
			if len(a.Paths) > 1 || len(a.Paths) == 1 && a.Paths[0].Glob {
				s = strings.TrimSuffix(s, "it") + "them"
			}
		}
		return s
	}
	what := "the files"
	if a.Find.Types == "d" {
		what = "the folders"
	}
	if n := slices.Concat(a.Find.Names, a.Find.FoldNames, a.Find.Paths); len(n) > 0 {
		what += " named " + strings.Join(n, ", ")
	}
	switch {
	case len(a.Find.Others) == 1 && strings.HasPrefix(a.Find.Others[0], "that "):
		what += " " + a.Find.Others[0]
	case len(a.Find.Others) > 0:
		what += " that fit some tests"
	}
	where := w.list(a.Paths)
	if a.Find.MaxDepth != 1 {
		where += " and below"
	}
	return what + " in " + where
}

// maxNamed is how many names a sentence has.
const maxNamed = 3

// list is names for a sentence.
func (w *walker) list(ps []Path) string {
	if len(ps) == 0 {
		return "what it is given"
	}
	var out []string
	for _, p := range ps[:min(len(ps), maxNamed)] {
		if !p.Glob {
			out = append(out, w.short(p.Name))
			continue
		}
		dir, base := path.Split(p.Name)
		where := w.short(path.Clean(dir))
		if where == "the folder" {
			out = append(out, "the files named "+base)
		} else {
			out = append(out, "the files named "+base+" in "+where)
		}
	}
	if n := len(ps) - maxNamed; n > 0 {
		return strings.Join(out, ", ") + " and " + strconv.Itoa(n) + " more"
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
	return out[0]
}

// short is a name as seen from the session's folder.
func (w *walker) short(name string) string {
	folder := path.Clean(w.cmd.Folder)
	switch {
	case name == "":
		return "some folder"
	case w.cmd.Folder == "":
		return name
	case name == folder:
		return "the folder"
	case strings.HasPrefix(name, folder+"/"):
		return name[len(folder)+1:]
	}
	return name
}

// gitSays is what a part of git shows.
func gitSays(argv []string) string {
	for _, a := range argv {
		switch a {
		case "status":
			return "Shows what changed since the last version git keeps"
		case "log", "shortlog", "reflog", "rev-list", "whatchanged":
			return "Shows the list of versions git keeps"
		case "diff", "show", "range-diff":
			return "Shows the differences between versions git keeps"
		case "blame", "annotate":
			return "Shows who wrote each line"
		case "branch", "tag", "remote", "stash", "worktree":
			return "Lists the lines of work git keeps"
		case "grep":
			return "Searches in the files git keeps"
		case "config":
			return "Shows a setting of git"
		case "clean", "rm":
			return "Shows which files would be deleted"
		}
	}
	return "Looks at what git keeps"
}
