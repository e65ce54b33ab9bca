package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

// ErrSignIn means that only the person can go on: the sign-in has ended.
var ErrSignIn = errors.New("the sign-in has ended")

// refreshLimit bounds one renewal. It is not cut short by whoever asked: an
// answer that is not heard costs the sign-in.
const refreshLimit = 15 * time.Second

// SourceOptions build a Source. Keychain, Item and HTTP are needed.
type SourceOptions struct {
	Keychain Keeper
	Item     string // of the keychain
	HTTP     *http.Client
	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger
}

// Source gives the access token of one sign-in to everything that uses it, and
// renews it ahead of its end: one renewal at a time, and the new pair is in the
// keychain before it is used. Safe for concurrent use.
type Source struct {
	o    SourceOptions
	hold chan struct{} // a lock that a context can leave; guards what follows

	held     *Tokens // nil: not read yet
	unsaved  *Tokens // renewed, and not yet in the keychain
	rejected string  // an access token that the hub did not accept
	over     error   // the sign-in has ended; wraps ErrSignIn
}

// NewSource makes a Source. Nothing is read or asked until it is used.
func NewSource(o SourceOptions) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Source{o: o, hold: make(chan struct{}, 1)}
}

func (s *Source) lock(ctx context.Context) error {
	select {
	case s.hold <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Source) unlock() { <-s.hold }

// Token returns an access token, renewed where it is due. The error wraps
// ErrMissing (there is no sign-in), ErrSignIn (it has ended), ErrNoKeychain, or
// is the network's; the last two may pass.
func (s *Source) Token(ctx context.Context) (string, error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.unlock()
	if s.over != nil {
		return "", s.over
	}
	if s.held == nil {
		t, err := s.read(ctx)
		if err != nil {
			return "", err
		}
		s.held = &t
	}
	in, known := s.held.due(s.o.Now())
	bad := s.rejected != "" && s.rejected == s.held.Access
	if s.unsaved == nil && !bad && (!known || in > 0) {
		return s.held.Access, nil
	}
	err := s.renew(ctx)
	if err == nil {
		return s.held.Access, nil
	}
	if !bad && !s.held.over(s.o.Now()) {
		s.o.Log.Warn("The sign-in could not be renewed yet", "err", err)
		return s.held.Access, nil // good for a while
	}
	if errors.Is(err, ErrSignIn) {
		s.over = err
	}
	return "", err
}

// Rejected tells that the hub did not accept an access token, and gets another
// one: nil means that Token has it. The error is as Token's.
func (s *Source) Rejected(ctx context.Context, token string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	if s.held == nil || s.held.Access == token {
		s.rejected = token
	}
	s.unlock()
	_, err := s.Token(ctx)
	return err
}

// Fresh waits until another access token than this one is there, renewed ahead
// of its end. The error is ctx's, or wraps ErrSignIn or ErrMissing.
func (s *Source) Fresh(ctx context.Context, token string) (string, error) {
	for {
		t, err := s.Token(ctx)
		switch {
		case err == nil && t != token:
			return t, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.Is(err, ErrSignIn), errors.Is(err, ErrMissing):
			return "", err
		}
		wait, err := s.wait(ctx)
		if err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-wait:
		}
	}
}

// wait fires when the tokens are due; soon, where they are and could not be
// renewed, and never where their end is not known.
func (s *Source) wait(ctx context.Context) (<-chan time.Time, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if s.held == nil {
		return time.After(time.Minute), nil
	}
	in, known := s.held.due(s.o.Now())
	if !known {
		return nil, nil
	}
	// A fiftieth of an hour's token is a little over a minute.
	return time.After(max(in, s.held.life()/50, time.Second/10)), nil
}

// read reads the keychain.
func (s *Source) read(ctx context.Context) (Tokens, error) {
	item, err := s.o.Keychain.Get(ctx, s.o.Item)
	if err != nil {
		return Tokens{}, err
	}
	t, err := readTokens(item)
	if err != nil {
		return Tokens{}, fmt.Errorf("%w: the item can't be read", ErrMissing)
	}
	if now := s.o.Now(); t.Received.After(now) {
		t.Received = now // the clock was set back: count from here
	}
	return t, nil
}

