//go:build linux

package wl

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxKeymap is the most bytes of a keymap; those of desktops have some 60,000.
const maxKeymap = 8 << 20

// Keymap is the layouts of the person's keyboard, in the text form of xkb.
// ErrMissing where there is no keyboard. The connection is of no use afterwards:
// the caller closes it.
func (c *Conn) Keymap(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := ""
	err := c.do(ctx, func() error {
		var has uint32
		var seat uint32
		for name, g := range c.globals {
			if g.iface != seatIface {
				continue
			}
			id, err := c.bind(name, 1, func(e event) {
				if e.op == 0 {
					has = e.uint()
				}
			})
			if err != nil {
				return err
			}
			seat = id
			break
		}
		if seat == 0 {
			return fmt.Errorf("%w: %s", ErrMissing, seatIface)
		}
		if err := c.sync(); err != nil {
			return err
		}
		const keyboard = 2
		if has&keyboard == 0 {
			return fmt.Errorf("%w: there is no keyboard", ErrMissing)
		}
		var failed error
		id := c.object(func(e event) {
			if e.op != 0 || text != "" || failed != nil {
				return
			}
			format, size := e.uint(), e.uint()
			if text, failed = c.keymapOf(format, size); failed == nil && text == "" {
				failed = fmt.Errorf("%w: the keyboard has no layout", ErrMissing)
			}
		})
		if err := c.send(seat, 1, nil, id); err != nil {
			return err
		}
		if err := c.until(func() bool { return text != "" || failed != nil }); err != nil {
			return err
		}
		return failed
	})
	return text, err
}

// keymapOf reads the keymap whose descriptor has just come.
func (c *Conn) keymapOf(format, size uint32) (string, error) {
	if len(c.fds) == 0 {
		return "", fmt.Errorf("%w: the keyboard's layout did not come", ErrMissing)
	}
	f := os.NewFile(uintptr(c.fds[0]), "keymap")
	c.fds = c.fds[1:]
	defer f.Close()
	const textV1 = 1
	if format != textV1 || size > maxKeymap {
		return "", fmt.Errorf("%w: a layout of the keyboard that can be read", ErrMissing)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	return unix.ByteSliceToString(b[:n]), nil // it ends with a zero
}
