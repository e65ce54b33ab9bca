//go:build linux

package wl

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel's numbers of mouse buttons.
const (
	Left   uint32 = 0x110
	Right  uint32 = 0x111
	Middle uint32 = 0x112
)

// now is the time that events bear, milliseconds since the connection began.
func (c *Conn) now() uint32 { return uint32(time.Since(c.started).Milliseconds()) }

// point sends what fn does with the virtual pointer, as one.
func (c *Conn) point(ctx context.Context, fn func(id uint32) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.do(ctx, func() error {
		if c.pointer == 0 {
			manager, err := c.single(VirtualPointer, 1)
			if err != nil {
				return err
			}
			id := c.object(nil)
			if err := c.send(manager, 0, nil, uint32(0), id); err != nil {
				return err
			}
			c.pointer = id
		}
		if err := fn(c.pointer); err != nil {
			return err
		}
		if err := c.send(c.pointer, 4, nil); err != nil { // frame: the end of what belongs together
			return err
		}
		return c.sync()
	})
}

// MoveTo puts the pointer at p of an area of size, which stands for the
// smallest rectangle around all screens.
func (c *Conn) MoveTo(ctx context.Context, p, size image.Point) error {
	return c.point(ctx, func(id uint32) error {
		return c.send(id, 1, nil, c.now(), uint32(p.X), uint32(p.Y), uint32(size.X), uint32(size.Y))
	})
}

// Button presses or lets go of a button where the pointer is.
func (c *Conn) Button(ctx context.Context, button uint32, down bool) error {
	return c.point(ctx, func(id uint32) error { return c.send(id, 2, nil, c.now(), button, flag(down)) })
}

