package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// server answers what the library has parsed. The tokens are the store's, so of
// the library it uses the protocol, not the token formats.
type server struct {
	op.UnimplementedServer
	*Face
}

var _ op.Server = server{}

// broken hides the cause from the client; the library logs it.
func broken(err error) error {
	return oidc.ErrServerError().WithDescription("Something went wrong in the hub; its log says what.").WithParent(err)
}

type fromKey struct{}

// from is who sent the request that ctx belongs to.
func from(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(fromKey{}).(netip.Addr)
	return a
}

// refused counts a wrong token or code of a program against its address.
func (s server) refused(ctx context.Context, err error) error {
	s.failures.Take(limit.Network(from(ctx)))
	return err
}

const tooMany = "Too many attempts; try again in a minute."

// add keeps a request for the person, who has DeviceTTL to answer it.
func (f *Face) add(ctx context.Context, c *client, r *store.SignInRequest, deviceCode, userCode string) error {
	now, from := f.now(), from(ctx)
	if !f.asks.Take(limit.Network(from)) {
		return store.ErrFull
	}
	r.ID, r.Client, r.Until = random(16), c.id, now.Add(f.o.DeviceTTL)
	r.Address, r.Source = addressText(from), limit.Network(from)
	return f.store.AddSignInRequest(ctx, now, *r, deviceCode, userCode, f.o.DevicePoll)
}

// scopesFor keeps those of the client's scopes that were asked for.
func scopesFor(c *client, asked []string, needed string) ([]string, bool) {
	var out []string
	for _, s := range c.scopes {
		if slices.Contains(asked, s) {
			out = append(out, s)
		}
	}
	return out, slices.Contains(out, needed)
}

func (s server) VerifyAuthRequest(_ context.Context, r *op.Request[oidc.AuthRequest]) (*op.ClientRequest[oidc.AuthRequest], error) {
	if r.Data.ClientID != own.id {
		return nil, oidc.ErrInvalidRequestRedirectURI().WithDescription("This hub does not know the program that asks.")
	}
	if !own.redirect(r.Data.RedirectURI) {
		return nil, oidc.ErrInvalidRequestRedirectURI().WithDescription("The program asks for an answer at an address that this hub does not send answers to.")
	}
	return &op.ClientRequest[oidc.AuthRequest]{Request: r, Client: ownClient{}}, nil
}

func (s server) Authorize(ctx context.Context, r *op.ClientRequest[oidc.AuthRequest]) (*op.Redirect, error) {
	q := r.Data
	scopes, ok := scopesFor(own, q.Scopes, ScopeMachine)
	switch {
	case q.RequestParam != "" || r.Form.Has("request_uri"):
		return nil, oidc.ErrRequestNotSupported()
	case q.ResponseMode != "" && q.ResponseMode != oidc.ResponseModeQuery:
		return nil, oidc.ErrInvalidRequest().WithDescription("response_mode must be query")
	case slices.Contains(q.Prompt, oidc.PromptNone):
		return nil, oidc.ErrInteractionRequired().WithDescription("A person has to answer.")
	case q.CodeChallengeMethod != oidc.CodeChallengeMethodS256 || !challengePattern.MatchString(q.CodeChallenge):
		return nil, oidc.ErrInvalidRequest().WithDescription("PKCE with code_challenge_method S256 is required")
	case len(q.State) > maxState || len(q.Nonce) > maxNonce:
		return nil, oidc.ErrInvalidRequest().WithDescription("state or nonce is too long")
	case !ok:
		return nil, oidc.ErrInvalidScope().WithDescription("the scope %s is required", ScopeMachine)
	}
	req := store.SignInRequest{Scopes: scopes, Redirect: q.RedirectURI, State: q.State, Nonce: q.Nonce, Challenge: q.CodeChallenge}
	if err := describe(r.Form, true, &req); err != nil {
		return nil, oidc.ErrInvalidRequest().WithDescription("%s", err)
	}
	if err := s.add(ctx, own, &req, "", ""); err != nil {
		if errors.Is(err, store.ErrFull) {
			return nil, &oidc.Error{ErrorType: "temporarily_unavailable", Description: tooMany}
		}
		return nil, broken(err)
	}
	return op.NewRedirect(s.pairPage(req.ID)), nil
}

