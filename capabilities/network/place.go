package network

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// place is the kind of place that an address is at: the Action of a request.
// Serialised. In the order of how careful a card has to be.
type place string

const (
	internet place = "internet"
	home     place = "home"  // private networks, and what is on the same cable
	local    place = "local" // this computer
	link     place = "link"  // link-local, and the services of a cloud's own machines
	nowhere  place = ""      // no single computer: never connected to
)

var order = map[place]int{internet: 0, home: 1, local: 2, link: 3, nowhere: 4}

func graver(a, b place) place {
	if order[b] > order[a] {
		return b
	}
	return a
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

var (
	nowhereNets = prefixes("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8", "100::/64")
	localNets   = prefixes("127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128")
	linkNets    = prefixes("169.254.0.0/16", "fe80::/10")
	// 198.18.0.0/15, for tests of networks, is not among them: programs that
	// lead all traffic through a tunnel give the internet's names addresses there.
	homeNets = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "fc00::/7", "fec0::/10",
		"64:ff9b:1::/48") // a gateway of one's own to IPv4, wherever that address stands in it
	// metadata are the addresses at which clouds tell a machine its own keys.
	metadata = prefixes("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32", "168.63.129.16/32",
		"192.0.0.192/32", "fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128")
)

func in(a netip.Addr, nets []netip.Prefix) bool {
	for _, n := range nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// placeOf says where an address is, seen from a computer whose interfaces have
// the addresses own. An IPv6 address that stands for an IPv4 one is at the
// graver of both places.
func placeOf(a netip.Addr, own []netip.Prefix) place {
	bare := a.WithZone("").Unmap()
	p := bareplace(bare, own)
	if v4, ok := embedded(bare); ok {
		p = graver(p, bareplace(v4, own))
	}
	return p
}

func bareplace(a netip.Addr, own []netip.Prefix) place {
	switch {
	case in(a, metadata):
		return link
	case in(a, localNets):
		return local
	case in(a, linkNets):
		return link
	case in(a, nowhereNets):
		return nowhere
	}
	near := false
	for _, n := range own {
		switch {
		case n.Addr() == a:
			return local
		case n.Contains(a):
			if a.Is4() && n.Bits() < 31 && a == broadcast(n) {
				return nowhere
			}
			near = true
		}
	}
	if near || in(a, homeNets) {
		return home
	}
	return internet
}

// broadcast is the last address of an IPv4 network.
func broadcast(n netip.Prefix) netip.Addr {
	b := n.Addr().As4()
	v := binary.BigEndian.Uint32(b[:]) | (1<<(32-n.Bits()) - 1)
	binary.BigEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

var (
	compatible = netip.MustParsePrefix("::/96")
	nat64      = prefixes("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	isatap     = [4]byte{0, 0, 0x5e, 0xfe}
)

// embedded is the IPv4 address that a gateway would make of an IPv6 one.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case a == netip.IPv6Unspecified() || a == netip.IPv6Loopback():
		return a, false
	case compatible.Contains(a), in(a, nat64):
		return last, true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	if id := [4]byte(b[8:12]); id == isatap || id == [4]byte{2, 0, 0x5e, 0xfe} {
		return last, true
	}
	return a, false
}

// interfaces are the addresses of this computer, with their networks.
func interfaces() ([]netip.Prefix, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			continue
		}
		bits, _ := n.Mask.Size()
		if addr = addr.Unmap(); addr.Is4() && len(n.Mask) == 16 {
			bits -= 96
		}
		out = append(out, netip.PrefixFrom(addr, bits))
	}
	return out, nil
}
