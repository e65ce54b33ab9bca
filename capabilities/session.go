package capabilities

import (
	"strings"
	"sync"

	"localpc/consent"
)

// Session is what an executor knows of the session it works for. Each request
// has one of its own, whose fields do not change; Made is one for all of them.
type Session struct {
	ID     string
	Folder string // canonical absolute path of the session's folder
	// FolderID is the folder's identity when it was chosen; file requests and
	// commands check that it is still the same.
	FolderID FileID
	Tmp      string // the session's own /tmp, 0700
	Cache    string // the session's own caches, outside the folder
	// Mode is as it was when the request began; trust is consent.ModeWork here.
	Mode consent.Mode
	Env  map[string]string // for every process
	Made *Made
}

// FileID tells one file from another while both exist. Inode numbers are used
// again soon after a file has gone, so the time of birth belongs to it.
type FileID struct {
	Dev, Ino uint64
	// Birth is when the file was made, in Unix nanoseconds; 0 where the system,
	// or the way it was asked (FileIDOf), does not tell.
	Birth int64
}

// Same tells whether both name one file. Births are compared where both are
// known. The zero FileID is the same as nothing.
func (id FileID) Same(o FileID) bool {
	if id.Dev != o.Dev || id.Ino != o.Ino || id.Ino == 0 {
		return false
	}
	return id.Birth == o.Birth || id.Birth == 0 || o.Birth == 0
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
	return ok && got.Same(id)
}

// Forget drops a path.
func (m *Made) Forget(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, path)
}

// ForgetTree drops a path and everything below it.
func (m *Made) ForgetTree(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.files {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(m.files, p)
		}
	}
}

// Move follows a rename: what was made at from, or below it, is now at to.
// What was known at to is dropped.
func (m *Made) Move(from, to string) {
	if from == to {
		return
	}
	m.ForgetTree(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := map[string]FileID{}
	for p, id := range m.files {
		if p == from || strings.HasPrefix(p, from+"/") {
			moved[to+p[len(from):]] = id
			delete(m.files, p)
		}
	}
	for p, id := range moved {
		m.files[p] = id
	}
}
