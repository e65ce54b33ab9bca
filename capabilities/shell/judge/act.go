package judge

import "slices"

// Command is what would be started, and where.
type Command struct {
	// Argv is the program and its arguments. A shell with -c (or what stands
	// for one, see shell.command) is judged by its text.
	Argv []string
	// Dir is the working directory, Home what ~ is, Folder the session's folder:
	// absolute paths, as the command itself sees them.
	Dir, Home, Folder string
	// Env are the variables that the request sets. What is not in it is known
	// only at run time; the machine's own environment does not belong here.
	Env map[string]string
	// Read returns a file of the session's folder by its absolute path, at most
	// 64 KiB of it, so that a shell script is judged by its text; nil or false
	// where there is none to be read. What was read becomes part of the
	// fingerprint (Judgement.Read).
	Read func(path string) ([]byte, bool)
	// List returns the names in a directory; false where that can't be told.
	// A pattern like *.txt may fit a name like "-rf.txt", which is an option
	// then. Nil: a program that could do harm with such a name is Unknown.
	List func(dir string) (names []string, ok bool)
	// Link returns what a symbolic link of that absolute path holds; false where
	// there is none. Nil: no name is one.
	Link func(path string) (target string, ok bool)
	// Typed: what it reads on its standard input comes later, and is not judged.
	// Terminal: it runs at a terminal, and what is typed there is not judged.
	Typed, Terminal bool
}

// Judgement is what a command would do.
type Judgement struct {
	// Parts are the simple commands in the order of the text, those inside
	// wrappers, substitutions, functions and scripts too.
	Parts []Part
	// Problem says in a sentence why the line could not be read. Then anything
	// may happen.
	Problem string
	// Read are the files that were read for it (scripts), by absolute path.
	Read []string
	// Typed: something in it runs what comes later, or may.
	Typed bool
}

// Part is one simple command with what it does.
type Part struct {
	Text     string   // its bytes of the line, or of the script
	Argv     []string // of the program that is run in the end, where it is known
	Via      []string // the wrappers before it: "sudo", "xargs"
	Sentence string   // plain words: "Deletes the files named *.tmp in Pictures and below"
	Acts     []Act
}

// unknown tells whether something of it can't be told.
func (p Part) unknown() bool {
	return slices.ContainsFunc(p.Acts, func(a Act) bool { return a.Op == Unknown })
}

// Op is what an act does. Not serialised.
type Op int

const (
	Read       Op = iota + 1 // Paths
	Create                   // Paths: names that are made, or left as they are when they exist (mkdir -p, touch)
	Write                    // Paths: replaced, or made
	Append                   // Paths: grow, or are made
	Edit                     // Paths: changed in place (sed -i)
	Truncate                 // Paths: cut, or made
	Delete                   // Paths, Recursive, Find
	Move                     // From to Into or Paths[0]
	Copy                     // From to Into or Paths[0]; replaces what has the name
	Link                     // From to Into or Paths[0]
	Access                   // Paths, Recursive: changes who may read, write or run them
	Extract                  // the archive From[0] into Into
	GitClean                 // Argv of git clean, in Dir
	GitReset                 // Argv of git reset --hard and the like, in Dir
	GitRestore               // Argv of git checkout/restore that replaces files, in Dir
	Run                      // a program whose doing is its own: Program, Scripts
	Connect                  // Host, Port
	Settings                 // What is set
	Install                  // What is installed or removed
	Env                      // What: a variable that changes what programs run, "PATH"
	Root                     // asks for administrator rights
	Unknown                  // Why: can't be told before it runs
)

// Act is one effect of a part.
type Act struct {
	Op        Op
	Paths     []Path
	From      []Path
	Into      *Path // a directory that takes From, where that is sure
	Exact     bool  // Paths[0] is the name that From gets, even where a directory has it (mv -T)
	Itself    bool  // Paths[0] is not followed where it is a link to a directory (ln -n)
	Recursive bool
	Find      *Find    // for what find chooses itself, below Paths
	Dir       string   // where it happens, for git
	Argv      []string // of git; of a listing that tells what an archive has
	Program   string   // Run
	Scripts   []string // Run: files that decide what it does, by absolute path
	Host      string   // Connect: as it stands there
	Port      int      // Connect; 0 for the usual one
	What      string   // Settings, Install, Env: in a few words
	Why       string   // Unknown: "the name stands in $X"
	// Replaces is false where the command is told not to replace (cp -n).
	Replaces bool
}

// ReadsOnly tells whether all of it is surely nothing but reading.
func (j Judgement) ReadsOnly() bool {
	if j.Problem != "" {
		return false
	}
	for _, p := range j.Parts {
		for _, a := range p.Acts {
			if a.Op != Read {
				return false
			}
		}
	}
	return true
}

// Path is a name, absolute and clean. With Glob it is a pattern of path.Match
// (and ** where the shell has it switched on); as in a shell, a * or ? at the
// beginning of a name fits no dot. Where a command may run in one of several
// directories (cd that may fail), an act has the names in all of them.
type Path struct {
	Name string
	Glob bool
	// Raw is the same name as it was written, made absolute but not clean, where
	// it goes up again (a/../b): a may be a link, and then it is another name.
	Raw string
}

// Find are the tests of a find command that choose what it acts on. What is
// not one of these makes the act Unknown.
type Find struct {
	Names     []string // patterns of -name; an entry fits one of them
	FoldNames []string // of -iname
	Paths     []string // of -path
	Types     string   // letters of -type
	MinDepth  int
	MaxDepth  int // -1: no limit
	// Others are tests that were not understood, so that fewer may be chosen
	// than are counted: "-mtime +30". Counted is then "at most".
	Others []string
}
