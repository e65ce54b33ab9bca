// Package store is what a hub remembers for step 1: users, keys of programs,
// tokens of machines, machines and sandboxes, in one SQLite database. A
// running hub and the localpc-hub commands may use the same data at once.
// Of keys and tokens only the SHA-256 is kept; it imports nothing of ours.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrNotFound means that there is no such row, or that it is revoked or ended.
var ErrNotFound = errors.New("not found")

// ErrTaken means that a machine is another user's.
var ErrTaken = errors.New("the computer belongs to another person of this hub")

const (
	dbName     = "hub.db"
	secretName = "hub.secret"
	// connections to the database at once.
	connections = 8
)

// Store is the database. It is safe for concurrent use, by several processes
// too.
type Store struct {
	db     *sql.DB
	dir    string
	secret []byte
	now    func() time.Time
	// sandbox is what each request reads: to read its text takes SQLite longer
	// than to do it.
	sandbox *sql.Stmt
	// steady is the clock of everything that ends: it goes on evenly when the
	// computer's clock is set.
	steady func() time.Time
}

// ErrOlder means that a hub of an older version runs on the data.
var ErrOlder = errors.New("a hub of an older version is running on this data; start it again with this version first")

// Open opens the data in dir, making the directory (0700) and the files in it
// (0600) when they are missing, and brings the schema up to date. Who calls it
// holds the Lock, or knows that no hub does.
func Open(ctx context.Context, dir string) (*Store, error) {
	return openData(ctx, dir, (*Store).migrate)
}

// OpenBeside opens the data for a command, whether a hub runs on it or not. It
// does not change the schema under a hub that knows only an older one:
// ErrOlder.
func OpenBeside(ctx context.Context, dir string) (*Store, error) {
	return openData(ctx, dir, (*Store).migrateBeside)
}

// OpenAsIs opens data of any version to copy it, and changes nothing.
func OpenAsIs(ctx context.Context, dir string) (*Store, error) {
	return openData(ctx, dir, func(*Store, context.Context) error { return nil })
}

func openData(ctx context.Context, dir string, migrate func(*Store, context.Context) error) (*Store, error) {
	if err := prepare(dir); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(filepath.Join(dir, dbName))
	if err != nil {
		return nil, fmt.Errorf("hub data %s: %w", dir, err)
	}
	secret, err := readSecret(dir)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", address(path, url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)"},
		"_txlock": {"immediate"},
	}))
	if err != nil {
		return nil, fmt.Errorf("hub data %s: %w", path, err)
	}
	// All are kept: to open one costs more than most of what is asked.
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	began := time.Now()
	s := &Store{db: db, dir: filepath.Dir(path), secret: secret, now: time.Now, steady: func() time.Time { return began.Round(0).Add(time.Since(began)) }}
	if err := migrate(s, ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("hub data %s: %w", path, err)
	}
	if s.sandbox, err = db.PrepareContext(ctx, `SELECT `+sandboxColumns+` FROM sandboxes WHERE id = ?`); err != nil {
		db.Close()
		return nil, fmt.Errorf("hub data %s: %w", path, err)
	}
	return s, nil
}

// address names a database file for SQLite. Without the two slashes of a URL it
// is a path in whatever way it is written; behind them a relative one, or one
// with a drive, would begin with a host.
func address(path string, options url.Values) string {
	name := (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	if strings.HasPrefix(name, "//") {
		name = "//" + name // a folder of another computer's: the first name is no host
	}
	return (&url.URL{Scheme: "file", Opaque: name, RawQuery: options.Encode()}).String()
}

// prepare makes the directory and the files before SQLite does, since it
// would give them the process's usual mode; the journal files follow the
// database's.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("hub data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("hub data: %w", err)
	}
	path := filepath.Join(dir, dbName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("hub data: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close(), likeDir(path, dir)); err != nil {
		return fmt.Errorf("hub data: %w", err)
	}
	// A directory that holds other things is somebody else's to protect.
	ours := len(entries) == 0
	for _, e := range entries {
		ours = ours || e.Name() == dbName
	}
	if ours {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("hub data: %w", err)
		}
	}
	return nil
}

