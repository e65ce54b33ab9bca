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

	"localpc/capabilities"
	"localpc/tunnel"
	"localpc/tunnel/wire"
)

// maxSpooled bounds what all uploads that wait have on the disk together; they
// leave leaveFree of it, as it is seen each lookEach bytes.
const (
	maxSpooled = 64 << 30
	leaveFree  = 1 << 30
	lookEach   = 32 << 20
)

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
	for {
		c, err := tunnel.Chunk(t.ctx, x)
		if err != nil {
			f.Close()
			return t.cause(err)
		}
		if t.m.spooled.Add(int64(len(c.Data))) > maxSpooled {
			t.m.spooled.Add(-int64(len(c.Data)))
			f.Close()
			return wire.Errorf(wire.CodeOverloaded, "Too much waits to be written on this computer already; try again in a moment.")
		}
		if n := t.held + int64(len(c.Data)); n/lookEach != t.held/lookEach {
			if d := diskOf(t.m.o.Paths.Spool()); d.total > 0 && d.total-d.used < leaveFree {
				t.held = n
				f.Close()
				return spoolError(syscall.ENOSPC)
			}
		}
		t.held += int64(len(c.Data))
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
	up.SHA256 = hex.EncodeToString(body.h.Sum(nil))
	if fi, err := os.Stat(up.Path); err == nil {
		up.Changed = changedAt(fi)
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

func (m *Machine) unspool(up *capabilities.Upload, held int64) {
	m.spooled.Add(-held)
	// A large one may have been moved into its place.
	if err := os.Remove(up.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.log.Warn("An upload's spool could not be removed", "err", err)
	}
}
