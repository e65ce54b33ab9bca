package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// Scopes of programs: what a person lets one ask for. The face for MCP clients
// has the same.
const (
	ScopeRead  = "machines:read"
	ScopeUse   = "machines:use"
	ScopeInput = "machines:input"
)

var (
	programScopes = []string{ScopeRead, ScopeUse, ScopeInput}
	// usualScopes are for a program that names none.
	usualScopes = []string{ScopeRead, ScopeUse}
)

// program is the client of that id as the store and the tokens need it. Who it
// is was looked up when it asked; its id is compared from then on.
func program(id string) *client {
	return &client{id: id, access: "lpx_", refresh: "lpy_", scopes: programScopes}
}

// known is a program that asks: what it calls itself, and where it may have its
// answers sent.
type knownProgram struct {
	id, name  string
	redirects []string
	at        string // where its description was read; "" when it signed itself up
	// unread: its description is where this hub does not get to. What it is called
	// is then a claim, and its answers go to the person's own computer alone: it
	// is no more than one that signed itself up.
	unread bool
}

// errUnknown is a program that is not known; its text is for a browser.
type errUnknown string

func (e errUnknown) Error() string { return string(e) }

// lookUp finds the program of a client_id: one that signed itself up, or one
// that is described at that address.
func (f *Face) lookUp(ctx context.Context, id string) (knownProgram, error) {
	if strings.HasPrefix(id, "https://") {
		return f.described(ctx, id)
	}
	p, err := f.store.Program(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return knownProgram{}, errUnknown("This hub does not know the program that asks.")
	}
	return knownProgram{id: id, name: p.Name, redirects: p.Redirects}, err
}

// Bounds of what a program says of itself.
const (
	maxRedirects   = 10
	maxDescription = 16 << 10
	maxClientURL   = 512
	describeWithin = 5 * time.Second
)

