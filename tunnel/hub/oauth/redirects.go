package oauth

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxRedirect bounds an address for an answer, in bytes.
const maxRedirect = 512

// appRedirects are addresses by which programs of which many people know the
// name are started, where their scheme is no domain's: to the letter, since
// other addresses of the same program may do other things.
var appRedirects = []string{
	"cursor://anysphere.cursor-mcp/oauth/callback", // Cursor
}

var (
	// domainScheme is a private-use scheme as RFC 8252, 7.1, has it: a domain's
	// name in reverse.
	domainScheme = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$`)
	// plainPlace is what may follow it: nothing that a program which is started
	// with it could take for more than a name.
	plainPlace = regexp.MustCompile(`^:/[A-Za-z0-9._~/-]+$`)
)

// goodRedirect takes https addresses, http ones of the person's own computer,
// and those that start a program there by a scheme of its own: a domain's name
// in reverse, or one of appRedirects. Anybody may sign up: any other scheme
// could start whatever the computer opens with it, with words of a stranger's
// choice, and any other http answer could be read on its way.
func goodRedirect(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || len(uri) > maxRedirect || u.Opaque != "" || u.User != nil || strings.Contains(uri, "#") || u.String() != uri {
		return fmt.Errorf("%.80q is no address for an answer", uri)
	}
	switch {
	case u.Scheme == "https" && u.Hostname() != "" && printable(u.Host),
		u.Scheme == "http" && ownComputer(u.Hostname()),
		AppScheme(uri) != "":
		return nil
	}
	return fmt.Errorf("%.80q must be an https address, http on this computer (127.0.0.1, [::1] or localhost), or a scheme that is a domain's name in reverse (com.example.app:/back)", uri)
}

// AppScheme is the scheme of a redirect that starts a program on the person's
// computer, as goodRedirect takes it; "" for any other. Another program there
// may have claimed the scheme: with PKCE the answer is of no use to it.
func AppScheme(uri string) string {
	scheme, _, _ := strings.Cut(uri, ":")
	if slices.Contains(appRedirects, uri) || domainScheme.MatchString(scheme) && plainPlace.MatchString(uri[len(scheme):]) {
		return scheme
	}
	return ""
}

func printable(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-:[]", r))
	})
}

func ownComputer(host string) bool {
	return host == "127.0.0.1" || host == "::1" || host == "localhost"
}

// allows tells whether an answer may go to uri: it must be one of the
// program's, to the letter. On the person's own computer the port is free
// (RFC 8252), since a program takes the one that it gets.
func (p knownProgram) allows(uri string) bool {
	if goodRedirect(uri) != nil {
		return false
	}
	if p.unread {
		return strings.HasPrefix(uri, "http://")
	}
	return slices.ContainsFunc(p.redirects, func(own string) bool { return own == uri || samePlace(own, uri) })
}

// samePlace tells whether two addresses on the person's own computer differ in
// their ports alone. Without a path one means the same as with "/".
func samePlace(a, b string) bool {
	x, err := url.Parse(a)
	if err != nil {
		return false
	}
	y, err := url.Parse(b)
	if err != nil || x.Scheme != "http" || !ownComputer(x.Hostname()) || x.Hostname() != y.Hostname() {
		return false
	}
	for _, u := range []*url.URL{x, y} {
		if u.Host = u.Hostname(); u.Path == "" {
			u.Path = "/"
		}
	}
	return x.String() == y.String()
}