func (f *Face) pairPage(id string) string {
	return f.o.Issuer + "/pair?" + url.Values{"request": {id}}.Encode()
}

func (s server) VerifyClient(ctx context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	if r.Data.ClientID != own.id || r.Data.ClientSecret != "" || r.Data.ClientAssertion != "" {
		return nil, s.refused(ctx, op.NewStatusError(oidc.ErrInvalidClient(), http.StatusUnauthorized))
	}
	return ownClient{}, nil
}

func (s server) DeviceAuthorization(ctx context.Context, r *op.ClientRequest[oidc.DeviceAuthorizationRequest]) (*op.Response, error) {
	scopes, ok := scopesFor(own, r.Data.Scopes, ScopeMachine)
	if !ok {
		return nil, oidc.ErrInvalidScope().WithDescription("the scope %s is required", ScopeMachine)
	}
	req := store.SignInRequest{Scopes: scopes, Device: true}
	if err := describe(r.Form, false, &req); err != nil {
		return nil, oidc.ErrInvalidRequest().WithDescription("%s", err)
	}
	userCode, err := op.NewUserCode([]rune(op.CharSetBase20), codeLength, codeLength/2)
	if err != nil {
		return nil, broken(err)
	}
	deviceCode := random(32)
	if err := s.add(ctx, own, &req, deviceCode, strings.ReplaceAll(userCode, "-", "")); err != nil {
		if errors.Is(err, store.ErrFull) {
			return nil, op.NewStatusError(&oidc.Error{ErrorType: "temporarily_unavailable", Description: tooMany}, http.StatusTooManyRequests)
		}
		return nil, broken(err)
	}
	return op.NewResponse(&oidc.DeviceAuthorizationResponse{
		DeviceCode: deviceCode, UserCode: userCode, VerificationURI: s.o.Issuer + "/pair",
		ExpiresIn: int(s.o.DeviceTTL / time.Second), Interval: max(1, int(s.o.DevicePoll/time.Second)),
	}), nil
}

// proves checks what a client brings along with its code.
func proves(r store.SignInRequest, redirect, verifier string) error {
	if redirect != r.Redirect {
		return errors.New("redirect_uri is not the one of the request")
	}
	if !verifierPattern.MatchString(verifier) {
		return errors.New("code_verifier must be 43 to 128 letters, digits, dots, dashes, underscores or tildes")
	}
	return op.AuthorizeCodeChallenge(verifier, &oidc.CodeChallenge{Challenge: r.Challenge, Method: oidc.CodeChallengeMethodS256})
}

// errUnproven is the answer to a code whose holder cannot show that it asked
// for it.
var errUnproven = errors.New("the code does not belong to this request")

// redeem exchanges a code. The error is store.ErrNotFound, store.ErrReused,
// errUnproven, store.ErrTaken or a broken store.
func (f *Face) redeem(ctx context.Context, c *client, code, redirect, verifier string) (store.Issued, error) {
	issued, err := f.store.RedeemCode(ctx, f.now(), c.id, code, func(r store.SignInRequest) (store.Pair, error) {
		if err := proves(r, redirect, verifier); err != nil {
			return store.Pair{}, fmt.Errorf("%w: %w", errUnproven, err)
		}
		return f.pair(c, r.Scopes), nil
	})
	switch {
	case err == nil:
		f.signedIn(issued)
	case errors.Is(err, store.ErrReused):
		f.reused(issued.SignIn, "its code was used twice")
	}
	return issued, err
}

