package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/store"
	"localpc/tunnel/tunneltest"
	"localpc/tunnel/wire"
)

func TestHandshake(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *hub.Options) { o.HelloTimeout = 300 * time.Millisecond })
	token := b.token(t, "m1")
	for name, header := range map[string]string{"no token": "", "an unknown token": "lpm_0"} {
		if _, resp, err := dial(t, b.url, header, nil); err == nil || resp.StatusCode != 401 {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := websocket.Dialer{}
	if _, resp, err := d.Dial("ws"+strings.TrimPrefix(b.url, "http")+wire.Path, map[string][]string{"Authorization": {"Bearer " + token}}); err == nil || resp.StatusCode != 401 {
		t.Errorf("without the subprotocol: %v", err)
	}
	for _, c := range []struct {
		name string
		do   func(r *raw)
		code int
	}{
		{"says nothing", func(r *raw) {}, wire.CloseHelloTimeout},
		{"another frame first", func(r *raw) { r.send(wire.TypeStatus, "", &wire.Status{MaxConcurrent: 1}) }, wire.CloseBadHello},
		{"not JSON", func(r *raw) { r.sendBytes([]byte("hello")) }, wire.CloseBadHello},
		{"binary", func(r *raw) { _ = r.ws.WriteMessage(websocket.BinaryMessage, []byte("{}")) }, wire.CloseBadHello},
		{"oversized", func(r *raw) { r.sendBytes([]byte(strings.Repeat(" ", wire.MaxHello+1))) }, wire.CloseBadHello},
		{"an invalid field", func(r *raw) { r.sendBytes([]byte(`{"type":"HELLO","id":"a","payload":{"protocol_version":"1.0"}}`)) }, wire.CloseBadHello},
		{"another version", func(r *raw) { h := hello("m1"); h.Protocol = "2.0"; r.send(wire.TypeHello, "", h) }, wire.CloseVersion},
		{"another machine", func(r *raw) { r.send(wire.TypeHello, "", hello("m2")) }, wire.CloseForbidden},
	} {
		r := mustDial(t, b.url, token)
		c.do(r)
		r.t.Logf("%s", c.name)
		r.closed(c.code)
	}
	// A newer minor version of the other end is none of our business.
	h := hello("m1")
	h.Protocol = "1.7"
	b.works(t, b.join(t, token, h), "m1")
}

func TestNewestWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.token(t, "m1")
	first := b.join(t, token, hello("m1"))
	s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	second := b.join(t, token, hello("m1"))
	first.closed(wire.CloseReplaced)
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("a request of the first ended with %v", err)
	}
	b.works(t, second, "m1")
	if m := b.machines(t); len(m) != 1 || !m[0].Online {
		t.Errorf("after the end of the first: %+v", m)
	}
	second.ws.Close()
	eventually(t, "the machine is offline", func() bool { return !b.machines(t)[0].Online })
	if _, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"}); wire.CodeOf(err) != wire.CodeOffline {
		t.Errorf("a request to an offline machine: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	for name, revoke := range map[string]func(r *raw) error{
		"by the program that runs the hub": func(*raw) error { return b.RevokeMachine(t.Context(), "m1") },
		"by a new token": func(*raw) error {
			_, err := b.MachineToken(t.Context(), "m1", "m1")
			return err
		},
		"by another process": func(*raw) error {
			s, err := store.Open(t.Context(), dir)
			if err != nil {
				return err
			}
			defer s.Close()
			return errors.Join(s.RevokeMachine(t.Context(), "", "m1"), s.Poke())
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := b.token(t, "m1")
			r := b.join(t, token, hello("m1"))
			s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := revoke(r); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
				t.Errorf("its request ended with %v", err)
			}
			r.closed(wire.CloseRevoked)
			if _, resp, err := dial(t, b.url, token, nil); err == nil || resp.StatusCode != 401 {
				t.Errorf("the token still opens the door: %v", err)
			}
		})
	}
}

