package display

import (
	"os"
	"path/filepath"
	"testing"
)

// What lets a desktop share its screens again is there after a new start, for
// this user alone; a spoilt file is one that has nothing.
func TestKeptIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "display.json")
	k := KeptIn(file)
	if got := k.Load("a"); got != "" {
		t.Errorf("a new file has %q", got)
	}
	for _, s := range [][2]string{{"a", "one"}, {"b", "two"}, {"a", "three"}, {"b", ""}} {
		if err := k.Save(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	again := KeptIn(file)
	if a, b := again.Load("a"), again.Load("b"); a != "three" || b != "" {
		t.Errorf("after a new start there are %q and %q", a, b)
	}
	fi, err := os.Stat(file)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: not for its user alone", fi.Mode(), err)
	}
	if err := os.WriteFile(file, []byte(`{"a":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := again.Load("a"); got != "" {
		t.Errorf("a spoilt file has %q", got)
	}
	if err := again.Save("a", "four"); err != nil || KeptIn(file).Load("a") != "four" {
		t.Errorf("a spoilt file is not begun anew: %v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".display-*")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	if KeptIn("") != nil {
		t.Error("no file keeps something")
	}
}
