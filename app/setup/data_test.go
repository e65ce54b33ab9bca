package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localpc/app/settings"
)

const hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// dataDir is a data directory as one that was used looks.
func dataDir(t *testing.T) settings.Paths {
	t.Helper()
	p := settings.Paths{Data: filepath.Join(t.TempDir(), "localpc")}
	must(t, p.Make())
	for _, name := range []string{"settings.toml", "lock", "machine.db", "machine.db-wal", "machine.db-shm", "localpc.log", "localpc.log.1", "secrets.age", "installed.toml",
		"control.sock", ".settings-1", "hub/hub.db", "hub/hub.secret", "hub/replaced-1/hub.db", "spool/upload-1", "sessions/1/tmp/deep/file", "journal/1.json", "journal/1.data", "outputs/" + hash, "outputs/.new-1"} {
		put(t, filepath.Join(p.Data, name), "x", 0o600)
	}
	put(t, filepath.Join(p.Data, "settings.toml"), "machine_id = '2f1a6a0e-5c1d-4b8a-9d3e-0c6b7a1f2e3d'\n", 0o600)
	put(t, filepath.Join(p.Data, "machine.db"), "SQLite format 3\x00", 0o600)
	return p
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			out = append(out, rel)
		}
		return err
	}))
	slices.Sort(out)
	return out
}

func TestDataErased(t *testing.T) {
	p := dataDir(t)
	left, err := Data(p, Spare{})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantGone(t, p.Data)
	if _, err := Data(p, Spare{}); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a second time: %v", err)
	}
}

func TestDataKept(t *testing.T) {
	p := dataDir(t)
	left, err := Data(p, Spare{Record: true})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if got, want := strings.Join(names(t, p.Data), " "), "machine.db machine.db-shm machine.db-wal outputs/.new-1 outputs/"+hash; got != want {
		t.Errorf("kept:\n%s\nwant\n%s", got, want)
	}
	// What was kept can be erased later.
	left, err = Data(p, Spare{})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantGone(t, p.Data)
}

// Where something else has to be tried again, the settings that say what stay.
func TestDataUnfinished(t *testing.T) {
	p := dataDir(t)
	left, err := Data(p, Spare{Settings: true})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if got, want := strings.Join(names(t, p.Data), " "), "installed.toml localpc.log lock settings.toml"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	_, err = Data(p, Spare{})
	must(t, err)
	wantGone(t, p.Data)
}

// Somebody else's files stay, wherever they lie, and so does everything that a
// link leads to.
func TestDataLeavesTheRest(t *testing.T) {
	p, home := dataDir(t), t.TempDir()
	theirs := filepath.Join(home, "photos")
	put(t, filepath.Join(theirs, hash), "photo", 0o600)
	must(t, os.RemoveAll(filepath.Join(p.Data, "outputs")))
	must(t, os.Symlink(theirs, filepath.Join(p.Data, "outputs")))
	must(t, os.Symlink(theirs, filepath.Join(p.Data, "sessions", "1", "tmp", "way")))
	must(t, os.Symlink(filepath.Join(theirs, hash), filepath.Join(p.Data, "hub", "hub.poke")))
	put(t, filepath.Join(p.Data, "notes.txt"), "mine", 0o600)
	put(t, filepath.Join(p.Data, "hub", "photo.jpg"), "mine", 0o600)
	left, err := Data(p, Spare{})
	must(t, err)
	slices.Sort(left)
	if want := filepath.Join(p.Data, "hub") + " " + filepath.Join(p.Data, "notes.txt"); strings.Join(left, " ") != want {
		t.Errorf("left: %v, want %s", left, want)
	}
	if got := strings.Join(names(t, p.Data), " "); got != "hub/photo.jpg notes.txt" {
		t.Errorf("there are %s", got)
	}
	wantFile(t, filepath.Join(theirs, hash), "photo")

	// Nothing at all is touched in a directory that is not ours.
	other := settings.Paths{Data: home}
	put(t, filepath.Join(home, "sessions", "1"), "mine", 0o600)
	if _, err := Data(other, Spare{}); !errors.Is(err, ErrNotOurs) {
		t.Errorf("%v", err)
	}
	if _, err := Data(settings.Paths{Data: filepath.Join(home, "nowhere")}, Spare{}); !errors.Is(err, ErrNotOurs) {
		t.Errorf("%v", err)
	}
	wantFile(t, filepath.Join(home, "sessions", "1"), "mine")
}

