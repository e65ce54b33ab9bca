//go:build unix

package companiontest

import (
	"encoding/base64"
	"slices"
	"strings"
)

// pixel is a picture of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

type fields = map[string]any

const window = "win_3f0f3b34-6f0e-4b0c-9d55-6f5f0c6c8a11"

// desktop answers as a display of 1280 by 720 pixels with one window.
func (s *socket) desktop(f frame) (string, any, error) {
	needed := func(feature string) error {
		return &fault{Code: "FEATURE_NOT_SUPPORTED", Message: "a field is missing", Details: fields{"feature": feature}}
	}
	switch f.Type {
	case "SCREENSHOT_REQUEST":
		p := params(f.Payload, struct {
			Monitor int     `json:"monitor"`
			Region  []int   `json:"region"`
			Window  *string `json:"window_id"`
			Format  string  `json:"format"`
		}{Format: "jpeg"})
		if p.Region != nil && p.Window != nil {
			return "", nil, needed("region")
		}
		if p.Window != nil && *p.Window != window {
			return "", nil, stale(*p.Window)
		}
		raw, _ := base64.StdEncoding.DecodeString(pixel)
		var region any
		if p.Region != nil {
			region = p.Region
		}
		return "SCREENSHOT_RESPONSE", fields{"image_base64": base64.StdEncoding.EncodeToString(raw), "mime_type": "image/png", "width": 1, "height": 1,
			"monitor": p.Monitor, "region": region, "display_scale": 1.0, "logical_size": []int{1280, 720}, "meta": fields{"origin": []int{0, 0}, "display_id": 0}}, nil
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
			if at[0] < 0 || at[1] < 0 || at[0] >= 1280 || at[1] >= 720 {
				return "", nil, &fault{Code: "INPUT_OUT_OF_BOUNDS", Message: "outside of every display", Details: fields{"requested_coordinate": at,
					"displays": []fields{{"index": 0, "origin": []int{0, 0}, "size": []int{1280, 720}}}}}
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
		return "DISPLAY_INFO_RESPONSE", fields{"monitors": []fields{{"index": 0, "primary": true, "physical_size": []int{1280, 720},
			"logical_size": []int{1280, 720}, "scale": 1.0, "origin": []int{0, 0}}}}, nil
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
