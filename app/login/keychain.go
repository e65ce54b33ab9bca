// Package login signs this machine in at a hub, with the person's browser or
// with a code, and keeps what proves it, in the operating system's keychain or,
// where the person chose so, in an encrypted file: the tokens, renewed ahead of their end, and the key that signs the record. It
// serves step 2 (the tunnel's token) and steps 4 and 6 (signatures).
package login

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// Service is the keychain service under which everything is kept.
const Service = "localpc"

// ErrMissing means that the keychain works and has no such item.
var ErrMissing = errors.New("not in the keychain")

// ErrNoKeychain means that the keychain, or the file in its place, can't be used
// now: it is absent, locked, or does not answer.
var ErrNoKeychain = errors.New("the keychain is not available")

// ErrAbsent means that there is no keychain at all, so that it holds nothing.
var ErrAbsent = errors.New("there is none")

// Keychain reads and writes items of one machine. Every call is bounded: a
// locked keychain may show its own prompt and block until it is answered
// (zalando/go-keyring#116, crc-org/crc#4342).
type Keychain struct {
	// Machine is added to every item's name, so that two data directories of
	// one person do not share items.
	Machine string
	// Timeout bounds one call; 0 means 10 s.
	Timeout time.Duration
}

// Name is the keychain's user name of an item.
func (k Keychain) Name(item string) string { return item + "@" + k.Machine }

// Get returns an item, ErrMissing, or an error that wraps ErrNoKeychain.
func (k Keychain) Get(ctx context.Context, item string) (string, error) {
	return bounded(ctx, k.Timeout, func() (string, error) { return keyring.Get(Service, k.Name(item)) })
}

// Set stores an item.
func (k Keychain) Set(ctx context.Context, item, value string) error {
	_, err := bounded(ctx, k.Timeout, func() (string, error) { return "", keyring.Set(Service, k.Name(item), value) })
	return err
}

// Delete removes an item; one that is not there is no error.
func (k Keychain) Delete(ctx context.Context, item string) error {
	_, err := bounded(ctx, k.Timeout, func() (string, error) { return "", keyring.Delete(Service, k.Name(item)) })
	if errors.Is(err, ErrMissing) {
		return nil
	}
	return err
}

// one is held by the call to the keychain that is under way: a locked one shows
// one prompt, however often it is asked again.
var one = make(chan struct{}, 1)

// bounded runs fn on a goroutine of its own. One that hangs ends when the
// keychain's prompt is answered or the program ends; nothing can end it before.
func bounded(ctx context.Context, limit time.Duration, fn func() (string, error)) (string, error) {
	if noBus() {
		return "", fmt.Errorf("%w: %w: no session bus", ErrNoKeychain, ErrAbsent)
	}
	if limit == 0 {
		limit = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type result struct {
		s   string
		err error
	}
	done := make(chan result, 1)
	select {
	case one <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("%w: an earlier call to it waits still", ErrNoKeychain)
	}
	go func() {
		defer func() { <-one }()
		s, err := fn()
		done <- result{s, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err == nil:
			return r.s, nil
		case errors.Is(r.err, keyring.ErrNotFound):
			return "", ErrMissing
		case unprovided(r.err):
			return "", fmt.Errorf("%w: %w: %w", ErrNoKeychain, ErrAbsent, r.err)
		default:
			return "", fmt.Errorf("%w: %w", ErrNoKeychain, r.err)
		}
	case <-ctx.Done():
		return "", fmt.Errorf("%w: no answer within %s", ErrNoKeychain, limit)
	}
}

// Where says in a few words where items are.
func (k Keychain) Where() string { return "in the keychain" }

// Check tells whether the keychain takes something and gives it back: nil, or
// an error that wraps ErrNoKeychain.
func (k Keychain) Check(ctx context.Context) error {
	const item = "check"
	if err := k.Set(ctx, item, item); err != nil {
		return err
	}
	return k.Delete(ctx, item)
}
