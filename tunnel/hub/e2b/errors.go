package e2b

import (
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// meaning is how an error of the machine or the hub reaches a client. The SDKs
// put words of their own to some codes ("rate limit", "sandbox not found");
// a code is chosen so that the sentence arrives and nothing false beside it.
type meaning struct {
	rpc  connect.Code
	http int
}

var meanings = map[wire.Code]meaning{
	wire.CodeDenied:      {connect.CodePermissionDenied, http.StatusForbidden},
	wire.CodeExpired:     {connect.CodeFailedPrecondition, http.StatusPreconditionFailed},
	wire.CodeUndelivered: {connect.CodeFailedPrecondition, http.StatusPreconditionFailed},
	wire.CodePaused:      {connect.CodeFailedPrecondition, http.StatusPreconditionFailed},
	wire.CodeStopped:     {connect.CodeAborted, http.StatusConflict},
	wire.CodeOverloaded:  {connect.CodeResourceExhausted, http.StatusTooManyRequests},

	wire.CodeSessionNotOpen: {connect.CodeUnavailable, http.StatusBadGateway},
	wire.CodeInvalid:        {connect.CodeInvalidArgument, http.StatusBadRequest},
	wire.CodeNotSupported:   {connect.CodeUnimplemented, http.StatusNotImplemented},
	wire.CodeInternal:       {connect.CodeInternal, http.StatusInternalServerError},
	wire.CodeCancelled:      {connect.CodeAborted, http.StatusConflict},

	wire.CodePathOutside:  {connect.CodePermissionDenied, http.StatusForbidden},
	wire.CodePathChars:    {connect.CodeInvalidArgument, http.StatusBadRequest},
	wire.CodePathNotFound: {connect.CodeNotFound, http.StatusNotFound},
	wire.CodePathExists:   {connect.CodeAlreadyExists, http.StatusConflict},
	wire.CodePathNotEmpty: {connect.CodeFailedPrecondition, http.StatusConflict},
	wire.CodePathKind:     {connect.CodeInvalidArgument, http.StatusBadRequest},
	wire.CodeForbidden:    {connect.CodePermissionDenied, http.StatusForbidden},
	wire.CodeTooLarge:     {connect.CodeOutOfRange, http.StatusRequestEntityTooLarge},
	wire.CodeChanged:      {connect.CodeAborted, http.StatusConflict},
	wire.CodeDiskFull:     {connect.CodeFailedPrecondition, http.StatusInsufficientStorage},

	wire.CodeShellMissing: {connect.CodeFailedPrecondition, http.StatusPreconditionFailed},
	wire.CodeUnconfined:   {connect.CodeFailedPrecondition, http.StatusPreconditionFailed},

	wire.CodeOffline: {connect.CodeFailedPrecondition, http.StatusServiceUnavailable},
	wire.CodeLost:    {connect.CodeAborted, http.StatusServiceUnavailable},
}

// sentence is an error whose text is for people.
type sentence string

func (s sentence) Error() string { return string(s) }

func means(err error) (meaning, string) {
	var e *wire.Error
	switch {
	case !errors.As(err, &e):
		return meanings[wire.CodeInternal], "Something went wrong in the hub; its log says what."
	case errors.Is(err, store.ErrRevoked): // as if it came with a key that is none
		return meaning{connect.CodeUnauthenticated, http.StatusUnauthorized}, e.Message
	}
	if m, ok := meanings[e.Code]; ok {
		return m, e.Message
	}
	return meanings[wire.CodeInternal], e.Message
}

// rpcError is err for connect.
func rpcError(err error) *connect.Error {
	m, text := means(err)
	return connect.NewError(m.rpc, sentence(text))
}

// httpError answers with err.
func httpError(w http.ResponseWriter, err error) {
	m, text := means(err)
	writeError(w, m.http, text)
}

// writeError writes the shape that the SDKs read; they look at code in the
// body, not only at the status.
func writeError(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1") // the SDK tries again only where it is told when
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": status, "message": text})
}
