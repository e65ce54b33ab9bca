package wire

import (
	"errors"
	"fmt"
)

// Code is how an error crosses the tunnel. The values are serialised.
type Code string

const (
	CodeDenied      Code = "DENIED"      // a person, or their rule, said no
	CodeExpired     Code = "EXPIRED"     // shown, nobody answered
	CodeUndelivered Code = "UNDELIVERED" // could not be shown to anybody
	// The person is still being asked, and the client can't wait any longer:
	// the same request runs once without asking when they allow it.
	CodePending    Code = "PERMISSION_PENDING"
	CodePaused     Code = "PAUSED"  // the person paused this computer
	CodeStopped    Code = "STOPPED" // ended by Stop, or by the end of its session
	CodeOverloaded Code = "SHIM_OVERLOADED"

	CodeSessionNotOpen Code = "SESSION_NOT_OPEN"
	CodeInvalid        Code = "INVALID_REQUEST"
	CodeNotSupported   Code = "FEATURE_NOT_SUPPORTED"
	CodeInternal       Code = "INTERNAL_ERROR"
	CodeCancelled      Code = "CANCELLED"

	CodePathOutside  Code = "PATH_OUTSIDE_ALLOWED_ROOT"
	CodePathChars    Code = "PATH_INVALID_CHARS"
	CodePathNotFound Code = "PATH_NOT_FOUND"
	CodePathExists   Code = "PATH_EXISTS"
	CodePathNotEmpty Code = "PATH_NOT_EMPTY"
	CodePathKind     Code = "PATH_WRONG_KIND" // a directory where a file is needed, or the reverse, or neither
	CodeForbidden    Code = "PATH_FORBIDDEN"  // the operating system refused
	CodeTooLarge     Code = "FILE_TOO_LARGE"
	CodeChanged      Code = "FILE_CHANGED" // changed by somebody else meanwhile
	CodeDiskFull     Code = "DISK_FULL"

	CodeShellMissing Code = "SHELL_NOT_AVAILABLE"
	CodeUnconfined   Code = "CONTAINMENT_NOT_AVAILABLE"

	// The computer: its screens, mouse and keyboard, windows and clipboard.
	CodeBounds       Code = "INPUT_OUT_OF_BOUNDS" // with the rectangles that are in bounds
	CodePictureStale Code = "PICTURE_STALE"       // the screen changed since the picture that was aimed at
	CodeWindowStale  Code = "WINDOW_STALE"
	CodePerson       Code = "PERSON_ACTIVE"    // the person's own hands are at work; a new picture is needed
	CodeOwnWindow    Code = "WINDOW_PROTECTED" // it would have reached a window of this program
	CodeBlank        Code = "PICTURE_BLANK"    // uniformly black, or refused by the system
	CodeConcealed    Code = "CLIPBOARD_CONCEALED"

	// Hub only, never sent: the machine did not answer.
	CodeOffline Code = "MACHINE_NOT_CONNECTED"
	CodeLost    Code = "CONNECTION_LOST"
)

// Error is an error fit to cross the tunnel: a code for programs, and one
// plain sentence for people. The cause stays on the machine, in its log.
type Error struct {
	Code    Code
	Message string
	// Details are for programs; nil for most. At most MaxDetails bytes as JSON.
	Details map[string]any
	cause   error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error. The message is for people; it names the thing and
// the remedy.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error that remembers its cause for the log.
func Wrap(cause error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), cause: cause}
}

// With returns e with details for programs.
func (e *Error) With(details map[string]any) *Error {
	e.Details = details
	return e
}

// ToWire turns any error into the payload that crosses the tunnel. An error
// that is not an *Error says nothing about its cause to the other end.
func ToWire(err error) *ErrorPayload {
	var e *Error
	if errors.As(err, &e) {
		return &ErrorPayload{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	return &ErrorPayload{Code: CodeInternal, Message: "Something went wrong on this computer; its log says what."}
}

// FromWire is the inverse of ToWire.
func FromWire(p *ErrorPayload) *Error {
	return &Error{Code: p.Code, Message: p.Message, Details: p.Details}
}

// CodeOf gives the code of err, or "" when it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
