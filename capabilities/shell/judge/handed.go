package judge

import (
	"path"
	"slices"
	"strings"
)

// A program that is not followed here may still be told, in the line itself,
// what to write or which other program to run. That is judged.

// outputs notes the files that are there and stand behind an option for what a
// program makes: -o, --output, -keyout.
func (c *call) outputs() {
	args := c.args[1:]
	for i, a := range args {
		if len(a.text) < 2 || a.text[0] != '-' {
			continue
		}
		name, v, eq := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
		if a.sureness != sure {
			if eq && surelyOutput(name) {
				c.unknown(opWhat(Write) + ": " + loosely(a) + " decides it")
			}
			continue
		}
		w := lit(v)
		switch {
		case eq:
			if !namesOutput(name) {
				continue
			}
		case namesOutput(name):
			if i+1 == len(args) {
				continue
			}
			w = args[i+1]
		case a.text[1] == 'o':
			w = lit(a.text[2:])
		default:
			continue
		}
		switch {
		case w.sureness == unsure && surelyOutput(name):
			c.unknown(opWhat(Write) + ": " + loosely(w) + " decides it")
		case w.sureness == pattern, w.sureness == sure && c.thereFile(w.text):
			c.on(Write, w)
		}
	}
}

// surelyOutput are the names that mean a file nearly everywhere.
func surelyOutput(option string) bool {
	return option == "o" || option == "out" || option == "output" || option == "keyout"
}

func namesOutput(option string) bool {
	n := strings.ToLower(option)
	return n == "o" || n == "of" || strings.Contains(n, "out") || strings.Contains(n, "dest") || strings.Contains(n, "coverprofile")
}

// there tells whether a name is in the folder, as far as that can be told.
func (c *call) there(name string) bool {
	at, _ := c.st.at(name)
	return c.w.cmd.List != nil && slices.ContainsFunc(at, func(p string) bool {
		names, ok := c.w.cmd.List(path.Dir(p))
		return ok && slices.Contains(names, path.Base(p)) || c.isFolder(p)
	})
}

func (c *call) thereFile(name string) bool {
	at, _ := c.st.at(name)
	return c.there(name) && !slices.ContainsFunc(at, c.isFolder)
}

func (c *call) isFolder(at string) bool {
	_, ok := c.w.cmd.List(at)
	return ok
}

// hands judges the command that a program starts for another one, as a part of
// its own: npx, uv run. It is the last that is said of the program.
func (c *call) hands(args []word) {
	for len(args) > 0 && args[0].sureness == sure && strings.HasPrefix(args[0].text, "-") {
		end := args[0].is("--")
		if args = args[1:]; end {
			break
		}
	}
	c.emit()
	if len(args) == 0 {
		return
	}
	d := &call{w: c.w, fr: c.fr, st: c.st.clone(), in: input{piped: true, typed: c.in.typed}, args: args, text: c.text, bare: true, envs: c.envs}
	d.via = append(slices.Clone(c.via), c.name)
	if len(d.via) > maxDepth {
		panic(tooMuch("This command has too many commands inside each other to be read before it runs."))
	}
	d.run()
}

// starters do nothing but start another program in some surroundings: the word
// after their name is no word of their own.
var starters = strings.Fields("setarch linux32 linux64 i386 x86_64 prlimit choom setpriv fakeroot eatmydata faketime xvfb-run dbus-run-session chronic unbuffer valgrind runcon cpulimit numactl uclampset ld.so")

// handed finds a command line among the arguments of a program that is not on
// the list: one with a name that nobody uses for anything else, or one that
// would change files.
func (c *call) handed() string {
	args := c.args[1:]
	if what := handedCommand(args); what != "" {
		return what
	}
	for i, a := range args {
		if a.sureness != sure || a.text == "" || i > 12 {
			continue
		}
		dir, base := path.Split(a.text)
		if c.w.programs[base] == nil || dir != "" && !systemDirs[path.Clean(dir)] || i == 0 && slices.Contains([]string{"install", "link", "patch", "split", "script"}, base) && !slices.Contains(starters, c.name) {
			continue
		}
		if c.changes(args[i:]) {
			return a.text
		}
	}
	return ""
}

// changes tells whether a command would surely change files.
func (c *call) changes(args []word) bool {
	w := c.w
	dry, parts := w.dry, w.parts
	w.dry, w.parts = 0, nil
	d := &call{w: w, fr: c.fr, st: c.st.clone(), in: input{piped: true}, args: args, text: c.text, bare: true}
	d.via = append(slices.Clone(c.via), c.name)
	d.run()
	yes := slices.ContainsFunc(w.parts, func(p *part) bool {
		return slices.ContainsFunc(p.Acts, func(a Act) bool { return a.Op >= Create && a.Op <= GitRestore })
	})
	w.dry, w.parts = dry, parts
	return yes
}
