package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Backup copies all data as it is at one moment into a new file (0600), while a
// hub runs or not. It never overwrites a file. What is there in the end is
// whole and on the disk, or it is not there. The file holds the hub's secrets.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	// The name is taken first: another backup cannot take it meanwhile.
	mark, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; a backup overwrites nothing, so name another file", path)
	} else if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	mark.Close()
	tmp, err := os.CreateTemp(filepath.Dir(path), ".hub-backup-*")
	if err != nil {
		os.Remove(path)
		return fmt.Errorf("backup: %w", err)
	}
	tmp.Close()
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
			os.Remove(path)
		}
	}()
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, tmp.Name()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = withFile(ctx, tmp.Name(), func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, `CREATE TABLE hub_backup (made INTEGER NOT NULL, secret TEXT NOT NULL);
			INSERT INTO hub_backup VALUES (?, ?)`, ms(s.now()), hex.EncodeToString(s.secret)); err != nil {
			return err
		}
		return intact(ctx, db)
	})
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := errors.Join(syncFile(tmp.Name()), os.Rename(tmp.Name(), path), syncFile(filepath.Dir(path))); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// Restore puts a backup in the place of the data in dir, on which no hub may
// run (ErrRunning). What was there is kept in aside, "" when there was nothing.
func Restore(ctx context.Context, dir, backup string) (aside string, err error) {
	release, err := Lock(dir)
	if err != nil {
		return "", err
	}
	defer release()
	// A copy is looked at and changed, never the backup.
	db, err := copyIn(backup, dir)
	if err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	defer os.Remove(db)
	var secret string
	if err := withFile(ctx, db, func(db *sql.DB) (err error) {
		secret, err = adopt(ctx, db, backup)
		return err
	}); err != nil {
		return "", err
	}
	key := db + ".secret"
	defer os.Remove(key)
	// Root restores for the account that the hub runs as.
	if err := errors.Join(os.WriteFile(key, []byte(secret), 0o600), likeDir(key, dir), likeDir(db, dir), syncFile(key), syncFile(db)); err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	if Exists(dir) {
		if aside, err = setAside(dir); err != nil {
			return "", fmt.Errorf("restore: %w", err)
		}
	}
	if err := errors.Join(os.Rename(key, filepath.Join(dir, secretName)), os.Rename(db, filepath.Join(dir, dbName)), syncFile(dir)); err != nil {
		return aside, fmt.Errorf("restore: %w", err)
	}
	return aside, nil
}

func copyIn(backup, dir string) (string, error) {
	from, err := os.Open(backup)
	if err != nil {
		return "", err
	}
	defer from.Close()
	if info, err := from.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", backup)
	}
	to, err := os.CreateTemp(dir, "hub.restore-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		os.Remove(to.Name())
		return "", err
	}
	return to.Name(), nil
}

// adopt checks that db is a whole backup of a hub that this program can read,
// and makes a hub's database of it. It returns the hub's secret.
func adopt(ctx context.Context, db *sql.DB, name string) (string, error) {
	var n int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('hub_backup', 'goose_db_version')`).Scan(&n); err != nil || n != 2 {
		return "", fmt.Errorf("%s is not a backup of a hub", name)
	}
	if err := intact(ctx, db); err != nil {
		return "", fmt.Errorf("%s is damaged: %w", name, err)
	}
	var secret string
	if err := db.QueryRowContext(ctx, `SELECT secret FROM hub_backup`).Scan(&secret); err != nil {
		return "", fmt.Errorf("%s is damaged: %w", name, err)
	}
	if raw, err := hex.DecodeString(secret); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%s is damaged: its secret is not one", name)
	}
	if err := known(ctx, db); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	_, err := db.ExecContext(ctx, `DROP TABLE hub_backup; UPDATE machines SET online = 0`)
	return secret, err
}

// setAside moves the data of dir into a new directory in it.
func setAside(dir string) (string, error) {
	aside, err := os.MkdirTemp(dir, "replaced-"+time.Now().Format("2006-01-02-150405")+"-")
	if err != nil {
		return "", err
	}
	if err := likeDir(aside, dir); err != nil {
		return "", err
	}
	for _, name := range []string{dbName + "-wal", dbName + "-shm", dbName, secretName} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}

// withFile opens one database file that nobody else uses, alone as it is.
func withFile(ctx context.Context, path string, do func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", address(path, url.Values{"_pragma": {"journal_mode(DELETE)", "synchronous(FULL)"}}))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(do(db), db.Close())
}

// intact reads the whole file.
func intact(ctx context.Context, db *sql.DB) error {
	var word string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&word); err != nil {
		return err
	}
	if word != "ok" {
		return errors.New(word)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
