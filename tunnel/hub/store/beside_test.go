package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A command of a newer version changes nothing under a hub of an older one, and
// can still copy what is there: the copy before an upgrade.
func TestBesideAnOlderHub(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s, err := Open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.AddKey(ctx, OwnerID, "Test")
	if err != nil {
		t.Fatal(err)
	}
	p, err := migrator(s.db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Down(ctx); err != nil {
		t.Fatal(err)
	}
	older, err := p.GetDBVersion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	release, err := Lock(dir) // as the hub of that version holds it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenBeside(ctx, dir); !errors.Is(err, ErrOlder) {
		t.Errorf("beside an older hub: %v", err)
	}
	copied := filepath.Join(t.TempDir(), "b")
	s, err = OpenAsIs(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Backup(ctx, copied), s.Close()); err != nil {
		t.Errorf("a backup of older data: %v", err)
	}
	s, err = OpenAsIs(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := func() (int64, error) {
		p, err := migrator(s.db)
		if err != nil {
			return 0, err
		}
		return p.GetDBVersion(ctx)
	}(); err != nil || version != older {
		t.Errorf("the data has version %d, not %d, %v", version, older, err)
	}
	s.Close()
	release()

	// Without a hub the command does it, and so does a hub on the copy.
	restored := t.TempDir()
	if _, err := Restore(ctx, restored, copied); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*Store, error){
		"the data":   func() (*Store, error) { return OpenBeside(ctx, dir) },
		"the backup": func() (*Store, error) { return Open(ctx, restored) },
	} {
		s, err := open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := s.FindKey(ctx, k.Secret); err != nil {
			t.Errorf("%s: the key: %v", name, err)
		}
		s.Close()
	}
}

// Commands and a hub that begin on new data at the same moment all do.
func TestBesideAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := OpenBeside(t.Context(), dir)
			if err != nil {
				t.Errorf("a command: %v", err)
				return
			}
			s.Close()
		})
	}
	wg.Go(func() {
		release, err := Lock(dir)
		if err != nil {
			t.Errorf("the hub: %v", err)
			return
		}
		defer release()
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Errorf("the hub: %v", err)
			return
		}
		time.Sleep(100 * time.Millisecond)
		s.Close()
	})
	wg.Wait()
}

// A folder of another computer's begins with two slashes, behind which SQLite
// looks for a host: it is the path all the same.
func TestAFolderOfAnotherComputer(t *testing.T) {
	if got := address("//server/share/hub.db", nil); !strings.HasPrefix(got, "file:////server/share/hub.db") {
		t.Errorf("the address is %q", got)
	}
	dir := t.TempDir()
	db, err := sql.Open("sqlite", address("/"+filepath.ToSlash(dir)+"/a.db", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n)"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.db")); err != nil {
		t.Error(err)
	}
}