// A machine that goes on talking after its end is heard no more.
func TestRevokedIsNotHeard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	if err := b.RevokeMachine(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	r.send(wire.TypeStatus, "", &wire.Status{MaxConcurrent: 1, Record: &wire.RecordHead{Seq: 9, Hash: strings.Repeat("0a", 32)}})
	r.closed(wire.CloseRevoked)
	eventually(t, "the machine is offline", func() bool { return !b.machines(t)[0].Online })
	if seq := b.machines(t)[0].Seq; seq != 0 {
		t.Errorf("what it said after its end was taken: %d", seq)
	}
}

func TestPairingToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data = dir })
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	token, err := s.AddPairingToken(t.Context(), store.OwnerID, "Laptop")
	if err != nil {
		t.Fatal(err)
	}
	first := b.join(t, token, hello("m7"))
	b.works(t, first, "m7")
	// It belongs to the first that came with it.
	other := mustDial(t, b.url, token)
	other.send(wire.TypeHello, "", hello("m8"))
	other.closed(wire.CloseForbidden)
	again := b.join(t, token, hello("m7"))
	first.closed(wire.CloseReplaced)
	b.works(t, again, "m7")
}

// The hub's data cannot be written: a computer that comes with its pairing line
// is not told that the line was used. One that was used, or a sign-in that is
// another computer's, is refused in words that fit.
func TestPairingFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBench(t, func(o *hub.Options) { o.Data, o.Pages, o.PublicURL = dir, true, "http://127.0.0.1" })
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	defer s.Close()
	token, err := s.AddPairingToken(t.Context(), store.OwnerID, "Laptop")
	must(t, err)
	signIn := tunneltest.Token(t, dir, "localpc", "machine", "lpa_")
	mend := breakData(t, dir, "UPDATE OF machine ON tokens", "UPDATE OF machine ON signins")
	for _, secret := range []string{token, signIn} {
		r := mustDial(t, b.url, secret)
		r.send(wire.TypeHello, "", hello("m7"))
		r.closed(wire.CloseInternal)
	}
	mend()
	for secret, words := range map[string]string{token: "pairing line", signIn: "sign-in"} {
		late := mustDial(t, b.url, secret)
		machine := "m-" + words[:4]
		b.works(t, b.join(t, secret, hello(machine)), machine)
		late.send(wire.TypeHello, "", hello("m9"))
		if reason := late.closed(wire.CloseUnauthorized); !strings.Contains(reason, words) {
			t.Errorf("the computer is told %q", reason)
		}
	}
}

