package settings_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"localpc/app/settings"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPaths(t *testing.T) settings.Paths {
	t.Helper()
	p := settings.Paths{Data: filepath.Join(t.TempDir(), "data")}
	must(t, p.Make())
	return p
}

func load(t *testing.T, p settings.Paths) *settings.Store {
	t.Helper()
	st, err := settings.Load(p)
	must(t, err)
	return st
}

const id = "4f6d6f3a-1f0e-4a6b-9a51-0d2f6a0c1b2d"

func TestFirstStart(t *testing.T) {
	p := newPaths(t)
	first := load(t, p).Get()
	if _, err := uuid.Parse(first.MachineID); err != nil || first.Name == "" || first.Hub != "" || first.EmbeddedHub != settings.DefaultEmbeddedHub {
		t.Errorf("%+v", first)
	}
	if again := load(t, p).Get(); again != first {
		t.Errorf("the second start has %+v, the first %+v", again, first)
	}
	fi, err := os.Stat(p.File())
	must(t, err)
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", fi.Mode())
	}
}

func TestWhatIsLeftOutIsFilled(t *testing.T) {
	p := newPaths(t)
	must(t, os.WriteFile(p.File(), []byte("# mine\nhub = \"this\"\n"), 0o600))
	first := load(t, p).Get()
	if first.Hub != settings.HubThis || first.Name == "" || first.EmbeddedHub == "" || first.Secrets != settings.SecretsKeychain {
		t.Errorf("%+v", first)
	}
	if again := load(t, p).Get(); again.MachineID != first.MachineID || len(again.MachineID) != 36 {
		t.Errorf("the machine's id does not stay: %q, then %q", first.MachineID, again.MachineID)
	}
}

func TestReadableFile(t *testing.T) {
	cases := []struct {
		name, text, complaint string
	}{
		{"a newer version's keys", "machine_id = '" + id + "'\nname = 'x'\ncolour = 'red'\n[later]\na = 1\n", ""},
		{"the embedded hub on IPv6", "machine_id = '" + id + "'\nname = 'x'\nembedded_hub = '[::1]:4417'\n", ""},
		{"no TOML", "name = \n", "can't be read"},
		{"cut off in the middle", "machine_id = '" + id + "'\nname = 'x", "can't be read"},
		{"bytes of no kind", "\xff\x00\xfe", "can't be read"},
		{"a number for a name", "name = 3\n", "can't be read"},
		{"an id of no kind", "machine_id = 'mine'\nname = 'x'\n", "machine_id"},
		{"an id in braces", "machine_id = '{" + id + "}'\nname = 'x'\n", "machine_id"},
		{"a name too long", "machine_id = '" + id + "'\nname = '" + strings.Repeat("ä", 129) + "'\n", "name"},
		{"the longest name", "machine_id = '" + id + "'\nname = '" + strings.Repeat("ä", 128) + "'\n", ""},
		{"a hub without a scheme", "machine_id = '" + id + "'\nname = 'x'\nhub = 'example.org'\n", "hub"},
		{"secrets in a file", "machine_id = '" + id + "'\nname = 'x'\nsecrets = 'file'\n", ""},
		{"secrets somewhere else", "machine_id = '" + id + "'\nname = 'x'\nsecrets = 'cloud'\n", `secrets must be "keychain" or "file"`},
		{"a folder without a root", "machine_id = '" + id + "'\nname = 'x'\nfolder = 'work'\n", "folder"},
		{"a hub for everybody", "machine_id = '" + id + "'\nname = 'x'\nembedded_hub = '0.0.0.0:4417'\n", "this computer only"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPaths(t)
			must(t, os.WriteFile(p.File(), []byte(c.text), 0o600))
			_, err := settings.Load(p)
			if c.complaint == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.complaint) || !strings.Contains(err.Error(), p.File()) {
				t.Errorf("the error %v says neither what nor where", err)
			}
			if b, _ := os.ReadFile(p.File()); string(b) != c.text {
				t.Error("the person's file was changed")
			}
		})
	}
	p := newPaths(t)
	must(t, os.Mkdir(p.File(), 0o700))
	if _, err := settings.Load(p); err == nil {
		t.Error("a directory for a file loads")
	}
}

