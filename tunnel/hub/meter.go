package hub

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

// Meter counts what a hub does. Its methods are called concurrently, with few
// different words: kinds are wire types, outcomes "ok" or error codes, both in
// small letters.
type Meter interface {
	// Request is told of each request to a computer when it has ended.
	Request(kind, outcome string, took time.Duration)
	// Closed is told of each end of a computer's connection, by its close code:
	// 1006 when there was none.
	Closed(code int)
	// SignIn is told of each sign-in that was given its first tokens.
	SignIn()
	// Reused is told of each refresh token that came a second time.
	Reused()
}

type noMeter struct{}

func (noMeter) Request(string, string, time.Duration) {}
func (noMeter) Closed(int)                            {}
func (noMeter) SignIn()                               {}
func (noMeter) Reused()                               {}

// outcomes are the error codes that are counted by name. A computer may send
// any word as a code.
var outcomes = func() map[wire.Code]string {
	m := map[wire.Code]string{}
	for _, c := range []wire.Code{wire.CodeDenied, wire.CodeExpired, wire.CodeUndelivered, wire.CodePending, wire.CodePaused, wire.CodeStopped,
		wire.CodeOverloaded, wire.CodeSessionNotOpen, wire.CodeInvalid, wire.CodeNotSupported, wire.CodeInternal, wire.CodeCancelled,
		wire.CodePathOutside, wire.CodePathChars, wire.CodePathNotFound, wire.CodePathExists, wire.CodePathNotEmpty, wire.CodePathKind,
		wire.CodeForbidden, wire.CodeTooLarge, wire.CodeChanged, wire.CodeDiskFull, wire.CodeShellMissing, wire.CodeUnconfined,
		wire.CodeOffline, wire.CodeLost} {
		m[c] = strings.ToLower(string(c))
	}
	return m
}()

func outcome(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "ok"
	}
	if name := outcomes[wire.CodeOf(err)]; name != "" {
		return name
	}
	return "other"
}

// measured is a request that is counted once, when it has ended or was let go.
type measured struct {
	Stream
	once sync.Once
	done func(outcome string)
}

func (h *Hub) measure(t wire.Type) func(outcome string) {
	began := time.Now()
	return func(outcome string) {
		h.o.Meter.Request(strings.ToLower(string(t)), outcome, time.Since(began))
	}
}

// Recv counts the request when its last frame, or its error, is taken.
func (m *measured) Recv() (wire.Message, error) {
	msg, err := m.Stream.Recv()
	if err != nil || wire.Terminal(msg.Type) {
		m.once.Do(func() { m.done(outcome(err)) })
	}
	return msg, err
}

func (m *measured) Close() {
	m.once.Do(func() { m.done("cancelled") })
	m.Stream.Close()
}

// Do sends one request to a sandbox's machine, if that is still its user's. When
// ctx ends before the reply has come whole, the request is cancelled there. The
// error is a *wire.Error: CodeOffline when the machine is not connected,
// CodeInvalid when the payload may not be sent.
func (h *Hub) Do(ctx context.Context, b store.Sandbox, t wire.Type, p wire.Payload) (Stream, error) {
	done := h.measure(t)
	err := error(offline())
	if m := h.lookup(b.User, b.Machine); m != nil {
		var s Stream
		if s, err = m.do(ctx, t, p); err == nil {
			return &measured{Stream: s, done: done}, nil
		}
	}
	done(outcome(err))
	return nil, err
}
