package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What polling for a device's tokens may answer besides them.
var (
	ErrWaiting = errors.New("the person has not answered yet")
	ErrTooFast = errors.New("asked again too soon")
	ErrDenied  = errors.New("the person has said no")
	ErrExpired = errors.New("the time to answer is over")
)

// ErrFull means that too many sign-ins wait, of one network or in all.
var ErrFull = errors.New("too many sign-ins wait for an answer")

// Bounds of the requests that anybody can make.
const (
	maxWaitingSource = 30
	maxWaiting       = 2000
)

// told is how long an expired request is kept, for a device that still asks.
const told = 10 * time.Minute

// collect is how long a device has at least to come for its tokens.
const collect = time.Minute

// slower is what a device that polls too fast has to add to its interval.
const slower = 5 * time.Second

// SignInRequest is a sign-in that waits for a person.
type SignInRequest struct {
	ID     string
	Client string
	Scopes []string
	// Of the way through a browser: where the answer goes, and what comes back
	// with it. Redirect is "" for a device.
	Redirect, State, Nonce, Challenge string
	// What the computer said of itself, and Address who asked; Source is the
	// network that Address counts to.
	Machine, MachineName, System, Address, Source string
	Match                                         string
	// Resource is what a program's token is to be for; "" for a computer's.
	// MachineName is what it calls itself then, and Called what the person who
	// said yes calls it, "" when they did not say.
	Resource, Called string
	Device           bool
	Until            time.Time
}

func (s *Store) userCode(code string) []byte {
	m := hmac.New(sha256.New, s.secret)
	m.Write([]byte("user code " + code))
	return m.Sum(nil)
}

// AddSignInRequest keeps a request for as long as it waits. A device's has both
// codes, and every is how often it may poll. ErrFull when too many wait.
func (s *Store) AddSignInRequest(ctx context.Context, now time.Time, r SignInRequest, deviceCode, userCode string, every time.Duration) error {
	var device, user []byte
	if r.Device {
		device, user = hash(deviceCode), s.userCode(userCode)
	}
	return s.begin(ctx, "add sign-in request", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM signin_requests WHERE expires <= ?`, ms(now.Add(-told))); err != nil {
			return fmt.Errorf("add sign-in request: %w", err)
		}
		var all, source int
		if err := tx.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE source = ? AND expires > ?) FROM signin_requests`, r.Source, ms(now)).Scan(&all, &source); err != nil {
			return fmt.Errorf("add sign-in request: %w", err)
		}
		if all >= maxWaiting || source >= maxWaitingSource {
			return ErrFull
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO signin_requests (id, status, client, scope, redirect, state, nonce, challenge, machine, machine_name,
			system, address, source, match, resource, device_hash, user_code, created, expires, poll_every) VALUES (?, 'waiting', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.ID, r.Client, strings.Join(r.Scopes, " "), r.Redirect, r.State, r.Nonce, r.Challenge, r.Machine, r.MachineName,
			r.System, r.Address, r.Source, r.Match, r.Resource, device, user, ms(now), ms(r.Until), every.Milliseconds())
		if err != nil {
			return fmt.Errorf("add sign-in request: %w", err)
		}
		return nil
	})
}

type requestRow struct {
	SignInRequest
	status, user, signIn string
	created, polled      time.Time
	pollEvery            time.Duration
}

func findRequest(ctx context.Context, q querier, where string, arg any) (requestRow, error) {
	var r requestRow
	var scope string
	var created, expires, polled, every int64
	err := q.QueryRowContext(ctx, `SELECT id, status, client, scope, redirect, state, nonce, challenge, machine, machine_name, system, address, source,
		match, resource, called, device_hash IS NOT NULL, user_id, signin, created, expires, polled, poll_every FROM signin_requests WHERE `+where, arg).
		Scan(&r.ID, &r.status, &r.Client, &scope, &r.Redirect, &r.State, &r.Nonce, &r.Challenge, &r.Machine, &r.MachineName, &r.System, &r.Address, &r.Source,
			&r.Match, &r.Resource, &r.Called, &r.Device, &r.user, &r.signIn, &created, &expires, &polled, &every)
	if err != nil {
		return requestRow{}, one(err)
	}
	r.Scopes = strings.Fields(scope)
	r.created, r.Until, r.polled, r.pollEvery = fromMS(created), fromMS(expires), fromMS(polled), time.Duration(every)*time.Millisecond
	return r, nil
}

