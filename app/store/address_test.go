package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// A folder of another computer's begins with two slashes, behind which SQLite
// looks for a host: it is the path all the same.
func TestAFolderOfAnotherComputer(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", dsn("/"+filepath.ToSlash(dir)+"/a.db", false))
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