// description is what a program says of itself, when it signs up (RFC 7591) or
// at its address.
type description struct {
	ClientID      string   `json:"client_id,omitempty"`
	IssuedAt      int64    `json:"client_id_issued_at,omitempty"`
	Name          string   `json:"client_name,omitempty"`
	Redirects     []string `json:"redirect_uris"`
	GrantTypes    []string `json:"grant_types,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
	AuthMethod    string   `json:"token_endpoint_auth_method,omitempty"`
	Scope         string   `json:"scope,omitempty"`
}

// check says what is wrong with a description; its code is RFC 7591's.
func (d *description) check() (code string, err error) {
	if len(d.Redirects) == 0 || len(d.Redirects) > maxRedirects {
		return "invalid_redirect_uri", fmt.Errorf("redirect_uris must have 1 to %d addresses", maxRedirects)
	}
	for _, uri := range d.Redirects {
		if err := goodRedirect(uri); err != nil {
			return "invalid_redirect_uri", err
		}
	}
	if d.Name == "" {
		d.Name = "a program without a name"
	}
	if d.Name, err = label("client_name", d.Name); err != nil {
		return "invalid_client_metadata", err
	}
	if len(d.ResponseTypes) > 0 && !slices.Contains(d.ResponseTypes, "code") || len(d.GrantTypes) > 0 && !slices.Contains(d.GrantTypes, "authorization_code") {
		return "invalid_client_metadata", errors.New("only the authorization code flow is offered here")
	}
	return "", nil
}

// register lets a program sign itself up. It gets no secret: PKCE stands for
// it, and its person says yes each time.
func (f *Face) register(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var d description
	if kind != "application/json" || r.URL.RawQuery != "" || json.NewDecoder(r.Body).Decode(&d) != nil {
		oauthError(w, http.StatusBadRequest, "invalid_client_metadata", "The body must be one JSON object that describes the program.")
		return
	}
	if code, err := d.check(); err != nil {
		oauthError(w, http.StatusBadRequest, code, err.Error())
		return
	}
	from := limit.Network(from(r.Context()))
	if !f.signUps.Take(from) {
		w.Header().Set("Retry-After", "60")
		oauthError(w, http.StatusTooManyRequests, "temporarily_unavailable", tooMany)
		return
	}
	p, err := f.store.AddProgram(r.Context(), store.Program{Name: d.Name, Redirects: d.Redirects, Source: from})
	switch {
	case errors.Is(err, store.ErrFull):
		w.Header().Set("Retry-After", "3600")
		oauthError(w, http.StatusTooManyRequests, "temporarily_unavailable", "Too many programs have signed up here and were not let in; try again tomorrow.")
		return
	case err != nil:
		f.brokenAnswer(w, err)
		return
	}
	f.log.Info("Program signed up", "program", p.ID)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(description{ClientID: p.ID, IssuedAt: p.Created.Unix(), Name: p.Name, Redirects: p.Redirects,
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, AuthMethod: "none", Scope: strings.Join(programScopes, " ")})
}

// described reads what a program says of itself at its client_id, an https
// address. The hub goes there for anybody who asks: so it follows nothing, takes
// little, and reaches no address of a private network.
func (f *Face) described(ctx context.Context, id string) (knownProgram, error) {
	const wrong = errUnknown("The description of the program that asks can't be used.")
	u, err := url.Parse(id)
	if err != nil || len(id) > maxClientURL || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(id, "#") || u.Path == "" || u.Path == "/" || u.String() != id ||
		slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return knownProgram{}, wrong
	}
	if !f.fetches.Take(limit.Network(from(ctx))) {
		return knownProgram{}, errUnknown(tooMany)
	}
	ctx, cancel := context.WithTimeout(ctx, describeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return knownProgram{}, wrong
	}
	req.Header.Set("Accept", "application/json")
	resp, err := f.fetcher.Do(req)
	if err != nil {
		f.log.Info("A program's description could not be read", "host", u.Host, "err", err)
		if unreachable(err) && printable(u.Host) {
			return knownProgram{id: id, name: "a program of " + u.Host, unread: true}, nil
		}
		return knownProgram{}, errUnknown("The description of the program that asks can't be read from " + u.Host + ".")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDescription+1))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var d description
	if err != nil || len(data) > maxDescription || resp.StatusCode != http.StatusOK || kind != "application/json" && !strings.HasSuffix(kind, "+json") ||
		json.Unmarshal(data, &d) != nil || d.ClientID != id || d.AuthMethod != "" && d.AuthMethod != "none" {
		return knownProgram{}, wrong
	}
	if _, err := d.check(); err != nil {
		return knownProgram{}, wrong
	}
	return knownProgram{id: id, name: d.Name, redirects: d.Redirects, at: u.Host}, nil
}

// errPrivate is an address where the hub goes for nobody.
var errPrivate = errors.New("this address is of a private network")

// unreachable tells whether the hub did not get to an address, as one that has
// no way to the internet does not.
func unreachable(err error) bool {
	var lookup *net.DNSError
	var op *net.OpError
	var in net.Error
	return !errors.Is(err, errPrivate) && (errors.As(err, &lookup) || errors.As(err, &op) && op.Op == "dial" || errors.As(err, &in) && in.Timeout())
}

// newFetcher is a client for addresses that strangers name. reach tells which
// addresses it may reach.
func newFetcher(reach func(netip.Addr) bool) *http.Client {
	d := &net.Dialer{Timeout: describeWithin, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !reach(to.Addr().Unmap()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Client{Transport: &http.Transport{DialContext: d.DialContext, TLSHandshakeTimeout: describeWithin, ResponseHeaderTimeout: describeWithin,
		MaxResponseHeaderBytes: 16 << 10, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// special are addresses of the internet's form that are none: what they reach
// is a private network, or another address within them.
var special = func() (all []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "::/96",
	} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}()

// public tells whether an address is one of the internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}
