package tunneltest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"sync"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

// WithScreen has the machine say that it has a screen.
func WithScreen(_ *hub.Options, o *tunnel.Options) {
	hello := o.Hello
	o.Hello = func() wire.Hello {
		h := hello()
		h.Capabilities = append(slices.Clone(h.Capabilities), "computer")
		return h
	}
}

// Screen answers for a screen, mouse and keyboard that are not there: enough for
// the hub's side of a test. It keeps what it was asked, with the coordinates as
// device pixels.
type Screen struct {
	// Size of the one screen, whose top left is at Origin.
	Size, Origin image.Point
	// Fit makes a size fit into bounds; nil keeps it.
	Fit func(size image.Point, edge, tiles int) image.Point
	// Fail is the answer to an action or a picture, where it is not nil.
	Fail func(m wire.Message) error

	mu       sync.Mutex
	n        int
	views    map[string]view // guarded by mu
	stale    bool            // every picture is; guarded by mu
	pointer  image.Point     // guarded by mu
	clip     string          // guarded by mu
	asked    []wire.Message  // guarded by mu
	reached  []Reached       // guarded by mu
	launched []wire.AppLaunch
}

// Reached is one action, as it came to the screen.
type Reached struct {
	Action wire.InputAction
	At     *image.Point  // device pixels; nil: where the pointer was
	Path   []image.Point // device pixels
}

type view struct {
	area image.Rectangle
	size image.Point
}

// Asked are all requests of the screen so far.
func (s *Screen) Asked() []wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Reached are all actions so far that were done.
func (s *Screen) Reached() []Reached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reached)
}

// Change makes every picture of before stale.
func (s *Screen) Change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// Handle answers what is asked of the screen; ok is false for everything else.
func (s *Screen) Handle(_ context.Context, m wire.Message) (t wire.Type, p wire.Payload, err error, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, m)
	if s.Fail != nil {
		if err := s.Fail(m); err != nil {
			return "", nil, err, true
		}
	}
	ok = true
	switch q := m.Payload.(type) {
	case *wire.Screenshot:
		t = wire.TypeScreenshotResponse
		p, err = s.shoot(q)
	case *wire.InputAction:
		t, p = wire.TypeAck, &wire.Empty{}
		err = s.act(q)
	case *wire.ComputerQuery:
		if m.Type == wire.TypeCursor {
			return wire.TypeCursorResponse, &wire.CursorResponse{X: s.pointer.X, Y: s.pointer.Y}, nil, true
		}
		t, p = wire.TypeDisplaysResponse, &wire.DisplaysResponse{Monitors: []wire.Monitor{{Name: "DP-1", Primary: true, PhysicalSize: wire.Point{s.Size.X, s.Size.Y},
			LogicalSize: wire.Point{s.Size.X, s.Size.Y}, Scale: 1, Origin: wire.Point{s.Origin.X, s.Origin.Y}}}}
	case *wire.Windows:
		all := s.all()
		t, p = wire.TypeWindowsResponse, &wire.WindowsResponse{Windows: []wire.Window{{WindowID: "win_1", PID: 7, AppName: "Editor", Title: "notes.txt", IsFocused: true,
			Bounds: wire.Rect{all.Min.X, all.Min.Y, all.Max.X, all.Max.Y}}}}
	case *wire.WindowFocus:
		t, p = wire.TypeAck, &wire.Empty{}
		if q.WindowID != "win_1" {
			err = wire.Errorf(wire.CodeWindowStale, "That window is not there any more.")
		}
	case *wire.Apps:
		t, p = wire.TypeAppsResponse, &wire.AppsResponse{Apps: []wire.App{{PID: 7, Name: "Editor", IsFrontmost: true, WindowCount: 1}}}
	case *wire.AppLaunch:
		s.launched = append(s.launched, *q)
		t, p = wire.TypeAppLaunched, &wire.AppLaunched{PID: 8}
	case *wire.ClipRead:
		t, p = wire.TypeClipReadResponse, &wire.ClipReadResponse{Format: "text", Content: s.clip, SizeBytes: len(s.clip)}
	case *wire.ClipWrite:
		s.clip = q.Content
		t, p = wire.TypeAck, &wire.Empty{}
	case *wire.Permissions:
		r := &wire.PermissionsResponse{Permissions: map[string]string{}}
		for _, name := range q.Permissions {
			r.Permissions[name] = "granted"
		}
		t, p = wire.TypePermissionsResponse, r
	default:
		s.asked = s.asked[:len(s.asked)-1]
		return "", nil, nil, false
	}
	return t, p, err, true
}

