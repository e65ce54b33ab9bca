package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"

	"localpc/tunnel/wire/bulk"
)

// Network is how this computer reaches hubs, by socket and by call alike:
// through the proxies that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, trusting
// the system's authorities and those of SSL_CERT_FILE and of the settings. Safe
// for concurrent use. The zero value uses neither a proxy nor more authorities.
type Network struct {
	proxy func(*url.URL) (*url.URL, error)
	roots *x509.CertPool // nil: the system's
}

// NewNetwork reads the environment once. caFile is a PEM file with authorities
// to trust besides the system's, or "". The error is a sentence.
func NewNetwork(caFile string) (*Network, error) {
	n := &Network{proxy: httpproxy.FromEnvironment().ProxyFunc()}
	for _, f := range []struct{ what, path string }{{"SSL_CERT_FILE", os.Getenv("SSL_CERT_FILE")}, {"ca_file", caFile}} {
		if f.path == "" {
			continue
		}
		pem, err := os.ReadFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("the certificates that %s names can't be read: %w", f.what, err)
		}
		if n.roots == nil {
			if n.roots, err = x509.SystemCertPool(); err != nil {
				n.roots = x509.NewCertPool()
			}
		}
		if !n.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s, which %s names, holds no certificate in PEM form", f.path, f.what)
		}
	}
	return n, nil
}

// systemNetwork is that of the environment at the start, for all who want no
// other.
var systemNetwork = sync.OnceValues(func() (*Network, error) { return NewNetwork("") })

func (n *Network) tls() *tls.Config { return &tls.Config{RootCAs: n.roots} }

// proxyFor is the proxy for an address of the scheme http, https, ws or wss;
// nil for none.
func (n *Network) proxyFor(u *url.URL) (*url.URL, error) {
	if n.proxy == nil {
		return nil, nil
	}
	to := *u
	switch u.Scheme {
	case "ws":
		to.Scheme = "http"
	case "wss":
		to.Scheme = "https"
	}
	p, err := n.proxy(&to)
	if err != nil {
		return nil, &ProxyError{Proxy: "that the environment names", Variable: variable(u), cause: err}
	}
	return p, nil
}

// variable is the one of the environment that names the proxy for an address.
func variable(u *url.URL) string {
	if u.Scheme == "http" || u.Scheme == "ws" {
		return "HTTP_PROXY"
	}
	return "HTTPS_PROXY"
}

// ProxyName is the proxy that an address is reached through, as HOST:PORT
// without its log-in; "" for none.
func (n *Network) ProxyName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	p, err := n.proxyFor(u)
	if err != nil || p == nil {
		return ""
	}
	return p.Host
}

// Client makes calls over this network: bounded, each on a connection of its
// own, and without following redirects.
func (n *Network) Client() *http.Client {
	t := &http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return n.proxyFor(r.URL) },
		TLSClientConfig:     n.tls(),
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 15 * time.Second,
		DisableKeepAlives:   true,
		OnProxyConnectResponse: func(_ context.Context, p *url.URL, _ *http.Request, resp *http.Response) error {
			return proxyStatus(p, "HTTPS_PROXY", resp) // a plain call needs no CONNECT
		},
	}
	return &http.Client{Transport: &throughProxy{n, t}, Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// throughProxy tells a proxy's refusal of a plain call from a hub's answer.
type throughProxy struct {
	n    *Network
	base http.RoundTripper
}

func (t *throughProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	p, perr := t.n.proxyFor(r.URL)
	if perr != nil || p == nil {
		return resp, err
	}
	var op *net.OpError
	var refused *ProxyError
	if errors.As(err, &op) && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")) && !errors.As(err, &refused) {
		return nil, &ProxyError{Proxy: p.Host, Variable: variable(r.URL), cause: err}
	}
	if err == nil && resp.StatusCode == http.StatusProxyAuthRequired {
		resp.Body.Close()
		return nil, proxyStatus(p, variable(r.URL), resp)
	}
	return resp, err
}

// Dial opens a WebSocket to an address of the scheme ws or wss. Where the
// server answers with something else, the response comes with the error.
func (n *Network) Dial(ctx context.Context, address string, header http.Header, subprotocols ...string) (*websocket.Conn, *http.Response, error) {
	return n.dial(ctx, websocket.Dialer{Subprotocols: subprotocols, WriteBufferSize: bulk.WriteBuffer, WriteBufferPool: bulk.Buffers}, address, header)
}