// over tells whether the time of the request is over, or, after the clock was
// set back, unknown.
func (r requestRow) over(now time.Time) bool {
	return !now.Before(r.Until) || r.created.After(now.Add(ahead))
}

func (s *Store) waiting(ctx context.Context, now time.Time, where string, arg any) (SignInRequest, error) {
	r, err := findRequest(ctx, s.db, where, arg)
	if err == nil && (r.status != "waiting" || r.over(now)) {
		err = ErrNotFound
	}
	return r.SignInRequest, err
}

// WaitingSignIn gives a request that waits for a person. ErrNotFound when it
// was answered, or its time is over.
func (s *Store) WaitingSignIn(ctx context.Context, now time.Time, id string) (SignInRequest, error) {
	return s.waiting(ctx, now, `id = ?`, id)
}

// WaitingDevice is WaitingSignIn by the code that the device shows.
func (s *Store) WaitingDevice(ctx context.Context, now time.Time, userCode string) (SignInRequest, error) {
	return s.waiting(ctx, now, `user_code = ?`, s.userCode(userCode))
}

// ApproveSignIn notes that the user said yes, once. The request's code, "" for
// a device, is good for codeFor. ErrNotFound when the request does not wait any
// more or the user left the hub; ErrTaken when another user is signed in with
// the machine.
func (s *Store) ApproveSignIn(ctx context.Context, now time.Time, id, user, code string, codeFor time.Duration) (SignInRequest, error) {
	return s.answer(ctx, now, id, "approved", user, "", code, codeFor)
}

// ApproveProgram is ApproveSignIn for a program's request; called is what the
// person calls it, "" for a name that says nothing. ErrCalledTaken when a key or
// another program of theirs has the name.
func (s *Store) ApproveProgram(ctx context.Context, now time.Time, id, user, called, code string, codeFor time.Duration) (SignInRequest, error) {
	return s.answer(ctx, now, id, "approved", user, called, code, codeFor)
}

// DenySignIn notes that a person said no, once.
func (s *Store) DenySignIn(ctx context.Context, now time.Time, id string) (SignInRequest, error) {
	return s.answer(ctx, now, id, "denied", "", "", "", 0)
}