func (s *Screen) all() image.Rectangle { return image.Rectangle{Max: s.Size}.Add(s.Origin) }

// drawn are pictures by their size and format: encoding takes long with the race
// detector.
var drawn sync.Map

// encoded is a grey picture.
func encoded(size image.Point, format string) (data []byte, kind string, err error) {
	kind = "image/jpeg"
	if format == "png" {
		kind = "image/png"
	}
	key := fmt.Sprint(size, kind)
	if known, ok := drawn.Load(key); ok {
		return known.([]byte), kind, nil
	}
	img := image.NewGray(image.Rectangle{Max: size})
	var b bytes.Buffer
	if format == "png" {
		err = png.Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, nil)
	}
	drawn.Store(key, b.Bytes())
	return b.Bytes(), kind, err
}

// shoot makes a picture.
func (s *Screen) shoot(q *wire.Screenshot) (wire.Payload, error) {
	area := s.all()
	switch {
	case q.Picture != "":
		v, ok := s.views[q.Picture]
		if !ok {
			return nil, wire.Errorf(wire.CodePictureStale, "That picture is not known any more.")
		}
		a, b := v.device(image.Pt(q.Region[0], q.Region[1])), v.device(image.Pt(q.Region[2], q.Region[3]))
		area = image.Rectangle{Min: a, Max: b}
	case q.Region != nil:
		area = image.Rect(q.Region[0], q.Region[1], q.Region[2], q.Region[3]).Intersect(area)
	}
	size := area.Size()
	if s.Fit != nil {
		size = s.Fit(size, q.MaxEdge, q.MaxTiles)
	}
	data, kind, err := encoded(size, q.Format)
	if err != nil {
		return nil, err
	}
	if s.views == nil {
		s.views = map[string]view{}
	}
	s.n++
	id := fmt.Sprintf("pic_%d", s.n)
	s.views[id] = view{area, size}
	s.stale = false
	return &wire.ScreenshotResponse{Picture: id, Image: data, MIMEType: kind, Width: size.X, Height: size.Y, Monitor: q.Monitor,
		Shows: wire.Rect{area.Min.X, area.Min.Y, area.Max.X, area.Max.Y}, DisplayScale: 1, Hidden: []string{"KeePassXC"}}, nil
}

func (v view) device(p image.Point) image.Point {
	return v.area.Min.Add(image.Pt(p.X*v.area.Dx()/v.size.X, p.Y*v.area.Dy()/v.size.Y))
}

func (s *Screen) act(q *wire.InputAction) error {
	if s.stale {
		return wire.Errorf(wire.CodePictureStale, "The screen has changed since that picture.")
	}
	r := Reached{Action: *q}
	at := func(p wire.Point) (image.Point, error) {
		v, ok := s.views[q.Picture]
		if !ok {
			return image.Point{}, wire.Errorf(wire.CodePictureStale, "That picture is not known any more.")
		}
		pt := image.Pt(p[0], p[1])
		if !pt.In(image.Rectangle{Max: v.size}) {
			return pt, wire.Errorf(wire.CodeBounds, "(%d, %d) is not on the screen.", p[0], p[1]).With(map[string]any{"requested_coordinate": p})
		}
		return v.device(pt), nil
	}
	if q.Coordinate != nil {
		d, err := at(*q.Coordinate)
		if err != nil {
			return err
		}
		r.At, s.pointer = &d, d
	}
	for _, p := range q.Path {
		d, err := at(p)
		if err != nil {
			return err
		}
		r.Path, s.pointer = append(r.Path, d), d
	}
	s.reached = append(s.reached, r)
	return nil
}
