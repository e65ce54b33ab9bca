//go:build unix

package companiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// check says what is wrong with a value, "" when it fits. Numbers come as
// json.Number, so that 1.0 is no int.
type check func(v any) string

type field struct {
	name     string
	required bool
	check    check
}

func req(name string, c check) field { return field{name, true, c} }
func opt(name string, c check) field { return field{name, false, c} }

// object takes exactly these fields: another one, and a missing required one,
// is wrong.
func object(fields ...field) check {
	return func(v any) string {
		m, ok := v.(map[string]any)
		if !ok {
			return "not an object"
		}
		known := map[string]bool{}
		for _, f := range fields {
			known[f.name] = true
			value, there := m[f.name]
			if !there {
				if f.required {
					return f.name + " is missing"
				}
				continue
			}
			if wrong := f.check(value); wrong != "" {
				return f.name + ": " + wrong
			}
		}
		for name := range m {
			if !known[name] {
				return "unknown field " + name
			}
		}
		return ""
	}
}

func null(c check) check {
	return func(v any) string {
		if v == nil {
			return ""
		}
		return c(v)
	}
}

func str(least, most int) check {
	return func(v any) string {
		s, ok := v.(string)
		if !ok {
			return "not a string"
		}
		if n := utf8.RuneCountInString(s); n < least || n > most {
			return fmt.Sprintf("%d characters, not %d to %d", n, least, most)
		}
		return ""
	}
}

var text = str(0, 1<<31-1)

func enum(values ...string) check {
	return func(v any) string {
		for _, s := range values {
			if v == s {
				return ""
			}
		}
		return fmt.Sprintf("%v is not one of %s", v, strings.Join(values, " "))
	}
}

var intPattern = regexp.MustCompile(`^-?\d+$`)

func integer(least int64) check {
	return func(v any) string {
		n, ok := v.(json.Number)
		if !ok || !intPattern.MatchString(string(n)) {
			return "not an integer"
		}
		if i, err := strconv.ParseInt(string(n), 10, 64); err != nil || i < least {
			return fmt.Sprintf("less than %d, or too large", least)
		}
		return ""
	}
}

var whole = integer(-1 << 62)

func number(v any) string {
	if _, ok := v.(json.Number); !ok {
		return "not a number"
	}
	return ""
}

func boolean(v any) string {
	if _, ok := v.(bool); !ok {
		return "not a bool"
	}
	return ""
}

// array takes a list of exactly n members, or of any number when n is -1.
func array(n int, of check) check {
	return func(v any) string {
		list, ok := v.([]any)
		if !ok {
			return "not an array"
		}
		if n >= 0 && len(list) != n {
			return fmt.Sprintf("%d members, not %d", len(list), n)
		}
		for i, e := range list {
			if wrong := of(e); wrong != "" {
				return fmt.Sprintf("[%d]: %s", i, wrong)
			}
		}
		return ""
	}
}

func stringMap(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return "not an object"
	}
	for k, e := range m {
		if _, ok := e.(string); !ok {
			return k + " is not a string"
		}
	}
	return ""
}

var sessionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$`)

func sessionID(v any) string {
	if s, ok := v.(string); !ok || !sessionPattern.MatchString(s) {
		return "not a session id"
	}
	return ""
}

var capability = enum("shell", "files", "computer_use", "local_llm", "recording", "directory_browse", "hardware_serial", "hardware_usb", "hardware_gpio")

var ref = str(1, 256)

// payloads are what the hub may send, exactly.
var payloads = map[string]check{
	"HELLO_ACK": object(opt("session_id", null(sessionID)), opt("connection_id", null(text)), req("granted_capabilities", array(-1, capability)),
		opt("protocol_version", text), opt("max_file_size_bytes", integer(1)), opt("command_timeout_seconds", integer(1)), opt("max_concurrent", integer(1))),
	"PING":            object(),
	"SESSION_REVOKED": object(req("reason", text), opt("new_shim_machine_id", null(text))),

	"DIRECTORY_LIST_REQUEST": listRequest,
	"ATTACH_SESSION":         object(req("session_id", sessionID), req("browse_id", ref), req("directory_ref", ref), opt("expected_connection_id", null(ref))),
	"ACTIVATE_SESSION":       object(req("session_id", sessionID), req("revision", integer(1))),
	"RESTORE_SESSION":        object(req("session_id", sessionID), req("root_grant", str(1, 131072))),
	"DETACH_SESSION":         object(req("session_id", sessionID)),

	"EXECUTE_COMMAND": object(opt("command", null(text)), opt("argv", null(array(-1, text))), opt("shell", enum("auto", "bash", "sh", "zsh", "pwsh", "powershell", "cmd")),
		opt("cwd", null(text)), opt("timeout_seconds", null(integer(1))), opt("env", stringMap)),
	"FILE_READ": object(req("path", text), opt("encoding", enum("utf-8", "base64")), opt("format", enum("text", "bytes")),
		opt("offset", integer(0)), opt("length", null(integer(1)))),
	"FILE_WRITE":  object(req("path", text), req("content", text), opt("encoding", enum("utf-8", "base64")), opt("create_parents", boolean)),
	"FILE_STAT":   object(req("path", text), opt("follow_symlinks", boolean)),
	"FILE_LIST":   object(req("path", text), opt("glob", null(text)), opt("recursive", boolean), opt("include_hidden", boolean), opt("max_entries", whole)),
	"FILE_DELETE": object(req("path", text), opt("recursive", boolean), opt("missing_ok", boolean)),
	"FILE_MOVE":   object(req("src", text), req("dst", text), opt("overwrite", boolean)),

	"SCREENSHOT_REQUEST": object(opt("monitor", whole), opt("quality", whole), opt("region", null(array(4, whole))), opt("window_id", null(text)),
		opt("format", enum("jpeg", "png")), opt("include_cursor", boolean)),
	"INPUT_ACTION": object(req("action", enum("left_click", "right_click", "middle_click", "double_click", "triple_click", "mouse_move", "mouse_down", "mouse_up",
		"drag", "type", "key", "hold_key", "scroll", "wait")),
		opt("coordinate", null(array(2, whole))), opt("text", null(text)), opt("key", null(text)), opt("direction", null(enum("up", "down"))), opt("clicks", null(whole)),
		opt("button", null(enum("left", "middle", "right"))), opt("modifiers", null(array(-1, enum("shift", "ctrl", "alt", "super")))), opt("scroll_amount", null(whole)),
		opt("scroll_direction", null(enum("up", "down", "left", "right"))), opt("duration_ms", null(whole)), opt("path", null(array(-1, array(2, whole)))),
		opt("paste", boolean), opt("preserve_clipboard", boolean)),
	"CURSOR_POSITION_REQUEST":   object(),
	"DISPLAY_INFO_REQUEST":      object(),
	"WINDOW_LIST_REQUEST":       object(opt("app_bundle_id", null(text)), opt("include_minimized", boolean), opt("include_offscreen", boolean)),
	"WINDOW_FOCUS":              object(req("window_id", text), opt("raise", boolean)),
	"APP_LIST_REQUEST":          object(opt("include_background", boolean)),
	"APP_LAUNCH":                object(opt("bundle_id", null(text)), opt("executable_path", null(text)), opt("args", array(-1, text)), opt("activate", boolean)),
	"CLIPBOARD_READ":            object(opt("format", enum("text", "image"))),
	"CLIPBOARD_WRITE":           object(opt("format", enum("text", "image")), req("content", text)),
	"PERMISSIONS_CHECK_REQUEST": object(req("permissions", array(-1, text))),
	"LOCAL_LLM_COMPLETION": object(req("model", text),
		req("messages", array(-1, object(req("role", enum("system", "user", "assistant")), req("content", text)))),
		opt("max_tokens", whole), opt("temperature", number), opt("top_p", number), opt("stream", boolean)),
}

func listRequest(v any) string {
	wrong := object(opt("browse_id", null(ref)), opt("directory_ref", null(ref)), opt("cursor", null(ref)))(v)
	if wrong != "" {
		return wrong
	}
	m := v.(map[string]any)
	if (m["browse_id"] == nil) != (m["directory_ref"] == nil) {
		return "directory_ref is null exactly when browse_id is"
	}
	if m["cursor"] != nil && m["browse_id"] == nil {
		return "cursor needs both ids"
	}
	return ""
}

type frame struct {
	Type    string
	ID      string
	Payload json.RawMessage
}

// readFrame takes a frame as the companion does. A reason means that it is
// dropped without a word.
func readFrame(data []byte) (frame, string) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if !utf8.Valid(data) || d.Decode(&v) != nil || d.More() {
		return frame{}, "not JSON"
	}
	m, ok := v.(map[string]any)
	if !ok {
		return frame{}, "not an object"
	}
	kind, _ := m["type"].(string)
	payload, known := payloads[kind]
	if !known {
		return frame{}, "type: " + strconv.Quote(kind)
	}
	if wrong := object(req("type", text), req("id", str(1, 1<<20)), req("ts", number), opt("version", text),
		opt("pending_capacity", null(whole)), req("payload", payload))(v); wrong != "" {
		return frame{}, kind + ": " + wrong
	}
	var raw struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return frame{}, err.Error()
	}
	return frame{kind, m["id"].(string), raw.Payload}, ""
}

// envelope is what the companion writes: every field, nulls too.
type envelope struct {
	Type            string  `json:"type"`
	ID              string  `json:"id"`
	TS              float64 `json:"ts"`
	Version         string  `json:"version"`
	PendingCapacity *int    `json:"pending_capacity"`
	Payload         any     `json:"payload"`
}

// fault is an ERROR.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Fatal   bool   `json:"fatal"`
	Details any    `json:"details"`
}

func (f *fault) Error() string { return f.Code + ": " + f.Message }

func failf(code, format string, args ...any) *fault {
	return &fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// params reads a payload that has been checked, over the defaults in v.
func params[T any](raw json.RawMessage, defaults T) T {
	_ = json.Unmarshal(raw, &defaults)
	return defaults
}
