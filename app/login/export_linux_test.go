package login

import "testing"

// NoBus tells that there is no session bus.
func NoBus() bool { return noBus() }

// SetUsersDir has the buses of users in dir for the time of a test.
func SetUsersDir(t *testing.T, dir string) {
	before := usersDir
	usersDir = dir
	t.Cleanup(func() { usersDir = before })
}
