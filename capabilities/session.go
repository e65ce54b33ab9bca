package capabilities

import (
	"io/fs"
	"sync"
	"syscall"

	"localpc/consent"
)

// Session is what an executor knows of the session it works for. Fields do
// not change once it is open.
type Session struct {
	ID     string
	Folder string // canonical absolute path of the session's folder
	// FolderID is the folder's identity when it was chosen; file requests and
	// commands check that it is still the same.
	FolderID FileID
	Tmp      string // the session's own /tmp, 0700
	Cache    string // the session's own caches, outside the folder
	Mode     consent.Mode
	Env      map[string]string // for every process
	Made     *Made
}

// FileID tells one file from another while both exist. Birth is compared too
// where the system has one, since inode numbers are used again.
type FileID struct{ Dev, Ino uint64 }

// FileIDOf reads the identity from a stat; ok is false where the system gives
// none, which counts as "not the same".
func FileIDOf(fi fs.FileInfo) (id FileID, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}, false
	}
	return FileID{Dev: uint64(st.Dev), Ino: st.Ino}, true
}

// Made remembers what a session created, so that changing it again needs no
// question. A path counts only while the same file is there; unsure counts as
// not made. Safe for concurrent use.
type Made struct {
	mu    sync.Mutex
	files map[string]FileID // guarded by mu; keyed by path relative to the folder, or "/tmp/…"
	max   int
}

// NewMade remembers at most max paths (0: 100,000); beyond that new ones count
// as not made.
func NewMade(max int) *Made {
	if max == 0 {
		max = 100_000
	}
	return &Made{files: map[string]FileID{}, max: max}
}

// Add notes that the session made what is at path.
func (m *Made) Add(path string, id FileID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.files[path]; known || len(m.files) < m.max {
		m.files[path] = id
	}
}

// Has tells whether the session made the file that is at path now.
func (m *Made) Has(path string, id FileID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	got, ok := m.files[path]
	return ok && got == id
}

// Forget drops a path.
func (m *Made) Forget(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, path)
}
