package front

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks whose word about where a request came from is
// believed.
type Proxies []netip.Prefix

// Loopback is what is believed when nothing else is named: a proxy on the same
// computer.
var Loopback = Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// ParseProxies reads networks such as 10.0.0.0/8, and single addresses.
func ParseProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, s := range list {
		prefix, err := netip.ParsePrefix(s)
		if addr, aerr := netip.ParseAddr(s); aerr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a network of proxies: it must look like 10.0.0.0/8 or 10.0.0.7", s)
		}
		p = append(p, prefix.Masked())
	}
	return p, nil
}

func (p Proxies) trust(a netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// Handler gives every request the address of who really sent it as
// RemoteAddr: the last one in X-Forwarded-For that no trusted proxy has. What
// stands before that, anybody can write. The header is taken away.
func (p Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		addr := from.Addr().Unmap()
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; err == nil && i >= 0 && p.trust(addr); i-- {
			said, perr := parseHop(strings.TrimSpace(hops[i]))
			if perr != nil {
				break
			}
			addr = said
		}
		if err == nil {
			r.RemoteAddr = netip.AddrPortFrom(addr, from.Port()).String()
		}
		r.Header.Del("X-Forwarded-For")
		next.ServeHTTP(w, r)
	})
}

// parseHop takes what proxies write: an address, with or without a port.
func parseHop(s string) (netip.Addr, error) {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap(), err
}
