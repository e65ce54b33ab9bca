//go:build !unix || darwin

package main

// unixDesktop: the desktop is always there.
const unixDesktop = false

// foreground: a program that can't be in the background reads its terminal.
func foreground(int) bool { return true }
