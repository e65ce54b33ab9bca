package setup

import "path/filepath"

// Autostart has the system start this program when the person logs in.
type Autostart struct {
	Book *Book
	Exe  string // the program, an absolute path
	// Data is the data directory where it is not the usual one, else "".
	Data string
	// Display: the person has a desktop, whose log-in starts programs.
	Display bool
}

// args are what the program is started with.
func (a Autostart) args() []string {
	args := []string{a.Exe, "run", "--background"}
	if a.Data != "" {
		args = append(args, "--data", a.Data)
	}
	return args
}

// name is what the system's lists call it: two data directories of one person
// have two.
func (a Autostart) name() string {
	if a.Data == "" {
		return "localpc"
	}
	return "localpc-" + HashOf([]byte(filepath.Clean(a.Data)))[:8]
}

// Undo puts everything back that the book has, as PutBack does, and has the
// system notice it.
func Undo(b *Book) (left []string, err error) {
	left, err = b.PutBack()
	reload()
	return left, err
}
