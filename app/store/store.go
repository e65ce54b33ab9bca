// Package store is the machine's one database: the record's entries and the
// grants of step 4, and the outputs that step 6 keeps as files by hash beside
// it. Two programs may have it open at once (localpc, and localpc record).
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is the open database. Safe for concurrent use.
type Store struct {
	db  *sql.DB
	dir string
	// appending is the statement that each request runs more than once: to read
	// its text takes SQLite longer than to do it.
	appending *sql.Stmt
	// writing is held for each write: SQLite lets one in at a time, and makes
	// the others sleep, where a mutex wakes them.
	writing sync.Mutex
	// grown counts the bytes of outputs kept since they were last pruned.
	grown atomic.Int64
	// granted counts the changes of grants.
	granted atomic.Uint64
}

// exec writes.
func (s *Store) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.db.ExecContext(ctx, query, args...)
}

// Open opens or makes the database in dir (0700; files 0600) and brings its
// schema up to date.
func Open(ctx context.Context, dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "outputs"), 0o700); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	file := filepath.Join(dir, "machine.db")
	if err := touch(file); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(file, false))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	// All are kept: to open one costs more than most of what is asked.
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		db.Close()
		return nil, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sub)
	if err == nil {
		err = up(ctx, p)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("bring %s up to date: %w", file, err)
	}
	appending, err := db.PrepareContext(ctx, appendEntry)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return &Store{db: db, dir: dir, appending: appending}, nil
}

// up migrates. Where another program does so at this moment, one of the two
// fails, whole, and finds it done a little later.
func up(ctx context.Context, p *goose.Provider) error {
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		_, err := p.Up(ctx)
		if err == nil || wait > time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// OpenToRead opens an existing database without changing it.
func OpenToRead(dir string) (*Store, error) {
	file := filepath.Join(dir, "machine.db")
	if _, err := os.Stat(file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no record in %s yet", dir)
		}
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(file, true))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	return &Store{db: db, dir: dir}, nil
}

func dsn(file string, readOnly bool) string {
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(5000)", "foreign_keys(1)"}, "_txlock": {"immediate"}}
	if readOnly {
		q["_pragma"] = []string{"busy_timeout(5000)", "query_only(1)"}
	}
	name := (&url.URL{Path: file}).EscapedPath()
	if strings.HasPrefix(name, "//") {
		name = "//" + name // a folder of another computer's: the first name is no host
	}
	return (&url.URL{Scheme: "file", Opaque: name, RawQuery: q.Encode()}).String()
}

// touch makes the file ours before SQLite makes it with the umask's mode.
func touch(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return fmt.Errorf("protect %s: %w", file, err)
	}
	return f.Close()
}

// Size is how many bytes the database has on the disk, 0 when that is not known.
func (s *Store) Size() int64 {
	fi, err := os.Stat(filepath.Join(s.dir, "machine.db"))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// Close closes the database.
func (s *Store) Close() error {
	if s.appending == nil { // opened to read
		return s.db.Close()
	}
	return errors.Join(s.appending.Close(), s.db.Close())
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
