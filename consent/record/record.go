// Package record is the local, tamper-evident log of step 4 (every decision,
// before anything runs) and step 6 (every outcome). Each entry's hash covers
// the one before it, and each is signed with a key that is kept with the
// secrets, so that a changed, missing or reordered entry is found. Where entries
// are kept is not its matter: it declares the Rows it needs.
package record

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"localpc/consent"
)

// Rows stores entries. AppendEntry must be durable against the end of the
// process when it returns, and must refuse a Seq that is not the next.
type Rows interface {
	AppendEntry(ctx context.Context, e consent.Entry) error
	// LastEntry returns the newest entry of a kind, "" for any.
	LastEntry(ctx context.Context, kind string) (consent.Entry, bool, error)
	// EachEntry calls fn in order of Seq, from the given one on (which may be
	// below the first), until it returns an error, which it passes through.
	EachEntry(ctx context.Context, from int64, fn func(consent.Entry) error) error
	// EntriesByRef returns the entries of one request, in order.
	EntriesByRef(ctx context.Context, ref string) ([]consent.Entry, error)
}

// Kinds of entries. Serialised.
const (
	KindEpoch    = "epoch"    // a new signing key; signed by itself
	KindDecision = "decision" // of a request, before it runs
	KindOutcome  = "outcome"  // of a request that ran
	KindEvent    = "event"    // start, stop, pause, pair, revoke, …
)

// Epoch is the body of an epoch entry.
type Epoch struct {
	PublicKey string `json:"public_key"` // hex
	// Kept is false when the key lives in memory only, since it could
	// not be kept: entries of that epoch can't be continued by a later start.
	Kept bool `json:"kept"`
}

// Decision is the body of a decision entry.
type Decision struct {
	Request  consent.Request  `json:"request"`
	Digest   string           `json:"digest"`
	Decision consent.Decision `json:"decision"`
}

// Outcome is the body of an outcome entry.
type Outcome struct {
	State    string        `json:"state"` // done, failed, stopped, cancelled
	Result   string        `json:"result,omitempty"`
	Took     time.Duration `json:"took"`
	Sent     int64         `json:"sent"`
	Received int64         `json:"received"`
	Notes    []string      `json:"notes,omitempty"`
	Output   string        `json:"output,omitempty"` // SHA-256 of the kept output, hex
}

// Event is the body of an event entry.
type Event struct {
	What   string `json:"what"`
	Detail string `json:"detail,omitempty"`
}

// Log appends to and reads the record. Safe for concurrent use.
type Log struct {
	rows Rows
	key  ed25519.PrivateKey
	now  func() time.Time

	mu   sync.Mutex
	last consent.Entry // guarded by mu
}

// Options for Open.
type Options struct {
	Rows Rows
	Key  ed25519.PrivateKey
	// Kept says that Key is kept among the secrets.
	Kept bool
	Now  func() time.Time // nil: time.Now
}

