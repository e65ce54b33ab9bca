package display

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// KeptIn is a Kept in a file, which only its user can read; nil for "". What is
// in it starts a session of this program's without a question of the system's,
// and nothing else. A file that can't be read has nothing in it.
func KeptIn(file string) Kept {
	if file == "" {
		return nil
	}
	return &keptFile{file: file}
}

type keptFile struct {
	file string
	mu   sync.Mutex // one change at a time
}

func (k *keptFile) Load(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, _ := k.read()
	return all[name]
}

func (k *keptFile) read() (map[string]string, error) {
	all := map[string]string{}
	data, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil && json.Unmarshal(data, &all) != nil {
		all = map[string]string{} // half a file, or another program's: begun anew
	}
	return all, err
}

// Save keeps value, or with "" nothing.
func (k *keptFile) Save(name, value string) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := k.read()
	if err != nil {
		return fmt.Errorf("read what is kept for the display: %w", err)
	}
	if all[name] == value {
		return nil
	}
	if all[name] = value; value == "" {
		delete(all, name)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(k.file), ".display-*") // 0600
	if err != nil {
		return fmt.Errorf("keep something for the display: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("keep something for the display: %w", err)
	}
	if err := os.Rename(tmp.Name(), k.file); err != nil {
		return fmt.Errorf("keep something for the display: %w", err)
	}
	return nil
}
