package autogpt

import (
	"errors"

	"localpc/tunnel/wire"
)

// The error codes of the protocol; receivers accept others too.
const (
	CodePathOutside  wire.Code = "PATH_OUTSIDE_ALLOWED_ROOT"
	CodePathReserved wire.Code = "PATH_RESERVED_NAME"
	CodePathChars    wire.Code = "PATH_INVALID_CHARS"
	CodePathNotFound wire.Code = "PATH_NOT_FOUND"
	CodePathNotEmpty wire.Code = "PATH_NOT_EMPTY"
	CodePathExists   wire.Code = "PATH_EXISTS"
	CodeShellMissing wire.Code = "SHELL_NOT_AVAILABLE"
	CodeNotGranted   wire.Code = "CAPABILITY_NOT_GRANTED"
	CodeNotSupported wire.Code = "FEATURE_NOT_SUPPORTED"
	CodeOverloaded   wire.Code = "SHIM_OVERLOADED"
	CodeInternal     wire.Code = "INTERNAL_ERROR"
	CodeTooLarge     wire.Code = "FILE_TOO_LARGE"
	CodeDependency   wire.Code = "DEPENDENCY_MISSING"

	CodeReferenceInvalid wire.Code = "DIRECTORY_REFERENCE_INVALID"
	CodeUnavailable      wire.Code = "DIRECTORY_UNAVAILABLE"
	CodeGrantInvalid     wire.Code = "ROOT_GRANT_INVALID"
	CodeNotAttached      wire.Code = "SESSION_NOT_ATTACHED"
	CodeAlreadyActive    wire.Code = "SESSION_ALREADY_ACTIVE"
	CodeRevision         wire.Code = "SESSION_REVISION_MISMATCH"

	CodeWindowStale  wire.Code = "WINDOW_STALE"
	CodePending      wire.Code = "PERMISSION_PENDING"
	CodeConcealed    wire.Code = "CLIPBOARD_CONCEALED"
	CodeOutOfBounds  wire.Code = "INPUT_OUT_OF_BOUNDS"
	CodeModelMissing wire.Code = "MODEL_NOT_AVAILABLE"
	CodeModelBusy    wire.Code = "LOCAL_LLM_BUSY"
	CodeModelFailed  wire.Code = "LOCAL_LLM_FAILED"

	// Documented, and never sent by a machine.
	CodeCommandTimeout wire.Code = "COMMAND_TIMEOUT"
	CodeArch           wire.Code = "UNSUPPORTED_ARCH"
	CodeAuthFailed     wire.Code = "AUTH_FAILED"

	// Reserved: recording.
	CodeRecordingMissing wire.Code = "RECORDING_NOT_FOUND"
	CodeRecordingChannel wire.Code = "RECORDING_CHANNEL_UNAVAILABLE"
	CodeRecordingActive  wire.Code = "RECORDING_ALREADY_ACTIVE"
	CodeRecordingReview  wire.Code = "RECORDING_REVIEW_INVALID"
	CodeConsentRequired  wire.Code = "CONSENT_REQUIRED"
	CodeInterpretation   wire.Code = "INTERPRETATION_UNAVAILABLE"
)

// Error is a failed request.
type Error struct {
	Code    wire.Code      `json:"code" need:"yes"`
	Message string         `json:"message" need:"yes"`
	Fatal   bool           `json:"fatal"` // never set by a machine
	Details map[string]any `json:"details"`
}

func (e *Error) Validate() error {
	if e.Code == "" || len(e.Code) > 128 {
		return errors.New("code must have 1 to 128 characters")
	}
	return nil
}

// Ack is the reply of a request that gives nothing back.
type Ack struct {
	OK bool `json:"ok"`
}

func (*Ack) Validate() error { return nil }

// Detailed is an error that crosses with details.
type Detailed struct {
	Code    wire.Code
	Message string
	Details map[string]any
}

func (e *Detailed) Error() string { return e.Message }

// FromError makes the payload of a failed request of err, which is a *Detailed
// or a *wire.Error whose code is one of this protocol. Any other error says
// nothing about its cause to the other end.
func FromError(err error) *Error {
	var d *Detailed
	if errors.As(err, &d) {
		return &Error{Code: d.Code, Message: d.Message, Details: d.Details}
	}
	p := wire.ToWire(err)
	return &Error{Code: p.Code, Message: p.Message}
}

// ToError is the inverse of FromError.
func ToError(p *Error) error {
	return &Detailed{Code: p.Code, Message: p.Message, Details: p.Details}
}

// CodeOf gives the code of err, or "" when it has none.
func CodeOf(err error) wire.Code {
	var d *Detailed
	if errors.As(err, &d) {
		return d.Code
	}
	return wire.CodeOf(err)
}
