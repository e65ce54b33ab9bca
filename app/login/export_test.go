package login

import (
	"net"
	"strconv"
)

// Listen takes one port as a sign-in does.
func Listen(port string) (net.Listener, error) {
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	return listen(n, n)
}

// UsualWorkFactor is that of vaults outside of tests.
var UsualWorkFactor = workFactor

// QuickVaults makes the way from the passphrase short.
func QuickVaults() { workFactor = 4 }