// readSecret reads the key that tokens of sandboxes are derived from. It lies
// beside the database, so that a copy of the database alone opens nothing.
func readSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, secretName)
	for range 3 {
		data, err := os.ReadFile(path)
		if err == nil {
			secret, err := hex.DecodeString(string(data))
			if err != nil || len(secret) != 32 {
				return nil, fmt.Errorf("%s is damaged; remove it, and open sandboxes will have to be made again", path)
			}
			return secret, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("hub secret: %w", err)
		}
		secret := make([]byte, 32)
		rand.Read(secret)
		// Written whole, then linked: another process that starts now sees all
		// of it or none.
		tmp, err := os.CreateTemp(dir, secretName+".*")
		if err != nil {
			return nil, fmt.Errorf("hub secret: %w", err)
		}
		_, err = tmp.WriteString(hex.EncodeToString(secret))
		err = errors.Join(err, tmp.Sync(), tmp.Close(), likeDir(tmp.Name(), dir))
		if err == nil {
			if err = os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		}
		os.Remove(tmp.Name())
		if err != nil {
			return nil, fmt.Errorf("hub secret: %w", err)
		}
	}
	return nil, fmt.Errorf("%s could not be read back", path)
}

// migrate brings the schema up to date. Two processes may start at the same
// moment on new data; the one that loses finds the work done when it looks
// again.
func (s *Store) migrate(ctx context.Context) error {
	p, err := migrator(s.db)
	if err != nil {
		return err
	}
	for try := range 8 {
		if _, err = p.Up(ctx); err == nil || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try+1) * 50 * time.Millisecond):
		}
	}
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return known(ctx, s.db)
}

// migrateBeside brings the schema up to date while no hub runs.
func (s *Store) migrateBeside(ctx context.Context) error {
	p, err := migrator(s.db)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		pending, err := p.HasPending(ctx)
		if err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
		if !pending {
			return known(ctx, s.db)
		}
		release, err := Lock(s.dir)
		if err == nil {
			defer release()
			return s.migrate(ctx)
		}
		// A hub that has just been started, or another command, is doing it.
		if !errors.Is(err, ErrRunning) {
			return err
		}
		if try == 8 {
			return ErrOlder
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sub)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return p, nil
}

// known refuses a schema that is newer than this program.
func known(ctx context.Context, db *sql.DB) error {
	p, err := migrator(db)
	if err != nil {
		return err
	}
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if sources := p.ListSources(); len(sources) > 0 && version > sources[len(sources)-1].Version {
		return errors.New("this data was written by a newer version of the program; update the program to use it")
	}
	return nil
}

// Secret is 32 bytes that stay the same for this data.
func (s *Store) Secret() []byte { return s.secret }

// SetAddress keeps where clients reach the hub; Address gives it, or "".
func (s *Store) SetAddress(ctx context.Context, address string) error {
	if is, err := s.Address(ctx); err == nil && is == address {
		return nil
	}
	return s.begin(ctx, "keep the hub's address", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM about; INSERT INTO about (address) VALUES (?)`, address)
		return err
	})
}

// Address is where clients reach the hub, or "" when it has never said.
func (s *Store) Address(ctx context.Context) (string, error) {
	var address string
	err := one(s.db.QueryRowContext(ctx, `SELECT address FROM about`).Scan(&address))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return address, err
}

// Exists tells whether dir holds a hub's data.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, dbName))
	return err == nil
}

// Ping tells whether the data can be read and written.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, `UPDATE about SET address = address`)
	return err
}

// Size is how large the database is on the disk, in bytes, with what is to be
// written into it.
func (s *Store) Size() int64 {
	var n int64
	for _, name := range []string{dbName, dbName + "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// Close ends all use of the database.
func (s *Store) Close() error { return errors.Join(s.sandbox.Close(), s.db.Close()) }

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMilli(v)
}

// one turns "no row" into ErrNotFound.
func one(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

func affected(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}