// Open continues the record. It begins a new epoch when the newest one has
// another key.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{rows: o.Rows, key: o.Key, now: o.Now}
	last, ok, err := o.Rows.LastEntry(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if !ok {
		last = consent.Entry{Hash: strings.Repeat("0", 64)}
	}
	l.last = last
	epoch, ok, err := o.Rows.LastEntry(ctx, KindEpoch)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	public, current := hex.EncodeToString(o.Key.Public().(ed25519.PublicKey)), ""
	if ok {
		var ep Epoch
		if json.Unmarshal(epoch.Body, &ep) == nil {
			current = ep.PublicKey
		}
	}
	if current != public {
		if _, err := l.append(ctx, KindEpoch, "", Epoch{PublicKey: public, Kept: o.Kept}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *Log) append(ctx context.Context, kind, ref string, body any) (consent.Entry, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return consent.Entry{}, fmt.Errorf("record entry: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := consent.Entry{Seq: l.last.Seq + 1, Time: l.now().UTC().Truncate(time.Microsecond), Kind: kind, Ref: ref, Body: b, Prev: l.last.Hash}
	e.Hash = hash(e)
	raw, _ := hex.DecodeString(e.Hash)
	e.Sig = hex.EncodeToString(ed25519.Sign(l.key, raw))
	// The request's end does not cut the write off: a database may then say that
	// it failed though the entry is there, and the next one would not fit.
	ctx = context.WithoutCancel(ctx)
	if err := l.rows.AppendEntry(ctx, e); err != nil {
		// Where the entry is there all the same, the chain goes on behind it.
		if last, ok, rerr := l.rows.LastEntry(ctx, ""); rerr == nil && ok && last.Hash == e.Hash {
			l.last = e
		}
		return consent.Entry{}, fmt.Errorf("write the record: %w", err)
	}
	l.last = e
	return e, nil
}

// hash covers every field but the signature.
func hash(e consent.Entry) string {
	h := sha256.New()
	b, _ := json.Marshal([]any{e.Seq, e.Time.UTC().Format(time.RFC3339Nano), e.Kind, e.Ref, e.Prev})
	h.Write(b)
	h.Write(e.Body)
	return hex.EncodeToString(h.Sum(nil))
}

// Decided implements consent.Recorder.
func (l *Log) Decided(ctx context.Context, r consent.Request, d consent.Decision) error {
	_, err := l.append(ctx, KindDecision, r.ID, Decision{Request: r, Digest: r.Digest.String(), Decision: d})
	return err
}

// Finished notes how a request that ran ended.
func (l *Log) Finished(ctx context.Context, request string, o Outcome) error {
	_, err := l.append(ctx, KindOutcome, request, o)
	return err
}

// Happened notes an event that is not a request.
func (l *Log) Happened(ctx context.Context, what, detail string) error {
	_, err := l.append(ctx, KindEvent, "", Event{What: what, Detail: detail})
	return err
}

// Head is the newest entry's number and hash.
func (l *Log) Head() (seq int64, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.Seq, l.last.Hash
}

var _ consent.Recorder = (*Log)(nil)

// Report is what Verify found.
type Report struct {
	OK      bool      `json:"ok"`
	Entries int64     `json:"entries"`
	Since   time.Time `json:"since"` // the first entry
	Head    string    `json:"head"`
	// Problem is one sentence about the first break, "" when there is none.
	Problem string `json:"problem,omitempty"`
	At      int64  `json:"at,omitempty"` // Seq of the first break
	// Unkept counts the epochs whose key lived in memory only.
	Unkept int `json:"unkept,omitempty"`
	// UnkeptFrom is the Seq from which on the newest entries are signed with
	// such a key; 0 when they are signed with a kept one.
	UnkeptFrom int64 `json:"unkept_from,omitempty"`
	// Others counts the epochs whose key was kept, and is not the trusted one:
	// from before the kept one was lost, or somebody else's.
	Others int `json:"others,omitempty"`
}

var errBroken = errors.New("broken")

// Verify walks the whole chain: numbers without gaps, each hash over its
// entry, each Prev the hash before it, each signature by its epoch's key.
// trusted, when not nil, is the public key that the newest epoch must have; a
// record without any entry does not have it.
func Verify(ctx context.Context, rows Rows, trusted ed25519.PublicKey) (Report, error) {
	r := Report{OK: true}
	prev := strings.Repeat("0", 64)
	var key ed25519.PublicKey
	broken := func(e consent.Entry, format string, args ...any) error {
		r.OK, r.At, r.Problem = false, e.Seq, fmt.Sprintf(format, args...)
		return errBroken
	}
	// From below the first number on: nothing hides before the chain.
	err := rows.EachEntry(ctx, math.MinInt64, func(e consent.Entry) error {
		if r.Entries == 0 {
			r.Since = e.Time
		}
		if e.Seq != r.Entries+1 {
			return broken(e, "Entry %d is missing.", r.Entries+1)
		}
		if e.Prev != prev {
			return broken(e, "Entry %d does not follow the one before it.", e.Seq)
		}
		if e.Hash != hash(e) {
			return broken(e, "Entry %d was changed after it was written.", e.Seq)
		}
		if e.Kind == KindEpoch {
			var ep Epoch
			pub, err := []byte(nil), json.Unmarshal(e.Body, &ep)
			if err == nil {
				pub, err = hex.DecodeString(ep.PublicKey)
			}
			if err != nil || len(pub) != ed25519.PublicKeySize {
				return broken(e, "Entry %d has no readable key.", e.Seq)
			}
			key, r.UnkeptFrom = pub, 0
			switch {
			case !ep.Kept:
				r.Unkept++
				r.UnkeptFrom = e.Seq
			case trusted != nil && !key.Equal(trusted):
				r.Others++
			}
		}
		raw, _ := hex.DecodeString(e.Hash)
		sig, _ := hex.DecodeString(e.Sig)
		if key == nil || len(sig) != ed25519.SignatureSize || !ed25519.Verify(key, raw, sig) {
			return broken(e, "Entry %d is not signed by this computer's key.", e.Seq)
		}
		prev, r.Head = e.Hash, e.Hash
		r.Entries++
		return nil
	})
	if err != nil && !errors.Is(err, errBroken) {
		return r, fmt.Errorf("verify the record: %w", err)
	}
	if r.OK && trusted != nil {
		switch {
		case key == nil:
			r.OK, r.Problem = false, "The record is empty, though this computer has kept its key."
		case !key.Equal(trusted) && r.UnkeptFrom == 0:
			r.OK, r.Problem = false, "The record's newest key is not the one that this computer has kept."
		}
	}
	return r, nil
}

// Export writes every entry as one JSON object a line.
func Export(ctx context.Context, rows Rows, w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return rows.EachEntry(ctx, math.MinInt64, func(e consent.Entry) error { return enc.Encode(e) })
}
