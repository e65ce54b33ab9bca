package setup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestToolkit(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	usual, err := os.UserConfigDir()
	must(t, err)
	dir := filepath.Join(usual, "fyne")
	must(t, Toolkit()) // nothing is there
	put(t, filepath.Join(dir, toolkitID, "preferences.json"), "{}", 0o600)
	put(t, filepath.Join(dir, "other", "preferences.json"), "{}", 0o600)
	must(t, Toolkit())
	wantGone(t, filepath.Join(dir, toolkitID))
	if _, err := os.Stat(filepath.Join(dir, "other", "preferences.json")); err != nil {
		t.Errorf("what another program keeps: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, "other")))
	must(t, Toolkit())
	wantGone(t, dir)
}
