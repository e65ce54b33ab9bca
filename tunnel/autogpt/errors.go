package autogpt

import (
	"errors"
	"strings"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// codes are the nearest codes of this protocol for those of localpc.v1 that it
// has not. Codes that are not listed are the same in both.
var codes = map[wire.Code]wire.Code{
	wire.CodeDenied:         msg.CodeNotGranted,
	wire.CodePaused:         msg.CodeNotGranted,
	wire.CodeExpired:        msg.CodePending,
	wire.CodeUndelivered:    msg.CodePending,
	wire.CodeStopped:        msg.CodeInternal,
	wire.CodeCancelled:      msg.CodeInternal,
	wire.CodeLost:           msg.CodeInternal,
	wire.CodeOffline:        msg.CodeInternal,
	wire.CodeInvalid:        msg.CodeInternal,
	wire.CodeSessionNotOpen: msg.CodeNotAttached,
	wire.CodePathKind:       msg.CodeInternal,
	wire.CodeForbidden:      msg.CodeInternal,
	wire.CodeChanged:        msg.CodeInternal,
	wire.CodeDiskFull:       msg.CodeInternal,
	wire.CodeUnconfined:     msg.CodeNotSupported,
}

// inCommand are the codes that mean something else when a program is started.
var inCommand = map[wire.Code]wire.Code{
	wire.CodePathNotFound: msg.CodeShellMissing, // no such program
	wire.CodeForbidden:    msg.CodeShellMissing, // it can't be executed
	wire.CodeInvalid:      msg.CodeShellMissing, // no such working directory
}

// toWire is the one place where an error of the handler becomes one of this
// protocol: its sentence stays, and details.reason tells the code it had. need
// is the capability that was used.
func toWire(err error, need string) error {
	var e *wire.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	code, mapped := codes[e.Code]
	if c, ok := inCommand[e.Code]; ok && need == msg.Shell {
		code, mapped = c, true
	}
	if !mapped {
		code = e.Code
	}
	details := map[string]any{}
	if mapped {
		details["reason"] = strings.ToLower(string(e.Code))
	}
	switch code {
	case msg.CodeNotGranted:
		details["required_capability"] = need
	case msg.CodePending:
		details["permission"], details["hint"] = need, e.Message
	}
	if len(details) == 0 {
		return err
	}
	return &msg.Detailed{Code: code, Message: e.Message, Details: details}
}

// unfit is a request that a message of localpc.v1 does not hold: a path or a
// command that is too long, or has a NUL in it.
func unfit(p wire.Payload, why error) error {
	code := msg.CodePathChars
	if _, ok := p.(*wire.ProcessStart); ok {
		code = msg.CodeInternal
	}
	return wire.Errorf(code, "This computer does not take the request: %s.", strings.ReplaceAll(why.Error(), "\n", "; "))
}

// unsupported is a request about the computer that lacks something, or asks for
// what can't be done.
func unsupported(m msg.Message, format string, args ...any) error {
	e := wire.Errorf(msg.CodeNotSupported, format, args...)
	return &msg.Detailed{Code: msg.CodeNotSupported, Message: e.Message, Details: map[string]any{"feature": featureOf(m), "reason": e.Message}}
}

// pictureHint is what to do about a picture that shows what is no more.
const pictureHint = "Take a new picture, and aim at what it shows."

// windowHint is what to do about a window that is another, or gone.
const windowHint = "List the windows again, and use an id of that list."

func windowStale(id string) error {
	return &msg.Detailed{Code: msg.CodeWindowStale, Message: "This window is not one of those that were listed last. " + windowHint,
		Details: map[string]any{"window_id": id, "hint": windowHint}}
}

// desktopCodes are the nearest codes of this protocol for those about the
// computer that it has not.
var desktopCodes = map[wire.Code]wire.Code{
	wire.CodePictureStale: msg.CodeWindowStale,
	wire.CodePerson:       msg.CodePending,
	wire.CodePaused:       msg.CodePending, // a card is open, or the person paused the computer
	wire.CodeOwnWindow:    msg.CodeNotSupported,
	wire.CodeBlank:        msg.CodeNotSupported,
	wire.CodeInvalid:      msg.CodeNotSupported,
}

// toDesktop is toWire for a request about the computer, with the details that
// the protocol has for its codes.
func (s *socket) toDesktop(err error, m msg.Message) error {
	var e *wire.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	code, mapped := desktopCodes[e.Code]
	shot, _ := m.Payload.(*msg.Screenshot)
	if e.Code == wire.CodeBounds && shot != nil { // of a region, which is no input
		code, mapped = msg.CodeNotSupported, true
	}
	_, input := m.Payload.(*msg.Input)
	if input && (e.Code == wire.CodePictureStale || e.Code == wire.CodeWindowStale) { // no window is named, and it may be tried again
		code, mapped = msg.CodePending, true
	}
	if !mapped {
		d, ok := toWire(e, msg.ComputerUse).(*msg.Detailed)
		if !ok {
			d = &msg.Detailed{Code: e.Code, Message: e.Message, Details: map[string]any{}}
		}
		code, mapped = d.Code, d.Code != e.Code
		if code != msg.CodePending && code != msg.CodeOutOfBounds && code != msg.CodeConcealed && code != msg.CodeWindowStale && code != msg.CodeNotSupported {
			return d
		}
	}
	details := map[string]any{}
	for k, v := range e.Details {
		details[k] = v
	}
	put := func(k string, v any) {
		if _, ok := details[k]; !ok {
			details[k] = v
		}
	}
	if mapped {
		put("reason", strings.ToLower(string(e.Code)))
	}
	switch code {
	case msg.CodePending:
		put("permission", msg.ComputerUse)
		put("platform", s.platform)
		if input && e.Code == wire.CodePictureStale {
			put("hint", pictureHint)
		}
		put("hint", e.Message)
	case msg.CodeWindowStale:
		switch p := m.Payload.(type) {
		case *msg.WindowFocus:
			put("window_id", p.WindowID)
		case *msg.Screenshot:
			put("window_id", value(p.WindowID))
		}
		if e.Code == wire.CodePictureStale {
			put("hint", pictureHint)
		}
		put("hint", windowHint)
	case msg.CodeConcealed:
		put("reason", "concealed_type")
	case msg.CodeNotSupported:
		details["feature"] = featureOf(m)
		put("reason", e.Message)
	case msg.CodeOutOfBounds:
		if p, ok := m.Payload.(*msg.Input); ok && p.Coordinate != nil && len(p.Path) == 0 {
			details["requested_coordinate"] = *p.Coordinate
		}
	}
	return &msg.Detailed{Code: code, Message: e.Message, Details: details}
}

// featureOf names what a request uses, by the fine feature that it belongs to.
func featureOf(m msg.Message) string {
	switch p := m.Payload.(type) {
	case *msg.Screenshot:
		switch {
		case p.WindowID != nil && p.Region == nil:
			return "screenshot.window"
		case p.Region != nil:
			return "screenshot.region"
		}
		return "screenshot.capture"
	case *msg.Input:
		return inputFeature(p.Action)
	}
	return map[msg.Type]string{msg.TypeCursor: "cursor.position", msg.TypeDisplays: "display.info", msg.TypeWindows: "window.list", msg.TypeWindowFocus: "window.focus",
		msg.TypeApps: "app.list", msg.TypeAppLaunch: "app.launch", msg.TypeClipboardRead: "clipboard.read", msg.TypeClipboardWrite: "clipboard.write",
		msg.TypePermissions: "permissions.check"}[m.Type]
}

func inputFeature(action string) string {
	switch action {
	case wire.ActDrag:
		return "input.drag.path"
	case wire.ActHoldKey:
		return "input.key.hold"
	case wire.ActMouseDown, wire.ActMouseUp:
		return "input.mouse.down_up"
	case wire.ActScroll:
		return "input.scroll.amount"
	case wire.ActWait:
		return "input.wait"
	case wire.ActType, wire.ActKey, wire.ActMouseMove:
		return "input" // there is no fine one
	}
	return "input.click"
}