func TestChange(t *testing.T) {
	p := newPaths(t)
	st := load(t, p)
	must(t, st.Change(func(s *settings.Settings) {
		s.Name, s.Hub, s.Folder = "Anna's \"PC\"\n\u202e世界", "https://hub.example.org", "/home/anna/Local PC"
	}))
	want := st.Get()
	if got := load(t, p).Get(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, change := range map[string]func(*settings.Settings){
		"no name":   func(s *settings.Settings) { s.Name = "" },
		"no id":     func(s *settings.Settings) { s.MachineID = "" },
		"bad hub":   func(s *settings.Settings) { s.Hub = "ftp://x" },
		"open door": func(s *settings.Settings) { s.EmbeddedHub = ":4417" },
		"a folder":  func(s *settings.Settings) { s.Folder = "../x" },
	} {
		if err := st.Change(change); err == nil {
			t.Errorf("%s was saved", name)
		}
		if st.Get() != want || load(t, p).Get() != want {
			t.Errorf("%s: something changed all the same", name)
		}
	}
}

// A file that can't be saved: an error, the old settings in memory and on
// disk, and no leftovers.
func TestChangeThatCannotBeSaved(t *testing.T) {
	p := newPaths(t)
	st := load(t, p)
	want := st.Get()
	moved := p.Data + "-gone"
	must(t, os.Rename(p.Data, moved))
	if err := st.Change(func(s *settings.Settings) { s.Name = "other" }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if st.Get() != want {
		t.Error("the settings in memory have changed")
	}
	must(t, os.Rename(moved, p.Data))
	if load(t, p).Get() != want {
		t.Error("the file has changed")
	}
	must(t, st.Change(func(s *settings.Settings) { s.Name = "other" }))
	left, err := filepath.Glob(filepath.Join(p.Data, ".settings-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whoever reads the file while it is saved finds it whole.
func TestSavedAtomically(t *testing.T) {
	p := newPaths(t)
	st := load(t, p)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := settings.Load(p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 100 {
		must(t, st.Change(func(s *settings.Settings) { s.Name = strings.Repeat("n", 1+i) + fmt.Sprint(i) }))
	}
	close(done)
	wg.Wait()
}

func TestPrivateDirectories(t *testing.T) {
	data := filepath.Join(t.TempDir(), "deep", "data")
	must(t, os.MkdirAll(data, 0o755))
	must(t, os.Chmod(data, 0o755)) // as an earlier program may have left it
	p := settings.Paths{Data: data}
	must(t, p.Make())
	for _, d := range []string{p.Data, p.Hub(), p.Spool(), p.Sessions()} {
		fi, err := os.Stat(d)
		must(t, err)
		if fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v", d, fi.Mode())
		}
	}
	must(t, p.Make())
}

func TestDataDirectoriesThatAreRefused(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(shared, 0o700))
	must(t, os.Chmod(shared, 0o777|os.ModeSticky)) // like /tmp
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	long := "/" + strings.Repeat("x", 87)
	for name, c := range map[string]struct{ data, says string }{
		"relative":  {"data", "absolute"},
		"empty":     {"", "absolute"},
		"too long":  {long, "too long"},
		"a file":    {file, file},
		"in a file": {filepath.Join(file, "data"), file},
		"shared":    {shared, "everybody"},
	} {
		if err := (settings.Paths{Data: c.data}).Make(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if fi, err := os.Stat(shared); err != nil || fi.Mode().Perm() != 0o777 {
		t.Errorf("the shared directory was changed: %v, %v", fi.Mode(), err)
	}
	// The longest path that fits, fits.
	base := t.TempDir()
	fits := filepath.Join(base, strings.Repeat("x", 87-len(base)-1))
	must(t, settings.Paths{Data: fits}.Make())
}

func TestDefaultData(t *testing.T) {
	t.Setenv("HOME", "/home/anna")
	t.Setenv("XDG_DATA_HOME", "")
	for set, want := range map[string]string{"": "/home/anna/.local/share/localpc", "/data": "/data/localpc", "relative": "/home/anna/.local/share/localpc"} {
		t.Setenv("XDG_DATA_HOME", set)
		if got, err := settings.DefaultData(); err != nil || got != want {
			t.Errorf("with %q: %q, %v", set, got, err)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	if _, err := settings.DefaultData(); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("without a home: %v", err)
	}
}

func TestCheckLoopback(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:4417": true, "127.0.0.2:1": true, "[::1]:4417": true, "127.0.0.1:0": true, "[::ffff:127.0.0.1]:4417": true,
		"": false, "4417": false, ":4417": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:http": false, "127.0.0.1:65536": false, "127.0.0.1:-1": false,
		"0.0.0.0:4417": false, "[::]:4417": false, "192.168.1.5:4417": false, "localhost:4417": false, "example.org:4417": false,
		"127.0.0.1.example.org:4417": false, "127.1:4417": false, "[::1%lo]:4417": false, "[::ffff:10.0.0.1]:4417": false, "2130706433:4417": false,
	} {
		if err := settings.CheckLoopback(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
