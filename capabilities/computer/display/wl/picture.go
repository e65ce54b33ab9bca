//go:build linux

package wl

import (
	"context"
	"fmt"
	"image"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Formats of a picture: its bytes are blue, green, red, and the fourth of no
// use; or red, green, blue.
const (
	argb8888 = 0
	xrgb8888 = 1
	abgr8888 = 0x34324241
	xbgr8888 = 0x34324258
)

// Picture takes what a screen shows, turned as it is, with the pointer or
// without. ErrMissing where the compositor does not offer it.
func (c *Conn) Picture(ctx context.Context, of Output, pointer bool) (*image.RGBA, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var m *image.RGBA
	err := c.do(ctx, func() (err error) {
		m, err = c.picture(of, pointer)
		return err
	})
	if err != nil {
		return nil, err
	}
	return turn(m, of.Turned), nil
}

// frame is what the compositor tells of one picture.
type frame struct {
	format, width, height, stride uint32
	known, flipped, ready, failed bool
}

func (f *frame) event(e event) {
	switch e.op {
	case 0: // buffer
		f.format, f.width, f.height, f.stride = e.uint(), e.uint(), e.uint(), e.uint()
		f.known = true
	case 1: // flags
		f.flipped = e.uint()&1 != 0
	case 2:
		f.ready = true
	case 3:
		f.failed = true
	}
}

func (c *Conn) picture(of Output, pointer bool) (*image.RGBA, error) {
	manager, err := c.single(Screencopy, 1)
	if err != nil {
		return nil, err
	}
	shm, err := c.single(shmIface, 1)
	if err != nil {
		return nil, err
	}
	o := c.outputs[of.name]
	if o == nil {
		return nil, fmt.Errorf("%w: the screen is gone", ErrFailed)
	}
	var f frame
	id := c.object(f.event)
	overlay := int32(0)
	if pointer {
		overlay = 1
	}
	if err := c.send(manager, 0, nil, id, overlay, o.id); err != nil {
		return nil, err
	}
	if err := c.until(func() bool { return f.known || f.failed }); err != nil {
		return nil, err
	}
	if f.failed {
		return nil, ErrFailed
	}
	if f.width < 1 || f.height < 1 || f.width > 1<<15 || f.height > 1<<15 || f.stride < 4*f.width || f.stride > 1<<18 || int64(f.stride)*int64(f.height) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: it would be %d × %d", ErrFailed, f.width, f.height)
	}
	size := int(f.stride) * int(f.height)
	fd, err := unix.MemfdCreate("localpc-picture", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	file := os.NewFile(uintptr(fd), "picture")
	defer file.Close()
	if err := file.Truncate(int64(size)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	pool, buffer := c.object(nil), c.object(nil)
	err = c.send(shm, 0, file, pool, int32(size))
	if err == nil {
		err = c.send(pool, 0, nil, buffer, int32(0), int32(f.width), int32(f.height), int32(f.stride), f.format)
	}
	if err == nil {
		err = c.send(id, 0, nil, buffer)
	}
	if err == nil {
		err = c.until(func() bool { return f.ready || f.failed })
	}
	for object, op := range map[uint32]uint16{buffer: 0, pool: 1, id: 1} { // their destroy
		if err == nil {
			err = c.send(object, op, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	if f.failed {
		return nil, ErrFailed
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer func() { _ = unix.Munmap(data) }()
	return f.convert(data)
}

// convert copies the picture out of the shared memory.
func (f *frame) convert(data []byte) (*image.RGBA, error) {
	blueFirst := f.format == argb8888 || f.format == xrgb8888
	if !blueFirst && f.format != abgr8888 && f.format != xbgr8888 {
		return nil, fmt.Errorf("%w: its format %#x is not known", ErrFailed, f.format)
	}
	w, h := int(f.width), int(f.height)
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		from := y
		if f.flipped {
			from = h - 1 - y
		}
		src, dst := data[from*int(f.stride):][:4*w], m.Pix[y*m.Stride:][:4*w]
		copy(dst, src)
		for x := 0; x < len(dst); x += 4 {
			if blueFirst {
				dst[x], dst[x+2] = dst[x+2], dst[x]
			}
			dst[x+3] = 255
		}
	}
	return m, nil
}

// turn makes a picture of the panel one of what the person sees on it.
func turn(m *image.RGBA, degrees int) *image.RGBA {
	if degrees == 0 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	size := image.Pt(w, h)
	if degrees != 180 {
		size = image.Pt(h, w)
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	for y := range h {
		for x := range w {
			to := image.Pt(w-1-x, h-1-y)
			switch degrees {
			case 90:
				to = image.Pt(y, w-1-x)
			case 270:
				to = image.Pt(h-1-y, x)
			}
			copy(out.Pix[out.PixOffset(to.X, to.Y):][:4], m.Pix[m.PixOffset(x, y):][:4])
		}
	}
	return out
}
