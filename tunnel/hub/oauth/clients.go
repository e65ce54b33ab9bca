package oauth

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// ClientID is our own client. It is public, as AutoGPT's is: it has no secret,
// PKCE stands for it.
const ClientID = "localpc"

// ScopeMachine lets a token open a tunnel; msg.Scope is AutoGPT's name of it.
const ScopeMachine = "machine"

// client is what the store and the pages need to know of one.
type client struct {
	id, name        string
	access, refresh string // prefixes of its tokens
	scopes          []string
	redirect        func(uri string) bool
}

var (
	own = &client{id: ClientID, name: "Local PC Executor", access: "lpa_", refresh: "lpr_",
		scopes: []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess, ScopeMachine}, redirect: loopback}
	autogpt = &client{id: msg.ClientID, name: "AutoGPT local executor", access: "agpt_xt_", refresh: "agpt_rt_",
		scopes: []string{msg.Scope}, redirect: autogptRedirect}
)

func clientNamed(id string) *client {
	for _, c := range []*client{own, autogpt} {
		if c.id == id {
			return c
		}
	}
	return nil
}

// loopback takes http://127.0.0.1:PORT/callback and http://[::1]:PORT/callback,
// written in exactly this way (RFC 8252).
func loopback(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil {
		return false
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 || u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" {
		return false
	}
	return uri == "http://"+net.JoinHostPort(u.Hostname(), strconv.FormatUint(port, 10))+"/callback"
}

// autogptRedirect takes the twelve strings that AutoGPT registered.
func autogptRedirect(uri string) bool {
	for port := msg.FirstPort; port <= msg.LastPort; port++ {
		if uri == fmt.Sprintf("http://localhost:%d/callback", port) {
			return true
		}
	}
	return false
}

var (
	machinePattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	matchPattern     = regexp.MustCompile(`^[0-9]{4}$`)
	challengePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	verifierPattern  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
)

// Bounds of what anybody may have the hub keep and show, in bytes.
const (
	maxState = 1024
	maxNonce = 256
	maxLabel = 240
)

// describe reads what the computer says of itself into r. The error is a
// sentence for whoever wrote the client.
func describe(form url.Values, match bool, r *store.SignInRequest) error {
	r.Machine = form.Get("machine_id")
	if len(r.Machine) > wire.MaxID || !machinePattern.MatchString(r.Machine) {
		return fmt.Errorf("machine_id must be 1 to %d letters, digits, dots, colons, dashes or underscores", wire.MaxID)
	}
	var err error
	if r.MachineName, err = label("machine_name", form.Get("machine_name")); err != nil {
		return err
	}
	if r.System, err = label("machine_system", form.Get("machine_system")); err != nil {
		return err
	}
	if match {
		if r.Match = form.Get("match"); !matchPattern.MatchString(r.Match) {
			return fmt.Errorf("match must be the four digits that the computer shows")
		}
	}
	return nil
}

// label takes text for a person's eyes, as it is: who shows it writes out what
// cannot be seen.
func label(field, s string) (string, error) {
	switch {
	case strings.TrimSpace(s) == "":
		return "", fmt.Errorf("%s is missing", field)
	case len(s) > maxLabel || !utf8.ValidString(s):
		return "", fmt.Errorf("%s must be text of at most %d bytes", field, maxLabel)
	}
	return strings.TrimSpace(s), nil
}

// ownClient is what the library asks of our client.
type ownClient struct{}

var _ op.Client = ownClient{}

func (ownClient) GetID() string { return own.id }

// RedirectURIs are compared without their port, and only after loopback.
func (ownClient) RedirectURIs() []string {
	return []string{"http://127.0.0.1/callback", "http://[::1]/callback"}
}
func (ownClient) PostLogoutRedirectURIs() []string    { return nil }
func (ownClient) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (ownClient) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (ownClient) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (ownClient) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}
func (ownClient) LoginURL(string) string              { return "" }
func (ownClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeBearer }
func (ownClient) IDTokenLifetime() time.Duration      { return 0 }
func (ownClient) DevMode() bool                       { return false }
func (ownClient) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}
func (ownClient) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}
func (ownClient) IsScopeAllowed(scope string) bool     { return slices.Contains(own.scopes, scope) }
func (ownClient) IDTokenUserinfoClaimsAssertion() bool { return false }
func (ownClient) ClockSkew() time.Duration             { return 0 }

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
