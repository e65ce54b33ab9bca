package kept

import (
	"errors"
	"io"
	"os"
)

// packMost is how large a file may be that is held in the pack: one file for
// all of them, since making thousands takes long.
const packMost = 64 << 10

// packed is the copy of an entry that is in the pack.
const packed = "pack"

// packOne holds a small file without attributes in the pack; ok is false for
// one that has to be copied by itself.
func (m *mirror) packOne(at *dir, e *entry, name string) (ok bool, err error) {
	if m.pack == nil {
		if m.pack, err = m.hold.open(packed, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return false, err
		}
		m.buf = make([]byte, packMost+1)
	}
	n, plain, err := readSmall(at, name, m.buf)
	if err != nil || !plain || int64(n) != e.size {
		return false, err
	}
	if _, err := m.pack.WriteAt(m.buf[:n], m.packEnd); err != nil {
		return false, err
	}
	e.at = m.packEnd
	m.packEnd += int64(n)
	m.packLive += int64(n)
	m.copied += int64(n)
	return true, nil
}

// unpack makes a file of a packed one.
func (m *mirror) unpack(e *entry, to *dir, name string) error {
	f, err := to.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(m.pack, e.at, e.size))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	own(to, name, e.node)
	if err := to.chmod(name, e.mode); err != nil {
		return err
	}
	return to.setTime(name, e.mtime)
}

// old opens the copy of an entry; close is called after.
func (m *mirror) old(e *entry) (r io.Reader, attributes map[string]string, done func(), err error) {
	if e.copy == packed {
		return io.NewSectionReader(m.pack, e.at, e.size), nil, func() {}, nil
	}
	f, err := m.hold.open(e.copy, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	return f, attributesOf(f), func() { f.Close() }, nil
}

// wasteful: more than half of a large pack is of no use any more.
func (m *mirror) wasteful() bool {
	return len(m.windows) == 0 && m.packEnd > 64<<20 && m.packEnd > 2*m.packLive
}
