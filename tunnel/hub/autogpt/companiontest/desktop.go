//go:build unix

package companiontest

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"time"
)

// A Screen is one monitor of the display: its place in the one plane of all.
type Screen struct {
	X, Y, W, H int
	Scale      float64
}

func (s Screen) rect() image.Rectangle { return image.Rect(s.X, s.Y, s.X+s.W, s.Y+s.H) }

// Colour is what a picture shows at a place: it tells where that is.
func Colour(x, y, monitor int) color.RGBA {
	return color.RGBA{uint8((x + 4096) / 32), uint8((y + 4096) / 32), uint8(monitor * 200), 255}
}

// paint draws what a part of a monitor shows.
func paint(r image.Rectangle, monitor int, format string, quality int) []byte {
	img := image.NewRGBA(image.Rectangle{Max: r.Size()})
	for y := range r.Dy() {
		for x := range r.Dx() {
			img.SetRGBA(x, y, Colour(r.Min.X+x, r.Min.Y+y, monitor))
		}
	}
	var b bytes.Buffer
	if format == "png" {
		_ = png.Encode(&b, img)
	} else {
		_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	}
	return b.Bytes()
}

type fields = map[string]any

const window = "win_3f0f3b34-6f0e-4b0c-9d55-6f5f0c6c8a11"

// desktop answers as a display with one window.
func (s *socket) desktop(f frame) (string, any, error) {
	screens := s.c.monitors()
	needed := func(feature string) error {
		return &fault{Code: "FEATURE_NOT_SUPPORTED", Message: "a field is missing", Details: fields{"feature": feature}}
	}
	switch f.Type {
	case "SCREENSHOT_REQUEST":
		if !s.c.mayShoot() {
			return "", nil, &fault{Code: "SHIM_OVERLOADED", Message: "too many screenshots in this minute", Details: fields{"max_concurrent": s.concurrent}}
		}
		p := params(f.Payload, struct {
			Monitor int     `json:"monitor"`
			Quality int     `json:"quality"`
			Region  []int   `json:"region"`
			Window  *string `json:"window_id"`
			Format  string  `json:"format"`
		}{Format: "jpeg", Quality: 75})
		if p.Region != nil && p.Window != nil {
			return "", nil, needed("region")
		}
		if p.Window != nil && *p.Window != window {
			return "", nil, stale(*p.Window)
		}
		if p.Monitor < 0 || p.Monitor >= len(screens) {
			p.Monitor = 0
		}
		of := screens[p.Monitor]
		area, logical := of.rect(), []int{int(float64(of.W) / of.Scale), int(float64(of.H) / of.Scale)}
		var region any
		if p.Region != nil {
			region = p.Region
			if area = area.Intersect(image.Rect(p.Region[0], p.Region[1], p.Region[2], p.Region[3])); area.Empty() {
				return "", nil, needed("screenshot.region")
			}
		}
		if p.Window != nil {
			area = image.Rect(0, 0, 640, 480)
			logical = []int{640, 480}
		}
		raw := paint(area, p.Monitor, p.Format, p.Quality)
		if int64(len(raw)) > min(s.fileSize, 12533760) {
			return "", nil, &fault{Code: "FILE_TOO_LARGE", Message: "the picture is too large"}
		}
		reply := fields{"image_base64": base64.StdEncoding.EncodeToString(raw), "mime_type": "image/" + p.Format, "width": area.Dx(), "height": area.Dy(),
			"monitor": p.Monitor, "region": region, "display_scale": of.Scale, "logical_size": logical, "meta": fields{"origin": []int{area.Min.X, area.Min.Y}, "display_id": p.Monitor}}
		if s.c.o.Picture != nil {
			s.c.o.Picture(reply)
		}
		return "SCREENSHOT_RESPONSE", reply, nil
	case "INPUT_ACTION":
		p := params(f.Payload, struct {
			Action     string  `json:"action"`
			Coordinate []int   `json:"coordinate"`
			Text       *string `json:"text"`
			Key        *string `json:"key"`
			Path       [][]int `json:"path"`
		}{})
		points := p.Path
		if p.Coordinate != nil {
			points = append(points, p.Coordinate)
		}
		for _, at := range points {
			if !slices.ContainsFunc(screens, func(d Screen) bool { return image.Pt(at[0], at[1]).In(d.rect()) }) {
				displays := []fields{}
				for i, d := range screens {
					displays = append(displays, fields{"index": i, "origin": []int{d.X, d.Y}, "size": []int{d.W, d.H}})
				}
				return "", nil, &fault{Code: "INPUT_OUT_OF_BOUNDS", Message: "outside of every display", Details: fields{"requested_coordinate": at, "displays": displays}}
			}
		}
		switch {
		case (strings.HasSuffix(p.Action, "_click") || strings.HasPrefix(p.Action, "mouse_")) && p.Coordinate == nil,
			p.Action == "drag" && len(p.Path) == 0, p.Action == "type" && p.Text == nil, (p.Action == "key" || p.Action == "hold_key") && p.Key == nil:
			return "", nil, needed(p.Action)
		}
		return "ACK", ack{true}, nil
	case "CURSOR_POSITION_REQUEST":
		return "CURSOR_POSITION_RESPONSE", fields{"x": 10, "y": 20, "monitor": 0}, nil
	case "DISPLAY_INFO_REQUEST":
		monitors := []fields{}
		for i, d := range screens {
			monitors = append(monitors, fields{"index": i, "primary": i == 0, "physical_size": []int{d.W, d.H},
				"logical_size": []int{int(float64(d.W) / d.Scale), int(float64(d.H) / d.Scale)}, "scale": d.Scale, "origin": []int{d.X, d.Y}})
		}
		return "DISPLAY_INFO_RESPONSE", fields{"monitors": monitors}, nil
	case "WINDOW_LIST_REQUEST":
		return "WINDOW_LIST_RESPONSE", fields{"windows": []fields{{"window_id": window, "pid": 4711, "app_name": "Editor", "app_bundle_id": nil, "title": "notes",
			"bounds": []int{0, 0, 640, 480}, "monitor": 0, "is_focused": true, "is_minimized": false, "is_fullscreen": false}}, "truncated": false}, nil
	case "WINDOW_FOCUS":
		p := params(f.Payload, struct {
			Window string `json:"window_id"`
		}{})
		if p.Window != window {
			return "", nil, stale(p.Window)
		}
		return "ACK", ack{true}, nil
	case "APP_LIST_REQUEST":
		return "APP_LIST_RESPONSE", fields{"apps": []fields{{"pid": 4711, "name": "Editor", "bundle_id": nil, "executable_path": "/usr/bin/editor",
			"is_frontmost": true, "window_count": 1}}}, nil
	case "APP_LAUNCH":
		p := params(f.Payload, struct {
			Path *string `json:"executable_path"`
		}{})
		if p.Path == nil {
			return "", nil, needed("app.launch")
		}
		return "ACK", ack{true}, nil
	case "CLIPBOARD_READ":
		p := params(f.Payload, struct {
			Format string `json:"format"`
		}{"text"})
		if p.Format != "text" {
			return "", nil, needed("clipboard.read")
		}
		return "CLIPBOARD_READ_RESPONSE", fields{"format": "text", "content": "copied", "size_bytes": 6}, nil
	case "CLIPBOARD_WRITE":
		return "ACK", ack{true}, nil
	case "PERMISSIONS_CHECK_REQUEST":
		p := params(f.Payload, struct {
			Names []string `json:"permissions"`
		}{})
		out := map[string]string{}
		for _, n := range p.Names {
			out[n] = "not_applicable"
			if slices.Contains([]string{"screen_recording", "accessibility", "input_monitoring"}, n) {
				out[n] = "granted"
			}
		}
		return "PERMISSIONS_CHECK_RESPONSE", fields{"permissions": out}, nil
	}
	return "", nil, failf("FEATURE_NOT_SUPPORTED", "not done here")
}