func TestOddFrames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	begin := func() (hub.Stream, string) {
		t.Helper()
		s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s, r.until(wire.TypeFileStat).ID
	}
	frame := func(kind wire.Type, id, payload string) []byte {
		return fmt.Appendf(nil, `{"type":%q,"id":%q,"payload":%s}`, kind, id, payload)
	}
	for name, data := range map[string][]byte{
		"not JSON":           []byte("%%"),
		"empty":              {},
		"oversized":          []byte(`{"type":"STATUS","id":"a","payload":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`),
		"unknown type":       frame("REBOOT", "a", "{}"),
		"from the other end": frame(wire.TypeSessionClose, "a", `{"session_id":"s"}`),
		"invalid":            frame(wire.TypeStatus, "a", `{"max_concurrent":0}`),
		"late":               frame(wire.TypeFileStatResponse, "long-gone", `{"exists":false}`),
		"late error":         frame(wire.TypeError, "long-gone", `{"code":"X","message":"x"}`),
		"late credit":        frame(wire.TypeCredit, "long-gone", `{"bytes":1}`),
		"of no session":      frame(wire.TypeSessionEnded, "a", `{"session_id":"none","reason":"x"}`),
	} {
		t.Log(name)
		r.sendBytes(data)
		b.works(t, r, "m1")
	}
	_ = r.ws.WriteMessage(websocket.BinaryMessage, []byte("x"))
	r.send(wire.TypeHello, "", hello("m1"))
	b.works(t, r, "m1")

	// An answer that makes no sense ends its request, with a sentence, and the
	// machine is told to stop.
	for name, c := range map[string]struct {
		data func(id string) []byte
		text string
	}{
		"unreadable":     {func(id string) []byte { return frame(wire.TypeFileStatResponse, id, `{"exists":true}`) }, "could not be understood"},
		"something else": {func(id string) []byte { return frame(wire.TypeProcessStarted, id, `{"pid":1}`) }, "something else"},
	} {
		s, id := begin()
		r.sendBytes(c.data(id))
		if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeInternal || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: the request ended with %v", name, err)
		}
		if m := r.until(wire.TypeCancel); m.ID != id {
			t.Errorf("%s: %s was cancelled, not %s", name, m.ID, id)
		}
	}

	// The second answer to a request is nobody's.
	s, id := begin()
	for range 2 {
		r.sendBytes(frame(wire.TypeFileStatResponse, id, `{"exists":false}`))
	}
	if _, err := s.Recv(); err != nil {
		t.Error(err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answer: %v", err)
	}
	b.works(t, r, "m1")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	ctx, cancel := context.WithCancel(t.Context())
	s, err := b.Do(ctx, on("m1"), wire.TypeProcessStart, &wire.ProcessStart{SessionID: "s", Cmd: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := r.until(wire.TypeProcessStart).ID
	cancel()
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeCancelled {
		t.Errorf("ended with %v", err)
	}
	if m := r.until(wire.TypeCancel); m.ID != id {
		t.Errorf("%s was cancelled, not %s", m.ID, id)
	}
	r.send(wire.TypeError, id, &wire.ErrorPayload{Code: wire.CodeCancelled, Message: "x"}) // it still answers
	b.works(t, r, "m1")

	// What may not be sent is refused here, with the field that is wrong.
	if _, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "a\x00b"}); wire.CodeOf(err) != wire.CodeInvalid || !strings.Contains(err.Error(), "path contains a NUL") {
		t.Errorf("an invalid request: %v", err)
	}
	b.works(t, r, "m1")
}

