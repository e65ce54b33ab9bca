package login

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/godbus/dbus/v5"
)

// usersDir is where the D-Bus package looks for the bus of a user. Tests change
// it.
var usersDir = "/run/user"

// noBus tells that this process belongs to no session bus, so that there is no
// keychain to ask: none is named, and none stands where the D-Bus package
// looks for one (which is not XDG_RUNTIME_DIR). That package would start a bus
// of its own then (dbus-launch), which nobody would end.
func noBus() bool {
	if addr := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); addr != "" && addr != "autolaunch:" {
		return false
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(usersDir, strconv.Itoa(os.Getuid()), name)); err == nil {
			return false
		}
	}
	return true
}

// unprovided tells that the bus knows of no keychain, running or to be started.
func unprovided(err error) bool {
	var e dbus.Error
	return errors.As(err, &e) && e.Name == "org.freedesktop.DBus.Error.ServiceUnknown"
}
