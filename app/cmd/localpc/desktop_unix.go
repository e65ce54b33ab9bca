//go:build unix && !darwin

package main

// unixDesktop: a display is named by the environment.
const unixDesktop = true
