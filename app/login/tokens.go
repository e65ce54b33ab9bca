package login

import (
	"encoding/json"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Tokens are one sign-in at a hub, as the keychain keeps it: one item, JSON.
type Tokens struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"` // "": Access does not end
	// Received is when they were asked for, by this computer's clock, and
	// Seconds is how long Access is good from then; 0: not known.
	Received time.Time `json:"received"`
	Seconds  int64     `json:"seconds,omitempty"`
	// Where and as whom they are renewed and given back.
	Client    string `json:"client,omitempty"`
	TokenURL  string `json:"token_url,omitempty"`
	RevokeURL string `json:"revoke_url,omitempty"`
	// Begun: they are being renewed, and it is not known how that ended. The
	// refresh token may be used up: it is not used again.
	Begun bool `json:"begun,omitempty"`
}

// readTokens reads a keychain item. What is no JSON object is the token of a
// pairing line, which does not end.
func readTokens(item string) (Tokens, error) {
	if !strings.HasPrefix(item, "{") {
		return Tokens{Access: item}, nil
	}
	var t Tokens
	err := json.Unmarshal([]byte(item), &t)
	return t, err
}

func (t Tokens) item() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain fields
	}
	return string(b)
}

// age is how long ago the tokens were received. A clock that was set counts
// only where it makes them older: the monotonic one stands still while the
// computer sleeps.
func (t Tokens) age(now time.Time) time.Duration {
	return max(now.Sub(t.Received), now.Round(0).Sub(t.Received.Round(0)))
}

// life is how long the access token was good when it was received.
func (t Tokens) life() time.Duration { return time.Duration(t.Seconds) * time.Second }

// due is how long it is until they should be renewed: a fifth of the life
// before the end, 5 minutes at most. known is false where the end is not known
// or nothing can be renewed.
func (t Tokens) due(now time.Time) (in time.Duration, known bool) {
	if t.Seconds <= 0 || t.Refresh == "" {
		return 0, false
	}
	return t.life() - min(t.life()/5, 5*time.Minute) - t.age(now), true
}

// over tells that the access token has ended, as far as is known.
func (t Tokens) over(now time.Time) bool { return t.Seconds > 0 && t.age(now) >= t.life() }

// tokensOf takes over an answer of a token endpoint, asked for at began. An end
// given as a moment is held against the answer's own clock: this computer's may
// be wrong.
func tokensOf(tok *oauth2.Token, began, answered time.Time) Tokens {
	t := Tokens{Access: tok.AccessToken, Refresh: tok.RefreshToken, Received: began, Seconds: tok.ExpiresIn}
	if t.Seconds > 0 {
		return t
	}
	if answered.IsZero() {
		answered = began
	}
	s, _ := tok.Extra("access_token_expires_at").(string)
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05"} { // fractions of a second are taken too
		if at, err := time.Parse(form, s); err == nil {
			t.Seconds = max(int64(at.Sub(answered)/time.Second), 1)
			break
		}
	}
	return t
}