// Another program's directory is not taken for ours by the names in it.
func TestDataOfAnotherProgram(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"settings":       {"settings.toml": "[server]\nport = 80\n", "sessions/1": "mine"},
		"settings, ours": {"settings.toml": "machine_id = 'box'\n", "sessions/1": "mine"},
		"a lock":         {"lock": "", "sessions/1": "mine"},
		"a lock of npm":  {"lock": "", "package.json": "{}"},
		"a lock, filled": {"lock": "4711"},
		"a database":     {"machine.db": "Berkeley", "spool/1": "mine"},
	} {
		p := settings.Paths{Data: t.TempDir()}
		for file, text := range files {
			put(t, filepath.Join(p.Data, file), text, 0o600)
		}
		if _, err := Data(p, Spare{}); !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %v", name, err)
		}
		for file, text := range files {
			wantFile(t, filepath.Join(p.Data, file), text)
		}
	}
}

// At each start some folders are emptied: not those of another program.
func TestDataIsNobodyElses(t *testing.T) {
	p := settings.Paths{Data: filepath.Join(t.TempDir(), "data")}
	must(t, Fit(p)) // not there yet
	put(t, filepath.Join(p.Data, "policy.toml"), "x", 0o600)
	must(t, os.Mkdir(p.Sessions(), 0o700))
	must(t, Fit(p))
	must(t, Fit(dataDir(t)))
	for _, dir := range []string{p.Sessions(), p.Spool()} {
		put(t, filepath.Join(dir, "mine"), "mine", 0o600)
		put(t, filepath.Join(p.Data, "settings.toml"), "port = 80\n", 0o600)
		if err := Fit(p); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
		must(t, os.RemoveAll(dir))
	}
}

// What was cut off at any point is known as ours all the same, and so is what
// was made and never used.
func TestDataCutOff(t *testing.T) {
	for n := range len(last) {
		p := dataDir(t)
		_, err := Data(p, Spare{Settings: true})
		must(t, err)
		for _, name := range last[:n] {
			must(t, os.Remove(filepath.Join(p.Data, name)))
		}
		_, err = Data(p, Spare{})
		must(t, err)
		wantGone(t, p.Data)
	}
	p := settings.Paths{Data: filepath.Join(t.TempDir(), "localpc")}
	must(t, p.Make())
	put(t, p.Lock(), "", 0o600)
	_, err := Data(p, Spare{})
	must(t, err)
	wantGone(t, p.Data)
}

// A data directory that is reached through a link goes with the link.
func TestDataBehindALink(t *testing.T) {
	p := dataDir(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(p.Data, link))
	left, err := Data(settings.Paths{Data: link}, Spare{})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantGone(t, p.Data)
	wantGone(t, link)
}

// Kept versions of folders that may not be written to can be erased by their
// owner, too.
func TestUnlock(t *testing.T) {
	p := dataDir(t)
	inner := filepath.Join(p.Data, "versions", hash, "locked", "in")
	put(t, filepath.Join(inner, "file"), "x", 0o400)
	must(t, os.Chmod(inner, 0o100))
	must(t, os.Chmod(filepath.Dir(inner), 0o500))
	root, err := os.OpenRoot(p.Data)
	must(t, err)
	defer root.Close()
	unlock(root, filepath.Join("versions", hash))
	for _, dir := range []string{inner, filepath.Dir(inner)} {
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, fi.Mode(), err)
		}
	}
	left, err := Data(p, Spare{})
	if must(t, err); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantGone(t, p.Data)
}
