package files

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"localpc/capabilities"
)

// node is what a file system says of one name, links not followed.
type node struct {
	id       capabilities.FileID
	mode     fs.FileMode
	size     int64
	mtime    time.Time
	ctime    time.Time // zero where the system does not tell, nor who owns it
	links    uint64
	uid, gid int
}

// perm is the permission bits with set-user-id, set-group-id and sticky where
// Unix has them, 0..07777.
func (n node) perm() uint32 {
	p := uint32(n.mode.Perm())
	for bit, value := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if n.mode&bit != 0 {
			p |= value
		}
	}
	return p
}

// which tells one file from another, for fingerprints.
func (n node) which() string { return fmt.Sprintf("%d:%d:%d", n.id.Dev, n.id.Ino, n.id.Birth) }

// print tells one state of a file from another, for fingerprints.
func (n node) print() string {
	return fmt.Sprintf("%s %v %d %d %d", n.which(), n.mode, n.links, n.size, n.mtime.UnixNano())
}

// same tells whether o is still the file that n was, unchanged.
func (n node) same(o node) bool { return n.id.Same(o.id) && n.print() == o.print() }

// lstatOf says what is at name in an open folder.
func lstatOf(dir *os.Root, name string) (node, error) {
	h, err := handle(dir, ".")
	if err != nil {
		return node{}, err
	}
	defer h.Close()
	return lstatIn(h, name)
}