func (n *Network) dial(ctx context.Context, d websocket.Dialer, address string, header http.Header) (*websocket.Conn, *http.Response, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	p, err := n.proxyFor(u)
	if err != nil {
		return nil, nil, err
	}
	d.HandshakeTimeout, d.TLSClientConfig = 15*time.Second, n.tls()
	connect := (&net.Dialer{}).DialContext
	if p != nil {
		// The WebSocket library's own proxies speak no TLS, and lose the status.
		connect = func(ctx context.Context, _, to string) (net.Conn, error) { return n.tunnel(ctx, p, variable(u), to) }
	}
	// Nor does it look at ctx while it waits for an answer.
	stop := func() bool { return true }
	d.NetDialContext = func(dialCtx context.Context, network, to string) (net.Conn, error) {
		conn, err := connect(dialCtx, network, to)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	conn, resp, err := d.DialContext(ctx, address, header)
	stop()
	return conn, resp, err
}

// Through is the proxy that this computer uses for a host and port that is
// not a hub's: its name without a log-in, and how to connect through it; "" for
// none.
func (n *Network) Through(host string, port int) (string, func(context.Context) (net.Conn, error)) {
	to := net.JoinHostPort(host, strconv.Itoa(port))
	u := &url.URL{Scheme: "https", Host: to}
	if port == 80 {
		u.Scheme = "http"
	}
	p, err := n.proxyFor(u)
	if err != nil || p == nil {
		return "", nil
	}
	return p.Host, func(ctx context.Context) (net.Conn, error) { return n.tunnel(ctx, p, variable(u), to) }
}

// readAhead is a connection of which more was read than the proxy's answer.
type readAhead struct {
	net.Conn
	in *bufio.Reader
}

func (r readAhead) Read(b []byte) (int, error) { return r.in.Read(b) }

// CloseWrite passes the end of what is sent on, where the connection can.
func (r readAhead) CloseWrite() error {
	if c, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// tunnel opens a connection to host:port through the proxy that a variable of
// the environment names.
func (n *Network) tunnel(ctx context.Context, p *url.URL, variable, to string) (net.Conn, error) {
	if p.Scheme == "socks5" || p.Scheme == "socks5h" {
		d, err := proxy.FromURL(p, &net.Dialer{})
		if err == nil {
			var conn net.Conn
			if conn, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", to); err == nil {
				return conn, nil
			}
		}
		return nil, &ProxyError{Proxy: p.Host, Variable: variable, cause: err}
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.Scheme]
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(p.Hostname(), port))
	if err != nil {
		return nil, &ProxyError{Proxy: p.Host, Variable: variable, cause: err}
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	conn := raw
	if p.Scheme == "https" {
		c := n.tls()
		c.ServerName = p.Hostname()
		conn = tls.Client(raw, c)
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: http.Header{}}
	if p.User != nil {
		password, _ := p.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.User.Username()+":"+password)))
	}
	err = req.Write(conn)
	var resp *http.Response
	in := bufio.NewReader(conn)
	if err == nil {
		resp, err = http.ReadResponse(in, req)
	}
	if err != nil {
		conn.Close()
		return nil, &ProxyError{Proxy: p.Host, Variable: variable, cause: err}
	}
	if err := proxyStatus(p, variable, resp); err != nil {
		conn.Close()
		return nil, err
	}
	if in.Buffered() > 0 {
		return readAhead{conn, in}, nil
	}
	return conn, nil
}

// proxyStatus is a proxy's refusal, or nil.
func proxyStatus(p *url.URL, variable string, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: p.Host, Variable: variable, Status: resp.StatusCode, LoggedIn: p.User != nil}
}

// ProxyError is a proxy that does not let this computer through.
type ProxyError struct {
	Proxy    string // HOST:PORT
	Variable string // of the environment that names it
	Status   int    // what it answered; 0: it could not be asked
	LoggedIn bool   // a name and a password were given
	cause    error
}

func (e *ProxyError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("proxy %s: %v", e.Proxy, e.cause)
	}
	return fmt.Sprintf("proxy %s answered with status %d", e.Proxy, e.Status)
}

func (e *ProxyError) Unwrap() error { return e.cause }

func (e *ProxyError) sentence() string {
	switch {
	case e.Status == http.StatusProxyAuthRequired && e.LoggedIn:
		return "The proxy " + e.Proxy + " does not accept the name and the password that " + e.Variable + " holds. Mend them, and start this program again."
	case e.Status == http.StatusProxyAuthRequired:
		return "The proxy " + e.Proxy + " asks for a log-in. Put it into " + e.Variable + ", as in http://NAME:PASSWORD@" + e.Proxy + ", and start this program again."
	case e.Status == http.StatusForbidden:
		return "The proxy " + e.Proxy + " does not let this computer reach the hub. Whoever runs the proxy can allow it."
	case e.Status != 0:
		return fmt.Sprintf("The proxy %s could not reach the hub (it answered %d). Is the hub running, and its address right?", e.Proxy, e.Status)
	}
	return "The proxy " + e.Proxy + " does not answer. Is it right in " + e.Variable + ", and the network connected?"
}

// Reason says in one plain sentence why a hub could not be reached, and what
// mends it; "" where the error tells nothing about that.
func Reason(err error) string {
	var refused *ProxyError
	var dns *net.DNSError
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &refused):
		return refused.sentence()
	case errors.As(err, &unknown):
		return "The hub's certificate was signed by an authority that this computer does not know. If that is your own, name its certificate in ca_file in the settings (or in SSL_CERT_FILE), and start this program again."
	case errors.As(err, &name):
		return "The hub's certificate is for another name than the address has. Use the name that the certificate is for."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The hub's certificate is not valid at this time. Is this computer's clock right? If it is, the hub needs a new one."
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "The hub's certificate can't be used. Whoever runs the hub can mend it."
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "The hub does not encrypt its connections there. If it is on this computer or in your own network, use its address with http:// in front."
	case errors.As(err, &dns):
		return "The hub's address could not be found. Is it right, and the network connected?"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "The hub did not answer in time. Is it running, and the network connected?"
	case errors.As(err, &op) && op.Op == "dial":
		return "The hub does not answer. Is it running, and its address right?"
	}
	return ""
}
