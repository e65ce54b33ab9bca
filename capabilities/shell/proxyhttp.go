package shell

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"localpc/tunnel/wire"
)

// http serves one request of an HTTP proxy's client: CONNECT, or one with a
// whole http:// address. Each has a connection of its own.
func (x *proxy) http(conn net.Conn, in *bufio.Reader, head *io.LimitedReader) {
	req, err := http.ReadRequest(in)
	if err != nil {
		switch {
		case head.N <= 0:
			answer(conn, in, http.StatusRequestHeaderFieldsTooLarge, "The head of this request is too long.")
		default:
			answer(conn, in, http.StatusBadRequest, "This is no request that a proxy understands.")
		}
		return
	}
	begun(conn, head)
	agent, _, _ := strings.Cut(req.UserAgent(), "/")
	if agent = strings.TrimSpace(agent); agent != "" {
		agent = programName(agent)
	}
	if req.Method == http.MethodConnect {
		host, port, err := hostPort(req.RequestURI, "")
		if err != nil {
			answer(conn, in, http.StatusBadRequest, sentence(err))
			return
		}
		there, err := x.tunnel(host, port, agent, tunnelled{conn, in}, func() error {
			_, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
			return err
		})
		if !there && err != nil {
			answer(conn, in, statusOf(err), sentence(err))
		}
		return
	}
	switch {
	case !req.URL.IsAbs():
		answer(conn, in, http.StatusBadRequest, "This is the way out of the container, not a page. Programs use it as their HTTP or SOCKS proxy.")
		return
	case req.URL.Scheme != "http":
		answer(conn, in, http.StatusBadRequest, "Only addresses that begin with http:// can be asked for in this way.")
		return
	}
	host, port, err := hostPort(req.URL.Host, "80")
	if err != nil {
		answer(conn, in, http.StatusBadRequest, sentence(err))
		return
	}
	p := newPlain(conn, in, req)
	there, err := x.tunnel(host, port, agent, p, func() error { return p.begin() })
	if !there && err != nil {
		answer(conn, in, statusOf(err), sentence(err))
	}
	p.end()
}

// hostPort takes HOST:PORT apart.
func hostPort(s, port string) (string, int, error) {
	u := url.URL{Host: s}
	host, given := u.Hostname(), u.Port()
	if given != "" {
		port = given
	}
	n, err := strconv.Atoi(port)
	if err != nil || host == "" || n < 1 || n > 65535 {
		return "", 0, wire.Errorf(wire.CodeInvalid, "This is no address that could be connected to.")
	}
	return host, n, nil
}

func statusOf(err error) int {
	switch wire.CodeOf(err) {
	case wire.CodeDenied, wire.CodeExpired, wire.CodeUndelivered, wire.CodePaused, wire.CodeStopped, wire.CodeCancelled, wire.CodeSessionNotOpen:
		return http.StatusForbidden
	case wire.CodeOverloaded:
		return http.StatusServiceUnavailable
	case wire.CodeInvalid:
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

// answer says why there is no connection.
func answer(conn net.Conn, in io.Reader, status int, text string) {
	_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, http.StatusText(status), len(text)+1, text)
	if err == nil {
		linger(conn, in)
	}
}

// linger takes what the client still sends for a moment: closing over unread
// bytes would take the answer away again.
func linger(conn net.Conn, in io.Reader) {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, in, 1<<20)
}

// tunnelled is a connection of whose input some may have been read ahead.
type tunnelled struct {
	net.Conn
	in *bufio.Reader
}

func (t tunnelled) Read(b []byte) (int, error) {
	if t.in.Buffered() == 0 {
		return t.Conn.Read(b)
	}
	return t.in.Read(b)
}

func (t tunnelled) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// plain is the client of a plain HTTP request: what is read from it is the
// request as its server takes it, and the answer is written through. It asks
// for a connection that ends with the answer, so that the client's next request
// is asked for anew, wherever it goes.
type plain struct {
	tunnelled
	req     *http.Request
	upgrade bool
	out     *io.PipeReader
	feed    *io.PipeWriter
	fed     chan struct{} // closed when nothing more is written to feed; nil before begin
}

func newPlain(conn net.Conn, in *bufio.Reader, req *http.Request) *plain {
	p := &plain{tunnelled: tunnelled{conn, in}, req: req, upgrade: req.Header.Get("Upgrade") != ""}
	p.out, p.feed = io.Pipe()
	return p
}

func (p *plain) Read(b []byte) (int, error) { return p.out.Read(b) }

func (p *plain) Close() error {
	p.out.Close()
	return p.Conn.Close()
}

// begin starts to feed the request.
func (p *plain) begin() error {
	p.fed = make(chan struct{})
	go func() {
		defer close(p.fed)
		p.feed.CloseWithError(p.send())
	}()
	return nil
}

// end waits until the request is fed, which the end of the connection ends.
func (p *plain) end() {
	if p.fed != nil {
		p.Close()
		<-p.fed
	}
}

// hop are the fields that are for the proxy alone.
var hop = []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Te", "Expect", "Content-Length"}

func (p *plain) send() error {
	h := p.req.Header
	expects := strings.EqualFold(h.Get("Expect"), "100-continue")
	named := h.Values("Connection")
	for _, f := range hop {
		h.Del(f)
	}
	for _, v := range named {
		for f := range strings.SplitSeq(v, ",") {
			if f = strings.TrimSpace(f); !strings.EqualFold(f, "Upgrade") {
				h.Del(f)
			}
		}
	}
	h.Set("Connection", "close")
	if p.upgrade {
		h.Set("Connection", "Upgrade")
	}
	if expects {
		if _, err := io.WriteString(p.Conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	chunked := len(p.req.TransferEncoding) > 0
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.%d\r\nHost: %s\r\n", p.req.Method, p.req.URL.RequestURI(), min(p.req.ProtoMinor, 1), p.req.Host)
	switch {
	case chunked:
		h.Set("Transfer-Encoding", "chunked")
	case p.req.ContentLength > 0 || p.req.Method == http.MethodPost || p.req.Method == http.MethodPut:
		h.Set("Content-Length", strconv.FormatInt(max(p.req.ContentLength, 0), 10))
	}
	_ = h.Write(&head)
	head.WriteString("\r\n")
	if _, err := io.WriteString(p.feed, head.String()); err != nil {
		return err
	}
	switch {
	case p.upgrade:
		_, err := io.Copy(p.feed, p.tunnelled)
		return err
	case chunked:
		w := httputil.NewChunkedWriter(p.feed)
		if _, err := io.Copy(w, p.req.Body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if _, err := io.WriteString(p.feed, "\r\n"); err != nil {
			return err
		}
	default:
		if _, err := io.Copy(p.feed, p.req.Body); err != nil {
			return err
		}
	}
	// The end of what this reads is the client's hanging up: many a server takes
	// an earlier one as the wish to stop.
	_, err := io.Copy(io.Discard, p.tunnelled)
	return err
}
