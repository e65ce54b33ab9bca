package machine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// upload writes a file through the hub.
func (r *rig) upload(path string, size int) (wire.Message, error) {
	r.t.Helper()
	st, err := r.pair.Hub.Do(r.t.Context(), r.box(), wire.TypeFileWrite, &wire.FileWrite{SessionID: "s1", Path: path})
	must(r.t, err)
	defer st.Close()
	piece := bytes.Repeat([]byte("0123456789abcdef"), wire.MaxChunk/16)
	for sent := 0; sent < size; sent += len(piece) {
		c := &wire.FileChunk{Data: piece[:min(len(piece), size-sent)]}
		c.Last = sent+len(c.Data) == size
		if st.Send(c) != nil {
			break // it was refused; Recv says why
		}
	}
	return st.Recv()
}

// A disk that gets full while an upload comes is left with its reserve: the
// upload ends in words, nothing of it stays, and the next one that fits works.
func TestUploadsLeaveTheDiskRoom(t *testing.T) {
	r := newRig(t)
	var free, total atomic.Int64
	r.m.freeDisk = func(dir string) (int64, int64, bool) {
		var spooled int64
		if dir != r.m.o.Paths.Spool() {
			t.Errorf("it looked at %s", dir)
		}
		left, _ := os.ReadDir(dir)
		for _, e := range left {
			if fi, err := e.Info(); err == nil {
				spooled += fi.Size()
			}
		}
		return free.Load() - spooled, total.Load(), true
	}
	r.open("s1", 0)
	asked := atomic.Int64{}
	r.probe.describe = func(c capabilities.Call) capabilities.Description {
		asked.Store(c.Upload.Size)
		return capabilities.Description{Action: "write", Title: "Write it", Payload: "it", Effects: []consent.Effect{{Kind: consent.EffectCreate}}}
	}
	r.probe.run = func(context.Context, capabilities.Call, consent.Grant, capabilities.Output) (capabilities.Result, error) {
		return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{}}, nil
	}
	for _, c := range []struct {
		free, total, size int64
		words             string // "" fits
	}{
		{64 << 20, 100 << 20, 40 << 20, ""},                           // a twentieth of a small disk
		{50 << 20, 1000 << 20, 40 << 20, "are left"},                  // would leave less than that
		{(1 << 30) + (8 << 20), 1 << 40, 40 << 20, "1.1 GB are left"}, // of a large one 1 GiB
		{(1 << 30) + (80 << 20), 1 << 40, 40 << 20, ""},
		{4 << 20, 1 << 40, 1, "nearly full (4.2 MB free"},
	} {
		free.Store(c.free)
		total.Store(c.total)
		asked.Store(0)
		_, err := r.upload("x", int(c.size))
		if c.words == "" {
			if err != nil || asked.Load() != c.size {
				t.Errorf("%d of %d free, %d came: %v, and asked about %d", c.free, c.total, c.size, err, asked.Load())
			}
		} else if wire.CodeOf(err) != wire.CodeDiskFull || !strings.Contains(err.Error(), c.words) || asked.Load() != 0 {
			t.Errorf("%d of %d free, %d came: %v, and asked about %d", c.free, c.total, c.size, err, asked.Load())
		}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			left, err := os.ReadDir(r.m.o.Paths.Spool())
			must(t, err)
			if len(left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d spool files are left", len(left))
			}
		}
	}
}

func TestSpoolErrors(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, &os.PathError{Op: "write", Err: syscall.ENOSPC}} {
		if got := spoolError(err); wire.CodeOf(got) != wire.CodeDiskFull || !strings.Contains(got.Error(), "disk is full") {
			t.Errorf("%v is %v", err, got)
		}
	}
	if got := spoolError(errors.New("x")); wire.CodeOf(got) != wire.CodeInternal {
		t.Errorf("another one is %v", got)
	}
	if free, total, known := freeDisk(t.TempDir()); !known || free < 0 || total < free || total == 0 {
		t.Errorf("the system says %d of %d, %v", free, total, known)
	}
}
