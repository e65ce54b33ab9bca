// Package robot moves the mouse and presses keys by github.com/go-vgo/robotgo,
// for the display (step 5) on Windows and macOS; on X11 it is tested. What
// robotgo does not do right on a system (text, places on screens of several
// scales, turning the wheel sideways) the display does beside it. Without cgo
// there is nothing in it.
package robot
