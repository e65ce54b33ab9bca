package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// toolkitID is the name that app/ui gives the windows' toolkit, and the toolkit
// its folder for preferences.
const toolkitID = "local.localpc.desktop"

// Toolkit removes what the windows' toolkit keeps for this program in the
// person's folder for settings, and the toolkit's own folder when nothing else
// is in it. Nothing of it is a person's: it is made anew by the next window.
func Toolkit() error {
	config, err := os.UserConfigDir()
	if err != nil {
		return nil // then it has kept nothing
	}
	dir := filepath.Join(config, "fyne")
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = root.RemoveAll(toolkitID)
	root.Close()
	_ = os.Remove(dir) // stays where other programs have something in it
	return err
}
