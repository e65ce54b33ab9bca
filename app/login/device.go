package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// maxCode is the longest code that a person is asked to type, in bytes.
const maxCode = 64

// Code is what the person types, and where.
type Code struct {
	Page, Code string
	Until      time.Time
}

// ByCode signs in with a code that the person types on another device (RFC
// 8628). begun is told the code. The error is as Browser's.
func ByCode(ctx context.Context, hc *http.Client, s Server, begun func(Code)) (Tokens, error) {
	if s.DeviceURL == "" {
		return Tokens{}, ErrNoCodes
	}
	ctx, cancel := context.WithTimeout(ctx, signInLimit)
	defer cancel()
	config := s.config()
	octx, c := oauth2Context(ctx, hc, time.Now)
	da, err := config.DeviceAuth(octx, s.aboutMachine()...)
	if err != nil {
		return Tokens{}, refusal(err)
	}
	if len(da.UserCode) > maxCode || strings.TrimSpace(da.UserCode) == "" || !at(da.VerificationURI, s.DeviceURL) {
		return Tokens{}, fmt.Errorf("%w: it gave no code that a person can type on its page", ErrRefused)
	}
	until, _ := ctx.Deadline()
	if da.Expiry.IsZero() || da.Expiry.After(until) {
		da.Expiry = until
	}
	begun(Code{Page: da.VerificationURI, Code: da.UserCode, Until: da.Expiry})
	for {
		tok, err := config.DeviceAccessToken(octx, da)
		switch {
		case err == nil:
			return s.tokens(tok, c), nil
		case ctx.Err() != nil:
			return Tokens{}, ended(ctx)
		case errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(da.Expiry):
			return Tokens{}, ErrExpired
		case !passing(err):
			return Tokens{}, refusal(err)
		}
		// The network or the hub was away: the code may still be good, and the
		// next question comes after the interval.
	}
}

// passing tells an error that may be gone the next time from an answer.
func passing(err error) bool {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		return true
	}
	return re.Response.StatusCode >= 500 || re.Response.StatusCode == http.StatusTooManyRequests
}
