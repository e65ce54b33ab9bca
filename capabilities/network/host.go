package network

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"localpc/consent"
	"localpc/tunnel/wire"
)

// host is where a command wants to go, in the one spelling that is shown,
// remembered and connected to.
type host struct {
	asked string     // as the command wrote it
	name  string     // ASCII, lower case, without the dot at the end; or the address
	addr  netip.Addr // where it is an address
	// shown is the name in its own letters, where it has others than ASCII's.
	shown string
	mixed bool // its letters are of several scripts
}

func noAddress(asked string) error {
	return wire.Errorf(wire.CodeInvalid, "%s is no address that could be connected to.", consent.Visible(clip(asked, 80), false))
}

// names maps as browsers do, and lets underscores be.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// zoneLetters are those of interfaces' names: what else stands in a zone is a
// text that wants to be read on a card.
const zoneLetters = "abcdefghijklmnopqrstuvwxyz0123456789._-"

// parse reads a host in all the spellings that programs take.
func parse(asked string) (host, error) {
	h := host{asked: asked}
	s := strings.TrimSuffix(strings.TrimPrefix(asked, "["), "]")
	if a, err := netip.ParseAddr(s); err == nil {
		if z := a.Zone(); z != "" && (!a.IsLinkLocalUnicast() || len(z) > 32 || strings.Trim(strings.ToLower(z), zoneLetters) != "") {
			return h, noAddress(asked)
		}
		h.addr = a.Unmap()
		h.name = h.addr.String()
		return h, nil
	}
	if strings.ContainsAny(s, ":%/@") {
		return h, noAddress(asked)
	}
	ascii, err := names.ToASCII(s)
	if err != nil {
		return h, noAddress(asked)
	}
	ascii = strings.TrimSuffix(strings.ToLower(ascii), ".")
	labels := strings.Split(ascii, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return h, noAddress(asked)
		}
	}
	if len(ascii) > 253 {
		return h, noAddress(asked)
	}
	// Whatever ends in a number is an address, in one of the old spellings, or
	// nothing: no name does.
	if last := labels[len(labels)-1]; isNumber(last) {
		a, ok := oldAddress(labels)
		if !ok {
			return h, noAddress(asked)
		}
		h.addr, h.name = a, a.String()
		return h, nil
	}
	h.name = ascii
	if u, err := names.ToUnicode(ascii); err == nil && u != ascii {
		h.shown = consent.Visible(u, false)
		h.mixed = slices.ContainsFunc(strings.Split(u, "."), mixed)
	}
	return h, nil
}

func isNumber(s string) bool {
	if s == "" {
		return false
	}
	if strings.Trim(s, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(s, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// oldAddress reads what inet_aton does: one to four numbers, decimal, octal or
// hexadecimal, the last of which fills what is left.
func oldAddress(parts []string) (netip.Addr, bool) {
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		if !isNumber(p) {
			return netip.Addr{}, false
		}
		if p == "0x" {
			p = "0"
		} else if len(p) > 1 && p[0] == '0' && p[1] != 'x' {
			p = "0o" + p[1:]
		}
		n, err := strconv.ParseUint(p, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		room := 8
		if i == len(parts)-1 {
			room = 8 * (5 - len(parts))
		}
		if n >= 1<<room {
			return netip.Addr{}, false
		}
		v = v<<room | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// together are scripts that one language writes in.
var together = [][]string{{"Han", "Hiragana", "Katakana"}, {"Han", "Hangul"}, {"Han", "Bopomofo"}}

// mixed tells whether a label has letters of scripts that do not go together:
// one letter that only looks like another.
func mixed(label string) bool {
	var seen []string
	for _, r := range label {
		for name, table := range unicode.Scripts {
			if name != "Common" && name != "Inherited" && unicode.Is(table, r) && !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
	}
	if len(seen) < 2 {
		return false
	}
	for _, set := range together {
		if !slices.ContainsFunc(seen, func(s string) bool { return !slices.Contains(set, s) }) {
			return false
		}
	}
	return true
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
