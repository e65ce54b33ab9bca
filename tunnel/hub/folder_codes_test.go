package hub

import (
	"errors"
	"testing"

	"localpc/tunnel/hub/autogpt"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// The page tells apart what its person can do about an error, and shows what
// the computer said, never what the hub knows of the cause.
func TestErrorsOfALook(t *testing.T) {
	for _, c := range []struct {
		err  error
		want wire.Code
		said string
	}{
		{wire.Errorf(wire.CodeOffline, "x"), wire.CodeOffline, ""},
		{wire.Errorf(wire.CodeLost, "x"), wire.CodeOffline, ""},
		{wire.Errorf(autogpt.CodeTimeout, "x"), wire.CodeOverloaded, ""},
		{wire.Errorf(wire.CodeCancelled, "x"), wire.CodeOverloaded, ""},
		{wire.Errorf(wire.CodeOverloaded, "x"), wire.CodeOverloaded, ""},
		{wire.Errorf(wire.CodeInvalid, "x"), wire.CodeSessionNotOpen, ""}, // an address that somebody changed
		{wire.Errorf(autogpt.CodeInvalidReply, "x"), wire.CodeInternal, ""},
		{errors.New("x"), wire.CodeInternal, ""},
		{&msg.Detailed{Code: msg.CodePending, Message: "Wait."}, wire.CodePending, "Wait."},
		{&msg.Detailed{Code: msg.CodeNotGranted, Message: "No."}, wire.CodeDenied, "No."},
		{&msg.Detailed{Code: msg.CodeReferenceInvalid, Message: "Old."}, wire.CodeSessionNotOpen, "Old."},
		{&msg.Detailed{Code: msg.CodeUnavailable, Message: "100% gone."}, wire.CodePathNotFound, "100% gone."},
		{&msg.Detailed{Code: "ODD", Message: "Odd."}, wire.CodeInternal, "Odd."},
	} {
		var got *wire.Error
		if err := ofLook(c.err); !errors.As(err, &got) || got.Code != c.want || got.Message != c.said {
			t.Errorf("%v: %#v", c.err, err)
		}
	}
}
