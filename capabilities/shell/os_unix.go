//go:build unix

package shell

import "syscall"

// What holds a process still, and lets it go on.
const sigHold, sigGoOn = syscall.SIGSTOP, syscall.SIGCONT

// onlyDirectory opens nothing that is no directory: a pipe would be waited for.
const onlyDirectory = syscall.O_DIRECTORY
