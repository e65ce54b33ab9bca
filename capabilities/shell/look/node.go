package look

import (
	"fmt"
	"io/fs"

	"localpc/capabilities"
)

// node is what a file system says of one name, links not followed.
type node struct {
	id    capabilities.FileID
	mode  fs.FileMode
	size  int64
	mtime int64 // Unix nanoseconds
}

func (n node) isLink() bool { return n.mode.Type() == fs.ModeSymlink }

// which tells one file from another.
func (n node) which() string {
	return fmt.Sprintf("%d:%d:%d %v", n.id.Dev, n.id.Ino, n.id.Birth, n.mode.Type())
}

// state tells one content from another.
func (n node) state() string { return fmt.Sprintf("%s %d %d", n.which(), n.size, n.mtime) }
