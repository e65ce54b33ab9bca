package shell

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"

	"localpc/tunnel/wire"
)

// Replies of SOCKS5, RFC 1928.
const (
	socksDone        = 0
	socksFailed      = 1
	socksNotAllowed  = 2
	socksUnreachable = 4
	socksNoCommand   = 7
	socksNoAddress   = 8
)

// socks serves a client of SOCKS5 without a log-in: CONNECT to an address or
// a name.
func (x *proxy) socks(conn net.Conn, in *bufio.Reader, head *io.LimitedReader) {
	b := make([]byte, 2)
	if _, err := io.ReadFull(in, b); err != nil {
		return
	}
	methods := make([]byte, b[1])
	if _, err := io.ReadFull(in, methods); err != nil {
		return
	}
	if !slices.Contains(methods, 0) {
		_, _ = conn.Write([]byte{5, 0xff})
		return
	}
	if _, err := conn.Write([]byte{5, 0}); err != nil {
		return
	}
	reply := func(code byte) error {
		_, err := conn.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
		return err
	}
	b = make([]byte, 4) // version, command, nothing, kind of address
	if _, err := io.ReadFull(in, b); err != nil || b[0] != 5 {
		return
	}
	n := map[byte]int{1: 4, 4: 16}[b[3]]
	if b[3] == 3 {
		l, err := in.ReadByte()
		if err != nil {
			return
		}
		n = int(l)
	}
	address := make([]byte, n+2)
	if _, err := io.ReadFull(in, address); err != nil {
		return
	}
	switch {
	case b[1] != 1:
		_ = reply(socksNoCommand)
		return
	case n == 0:
		_ = reply(socksNoAddress)
		return
	}
	begun(conn, head)
	host := string(address[:n])
	if b[3] != 3 {
		a, _ := netip.AddrFromSlice(address[:n])
		host = a.String()
	}
	there, err := x.tunnel(host, int(binary.BigEndian.Uint16(address[n:])), "", tunnelled{conn, in}, func() error { return reply(socksDone) })
	if there || err == nil {
		return
	}
	switch wire.CodeOf(err) {
	case wire.CodeDenied, wire.CodeExpired, wire.CodeUndelivered, wire.CodePaused, wire.CodeStopped, wire.CodeCancelled, wire.CodeSessionNotOpen:
		_ = reply(socksNotAllowed)
	case wire.CodePathNotFound:
		_ = reply(socksUnreachable)
	default:
		_ = reply(socksFailed)
	}
	linger(conn, in)
}
