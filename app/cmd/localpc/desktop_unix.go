//go:build unix && !darwin

package main

import "golang.org/x/sys/unix"

// unixDesktop: a display is named by the environment.
const unixDesktop = true

// foreground tells that this program may read the terminal: in the background
// it would be stopped for that.
func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