// write is not cut short either: what is half done is lost.
func (s *Source) write(ctx context.Context, t Tokens) error {
	return s.o.Keychain.Set(context.WithoutCancel(ctx), s.o.Item, t.item())
}

// renew gets a new pair and keeps it. It is called with the lock.
func (s *Source) renew(ctx context.Context) error {
	if s.unsaved != nil {
		return s.keep(ctx)
	}
	stored, err := s.read(ctx)
	if err != nil {
		return err
	}
	if stored.Access != s.held.Access {
		// Another process has renewed it, or the person has signed in again.
		s.held = &stored
		if in, known := stored.due(s.o.Now()); !known || in > 0 {
			return nil
		}
	}
	switch {
	case stored.Refresh == "":
		return fmt.Errorf("%w: the hub does not accept the token, and it can't be renewed", ErrSignIn)
	case stored.Begun:
		return fmt.Errorf("%w: an earlier renewal was not answered", ErrSignIn)
	}
	// The mark says, whatever happens now, that the refresh token may be used
	// up; and a keychain that does not take it would not take the new pair.
	stored.Begun = true
	if err := s.write(ctx, stored); err != nil {
		return err
	}
	fresh, sent, err := s.exchange(ctx, stored)
	switch {
	case err == nil:
		s.unsaved = &fresh
		return s.keep(ctx)
	case errors.Is(err, ErrSignIn):
		return err
	case sent:
		s.o.Log.Error("The hub did not answer whether it renewed the sign-in", "err", err)
		return fmt.Errorf("%w: the renewal was not answered: %w", ErrSignIn, err)
	}
	stored.Begun = false
	if werr := s.write(ctx, stored); werr != nil {
		s.o.Log.Error("The keychain does not take the sign-in back", "err", werr)
	}
	return err
}

// keep stores the new pair, which is used from then on.
func (s *Source) keep(ctx context.Context) error {
	if err := s.write(ctx, *s.unsaved); err != nil {
		s.o.Log.Error("The keychain does not take the renewed sign-in; it is tried again, and lost if this program ends before", "err", err)
		return err
	}
	s.held, s.unsaved, s.rejected = s.unsaved, nil, ""
	return nil
}

// exchange asks the hub once. sent tells whether the refresh token may be used
// up although no new one came; an error that wraps ErrSignIn is the hub's word.
func (s *Source) exchange(ctx context.Context, t Tokens) (_ Tokens, sent bool, _ error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshLimit)
	defer cancel()
	server := Server{Client: t.Client, TokenURL: t.TokenURL, RevokeURL: t.RevokeURL}
	octx, c := oauth2Context(ctx, s.o.HTTP, s.o.Now)
	tok, err := server.config().TokenSource(octx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if err == nil {
		return server.tokens(tok, c), true, nil
	}
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) || re.Response == nil {
		return Tokens{}, c.sent.Load(), err
	}
	switch code := re.Response.StatusCode; {
	case (code == http.StatusBadRequest || code == http.StatusUnauthorized || code == http.StatusForbidden) && hubsWord(re):
		return Tokens{}, false, fmt.Errorf("%w: %w", ErrSignIn, err)
	case code == http.StatusGatewayTimeout, code/100 == 2:
		// The hub may have heard it, or gave something that is no pair.
		return Tokens{}, true, err
	}
	return Tokens{}, false, err // refused for now: busy, being replaced, down
}

// hubsWord tells a hub's refusal, which says why in JSON, from that of something
// before it, such as a proxy's page: the sign-in may be good still.
func hubsWord(re *oauth2.RetrieveError) bool {
	var said struct {
		Error  string          `json:"error"`
		Detail json.RawMessage `json:"detail"` // AutoGPT's
	}
	if json.Unmarshal(re.Body, &said) != nil {
		return false
	}
	switch said.Error {
	case "temporarily_unavailable", "server_error", "slow_down":
		return false
	}
	return said.Error != "" || len(said.Detail) > 0
}

// Save keeps a new sign-in in the keychain, in the place of an earlier one.
func Save(ctx context.Context, k Keeper, item string, t Tokens) error {
	return k.Set(ctx, item, t.item())
}

// Load reads a sign-in; ErrMissing where there is none.
func Load(ctx context.Context, k Keeper, item string) (Tokens, error) {
	s, err := k.Get(ctx, item)
	if err != nil {
		return Tokens{}, err
	}
	return readTokens(s)
}
