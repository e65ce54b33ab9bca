package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"localpc/tunnel/wire/autogpt"
)

// AutoGPT is the profile of an AutoGPT platform (wire 1.1, sections 1 and 10).
// Fields that are left out have the values of DefaultAutoGPT.
type AutoGPT struct {
	Web      string `toml:"web"`       // base of the pages, https
	API      string `toml:"api"`       // base of the OAuth calls, https
	WS       string `toml:"websocket"` // base of the sockets, wss
	ClientID string `toml:"client_id"`
	Scope    string `toml:"scope"`
	// The loopback ports that are registered as redirect addresses.
	FirstPort int `toml:"first_port"`
	LastPort  int `toml:"last_port"`
}

// DefaultAutoGPT is the public platform.
var DefaultAutoGPT = AutoGPT{Web: "https://platform.autogpt.net", API: "https://platform.autogpt.net", WS: "wss://platform.autogpt.net",
	ClientID: autogpt.ClientID, Scope: autogpt.Scope, FirstPort: autogpt.FirstPort, LastPort: autogpt.LastPort}

// HubAutoGPT is the value of Settings.Hub for that platform.
const HubAutoGPT = "autogpt"

// Fill gives what is left out the value of DefaultAutoGPT, and takes slashes at
// the ends of addresses away.
func (a AutoGPT) Fill() AutoGPT {
	for _, f := range []struct {
		to    *string
		usual string
	}{{&a.Web, DefaultAutoGPT.Web}, {&a.API, DefaultAutoGPT.API}, {&a.WS, DefaultAutoGPT.WS}, {&a.ClientID, DefaultAutoGPT.ClientID}, {&a.Scope, DefaultAutoGPT.Scope}} {
		if *f.to = strings.TrimRight(strings.TrimSpace(*f.to), "/"); *f.to == "" {
			*f.to = f.usual
		}
	}
	if a.FirstPort == 0 && a.LastPort == 0 {
		a.FirstPort, a.LastPort = DefaultAutoGPT.FirstPort, DefaultAutoGPT.LastPort
	}
	return a
}

// Ports writes the ports as ParsePorts reads them: "41899-41910".
func (a AutoGPT) Ports() string {
	if a.FirstPort == a.LastPort {
		return strconv.Itoa(a.FirstPort)
	}
	return fmt.Sprintf("%d-%d", a.FirstPort, a.LastPort)
}

// ParsePorts reads "41899-41910" or "41899"; "" is 0, 0.
func ParsePorts(s string) (first, last int, err error) {
	if s = strings.TrimSpace(s); s == "" {
		return 0, 0, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	first, err = strconv.Atoi(strings.TrimSpace(from))
	if err == nil {
		last, err = strconv.Atoi(strings.TrimSpace(to))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("the ports %.40q must look like 41899-41910", s)
	}
	return first, last, nil
}

// Check refuses what no platform can be reached with. The error is a sentence.
func (a AutoGPT) Check() error {
	for _, f := range []struct{ name, value, secure, plain string }{
		{"web address", a.Web, "https", "http"}, {"API address", a.API, "https", "http"}, {"WebSocket address", a.WS, "wss", "ws"}} {
		u, err := url.Parse(f.value)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != f.secure && u.Scheme != f.plain {
			return fmt.Errorf("AutoGPT's %s must begin with %s:// and hold nothing but a host, a port and a path", f.name, f.secure)
		}
		if u.Scheme == f.plain && !Loopback(u.Hostname()) {
			return fmt.Errorf("AutoGPT's %s must begin with %s://; %s:// is for this computer only", f.name, f.secure, f.plain)
		}
	}
	if a.ClientID == "" || len(a.ClientID) > 200 || strings.ContainsAny(a.ClientID, " \t\r\n") {
		return errors.New("AutoGPT's client id must have 1 to 200 characters and no spaces")
	}
	if len(strings.Fields(a.Scope)) == 0 || len(a.Scope) > 500 {
		return errors.New("AutoGPT's scope must be one or more names with spaces between them")
	}
	if a.FirstPort < 1024 || a.LastPort > 65535 || a.LastPort < a.FirstPort || a.LastPort-a.FirstPort >= 100 {
		return errors.New("AutoGPT's ports must be 1 to 100 ports from 1024 up, as in 41899-41910")
	}
	return nil
}

// Loopback tells whether a host name means this computer.
func Loopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// HubAddress reads the address of an own hub as a person types it: with or
// without https://, a port, or slashes at its end. Without a scheme it is https,
// and http on this computer. The error says what an address looks like.
func HubAddress(typed string) (string, error) {
	s := strings.TrimSpace(typed)
	scheme, rest, has := strings.Cut(s, "://")
	if !has {
		scheme, rest = "", s
	}
	switch strings.ToLower(scheme) {
	case "", "https", "wss":
		scheme = "https"
		if !has {
			if u, err := url.Parse("http://" + rest); err == nil && Loopback(u.Hostname()) {
				scheme = "http"
			}
		}
	case "http", "ws":
		scheme = "http"
	default:
		return "", fmt.Errorf("it begins with https://, not with %.20s://", scheme)
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(rest, " \t\r\n") {
		return "", errors.New("it looks like https://hub.example")
	}
	u.Host = strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[scheme]; strings.HasSuffix(u.Host, port) {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u.String(), nil
}
