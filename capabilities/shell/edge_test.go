//go:build linux

package shell_test

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"localpc/capabilities/network"
)

// atTheEdge is the network of w: names but those of .invalid have an address
// of the internet's, and what is connected to is a server of the test's own.
func atTheEdge(w *world) network.Options {
	return network.Options{Resolver: resolver{},
		Interfaces: func() ([]netip.Prefix, error) { return nil, nil },
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			address := w.ports[int(to.Port())]
			w.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}}
}

type resolver struct{}

func (resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(host, ".invalid") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}
