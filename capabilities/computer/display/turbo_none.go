//go:build !linux || !cgo

package display

var jpegs = plainJPEG
