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