// SetScreens changes the monitors while the program runs, as a person does.
func (c *Companion) SetScreens(screens []Screen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screens = screens
}

func (c *Companion) monitors() []Screen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.screens
}

// mayShoot counts a screenshot, of at most so many in a sliding minute.
func (c *Companion) mayShoot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.shots = slices.DeleteFunc(c.shots, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(c.shots) >= c.o.PicturesPerMinute {
		return false
	}
	c.shots = append(c.shots, now)
	return true
}

func stale(id string) error {
	return &fault{Code: "WINDOW_STALE", Message: "the window is not there any more", Details: fields{"window_id": id, "hint": "list the windows again"}}
}

// complete streams the words of an answer that is always the same.
func (s *socket) complete(f frame) (string, any, error) {
	p := params(f.Payload, struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}{Stream: true})
	if p.Model != s.c.o.Model {
		return "", nil, &fault{Code: "MODEL_NOT_AVAILABLE", Message: "the model is not here", Details: fields{"requested_model": p.Model, "available_models": []string{s.c.o.Model}}}
	}
	if p.Stream {
		for _, delta := range []string{"Hello", " there"} {
			s.send("LOCAL_LLM_COMPLETION_CHUNK", f.ID, nil, fields{"delta": delta, "finish_reason": nil})
		}
		s.send("LOCAL_LLM_COMPLETION_CHUNK", f.ID, nil, fields{"delta": "", "finish_reason": "stop"})
	}
	return "LOCAL_LLM_COMPLETION_RESPONSE", fields{"content": "Hello there", "finish_reason": "stop",
		"tokens": fields{"prompt": 3, "completion": 2, "total": 5}, "duration_seconds": 0.01}, nil
}
