package machine

import (
	"context"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// Who sends a large file slowly is asked about it all the same: the person's
// time begins when all of it is there.
func TestASlowUploadIsStillAskedAbout(t *testing.T) {
	r := newRig(t)
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{}}, nil
	}
	r.open("s1", 0)
	st, err := r.pair.Hub.Do(t.Context(), r.box(), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s1", Path: "x", WaitMS: 12_000})
	must(t, err)
	defer st.Close()
	must(t, st.Send(&wire.FileChunk{Data: []byte("slowly")}))
	time.Sleep(3 * time.Second) // less than what a card needs is left now
	must(t, st.Send(&wire.FileChunk{Last: true}))
	_, err = st.Recv()
	must(t, err)
	cards := r.person.seen()
	if n := len(cards); n != 2 || time.Until(cards[1].Deadline) < 5*time.Second {
		t.Errorf("%d cards, the last until %s", n, cards[n-1].Deadline)
	}
}