// Scroll turns the wheel by steps, down or right where positive.
func (c *Conn) Scroll(ctx context.Context, horizontal bool, steps int) error {
	return c.point(ctx, func(id uint32) error {
		const wheel, notch = 0, 15 // a notch is 15 points, as of real mice
		if err := c.send(id, 5, nil, uint32(wheel)); err != nil {
			return err
		}
		return c.send(id, 7, nil, c.now(), flag(horizontal), fixed(steps*notch*256), int32(steps))
	})
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Modifiers of Key, as bits; they are the first eight real modifiers of xkb.
const (
	Shift uint32 = 1
	Ctrl  uint32 = 4
	Alt   uint32 = 8
	Super uint32 = 64
)

// A virtual keyboard has a layout of its own, so that what is typed does not
// depend on the person's: each keysym that is needed gets a key. Those of usual
// have the keys that real keyboards have them on, since some programs look at
// the key instead; others have what is left, and when that is used up begin anew.
const lastKey = 247 // the kernel's number; xkb has room for no more

var usual = func() map[uint32]uint32 {
	m := map[uint32]uint32{0xff1b: 1, 0xff08: 14, 0xff09: 15, 0xff0d: 28, 0xffe3: 29, 0xffe1: 42, 0xffe2: 54, 0xffe9: 56, ' ': 57, 0xffe5: 58,
		0xffe4: 97, 0xffea: 100, 0xff50: 102, 0xff52: 103, 0xff55: 104, 0xff51: 105, 0xff53: 106, 0xff57: 107, 0xff54: 108, 0xff56: 109,
		0xff63: 110, 0xffff: 111, 0xffeb: 125, 0xffec: 126, 0xff67: 127, 0xffc8: 87, 0xffc9: 88}
	for first, row := range map[uint32]string{2: "1234567890-=", 16: "qwertyuiop[]", 30: "asdfghjkl;'`", 43: "\\zxcvbnm,./"} {
		for i, r := range row {
			m[uint32(r)] = first + uint32(i)
		}
	}
	for n := range uint32(10) {
		m[0xffbe+n] = 59 + n // F1 to F10
	}
	return m
}()

// spare are the keys that usual leaves.
var spare = func() []uint32 {
	taken := map[uint32]bool{}
	for _, key := range usual {
		taken[key] = true
	}
	var out []uint32
	for key := uint32(2); key <= lastKey; key++ {
		if !taken[key] {
			out = append(out, key)
		}
	}
	return out
}()

// Attach plugs pointer and keyboard in, so that programs know of them before
// they are used.
func (c *Conn) Attach(ctx context.Context) error {
	if err := c.point(ctx, func(uint32) error { return nil }); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.do(ctx, func() error { return c.assign(nil) })
}

// Key presses or lets go of the key with an X keysym, with modifiers as they
// are held then.
func (c *Conn) Key(ctx context.Context, keysym uint32, down bool, modifiers uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.do(ctx, func() error {
		key, err := c.keyOf(keysym)
		if err != nil {
			return err
		}
		if err := c.send(c.keyboard, 1, nil, c.now(), key, flag(down)); err != nil {
			return err
		}
		if err := c.send(c.keyboard, 2, nil, modifiers, uint32(0), uint32(0), uint32(0)); err != nil {
			return err
		}
		return c.sync()
	})
}

// Prepare gives keys to all of keysyms at once, so that the layout need not
// change while they are typed. There may be MaxPrepared of them.
func (c *Conn) Prepare(ctx context.Context, keysyms []uint32) error {
	if len(keysyms) > MaxPrepared {
		return fmt.Errorf("%d keysyms are too many at once; %d are the most", len(keysyms), MaxPrepared)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.do(ctx, func() error { return c.assign(keysyms) })
}

// MaxPrepared is how many keysyms Prepare takes.
const MaxPrepared = 150

func (c *Conn) keyOf(keysym uint32) (uint32, error) {
	if err := c.assign([]uint32{keysym}); err != nil {
		return 0, err
	}
	return c.keys[keysym], nil
}

func (c *Conn) assign(keysyms []uint32) error {
	if c.keyboard == 0 {
		manager, err := c.single(VirtualKeyboard, 1)
		if err != nil {
			return err
		}
		seat, err := c.single(seatIface, 1)
		if err != nil {
			return err
		}
		id := c.object(nil)
		if err := c.send(manager, 0, nil, seat, id); err != nil {
			return err
		}
		c.keyboard, c.keys = id, maps.Clone(usual)
		if err := c.sendKeymap(); err != nil {
			return err
		}
	}
	lacks := 0
	for _, k := range keysyms {
		if c.keys[k] == 0 {
			lacks++
		}
	}
	if lacks == 0 {
		return nil
	}
	if len(c.keys)-len(usual)+lacks > len(spare) {
		c.keys = maps.Clone(usual)
	}
	for _, k := range keysyms {
		if c.keys[k] == 0 {
			c.keys[k] = spare[len(c.keys)-len(usual)]
		}
	}
	return c.sendKeymap()
}

// sendKeymap tells the compositor what is on which key.
func (c *Conn) sendKeymap() error {
	text := keymap(c.keys)
	fd, err := unix.MemfdCreate("localpc-keymap", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "keymap")
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return err
	}
	const textV1 = 1
	if err := c.send(c.keyboard, 0, f, uint32(textV1), uint32(len(text))); err != nil {
		return err
	}
	return c.sync()
}

// keymap writes the layout in the text form of xkb. Modifiers are sent beside
// the keys, so that no key needs to be one, but those with a modifier's keysym
// are, as programs expect.
func keymap(keys map[uint32]uint32) []byte {
	const evdev = 8 // xkb counts the kernel's keys from 8 on
	var b bytes.Buffer
	b.WriteString("xkb_keymap {\nxkb_keycodes \"localpc\" {\nminimum = 8;\nmaximum = 255;\n")
	for _, key := range keys {
		fmt.Fprintf(&b, "<K%d> = %d;\n", key, key+evdev)
	}
	b.WriteString("};\nxkb_types \"localpc\" { include \"complete\" };\nxkb_compatibility \"localpc\" { include \"complete\" };\nxkb_symbols \"localpc\" {\n")
	for sym, key := range keys {
		fmt.Fprintf(&b, "key <K%d> { [ %#x ] };\n", key, sym)
	}
	for _, m := range []struct {
		name string
		syms []uint32
	}{{"Shift", []uint32{0xffe1, 0xffe2}}, {"Control", []uint32{0xffe3, 0xffe4}}, {"Mod1", []uint32{0xffe9, 0xffea}}, {"Mod4", []uint32{0xffeb, 0xffec}}} {
		for _, sym := range m.syms {
			if key := keys[sym]; key != 0 {
				fmt.Fprintf(&b, "modifier_map %s { <K%d> };\n", m.name, key)
			}
		}
	}
	b.WriteString("};\n};\n\x00")
	return b.Bytes()
}
