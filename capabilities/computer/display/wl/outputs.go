//go:build linux

package wl

import (
	"cmp"
	"context"
	"image"
	"slices"
)

// Interfaces of the compositor, as Offers takes them.
const (
	Screencopy      = "zwlr_screencopy_manager_v1"
	VirtualPointer  = "zwlr_virtual_pointer_manager_v1"
	VirtualKeyboard = "zwp_virtual_keyboard_manager_v1"

	outputIface    = "wl_output"
	xdgOutputIface = "zxdg_output_manager_v1"
	shmIface       = "wl_shm"
	seatIface      = "wl_seat"
)

// Output is one screen.
type Output struct {
	Name string
	// Points is where it lies in the compositor's points, Pixels how many it has,
	// as turned already.
	Points image.Rectangle
	Pixels image.Point
	Turned int // 0, 90, 180, 270 degrees clockwise

	name uint32 // in the registry
}

type output struct {
	id                    uint32
	xdg                   uint32
	name                  string
	at, mode, logical     image.Point
	logicalAt             image.Point
	hasLogical            bool
	transform, wholeScale int
}

// Outputs are the screens as they are now, in the order in which they came.
func (c *Conn) Outputs(ctx context.Context) ([]Output, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Output
	err := c.do(ctx, func() error {
		if err := c.sync(); err != nil {
			return err
		}
		if err := c.bindOutputs(); err != nil {
			return err
		}
		out = c.list()
		return nil
	})
	return out, err
}

// bindOutputs makes objects of the screens that have none, and hears about them.
func (c *Conn) bindOutputs() error {
	xdg, xdgErr := c.single(xdgOutputIface, 2)
	fresh := false
	for name, g := range c.globals {
		if g.iface != outputIface || c.outputs[name] != nil {
			continue
		}
		o := &output{wholeScale: 1}
		id, err := c.bind(name, 4, o.event)
		if err != nil {
			return err
		}
		o.id = id
		if xdgErr == nil {
			o.xdg = c.object(o.xdgEvent)
			if err := c.send(xdg, 1, nil, o.xdg, o.id); err != nil {
				return err
			}
		}
		c.outputs[name] = o
		fresh = true
	}
	if !fresh {
		return nil
	}
	return c.sync()
}

func (c *Conn) list() []Output {
	var out []Output
	for name, o := range c.outputs {
		if o.mode.X < 1 || o.mode.Y < 1 {
			continue
		}
		// Wayland counts the other way.
		s := Output{name: name, Name: o.name, Pixels: o.mode, Turned: []int{0, 270, 180, 90}[o.transform&3]}
		if o.transform&1 == 1 {
			s.Pixels = image.Pt(s.Pixels.Y, s.Pixels.X)
		}
		at, size := o.at, s.Pixels.Div(o.wholeScale)
		if o.hasLogical && o.logical.X > 0 && o.logical.Y > 0 {
			at, size = o.logicalAt, o.logical
		}
		s.Points = image.Rectangle{Min: at, Max: at.Add(size)}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Output) int { return cmp.Compare(a.name, b.name) })
	return out
}

func (o *output) event(e event) {
	switch e.op {
	case 0: // geometry
		o.at = image.Pt(e.int(), e.int())
		e.int()
		e.int()
		e.int()
		e.text()
		e.text()
		o.transform = e.int()
	case 1: // mode
		if flags := e.uint(); flags&1 != 0 {
			o.mode = image.Pt(e.int(), e.int())
		}
	case 3:
		o.wholeScale = max(1, e.int())
	case 4:
		o.name = e.text()
	}
}

func (o *output) xdgEvent(e event) {
	switch e.op {
	case 0:
		o.logicalAt = image.Pt(e.int(), e.int())
	case 1:
		o.logical, o.hasLogical = image.Pt(e.int(), e.int()), true
	case 3:
		if o.name == "" {
			o.name = e.text()
		}
	}
}