// A sender has InitialCredit; a reader that stalls stalls only itself, and
// memory stays flat.
func TestFlowControlFromMachine(t *testing.T) {
	// Not beside other tests: it measures the memory of all.
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	chunk := make([]byte, wire.MaxChunk)
	var streams []hub.Stream
	var ids []string
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 8 {
		s, err := b.Do(t.Context(), on("m1"), wire.TypeFileRead, &wire.FileRead{SessionID: "s", Path: "p"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		streams, ids = append(streams, s), append(ids, r.until(wire.TypeFileRead).ID)
	}
	for _, id := range ids {
		for range wire.InitialCredit / len(chunk) {
			r.send(wire.TypeFileChunk, id, &wire.FileChunk{Data: chunk})
		}
	}
	b.works(t, r, "m1") // past eight readers that do not read
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8*wire.InitialCredit+(24<<20) {
		t.Errorf("8 stalled readers hold %d MiB", grown>>20)
	}
	// Credit comes as the reader reads, and never more than was read.
	given := 0
	for read := 1; read <= 4; read++ {
		if _, err := streams[0].Recv(); err != nil {
			t.Fatal(err)
		}
		m := r.until(wire.TypeCredit)
		if given += m.Payload.(*wire.Credit).Bytes; m.ID != ids[0] || given > read*len(chunk) {
			t.Errorf("after %d chunks credit for %d bytes to %s", read, given, m.ID)
		}
	}
	// A machine that sends beyond its credit loses that request only.
	r.send(wire.TypeFileChunk, ids[1], &wire.FileChunk{Data: chunk[:1]})
	if m := r.until(wire.TypeCancel); m.ID != ids[1] {
		t.Errorf("%s was cancelled, not %s", m.ID, ids[1])
	}
	if _, err := streams[1].Recv(); wire.CodeOf(err) != wire.CodeInternal {
		t.Errorf("beyond its credit: %v", err)
	}
	if _, err := streams[2].Recv(); err != nil {
		t.Errorf("another stream: %v", err)
	}
	b.works(t, r, "m1")
}

func TestFlowControlToMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	s, err := b.Do(t.Context(), on("m1"), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := r.until(wire.TypeFileWrite).ID
	sent := make(chan int, 100)
	done := make(chan error, 1)
	chunk := make([]byte, wire.MaxChunk)
	go func() {
		for i := range 8 {
			if err := s.Send(&wire.FileChunk{Data: chunk, Last: i == 7}); err != nil {
				done <- err
				return
			}
			sent <- i
		}
		done <- nil
	}()
	for range 4 {
		r.until(wire.TypeFileChunk)
	}
	time.Sleep(100 * time.Millisecond)
	if len(sent) != 4 {
		t.Errorf("%d chunks were sent on credit for 4", len(sent))
	}
	b.works(t, r, "m1") // while the upload stalls
	r.send(wire.TypeCredit, id, &wire.Credit{Bytes: 4 * len(chunk)})
	for range 3 {
		r.until(wire.TypeFileChunk)
	}
	if m := r.until(wire.TypeFileChunk); !m.Payload.(*wire.FileChunk).Last {
		t.Error("the last chunk is not marked")
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	// A sender that waits for credit learns of the end.
	s2, err := b.Do(t.Context(), on("m1"), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	id = r.until(wire.TypeFileWrite).ID
	go func() {
		for {
			if err := s2.Send(&wire.FileChunk{Data: chunk}); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 4 {
		r.until(wire.TypeFileChunk)
	}
	r.send(wire.TypeError, id, &wire.ErrorPayload{Code: wire.CodeDiskFull, Message: "The disk is full."})
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("Send ended with %v", err)
	}
	if _, err := s2.Recv(); wire.CodeOf(err) != wire.CodeDiskFull {
		t.Errorf("Recv ended with %v", err)
	}
}

func TestSilentMachineIsNoticed(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *hub.Options) { o.Heartbeat, o.PongTimeout = 200*time.Millisecond, time.Second })
	r := b.join(t, b.token(t, "m1"), hello("m1"))
	s, err := b.Do(t.Context(), on("m1"), wire.TypeFileStat, &wire.FileStat{SessionID: "s", Path: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// While it reads, it answers the hub's pings and stays.
	_ = r.ws.SetReadDeadline(time.Now().Add(2 * time.Second))
	for err == nil {
		_, _, err = r.ws.ReadMessage()
	}
	if !b.machines(t)[0].Online {
		t.Error("a machine that answers pings was let go")
	}
	began := time.Now() // it reads no more: no pong leaves it
	if _, err := s.Recv(); wire.CodeOf(err) != wire.CodeLost {
		t.Errorf("its request ended with %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("noticed after %s", took)
	}
	eventually(t, "the machine is offline", func() bool { return !b.machines(t)[0].Online })
}

func TestRecordHead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.token(t, "m1")
	h := hello("m1")
	h.Record = &wire.RecordHead{Seq: 5, Hash: strings.Repeat("05", 32)}
	r := b.join(t, token, h)
	status := func(seq int64, hash string) {
		t.Helper()
		r.send(wire.TypeStatus, "", &wire.Status{MaxConcurrent: 1, Record: &wire.RecordHead{Seq: seq, Hash: strings.Repeat(hash, 32)}})
		b.works(t, r, "m1") // after the STATUS
	}
	b.works(t, r, "m1") // after the HELLO
	if m := b.machines(t)[0]; m.Seq != 5 || m.Cut {
		t.Errorf("after HELLO: %+v", m)
	}
	status(5, "05")
	status(8, "08")
	if m := b.machines(t)[0]; m.Seq != 8 || m.Cut {
		t.Errorf("after STATUS: %+v", m)
	}
	r.ws.Close()
	eventually(t, "the machine is offline", func() bool { return !b.machines(t)[0].Online })
	// The record is shorter than it was: entries were cut off.
	h.Record = &wire.RecordHead{Seq: 7, Hash: strings.Repeat("07", 32)}
	r = b.join(t, token, h)
	b.works(t, r, "m1")
	if m := b.machines(t)[0]; m.Seq != 8 || !m.Cut {
		t.Errorf("after a shorter record: %+v", m)
	}
}