// refresh exchanges a refresh token. The error is store.ErrNotFound,
// store.ErrReused, store.ErrTooOften or a broken store.
func (f *Face) refresh(ctx context.Context, c *client, token string) (store.Access, store.Pair, error) {
	p := f.pair(c, []string{oidc.ScopeOfflineAccess})
	a, err := f.store.RefreshSignIn(ctx, f.now(), c.id, token, p)
	switch {
	case errors.Is(err, store.ErrReused):
		f.reused(a.SignIn, "a used refresh token came again")
	case errors.Is(err, store.ErrTooOften):
		f.revoked(a.SignIn, "it was renewed too often")
	}
	return a, p, err
}

func isGrant(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrReused) || errors.Is(err, store.ErrTooOften) || errors.Is(err, errUnproven) || errors.Is(err, store.ErrTaken)
}

// grantError is the answer to a code or token that gives nothing.
func (s server) grantError(ctx context.Context, err error) error {
	if !isGrant(err) {
		return broken(err)
	}
	return s.refused(ctx, oidc.ErrInvalidGrant().WithDescription("The code or token is unknown, expired or was used before; sign in again."))
}

func (s server) tokens(a store.Access, p store.Pair, nonce string) (*op.Response, error) {
	resp := &oidc.AccessTokenResponse{AccessToken: p.Access, RefreshToken: p.Refresh, TokenType: oidc.BearerToken,
		ExpiresIn: uint64(p.AccessFor / time.Second), Scope: a.Scopes}
	if slices.Contains(a.Scopes, oidc.ScopeOpenID) {
		var err error
		if resp.IDToken, err = s.idToken(a.User, a.Client, nonce, p.Access); err != nil {
			return nil, broken(err)
		}
	}
	return op.NewResponse(resp), nil
}

func (s server) CodeExchange(ctx context.Context, r *op.ClientRequest[oidc.AccessTokenRequest]) (*op.Response, error) {
	issued, err := s.redeem(ctx, own, r.Data.Code, r.Data.RedirectURI, r.Data.CodeVerifier)
	if err != nil {
		return nil, s.grantError(ctx, err)
	}
	return s.tokens(issued.Access, issued.Pair, issued.Nonce)
}

func (s server) RefreshToken(ctx context.Context, r *op.ClientRequest[oidc.RefreshTokenRequest]) (*op.Response, error) {
	if slices.ContainsFunc(r.Data.Scopes, func(scope string) bool { return !slices.Contains(own.scopes, scope) }) {
		return nil, oidc.ErrInvalidScope()
	}
	a, p, err := s.refresh(ctx, own, r.Data.RefreshToken)
	if err != nil {
		return nil, s.grantError(ctx, err)
	}
	return s.tokens(a, p, "")
}

func (s server) DeviceToken(ctx context.Context, r *op.ClientRequest[oidc.DeviceAccessTokenRequest]) (*op.Response, error) {
	issued, err := s.store.PollDevice(ctx, s.now(), own.id, r.Data.DeviceCode, func(r store.SignInRequest) (store.Pair, error) {
		return s.pair(own, r.Scopes), nil
	})
	switch {
	case err == nil:
		s.signedIn(issued)
		return s.tokens(issued.Access, issued.Pair, "")
	case errors.Is(err, store.ErrWaiting):
		return nil, oidc.ErrAuthorizationPending().WithDescription("The person has not answered yet.")
	case errors.Is(err, store.ErrTooFast):
		return nil, oidc.ErrSlowDown().WithDescription("Ask 5 seconds later each time from now on.")
	case errors.Is(err, store.ErrDenied):
		return nil, oidc.ErrAccessDenied().WithDescription("The person said no.")
	case errors.Is(err, store.ErrExpired):
		return nil, oidc.ErrExpiredDeviceCode().WithDescription("Nobody answered in time; start again.")
	}
	return nil, s.grantError(ctx, err)
}

func (s server) Revocation(ctx context.Context, r *op.ClientRequest[oidc.RevocationRequest]) (*op.Response, error) {
	if err := s.revoke(ctx, own.id, r.Data.Token); err != nil {
		return nil, broken(err)
	}
	return op.NewResponse(nil), nil
}

func (s server) Keys(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{s.key.public}}), nil
}
