package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// What uploads leave free of the disk: a twentieth of it, 1 GiB at most. It is
// looked at each time that so much more has come.
const (
	leaveFree = 1 << 30
	lookEach  = 16 << 20
)

// leastWait is what people have left after an upload, or they have all of it.
const leastWait = 20 * time.Second

// headBytes of an upload are shown on its card.
const headBytes = 4 << 10

// spool takes the body of an upload to a file of its own and hashes it,
// before anybody is asked about it: what was shown is what is written. It does
// nothing for requests without a body.
func (t *task) spool(x tunnel.Exchange) error {
	if _, ok := t.call.Payload.(*wire.FileWrite); !ok {
		return nil
	}
	f, err := os.CreateTemp(t.m.o.Paths.Spool(), "upload-*")
	if err != nil {
		return spoolError(err)
	}
	up := &capabilities.Upload{Path: f.Name()}
	t.call.Upload = up
	body := &counted{w: f, h: sha256.New(), up: up}
	looked := int64(-lookEach)
	for {
		c, err := tunnel.Chunk(t.ctx, x)
		if err != nil {
			f.Close()
			return t.cause(err)
		}
		if up.Size-looked >= lookEach {
			if err := t.m.roomFor(int64(len(c.Data))); err != nil {
				f.Close()
				return err
			}
			looked = up.Size
		}
		if _, err := body.Write(c.Data); err != nil {
			f.Close()
			return spoolError(err)
		}
		if c.Last {
			break
		}
	}
	if err := f.Close(); err != nil {
		return spoolError(err)
	}
	// A client whose upload has taken that long goes by no clock that began with
	// it, or has gone: people get their time from when there is something to ask.
	if wait := waitOf(t.call.Payload); time.Until(t.deadline) < leastWait {
		t.deadline = time.Now().Add(wait)
	}
	up.SHA256 = hex.EncodeToString(body.h.Sum(nil))
	if fi, err := os.Stat(up.Path); err == nil {
		up.Changed = changedAt(fi)
	}
	return nil
}

// roomFor tells, with nil, that the disk of the spool can take n bytes more.
func (m *Machine) roomFor(n int64) error {
	look := m.freeDisk
	if look == nil {
		look = freeDisk
	}
	free, total, known := look(m.o.Paths.Spool())
	if reserve := min(leaveFree, total/20); known && free-n < reserve {
		return wire.Errorf(wire.CodeDiskFull, "This computer's disk is nearly full (%s free, of which %s are left for everything else), so the file could not be taken. Nothing was changed.", consent.Bytes(max(free, 0)), consent.Bytes(reserve))
	}
	return nil
}

// counted writes, counts and hashes, and keeps the head.
type counted struct {
	w  io.Writer
	h  hash.Hash
	up *capabilities.Upload
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.h.Write(p[:n])
	c.up.Size += int64(n)
	if room := headBytes - len(c.up.Head); room > 0 {
		c.up.Head = append(c.up.Head, p[:min(room, n)]...)
	}
	return n, err
}

func spoolError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return wire.Wrap(err, wire.CodeDiskFull, "This computer's disk is full, so the file could not be taken. Nothing was changed.")
	}
	return wire.Wrap(err, wire.CodeInternal, "This computer could not take the file; its log says why. Nothing was changed.")
}

func (m *Machine) unspool(up *capabilities.Upload) {
	// A large one may have been moved into its place.
	if err := os.Remove(up.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Warn("An upload's spool could not be removed", "err", err)
	}
}
