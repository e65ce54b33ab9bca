//go:build !unix

package capabilities

import "io/fs"

// FileIDOf reads the identity from a stat; ok is false where the system gives
// none, which counts as "not the same".
func FileIDOf(fs.FileInfo) (id FileID, ok bool) { return FileID{}, false }
