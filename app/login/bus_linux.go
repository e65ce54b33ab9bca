package login

import (
	"os"
	"path/filepath"
)

// noBus tells that this process belongs to no session bus, so that there is no
// keychain to ask. The D-Bus package would start a bus of its own then
// (dbus-launch), which nobody would end.
func noBus() bool {
	if addr := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); addr != "" && addr != "autolaunch:" {
		return false
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return true
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return false
		}
	}
	return true
}
