package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
)

// The ways in which a sign-in ends without tokens. Other errors are those of
// the network.
var (
	ErrNotAHub  = errors.New("there is no hub at this address")
	ErrDeclined = errors.New("the sign-in was declined")
	ErrExpired  = errors.New("the sign-in was not finished in time")
	ErrNoCodes  = errors.New("this hub does not sign in by code")
	ErrNoPort   = errors.New("every port that a sign-in may return to is in use")
	ErrRefused  = errors.New("the hub refused the sign-in")
)

// MovedError is a hub that calls itself by another address.
type MovedError struct{ Address string }

func (e *MovedError) Error() string { return "the hub's address is " + e.Address }

// Server is where and as whom this machine signs in.
type Server struct {
	Issuer                                string // "" where it does not name itself
	NamesIssuer                           bool   // in each answer by the browser (RFC 9207)
	AuthorizeURL, TokenURL                string
	DeviceURL, RevokeURL                  string // "" where there is none
	Client                                string
	Scopes                                []string
	RedirectHost                          string // "127.0.0.1" or "localhost"
	FirstPort, LastPort                   int    // of the redirect; 0: any
	MachineID, MachineName, MachineSystem string // told to the hub; "" are left out
}

// ownClient is this program's name at our own hubs.
const ownClient = "localpc"

const wellKnown = "/.well-known/oauth-authorization-server"

// maxMetadata bounds what a hub may say about itself, in bytes.
const maxMetadata = 64 << 10

// OwnHub asks the hub at an address how to sign in (RFC 8414). The address is
// http or https, without a slash at its end.
func OwnHub(ctx context.Context, c *http.Client, address string) (Server, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+wellKnown, nil)
	if err != nil {
		return Server{}, fmt.Errorf("%w: %w", ErrNotAHub, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return Server{}, err
	}
	defer resp.Body.Close()
	if to, err := resp.Location(); err == nil && to.Host != "" {
		if base, ok := strings.CutSuffix(to.Path, wellKnown); ok {
			return Server{}, moved(to.Scheme + "://" + to.Host + base)
		}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return Server{}, err
	}
	var m struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
		Device    string `json:"device_authorization_endpoint"`
		Revoke    string `json:"revocation_endpoint"`
		Names     bool   `json:"authorization_response_iss_parameter_supported"`
	}
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return Server{}, fmt.Errorf("the hub answered %s", resp.Status)
	case resp.StatusCode != http.StatusOK || json.Unmarshal(data, &m) != nil || m.Authorize == "" || m.Token == "":
		return Server{}, fmt.Errorf("%w (it answered %s)", ErrNotAHub, resp.Status)
	}
	m.Issuer = strings.TrimSuffix(m.Issuer, "/")
	if !sameAddress(m.Issuer, address) {
		return Server{}, moved(m.Issuer)
	}
	// A hub does all of it itself: nobody is sent, and nothing that proves this
	// computer goes, anywhere else.
	for _, e := range []string{m.Authorize, m.Token, m.Device, m.Revoke} {
		if e != "" && !at(e, address) {
			return Server{}, fmt.Errorf("%w: it names the address %.100q", ErrNotAHub, e)
		}
	}
	return Server{Issuer: m.Issuer, NamesIssuer: m.Names, AuthorizeURL: m.Authorize, TokenURL: m.Token, DeviceURL: m.Device, RevokeURL: m.Revoke,
		Client: ownClient, Scopes: []string{"openid", "offline_access", "machine"}, RedirectHost: "127.0.0.1"}, nil
}

// moved is a hub's word that its address is another one, if that can be one.
func moved(to string) error {
	u, err := url.Parse(to)
	if err != nil || len(to) > 300 || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: it calls itself %.100q", ErrNotAHub, to)
	}
	return &MovedError{to}
}

// at tells whether a page lies at an address: same scheme, host and port.
func at(page, address string) bool {
	p, err := url.Parse(page)
	a, aerr := url.Parse(address)
	if err != nil || aerr != nil || p.User != nil {
		return false
	}
	return sameAddress(p.Scheme+"://"+p.Host, a.Scheme+"://"+a.Host)
}

