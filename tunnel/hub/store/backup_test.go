//go:build unix

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A backup that is taken while others write is of one moment: of each pair of
// keys that is made in one go, both or neither are in it.
func TestBackupIsConsistent(t *testing.T) {
	ctx := t.Context()
	s := open(t, t.TempDir())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, err := s.db.ExecContext(context.Background(), `BEGIN IMMEDIATE;
				INSERT INTO tokens (id, user_id, kind, hash, prefix, name, created) VALUES (hex(randomblob(8)), 'owner', 'key', randomblob(32), 'p', 'n', 1);
				INSERT INTO tokens (id, user_id, kind, hash, prefix, name, created) VALUES (hex(randomblob(8)), 'owner', 'key', randomblob(32), 'p', 'n', 1);
				COMMIT`)
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer func() { close(stop); wg.Wait() }()
	for i := range 5 {
		file := filepath.Join(t.TempDir(), "b")
		if err := s.Backup(ctx, file); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := Restore(ctx, dir, file); err != nil {
			t.Fatal(err)
		}
		r, err := Open(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := r.Keys(ctx, "")
		if err != nil || len(keys)%2 != 0 || i > 0 && len(keys) == 0 {
			t.Errorf("backup %d has %d keys, %v", i, len(keys), err)
		}
		if string(r.Secret()) != string(s.Secret()) {
			t.Error("the secret is another")
		}
		r.Close()
	}
}

func TestRestoreRefuses(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir)
	key, err := s.AddKey(ctx, OwnerID, "Test")
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good")
	if err := s.Backup(ctx, good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	damaged := append([]byte(nil), data...)
	for i := len(damaged) / 4; i < len(damaged)*3/4; i++ {
		damaged[i] ^= 0x5a
	}
	if _, err := s.db.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(t.TempDir(), "newer")
	if err := s.Backup(ctx, newer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(ctx, `DELETE FROM goose_db_version WHERE version_id = 999`); err != nil {
		t.Fatal(err)
	}
	// A copy of the database as it lies there is no backup: it lacks what is
	// not written into it yet, and the secret.
	plain, err := os.ReadFile(filepath.Join(dir, dbName))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, text string }{
		"not there":  {filepath.Join(dir, "none"), "no such file"},
		"a folder":   {dir, "not a file"},
		"a database": {write("plain", plain), "not a backup"},
		"cut off":    {write("cut", data[:len(data)/2]), "cut"},
		"damaged":    {write("damaged", damaged), "damaged"},
		"too new":    {newer, "newer version"},
	} {
		if aside, err := Restore(ctx, dir, c.file); err == nil || !strings.Contains(err.Error(), c.text) || aside != "" {
			t.Errorf("%s: %q, %v", name, aside, err)
		}
	}
	if _, err := s.FindKey(ctx, key.Secret); err != nil {
		t.Errorf("the data after refusals: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "hub.restore-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, dir, good); !errors.Is(err, ErrRunning) {
		t.Errorf("under a running hub: %v", err)
	}
	release()
	if _, err := Restore(ctx, dir, good); err != nil {
		t.Errorf("after it has stopped: %v", err)
	}
}

// A backup that cannot be finished leaves nothing behind.
func TestBackupFails(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := s.Backup(ctx, filepath.Join(dir, "b")); err == nil {
		t.Error("a cancelled backup succeeded")
	}
	if err := s.Backup(t.Context(), filepath.Join(dir, "none", "b")); err == nil {
		t.Error("a backup into a folder that is not there succeeded")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Root restores for a hub that runs as an account of its own.
func TestRestoredByRoot(t *testing.T) {
	if os.Getuid() != 0 {
		return // everybody else makes their own files only
	}
	dir, ctx := t.TempDir(), t.Context()
	copied := filepath.Join(t.TempDir(), "b")
	if err := open(t, dir).Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	theirs := t.TempDir()
	if err := os.Chown(theirs, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time something is set aside
		if _, err := Restore(ctx, theirs, copied); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(theirs, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != 65532 {
			t.Errorf("%s is not the hub's", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What is only noted beside does not keep a key from working: on a full disk,
// or while another program holds the database.
func TestKeysWorkWhileNothingCanBeWritten(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s, other := open(t, dir), open(t, dir)
	k, err := s.AddKey(ctx, OwnerID, "Test")
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.AddMachineToken(ctx, OwnerID, "m1", "PC", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("before: %v", err)
	}
	tx, err := other.db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := s.FindKey(ctx, k.Secret); err != nil {
		t.Errorf("the key: %v", err)
	}
	if _, err := s.FindMachineToken(ctx, token); err != nil {
		t.Errorf("the computer's token: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := s.Ping(short); err == nil {
		t.Error("data that cannot be written is said to be usable")
	}
}

// A poke is heard at once, and many at once are few; the database's own
// writing is not heard.
func TestPokes(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	if err := other.Poke(); err != nil {
		t.Errorf("with no hub: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan time.Time, 100)
	wait, err := s.Pokes(ctx, nil, func() { looks <- time.Now() })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); wait() }()
	if _, err := other.AddKey(ctx, OwnerID, "Test"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-looks:
		t.Error("the database's own writing was heard")
	case <-time.After(100 * time.Millisecond):
	}
	began := time.Now()
	for range 20 {
		if err := other.Poke(); err != nil {
			t.Fatal(err)
		}
	}
	if at := <-looks; at.Sub(began) > time.Second {
		t.Errorf("heard after %s", at.Sub(began))
	}
	time.Sleep(10 * settle)
	if n := len(looks); n > 4 {
		t.Errorf("20 pokes at once were heard as %d", n+1)
	}
}

// Folders and files are named from where one stands, too.
func TestRestoreFromHere(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "data")
	k, err := s.AddKey(t.Context(), OwnerID, "Program")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"other", "50%#?x"} {
		if _, err := Restore(t.Context(), dir, "copy"); err != nil {
			t.Errorf("restore to %q: %v", dir, err)
			continue
		}
		if keys, err := open(t, dir).Keys(t.Context(), OwnerID); err != nil || len(keys) != 1 || keys[0].ID != k.ID {
			t.Errorf("%q has %v, %v", dir, keys, err)
		}
	}
}
