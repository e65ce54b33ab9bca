package store_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/pressly/goose/v3"

	"localpc/app/store"
)

// What an earlier version noted of kept versions is there after an update, in
// an undoing that was cut off too.
func TestKeptStepsOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	db := raw(t, dir)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"))
	must(t, err)
	_, err = p.UpTo(t.Context(), 2)
	must(t, err)
	_, err = db.ExecContext(t.Context(), `INSERT INTO kept VALUES ('r1', 's1', '/f', '{}', 1, 1, 'kept', '[]', 7, '{}'), ('u1', '', '/f', '{}', 2, 0, 'open', '["r1"]', 0, '{}');
		INSERT INTO kept_steps VALUES ('r1', 1, 'v1', '', '{"a":1}'), ('r1', 2, '', '', '{}'), ('u1', 1, 'v2', 'v1', '{}')`)
	must(t, err)
	must(t, db.Close())

	s := open(t, dir)
	steps, err := s.KeptSteps(t.Context(), "r1")
	must(t, err)
	if want := []store.KeptStep{{N: 1, Object: "v1", Body: `{"a":1}`}, {N: 2, Body: "{}"}}; !reflect.DeepEqual(steps, want) {
		t.Errorf("%+v", steps)
	}
	objects, err := s.KeptObjects(t.Context())
	must(t, err)
	if !reflect.DeepEqual(objects, map[string]bool{"v1": true, "v2": true}) {
		t.Errorf("%v", objects)
	}
	must(t, s.KeepSteps(t.Context(), store.Kept{Request: "r2", Folder: "/f", FolderID: "{}", About: "{}", State: store.KeptOpen}, store.KeptStep{N: 1, Object: "v3", Body: "{}"}))
	_, err = s.KeepEnded(t.Context(), "u1", 5)
	must(t, err)
	if steps, err = s.KeptSteps(t.Context(), "r1"); err != nil || len(steps) != 0 {
		t.Errorf("undone, it still has %+v, %v", steps, err)
	}
}
