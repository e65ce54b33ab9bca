//go:build !linux

package control

import "net"

// checkPeer relies on the mode of the socket and of its directory where the
// system does not tell who connects.
func checkPeer(*net.UnixConn) error { return nil }
