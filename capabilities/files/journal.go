package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"localpc/capabilities"
	"localpc/consent"
)

// journal is what the next start needs to know when this process is killed in
// the middle of a write: temporary names to remove, and the old contents of
// files that were being written in place. A note is in the directory before
// what it is about begins, and goes after that has ended.
type journal struct {
	dir string // "": nothing is noted
	// inPlace has room for the one file that is written in place at a time, so
	// that two writes never interleave.
	inPlace chan struct{}
}

// note is one file NAME.json of the journal.
type note struct {
	// Remove is a temporary file or folder, with all in it.
	Remove string `json:"remove,omitempty"`
	// Restore is a file whose old contents are in NAME.data.
	Restore string              `json:"restore,omitempty"`
	ID      capabilities.FileID `json:"id,omitzero"`
	Size    int64               `json:"size,omitempty"`
}

// tempPrefix begins every temporary name in a session's folder. The end says
// what is about to happen with it: it takes a name that is free, or the place
// of something. Who watches the folder is told that, and not of this name.
const (
	tempPrefix = ".localpc-"
	tempNew    = ".tmp"
	tempOver   = ".over"
)

// isTemp tells whether name is one that temp made.
func isTemp(name string) (over, is bool) {
	id, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false, false
	}
	id, over = strings.CutSuffix(id, tempOver)
	if !over {
		if id, ok = strings.CutSuffix(id, tempNew); !ok {
			return false, false
		}
	}
	return over, len(id) >= idLength && strings.Trim(id, idLetters) == ""
}

// Of consent.NewID: at least so many of these letters.
const (
	idLength  = 26
	idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// temp makes a temporary name for a file in the directory abs, and notes it.
// over: it will take the place of something. done is called when nothing is at
// that name any more.
func (j *journal) temp(abs string, over bool) (name string, done func(), err error) {
	id := consent.NewID()
	name = tempPrefix + id + tempNew
	if over {
		name = tempPrefix + id + tempOver
	}
	if j.dir == "" {
		return name, func() {}, nil
	}
	if err := j.write(id, note{Remove: filepath.Join(abs, name)}, false); err != nil {
		return "", nil, err
	}
	return name, func() { _ = os.Remove(j.file(id)) }, nil
}

func (j *journal) file(id string) string { return filepath.Join(j.dir, id+".json") }
func (j *journal) data(id string) string { return filepath.Join(j.dir, id+".data") }

// write puts a note in place as a whole; with durable it survives a loss of
// power as well as a killed process.
func (j *journal) write(id string, n note, durable bool) error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	part := filepath.Join(j.dir, id+".part")
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part, j.file(id))
	}
	if err != nil {
		os.Remove(part)
		return err
	}
	if durable {
		syncDir(j.dir)
	}
	return nil
}

func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not every file system has it
		d.Close()
	}
}

// save copies the contents of f, which is at abs, before it is written in
// place. When it returns, a killed process does not harm the file any more.
func (j *journal) save(ctx context.Context, f *os.File, abs string, n node) (*saved, error) {
	s := &saved{j: j, id: consent.NewID(), size: n.size}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	copy, err := os.OpenFile(j.data(s.id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s.copy = copy
	got, err := copyPieces(ctx, copy, f, n.size)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && got != n.size {
		err = consent.ErrChanged
	}
	if err == nil {
		err = copy.Sync()
	}
	if err == nil {
		err = j.write(s.id, note{Restore: abs, ID: n.id, Size: n.size}, true)
	}
	if err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// copyPieces copies size bytes, in pieces, so that the copy of a large file can
// be cancelled; the kernel does the copying where it can.
func copyPieces(ctx context.Context, to, from *os.File, size int64) (done int64, err error) {
	for done < size {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		n, err := io.CopyN(to, from, min(16<<20, size-done))
		done += n
		if err == io.EOF {
			return done, nil // it is shorter
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// saved is the old contents of one file.
type saved struct {
	j    *journal
	id   string
	size int64
	copy *os.File
}

// back writes the old contents into f again. When it fails, the note stays for
// the next start.
func (s *saved) back(f *os.File) error {
	if err := restore(f, s.copy, s.size); err != nil {
		s.copy.Close()
		return err
	}
	s.drop()
	return nil
}

// drop forgets the old contents: the note goes first.
func (s *saved) drop() {
	_ = os.Remove(s.j.file(s.id))
	s.copy.Close()
	_ = os.Remove(s.j.data(s.id))
}

func restore(f, copy *os.File, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, io.NewSectionReader(copy, 0, size)); err != nil {
		return err
	}
	if err := f.Truncate(size); err != nil {
		return err
	}
	return f.Sync()
}

// Recover undoes what was half done when this program was last killed: it
// removes temporary files and gives files that were being written in place
// their old contents back. dir is Options.Journal; it is called once, before
// New's executor takes a request. It returns the files it restored. What could
// not be undone stays in dir, and is named in the error and in the log.
func Recover(dir string, log *slog.Logger) (restored []string, err error) {
	if log == nil {
		log = slog.Default()
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := &journal{dir: dir}
	known := map[string]bool{}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			known[id] = true
		}
	}
	var failed []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			// A copy or a note that was never finished: nothing had begun.
			if id := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".data"), ".part"); !known[id] && id != e.Name() {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
			continue
		}
		path, rerr := j.undo(id)
		if rerr != nil {
			log.Error("A half-done write could not be undone", "path", path, "note", j.file(id), "err", rerr)
			failed = append(failed, fmt.Errorf("%s: %w", path, rerr))
		} else if path != "" {
			log.Warn("A half-done write was undone", "path", path)
			restored = append(restored, path)
		}
	}
	return restored, errors.Join(failed...)
}

// undo does one note. It returns the file it restored, "" for a temporary one.
func (j *journal) undo(id string) (string, error) {
	body, err := os.ReadFile(j.file(id))
	if err != nil {
		return "", err
	}
	var n note
	if err := json.Unmarshal(body, &n); err != nil {
		return "", err
	}
	if n.Remove != "" {
		// Only a name that this program made up, whatever the note says.
		if base := filepath.Base(n.Remove); !strings.HasPrefix(base, tempPrefix) || len(base) < len(tempPrefix)+20 {
			return n.Remove, errors.New("not a temporary name")
		}
		if err := os.RemoveAll(n.Remove); err != nil {
			return n.Remove, err
		}
		return "", os.Remove(j.file(id))
	}
	copy, err := os.Open(j.data(id))
	if err != nil {
		return n.Restore, err
	}
	s := &saved{j: j, id: id, size: n.Size, copy: copy}
	f, err := os.OpenFile(n.Restore, os.O_WRONLY|openFlags, 0)
	if err != nil {
		copy.Close()
		return n.Restore, err
	}
	defer f.Close()
	if now, err := lstatFile(f); err != nil || !now.mode.IsRegular() || !now.id.Same(n.ID) {
		copy.Close()
		return n.Restore, errors.New("another file is there now; its old contents are kept beside the note")
	}
	return n.Restore, s.back(f)
}
