//go:build !linux

package machine

import (
	"io/fs"
	"time"
)

func changedAt(fs.FileInfo) time.Time { return time.Time{} }
