package network

import (
	"net/netip"
	"strings"
	"testing"
)

var ours = prefixes("192.168.7.20/24", "203.0.113.130/25", "2001:db8:7::20/64", "fe80::1/64", "10.9.0.2/31")

func TestEachAddressHasItsPlace(t *testing.T) {
	for address, want := range map[string]place{
		"8.8.8.8": internet, "203.0.113.5": internet, "2606:4700::1111": internet, "172.32.0.1": internet, "100.128.0.1": internet, "169.253.1.1": internet,
		"10.0.0.1": home, "172.16.0.1": home, "172.31.255.254": home, "192.168.0.1": home, "100.64.0.1": home, "100.127.255.254": home,
		"fc00::1": home, "fd12:3456::1": home, "fec0::1": home, "198.18.0.1": internet,
		// On the same cable, though their addresses are the internet's.
		"203.0.113.129": home, "2001:db8:7::99": home, "10.9.0.3": home,
		"127.0.0.1": local, "127.255.255.255": local, "0.0.0.0": local, "::": local, "::1": local, "::ffff:127.0.0.1": local, "::ffff:0.0.0.0": local,
		"192.168.7.20": local, "203.0.113.130": local, "2001:db8:7::20": local, "fe80::1": link, "::ffff:192.168.7.20": local,
		"169.254.1.1": link, "169.254.169.254": link, "fe80::99": link, "fe80::99%eth0": link, "::ffff:169.254.169.254": link,
		"fd00:ec2::254": link, "100.100.100.200": link, "168.63.129.16": link, "192.0.0.192": link, "169.254.170.2": link,
		"64:ff9b::7f00:1": local, "64:ff9b::a9fe:a9fe": link, "64:ff9b::808:808": internet, "64:ff9b:1::a00:1": home, "64:ff9b::c0a8:714": local,
		"64:ff9b:1:c0a8:7:1400:808:808": home, "64:ff9b:1::808:808": home, "::ffff:0:127.0.0.1": local, "::ffff:0:8.8.8.8": internet,
		"2002:7f00:1::": local, "2002:a00:1::1": home, "2002:c0a8:101::": home, "2002:808:808::": internet,
		"::127.0.0.1": local, "::10.0.0.1": home, "2001:0:1:2:3:4:80ff:fffe": local, "2001:db8::5efe:10.0.0.1": home, "2001:db8::200:5efe:127.0.0.1": local,
		"224.0.0.1": nowhere, "239.255.255.250": nowhere, "255.255.255.255": nowhere, "240.0.0.1": nowhere, "0.1.2.3": nowhere, "ff02::1": nowhere,
		"192.168.7.255": nowhere, "203.0.113.255": nowhere, "64:ff9b::e000:1": nowhere,
	} {
		if got := placeOf(netip.MustParseAddr(address), ours); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}

func TestHostsAreReadInAllSpellings(t *testing.T) {
	for asked, want := range map[string]string{
		"example.org": "example.org", "EXAMPLE.org.": "example.org", "my_bucket.example.org": "my_bucket.example.org", "localhost": "localhost", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"bücher.example": "xn--bcher-kva.example", "a。b.example": "a.b.example", "１２７.0.0.1": "127.0.0.1",
		"127.0.0.1": "127.0.0.1", "127.1": "127.0.0.1", "0x7f.1": "127.0.0.1", "2130706433": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "0x7F000001": "127.0.0.1",
		"010.0.0.1": "8.0.0.1", "192.168.257": "192.168.1.1", "1.2.3.4.": "1.2.3.4", "0": "0.0.0.0", "0x": "0.0.0.0", "017700000001": "127.0.0.1",
		"[::1]": "::1", "::1": "::1", "::ffff:10.0.0.1": "10.0.0.1", "[fe80::1%eth0]": "fe80::1%eth0", "2001:DB8::1": "2001:db8::1",
	} {
		h, err := parse(asked)
		if err != nil || h.name != want {
			t.Errorf("%q is %q (%v), want %q", asked, h.name, err, want)
		}
	}
	for _, asked := range []string{"", ".", "..", "a..b", "example.org..", "256.1.1.1", "1.2.3.4.5", "0x1ffffffff", "4294967296", "08.0.0.1", "1.2.3.0x", "a b", "a/b", "a@b", "a\nb", "a%s.example", "::1%eth0", "2001:db8::1%lo", "example.org:80",
		"fe80::1%eth0, a computer on the internet", "fe80::1%\x1b[2J", "fe80::1%" + strings.Repeat("e", 33),
		strings.Repeat("a", 64) + ".org", strings.Repeat("abc.", 70) + "org", "x\u202egro.example"} {
		if h, err := parse(asked); err == nil && asked != "1.2.3.0x" {
			t.Errorf("%q was taken as %q", asked, h.name)
		}
	}
}

func TestForeignLettersAreToldApart(t *testing.T) {
	for asked, want := range map[string]bool{"аpple.example": true, "xn--pple-43d.example": true, "bücher.example": false, "пример.example": false, "例え.example": false, "한국어漢字.example": false} {
		h, err := parse(asked)
		if err != nil || h.shown == "" || h.mixed != want || !strings.HasPrefix(h.name, "xn--") {
			t.Errorf("%q: %+v, %v", asked, h, err)
		}
	}
	if h, _ := parse("example.org"); h.shown != "" || h.mixed {
		t.Errorf("a plain name is shown as %+v", h)
	}
}

func TestThisComputersInterfacesAreRead(t *testing.T) {
	own, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range own {
		if !p.IsValid() {
			t.Errorf("an address that is none: %v", p)
		}
		found = found || p.Addr().IsLoopback() && p.Bits() == 8
	}
	if !found {
		t.Errorf("no loopback among %v", own)
	}
}
