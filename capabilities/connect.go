package capabilities

import (
	"context"
	"net"

	"localpc/tunnel/wire"
)

// TypeConnect is the request of a contained command for a connection. It is
// made on this computer only: no frame of the tunnel has it.
const TypeConnect wire.Type = "NETWORK_CONNECT"

// Connect asks for one connection to a host, on behalf of a command that runs.
// It takes the seven steps like all others.
type Connect struct {
	SessionID string
	Command   string // the request id of the command
	Program   string // what wants to connect, as well as it is known: "npm"; untrusted
	Line      string // the command as its card showed it; untrusted
	Host      string // as it was asked for: a name or an address
	Port      int
	// Ended is closed when the command has ended with all its children.
	Ended <-chan struct{} `json:"-"`
	// Client is the command's end. It is piped to the other once the person has
	// agreed, and closed at the end.
	Client net.Conn `json:"-"`
	// Established tells the command that it is connected; it is called once,
	// before the first byte.
	Established func() error `json:"-"`
}

// Validate implements wire.Payload.
func (c *Connect) Validate() error {
	if c.Command == "" {
		return wire.Errorf(wire.CodeInvalid, "A connection belongs to a command, and this one names none.")
	}
	if c.Host == "" || len(c.Host) > 253 || c.Port < 1 || c.Port > 65535 {
		return wire.Errorf(wire.CodeInvalid, "This is no address that could be connected to.")
	}
	return nil
}

// Connector takes a Connect through the seven steps. It returns when the
// connection has ended, or with a *wire.Error that says why there is none. The
// machine is it.
type Connector func(ctx context.Context, c *Connect) error
