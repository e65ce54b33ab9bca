//go:build !unix || darwin

package main

// unixDesktop: the desktop is always there.
const unixDesktop = false