func (s *Store) answer(ctx context.Context, now time.Time, id, status, user, called, code string, codeFor time.Duration) (SignInRequest, error) {
	var out SignInRequest
	err := s.begin(ctx, "answer sign-in request", func(tx *sql.Tx) error {
		r, err := findRequest(ctx, tx, `id = ?`, id)
		if err != nil {
			return err
		}
		if r.status != "waiting" || r.over(now) {
			return ErrNotFound
		}
		if r.Resource == "" {
			called = ""
		}
		out = r.SignInRequest
		out.Called = called
		var codeHash []byte
		if status == "approved" {
			// Their browser was let in a moment ago; they may be gone since.
			if err := present(ctx, tx, user); err != nil {
				return err
			}
			if called != "" {
				switch taken, err := nameTaken(ctx, tx, user, called); {
				case err != nil:
					return err
				case taken:
					return ErrCalledTaken
				}
			}
			if r.Machine != "" {
				var taken bool
				if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM signins WHERE machine = ?1 AND user_id <> ?2 AND revoked = 0)
					OR EXISTS (SELECT 1 FROM tokens WHERE kind = 'machine' AND machine = ?1 AND user_id <> ?2 AND revoked = 0)`, r.Machine, user).Scan(&taken); err != nil {
					return fmt.Errorf("answer sign-in request: %w", err)
				}
				if taken {
					return ErrTaken
				}
			}
			if r.Device {
				// It comes for its tokens a moment after the answer, however
				// late that was.
				if last := now.Add(collect); r.Until.Before(last) {
					r.Until = last
				}
			} else {
				codeHash = hash(code)
				r.Until = now.Add(codeFor)
			}
		}
		if _, err := tx.ExecContext(ctx, `UPDATE signin_requests SET status = ?, user_id = ?, called = ?, code_hash = ?, created = ?, expires = ? WHERE id = ?`,
			status, user, called, codeHash, ms(now), ms(r.Until), id); err != nil {
			return fmt.Errorf("answer sign-in request: %w", err)
		}
		return nil
	})
	return out, err
}

// RedeemCode exchanges the code of an approved request for the first tokens,
// once. give makes them, or says why the client may not have them; then the
// code is used up all the same, since a stranger holds it. A code that comes
// again ends what it gave: then the error is ErrReused and the Issued tells
// which. ErrNotFound when the code is unknown or its time is over.
func (s *Store) RedeemCode(ctx context.Context, now time.Time, client, code string, give func(SignInRequest) (Pair, error)) (Issued, error) {
	var out Issued
	var refused error
	err := s.begin(ctx, "redeem code", func(tx *sql.Tx) error {
		r, err := findRequest(ctx, tx, `code_hash = ?`, hash(code))
		if err != nil {
			return err
		}
		switch {
		case r.Client != client || r.over(now) || r.status != "approved" && r.status != "used":
			return ErrNotFound
		case r.status == "used":
			refused = ErrReused
			out.SignIn = r.signIn
			ids, err := s.end(ctx, tx, `id = ?`, "its code was used twice", r.signIn)
			if len(ids) == 0 {
				refused = ErrNotFound
			}
			return err
		}
		var p Pair
		if p, refused = give(r.SignInRequest); refused == nil {
			if out, err = s.addSignIn(ctx, tx, now, r.SignInRequest, r.user, p); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE signin_requests SET status = 'used', signin = ? WHERE id = ?`, out.SignIn, r.ID)
		return err
	})
	return out, errors.Join(err, refused)
}

// PollDevice gives the tokens of a device's approved request, once. Before
// that: ErrWaiting, ErrTooFast, ErrDenied, ErrExpired; ErrNotFound when the
// code is unknown or was used.
func (s *Store) PollDevice(ctx context.Context, now time.Time, client, deviceCode string, give func(SignInRequest) (Pair, error)) (Issued, error) {
	var out Issued
	var answer error
	err := s.begin(ctx, "poll device", func(tx *sql.Tx) error {
		r, err := findRequest(ctx, tx, `device_hash = ?`, hash(deviceCode))
		if err != nil {
			return err
		}
		switch {
		case r.Client != client || r.status == "used":
			return ErrNotFound
		case r.status == "denied":
			return ErrDenied
		case r.over(now):
			return ErrExpired
		}
		status, signIn := r.status, ""
		// A timer that goes off a little early is no offence.
		if tooFast := !r.polled.IsZero() && now.Sub(r.polled) < r.pollEvery*9/10; tooFast {
			r.pollEvery += slower
			answer = ErrTooFast
		} else if r.status == "waiting" {
			answer = ErrWaiting
		} else {
			p, err := give(r.SignInRequest)
			if err != nil {
				return err
			}
			if out, err = s.addSignIn(ctx, tx, now, r.SignInRequest, r.user, p); err != nil {
				return err
			}
			status, signIn = "used", out.SignIn
		}
		_, err = tx.ExecContext(ctx, `UPDATE signin_requests SET status = ?, signin = ?, polled = ?, poll_every = ? WHERE id = ?`,
			status, signIn, ms(now), r.pollEvery.Milliseconds(), r.ID)
		return err
	})
	return out, errors.Join(err, answer)
}