// sameAddress tells whether two addresses are one: the case of the host and a
// port that the scheme implies anyway do not count.
func sameAddress(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	if errX != nil || errY != nil {
		return false
	}
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return x.Scheme == y.Scheme && strings.EqualFold(x.Hostname(), y.Hostname()) && port(x) == port(y) &&
		strings.TrimSuffix(x.Path, "/") == strings.TrimSuffix(y.Path, "/")
}

// AutoGPT is the sign-in of an AutoGPT platform (wire 1.1, section 10). The
// bases have no slash at their ends.
func AutoGPT(web, api, client, scope string, firstPort, lastPort int) Server {
	return Server{AuthorizeURL: web + "/auth/authorize", TokenURL: api + "/api/oauth/token", RevokeURL: api + "/api/oauth/revoke",
		Client: client, Scopes: strings.Fields(scope), RedirectHost: "localhost", FirstPort: firstPort, LastPort: lastPort}
}

func (s Server) config() *oauth2.Config {
	return &oauth2.Config{ClientID: s.Client, Scopes: s.Scopes, Endpoint: oauth2.Endpoint{AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL,
		DeviceAuthURL: s.DeviceURL, AuthStyle: oauth2.AuthStyleInParams}}
}

// aboutMachine is what the hub's page shows of this computer.
func (s Server) aboutMachine() []oauth2.AuthCodeOption {
	var out []oauth2.AuthCodeOption
	for _, p := range [][2]string{{"machine_id", s.MachineID}, {"machine_name", s.MachineName}, {"machine_system", s.MachineSystem}} {
		if p[1] != "" {
			out = append(out, oauth2.SetAuthURLParam(p[0], p[1]))
		}
	}
	return out
}

// tokens completes what a token endpoint gave with where it came from.
func (s Server) tokens(tok *oauth2.Token, c *call) Tokens {
	t := tokensOf(tok, c.began, c.answered)
	t.Client, t.TokenURL, t.RevokeURL = s.Client, s.TokenURL, s.RevokeURL
	return t
}

// call is the transport of one call, and remembers how far it got.
type call struct {
	ctx      context.Context
	base     http.RoundTripper
	limit    time.Duration // here, since package oauth2 leaves some answers open
	sent     atomic.Bool   // some of the request may have reached the hub
	began    time.Time     // when it was sent
	answered time.Time     // when, by the clock of whoever answered; zero: it did not say
	now      func() time.Time
}

// oauth2Context has package oauth2 make its calls through c.
func oauth2Context(ctx context.Context, hc *http.Client, now func() time.Time) (context.Context, *call) {
	c := &call{ctx: ctx, base: hc.Transport, limit: hc.Timeout, now: now}
	if c.limit == 0 {
		c.limit = time.Minute
	}
	if c.base == nil {
		c.base = http.DefaultTransport
	}
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: c, CheckRedirect: hc.CheckRedirect}), c
}

func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	c.began = c.now()
	// Package oauth2 makes some of its requests without a context.
	ctx, cancel := context.WithTimeout(r.Context(), c.limit)
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	trace := &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Store(true) }}
	resp, err := c.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		cancel()
		return nil, err
	}
	// Read at once: only a whole answer counts.
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	resp.Body.Close()
	cancel()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	c.answered, _ = http.ParseTime(resp.Header.Get("Date"))
	return resp, nil
}

// revoke gives one token back; success is a 2xx answer.
func revoke(ctx context.Context, hc *http.Client, t Tokens, token, hint string) error {
	form := url.Values{"token": {token}, "token_type_hint": {hint}, "client_id": {t.Client}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxMetadata))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("revoke: the hub answered %s", resp.Status)
	}
	return nil
}

// Revoke gives a sign-in back to its hub: the refresh token, and with it the
// sign-in, then the access token. The token of a pairing line can't be.
func Revoke(ctx context.Context, hc *http.Client, t Tokens) error {
	if t.RevokeURL == "" {
		return nil
	}
	var errs []error
	if t.Refresh != "" {
		errs = append(errs, revoke(ctx, hc, t, t.Refresh, "refresh_token"))
	}
	return errors.Join(append(errs, revoke(ctx, hc, t, t.Access, "access_token"))...)
}
