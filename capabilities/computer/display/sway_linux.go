package display

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net"
	"slices"
	"time"

	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// swayWindows lists the windows of sway, which tells its own socket what
// Wayland tells nobody. Menus that reach out of their window are not in it.
type swayWindows struct {
	socket string
	layout func(context.Context) (space.Layout, error)
}

// What sway is asked for.
const (
	swayRun  uint32 = 0
	swayTree uint32 = 4

	swayMagic = "i3-ipc"
	swayMost  = 16 << 20 // bytes of one answer
)

// ask sends one message, and reads its answer into to.
func (s *swayWindows) ask(ctx context.Context, kind uint32, payload string, to any) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return fmt.Errorf("ask sway: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	msg := binary.NativeEndian.AppendUint32([]byte(swayMagic), uint32(len(payload)))
	msg = append(binary.NativeEndian.AppendUint32(msg, kind), payload...)
	if _, err := conn.Write(msg); err != nil {
		return fmt.Errorf("ask sway: %w", err)
	}
	head := make([]byte, len(swayMagic)+8)
	if _, err := io.ReadFull(conn, head); err != nil {
		return fmt.Errorf("hear sway: %w", err)
	}
	size := binary.NativeEndian.Uint32(head[len(swayMagic):])
	if string(head[:len(swayMagic)]) != swayMagic || size > swayMost {
		return errors.New("hear sway: that is no answer")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return fmt.Errorf("hear sway: %w", err)
	}
	return json.Unmarshal(body, to)
}

// swayNode is a part of sway's tree.
type swayNode struct {
	ID       uint64     `json:"id"`
	Type     string     `json:"type"`
	Name     string     `json:"name"`
	AppID    string     `json:"app_id"`
	PID      int        `json:"pid"`
	Rect     swayRect   `json:"rect"`
	Deco     swayRect   `json:"deco_rect"`
	Focused  bool       `json:"focused"`
	Visible  bool       `json:"visible"`
	Full     int        `json:"fullscreen_mode"`
	Nodes    []swayNode `json:"nodes"`
	Floating []swayNode `json:"floating_nodes"`
	X11      struct {
		Class string `json:"class"`
	} `json:"window_properties"`
}

type swayRect struct {
	X, Y, Width, Height int
}

func (r swayRect) image() image.Rectangle { return image.Rect(r.X, r.Y, r.X+r.Width, r.Y+r.Height) }

func (s *swayWindows) list(ctx context.Context, _ time.Time) (stack, over space.Stack, err error) {
	layout, err := s.layout(ctx)
	if err != nil {
		return nil, nil, err
	}
	var root swayNode
	if err := s.ask(ctx, swayTree, "", &root); err != nil {
		return nil, nil, err
	}
	return root.stack(layout.Screens[0].Scale), nil, nil // the same for all: see plane
}

// stack is the windows of a tree. Which floating one is a dialog of which window
// sway doesn't tell.
func (n swayNode) stack(scale float64) space.Stack {
	// From the back to the front: what is tiled, what floats, what fills a screen.
	var tiled, floating, full space.Stack
	var walk func(n swayNode, parent image.Rectangle, floats bool)
	walk = func(n swayNode, parent image.Rectangle, floats bool) {
		if n.PID > 0 && len(n.Nodes) == 0 {
			w := n.window(parent, scale)
			switch {
			case w.Full:
				full = append(full, w)
			case floats:
				w.Loose = true
				floating = append(floating, w)
			default:
				tiled = append(tiled, w)
			}
		}
		for _, c := range n.Nodes {
			walk(c, n.Rect.image(), floats)
		}
		for _, c := range n.Floating {
			walk(c, n.Rect.image(), true)
		}
	}
	walk(n, image.Rectangle{}, false)
	stack := slices.Concat(tiled, floating, full)
	slices.Reverse(stack)
	slices.SortStableFunc(stack, func(a, b space.Window) int { // minimised ones last
		switch {
		case a.Minimized == b.Minimized:
			return 0
		case a.Minimized:
			return 1
		}
		return -1
	})
	stack.Belong(slices.Clone(stack))
	return stack
}

// window is n as all systems have it. What is on another workspace is as good
// as minimised.
func (n swayNode) window(parent image.Rectangle, scale float64) space.Window {
	frame := n.Rect.image()
	if n.Deco.Width > 0 {
		frame = frame.Union(n.Deco.image().Add(parent.Min)) // its title
	}
	class := n.AppID
	if class == "" {
		class = n.X11.Class
	}
	p := look(n.PID)
	return space.Window{ID: n.ID, PID: n.PID, Class: class, App: p.name, Title: n.Name, Started: p.started,
		Frame:   image.Rectangle{Min: scaled(frame.Min, scale), Max: scaled(frame.Max, scale)},
		Focused: n.Focused, Minimized: !n.Visible, Full: n.Full > 0, Seethrough: true} // sway doesn't tell which are not opaque, or not painted yet
}

func (s *swayWindows) focus(ctx context.Context, w space.Window, _ bool) error {
	var done []struct {
		Success bool `json:"success"`
	}
	if err := s.ask(ctx, swayRun, fmt.Sprintf("[con_id=%d] focus", w.ID), &done); err != nil {
		return err
	}
	if len(done) == 0 || !done[0].Success {
		return wire.Errorf(wire.CodeWindowStale, "That window is not there any more. List the windows again.")
	}
	return nil
}

func (s *swayWindows) close() {}
