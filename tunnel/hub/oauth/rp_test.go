package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"
)

// zitadel's own relying party finds everything from the metadata, checks the ID
// token's signature, and refreshes and revokes.
func TestRelyingParty(t *testing.T) {
	h := start(t, func(o *Options) { o.Now = nil })
	nonce := "n-1"
	party, err := rp.NewRelyingPartyOIDC(h.ctx(), h.url, ClientID, "", redirect, []string{"openid", "offline_access", "machine"},
		rp.WithHTTPClient(h.http), rp.WithSigningAlgsFromDiscovery(), rp.WithAuthStyle(oauth2.AuthStyleInParams),
		rp.WithVerifierOpts(rp.WithNonce(func(context.Context) string { return nonce })))
	if err != nil {
		t.Fatal(err)
	}
	verifier := oauth2.GenerateVerifier()
	u := party.OAuthConfig().AuthCodeURL("s", append(about("m-1"), oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", "n-1"))...)
	code := h.approve(h.ask(u)).Get("code")
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](h.ctx(), code, party, rp.WithCodeVerifier(verifier))
	if err != nil {
		t.Fatal(err)
	}
	c := tokens.IDTokenClaims
	if c.Subject != "owner" || c.Issuer != h.url || c.Nonce != "n-1" || !slices.Equal(c.Audience, []string{ClientID}) {
		t.Errorf("claims %+v", c)
	}
	nonce = "" // an ID token of a refresh has none
	next, err := rp.RefreshTokens[*oidc.IDTokenClaims](h.ctx(), party, tokens.RefreshToken, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if !h.live(next.AccessToken) || next.IDTokenClaims.Subject != "owner" {
		t.Errorf("refreshed %+v", next)
	}
	if err := rp.RevokeToken(h.ctx(), party, next.RefreshToken, "refresh_token"); err != nil {
		t.Fatal(err)
	}
	if h.live(next.AccessToken) {
		t.Error("it lives on after it was revoked")
	}
}

func TestMetadata(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		resp, err := h.http.Get(h.url + path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		err = json.NewDecoder(resp.Body).Decode(&m)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		for field, want := range map[string]any{
			"issuer": h.url, "authorization_endpoint": h.url + "/oauth/authorize", "token_endpoint": h.url + "/oauth/token",
			"revocation_endpoint": h.url + "/oauth/revoke", "device_authorization_endpoint": h.url + "/oauth/device_authorization",
			"jwks_uri": h.url + "/oauth/keys", "authorization_response_iss_parameter_supported": true,
			"code_challenge_methods_supported": []any{"S256"}, "response_types_supported": []any{"code"},
			"token_endpoint_auth_methods_supported": []any{"none"}, "scopes_supported": []any{"openid", "offline_access", "machine"},
			"grant_types_supported": []any{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"},
		} {
			got, _ := json.Marshal(m[field])
			exp, _ := json.Marshal(want)
			if string(got) != string(exp) {
				t.Errorf("%s: %s is %s, want %s", path, field, got, exp)
			}
		}
	}
	for path, method := range map[string]string{"/oauth/token": "GET", "/oauth/revoke": "GET", "/oauth/device_authorization": "GET", "/oauth/authorize": "POST",
		"/api/oauth/token": "GET", "/auth/authorize": "POST"} {
		req, _ := http.NewRequestWithContext(t.Context(), method, h.url+path, nil)
		resp, err := h.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", method, path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/oauth/", "/oauth/introspect", "/oauth/healthz", "/.well-known/other", "/auth/", "/api/oauth/other"} {
		resp, err := h.http.Get(h.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}
