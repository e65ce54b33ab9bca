//go:build !linux

package desklink

import (
	"fmt"
	"os"
)

// OpenChild takes the link of this process and leaves standard error where
// prints went to standard output. Call it first, once; it returns ErrByHand
// when localpc did not start the process.
func OpenChild() (*Child, error) {
	in, out, err := OpenLink()
	if err != nil {
		return nil, err
	}
	return NewChild(in, out), nil
}

// OpenLink is OpenChild for the process at the display, whose messages are
// others.
func OpenLink() (in, out *os.File, err error) {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		st, err := f.Stat()
		if err != nil || st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			return nil, nil, ErrByHand
		}
	}
	in, out = os.Stdin, os.Stdout
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	os.Stdin, os.Stdout = null, os.Stderr
	return in, out, nil
}
