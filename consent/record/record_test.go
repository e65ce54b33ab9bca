package record_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/consent"
	"localpc/consent/record"
)

// rows is a place for entries in memory. The real one is app/store.
type rows struct {
	mu   sync.Mutex
	all  []consent.Entry
	fail error
}

func (r *rows) AppendEntry(ctx context.Context, e consent.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	if e.Seq != int64(len(r.all))+1 {
		return fmt.Errorf("entry %d is not the next", e.Seq)
	}
	r.all = append(r.all, e)
	return ctx.Err() // a database that wrote it and says that it did not
}

func (r *rows) LastEntry(_ context.Context, kind string) (consent.Entry, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.all) {
		if kind == "" || e.Kind == kind {
			return e, true, nil
		}
	}
	return consent.Entry{}, false, nil
}

func (r *rows) EachEntry(_ context.Context, from int64, fn func(consent.Entry) error) error {
	for _, e := range r.all {
		if e.Seq >= from {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rows) EntriesByRef(_ context.Context, ref string) (out []consent.Entry, _ error) {
	for _, e := range r.all {
		if e.Ref == ref {
			out = append(out, e)
		}
	}
	return out, nil
}

func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(n byte) ed25519.PublicKey { return key(n).Public().(ed25519.PublicKey) }

func open(t *testing.T, r *rows, n byte, kept bool) *record.Log {
	t.Helper()
	l, err := record.Open(t.Context(), record.Options{Rows: r, Key: key(n), Kept: kept})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// write makes a record of six entries: an epoch, an event, two requests.
func write(t *testing.T) *rows {
	t.Helper()
	r := &rows{}
	l := open(t, r, 1, true)
	must(t, l.Happened(t.Context(), "start", "1.0"))
	for _, id := range []string{"r1", "r2"} {
		must(t, l.Decided(t.Context(), consent.Request{ID: id, Title: "Run a <b> && c", Exact: "a\x00b\u202e\xff"}, consent.Decision{Outcome: consent.Allowed, By: "you"}))
		must(t, l.Finished(t.Context(), id, record.Outcome{State: "done", Result: "exit code 0", Took: time.Second, Sent: 3}))
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, r *rows, trusted ed25519.PublicKey) record.Report {
	t.Helper()
	rep, err := record.Verify(t.Context(), r, trusted)
	must(t, err)
	if rep.OK == (rep.Problem != "") {
		t.Errorf("OK %v with the problem %q", rep.OK, rep.Problem)
	}
	return rep
}

func TestVerify(t *testing.T) {
	r := write(t)
	rep := verify(t, r, public(1))
	if !rep.OK || rep.Entries != 6 || rep.Head != r.all[5].Hash || !rep.Since.Equal(r.all[0].Time) || rep.Unkept != 0 || rep.Others != 0 {
		t.Errorf("%+v", rep)
	}
	if rep := verify(t, r, nil); !rep.OK {
		t.Errorf("without a key to compare: %+v", rep)
	}
	if rep := verify(t, r, public(2)); rep.OK {
		t.Error("another key's record passes")
	}
	if rep := verify(t, &rows{}, nil); !rep.OK || rep.Entries != 0 {
		t.Errorf("an empty record: %+v", rep)
	}
	if rep := verify(t, &rows{}, public(1)); rep.OK {
		t.Error("a record that was emptied passes")
	}
}

// Whatever is changed in whichever entry, that entry is named.
func TestTampering(t *testing.T) {
	changes := map[string]func(*consent.Entry){
		"time":      func(e *consent.Entry) { e.Time = e.Time.Add(time.Microsecond) },
		"kind":      func(e *consent.Entry) { e.Kind = record.KindEvent + "s" },
		"ref":       func(e *consent.Entry) { e.Ref += "x" },
		"body":      func(e *consent.Entry) { e.Body = append(json.RawMessage(" "), e.Body...) },
		"prev":      func(e *consent.Entry) { e.Prev = flip(e.Prev) },
		"hash":      func(e *consent.Entry) { e.Hash = flip(e.Hash) },
		"signature": func(e *consent.Entry) { e.Sig = flip(e.Sig) },
		"no signature": func(e *consent.Entry) {
			e.Sig = ""
		},
		"ref moved into kind": func(e *consent.Entry) { e.Kind, e.Ref = e.Kind+e.Ref, "" },
	}
	for name, change := range changes {
		for i := range 6 {
			r := write(t)
			before := r.all[i]
			change(&r.all[i])
			if name == "ref moved into kind" && before.Ref == "" {
				continue
			}
			if rep := verify(t, r, public(1)); rep.OK || rep.At != int64(i+1) || !strings.Contains(rep.Problem, fmt.Sprintf("Entry %d ", i+1)) {
				t.Errorf("%s of entry %d: %+v", name, i+1, rep)
			}
		}
	}
	for i := range 6 {
		r := write(t)
		r.all = slices.Delete(r.all, i, i+1)
		rep := verify(t, r, public(1))
		if i == 5 {
			continue // the tail alone can't be told from a record that ends there
		}
		if rep.OK || !strings.Contains(rep.Problem, fmt.Sprintf("Entry %d is missing", i+1)) {
			t.Errorf("entry %d deleted: %+v", i+1, rep)
		}
	}
	for i := range 5 {
		r := write(t)
		r.all[i], r.all[i+1] = r.all[i+1], r.all[i]
		if rep := verify(t, r, public(1)); rep.OK {
			t.Errorf("entries %d and %d reordered: passes", i+1, i+2)
		}
		// With their numbers put right, too.
		r.all[i].Seq, r.all[i+1].Seq = int64(i+1), int64(i+2)
		if rep := verify(t, r, public(1)); rep.OK || rep.At != int64(i+1) {
			t.Errorf("entries %d and %d reordered and numbered: %+v", i+1, i+2, rep)
		}
	}
	r := write(t)
	again := r.all[3]
	r.all = slices.Insert(r.all, 4, again)
	for i := range r.all {
		r.all[i].Seq = int64(i + 1)
	}
	if rep := verify(t, r, public(1)); rep.OK || rep.At != 5 {
		t.Errorf("an entry inserted: %+v", rep)
	}
	for _, seq := range []int64{0, -7} {
		r := write(t)
		hidden := r.all[2]
		hidden.Seq = seq
		r.all = slices.Insert(r.all, 0, hidden)
		if rep := verify(t, r, public(1)); rep.OK {
			t.Errorf("an entry numbered %d passes", seq)
		}
	}
}

func flip(s string) string {
	b := []byte(s)
	if b[0] == '0' {
		b[0] = '1'
	} else {
		b[0] = '0'
	}
	return string(b)
}

// A record rewritten with another key, from the start or from the middle on.
func TestForgery(t *testing.T) {
	r := &rows{}
	forger := open(t, r, 9, true)
	must(t, forger.Happened(t.Context(), "nothing bad", ""))
	if rep := verify(t, r, public(1)); rep.OK {
		t.Error("a record by another key passes")
	}

	r = write(t)
	forger = open(t, r, 9, true)
	must(t, forger.Happened(t.Context(), "nothing bad", ""))
	if rep := verify(t, r, public(1)); rep.OK {
		t.Error("a forged end passes")
	}
	// The real program goes on after it; the stranger's part is told.
	must(t, open(t, r, 1, true).Happened(t.Context(), "start", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.Others != 1 {
		t.Errorf("%+v", rep)
	}

	// An entry of a stranger's key without its own epoch.
	r = write(t)
	other := write(t)
	e := other.all[5]
	forger9 := open(t, &rows{}, 9, true)
	must(t, forger9.Happened(t.Context(), "x", ""))
	e.Sig = strings.Repeat("ab", ed25519.SignatureSize)
	r.all[5] = e
	if rep := verify(t, r, public(1)); rep.OK || rep.At != 6 {
		t.Errorf("%+v", rep)
	}
}

func TestEpochs(t *testing.T) {
	r := &rows{}
	must(t, open(t, r, 1, true).Happened(t.Context(), "a", ""))
	must(t, open(t, r, 1, true).Happened(t.Context(), "b", "")) // the same key goes on
	if len(r.all) != 3 {
		t.Fatalf("%d entries, want one epoch and two events", len(r.all))
	}
	must(t, open(t, r, 2, false).Happened(t.Context(), "c", ""))
	must(t, open(t, r, 3, false).Happened(t.Context(), "d", ""))
	must(t, open(t, r, 1, true).Happened(t.Context(), "e", ""))
	rep := verify(t, r, public(1))
	if !rep.OK || rep.Entries != 9 || rep.Unkept != 2 || rep.Others != 0 {
		t.Errorf("%+v", rep)
	}
	// An epoch's own signature is by its own key.
	r.all[3].Sig = r.all[0].Sig
	if rep := verify(t, r, public(1)); rep.OK || rep.At != 4 {
		t.Errorf("%+v", rep)
	}
}

func TestFailedWrite(t *testing.T) {
	r := &rows{}
	l := open(t, r, 1, true)
	must(t, l.Happened(t.Context(), "a", ""))
	r.fail = errors.New("disk full")
	for range 3 {
		if err := l.Decided(t.Context(), consent.Request{ID: "r1"}, consent.Decision{}); !errors.Is(err, r.fail) {
			t.Errorf("error %v", err)
		}
	}
	r.fail = nil
	must(t, l.Happened(t.Context(), "space again", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
	if seq, hash := l.Head(); seq != 3 || hash != r.all[2].Hash {
		t.Errorf("head %d %s", seq, hash)
	}
}

// A request that ends while its decision is written does not end the record.
func TestRequestEndsDuringAWrite(t *testing.T) {
	r := &rows{}
	l := open(t, r, 1, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, l.Decided(ctx, consent.Request{ID: "r1"}, consent.Decision{Outcome: consent.Cancelled}))
	must(t, l.Happened(t.Context(), "next", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
}

// Two copies that write to one record: the second to come is refused, and the
// chain stays one.
func TestTwoWriters(t *testing.T) {
	r := &rows{}
	a, b := open(t, r, 1, true), open(t, r, 1, true)
	must(t, a.Happened(t.Context(), "a", ""))
	if err := b.Happened(t.Context(), "b", ""); err == nil {
		t.Error("the second writer made a fork")
	}
	must(t, a.Happened(t.Context(), "a", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
}

func TestManyWritersInOneProcess(t *testing.T) {
	r := &rows{}
	l, err := record.Open(t.Context(), record.Options{Rows: r, Key: key(1), Kept: true})
	must(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 25 {
				if err := l.Finished(t.Context(), fmt.Sprint(i), record.Outcome{State: "done"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if rep := verify(t, r, public(1)); !rep.OK || rep.Entries != 401 {
		t.Errorf("%+v", rep)
	}
}

func TestExport(t *testing.T) {
	r := write(t)
	var b bytes.Buffer
	must(t, record.Export(t.Context(), r, &b))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines", len(lines))
	}
	copied := &rows{}
	for _, line := range lines {
		var e consent.Entry
		must(t, json.Unmarshal([]byte(line), &e))
		copied.all = append(copied.all, e)
	}
	// What was exported can be verified elsewhere.
	if rep := verify(t, copied, public(1)); !rep.OK || rep.Entries != 6 {
		t.Errorf("%+v", rep)
	}
	full := errors.New("disk full")
	if err := record.Export(t.Context(), r, failing{full}); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestVerifyStopsWithTheCaller(t *testing.T) {
	broken := errors.New("the disk does not read")
	rep, err := record.Verify(t.Context(), unreadable{write(t), broken}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("%+v, %v", rep, err)
	}
}

type unreadable struct {
	*rows
	err error
}

func (u unreadable) EachEntry(context.Context, int64, func(consent.Entry) error) error { return u.err }

// A database that wrote an entry and reports a failure does not end the record.
func TestAWriteThatWorkedAndFailed(t *testing.T) {
	r := &lying{}
	l, err := record.Open(t.Context(), record.Options{Rows: r, Key: key(1), Kept: true})
	must(t, err)
	r.lie = errors.New("no answer")
	if err := l.Decided(t.Context(), consent.Request{ID: "r1"}, consent.Decision{}); !errors.Is(err, r.lie) {
		t.Errorf("error %v", err)
	}
	r.lie = nil
	must(t, l.Happened(t.Context(), "next", ""))
	if rep := verify(t, &r.rows, public(1)); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
}

type lying struct {
	rows
	lie error
}

func (r *lying) AppendEntry(ctx context.Context, e consent.Entry) error {
	return errors.Join(r.rows.AppendEntry(ctx, e), r.lie)
}

// Without the keychain a record goes on under a key in memory, and says from
// where on; that is no break. Another kept key at its end is one.
func TestUnkeptEnd(t *testing.T) {
	r := write(t)
	if rep := verify(t, r, public(1)); rep.UnkeptFrom != 0 {
		t.Errorf("%+v", rep)
	}
	from := int64(len(r.all)) + 1
	must(t, open(t, r, 2, false).Happened(t.Context(), "start", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.UnkeptFrom != from {
		t.Errorf("%+v, want unkept from %d", rep, from)
	}
	must(t, open(t, r, 1, true).Happened(t.Context(), "start", ""))
	if rep := verify(t, r, public(1)); !rep.OK || rep.UnkeptFrom != 0 || rep.Unkept != 1 {
		t.Errorf("%+v", rep)
	}
	must(t, open(t, r, 3, true).Happened(t.Context(), "start", ""))
	if rep := verify(t, r, public(1)); rep.OK {
		t.Errorf("%+v", rep)
	}
}
