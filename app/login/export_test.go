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
