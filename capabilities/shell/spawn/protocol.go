// Package spawn is the last link of step 5: what localpc-spawn does, and the
// words the shell executor and it exchange. Everything that a command starts
// lives below a localpc-spawn, and ends with it: in a container it is process
// 1, so the kernel ends the rest; with full access it is a subreaper that
// walks its descendants, with a second one (the guard) above it in case it is
// killed itself. A container that is entered once for many commands has a keeper
// as process 1, which starts each below a process 1 of the command's own.
//
// The commands of such a container share its network: what one of them serves
// on localhost the next one reaches. They share its abstract sockets with that,
// too, and its ports: they are of one session and have the same rights, over the
// same files. What they do not share is what the person has allowed one of them.
// There is one way out, the proxy at ProxyPort, at the same address for all, so
// that no address is worth borrowing; whose a connection is the keeper finds out
// itself (see keeper.whose): the socket at the other end is in the open files of
// a process, and that process is in the namespace of one command, which it can't
// leave. Where that can't be said for sure (the program has closed its end
// already, hides its open files, or shares the socket with another command) the
// connection is nobody's, and no command's permission holds for it.
//
// Descriptors at its start: 3 is the control socket, 4 and 5 are the command's
// standard output and error, 6 is its standard input. The control socket
// carries JSON values: one Spec and then Orders towards localpc-spawn, Events
// back. Its end of file ends everything. A keeper has 3 only, on which all four
// come for each command, and connections go back: see Visit.
package spawn

// The roles, given as the first argument.
const (
	RoleInit   = "init"   // process 1 of a container for one command
	RoleKeep   = "keep"   // process 1 of a container for many; Open or Closed follows, and parts of /proc to cover
	RoleGuard  = "guard"  // full access: starts a worker and outlives it
	RoleWorker = "worker" // full access: runs the command
	// RoleConnect, with a host and a port, joins its standard input and output
	// to a connection through the proxy in a container: what ssh needs.
	RoleConnect = "connect"
)

// Whether commands in a container for many have a way out: a container with one
// is never the same as one without.
const (
	Open   = "open"
	Closed = "closed"
)

// ProxyPort is where the proxy is in a container, on 127.0.0.1.
const ProxyPort = 3128

// Descriptors of localpc-spawn.
const (
	fdControl = 3
	fdStdout  = 4
	fdStderr  = 5
	fdStdin   = 6
)

// Spec says what to run. Texts are bytes, because paths and variables need
// not be UTF-8.
type Spec struct {
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"` // NAME=value
	Dir  []byte   `json:"dir"`
	// LimitMS ends the whole tree that many milliseconds after the start,
	// unless the command has ended; 0 is none.
	LimitMS int64 `json:"limit_ms,omitempty"`
	// GraceMS is how long the tree has from SIGTERM, at its limit, to SIGKILL;
	// 0 is SIGKILL at once.
	GraceMS int64 `json:"grace_ms,omitempty"`
	// Checks are what has to be mounted where; otherwise nothing runs.
	Checks []Check `json:"checks,omitempty"`
	// Hold are directories that are to stay where they are, in a container for
	// many, with what is in those that are ReadOnly: outer ones first.
	Hold []Held `json:"hold,omitempty"`
	// Proxy, of a command that has its container alone, wants a listening socket
	// on 127.0.0.1 at ProxyPort. A socket belongs to the network it was made in,
	// whoever has it: it comes with Started, as a descriptor (SCM_RIGHTS), and
	// localpc takes the container's connections from it.
	Proxy bool `json:"proxy,omitempty"`
	// Number is what a keeper calls the command in a Visit; 0 for one whose
	// connections are nobody's.
	Number int64 `json:"number,omitempty"`
	// Terminal runs the command at a terminal of its own of that size, in place
	// of the pipes. It is made where the command runs, so that its name is right
	// there; the end that is read and typed into comes with Started or before it,
	// as the last descriptor.
	Terminal *Size `json:"terminal,omitempty"`
}

// Size of a terminal, in characters.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// VisitSize is the length of a Visit: what a keeper sends for each connection
// that a command makes to the proxy, with the connection itself as a descriptor.
// It is the Number of the command as 8 bytes in the computer's own order; 0 when
// it can't be said for sure whose the connection is.
const VisitSize = 8

// Check names a directory and the identity it must have.
type Check struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// Held names a directory that becomes a mount of its own for one command.
type Held struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Order is a signal for the whole tree: SIGTERM or SIGKILL; SIGSTOP, which holds
// it and its time limit, or SIGCONT, which lets both go on.
type Order struct {
	Signal int `json:"signal"`
}

// Kind of an Event. Serialised.
type Kind string

const (
	Started  Kind = "started"
	Failed   Kind = "failed"   // nothing was started
	Exited   Kind = "exited"   // the command itself has ended
	Children Kind = "children" // one that it left behind has ended
)

// What could not be had for the start.
const (
	FailedMount   = "mount"   // a Check did not hold
	FailedDir     = "dir"     // the working directory
	FailedProgram = "program" // not found
	FailedExec    = "exec"    // found, and could not be started
	FailedProxy   = "proxy"   // the listening socket
	FailedTTY     = "tty"     // the terminal
	FailedProc    = "proc"    // its own /proc
)

// Event is what localpc-spawn reports.
type Event struct {
	Kind     Kind   `json:"kind"`
	PID      int    `json:"pid,omitempty"`    // Started: of localpc-spawn itself; 0 from a container for many, where the sender is it
	Code     int    `json:"code,omitempty"`   // -1 when ended by a signal
	Signal   string `json:"signal,omitempty"` // "killed", as package syscall names it
	TimedOut bool   `json:"timed_out,omitempty"`
	Running  int    `json:"running,omitempty"` // processes that are left
	What     string `json:"what,omitempty"`    // Failed: see above
	Errno    int    `json:"errno,omitempty"`
}
