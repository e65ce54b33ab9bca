package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
	msg "localpc/tunnel/wire/autogpt"
)

// AutoGPT serves sign-in in the shape that AutoGPT's existing program knows:
// /auth/authorize for the browser and /api/oauth/… for programs. Failures are
// {"detail": …}.
func (f *Face) AutoGPT() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /auth/authorize", f.visit(byPerson(answering(f.autogptAuthorizePage))))
	mux.Handle("POST /api/oauth/authorize", f.visit(answering(f.autogptAuthorize)))
	mux.Handle("POST /api/oauth/token", f.visit(answering(f.autogptToken)))
	mux.Handle("POST /api/oauth/revoke", f.visit(answering(f.autogptRevoke)))
	mux.Handle("POST /api/oauth/introspect", f.visit(answering(f.autogptIntrospect)))
	return mux
}

// asked is an authorize request of either way in.
type asked struct {
	client, redirect, responseType, state, challenge, method string
	scopes                                                   []string
}

// check says whether the request may go on. What has to be said without a
// redirect is a detail; the rest goes back to the program, and is in refusal.
func (a asked) check() (refusal url.Values, err error) {
	if a.client != autogpt.id {
		return nil, detail(http.StatusBadRequest, "Unknown client_id")
	}
	if !autogpt.redirect(a.redirect) {
		return nil, detail(http.StatusBadRequest, "This redirect_uri is not registered")
	}
	scopes, ok := scopesFor(autogpt, a.scopes, msg.Scope)
	switch {
	case a.responseType != "code":
		return refuse("unsupported_response_type", "Only the response type code is supported"), nil
	case !ok || len(scopes) != len(slices.Compact(slices.Sorted(slices.Values(a.scopes)))):
		return refuse("invalid_scope", "The scope must be "+msg.Scope), nil
	case a.method != "S256" || !challengePattern.MatchString(a.challenge):
		return refuse("invalid_request", "PKCE with code_challenge_method S256 is required"), nil
	case a.state == "" || len(a.state) > maxState:
		return refuse("invalid_request", "A state of at most 1024 bytes is required"), nil
	}
	return nil, nil
}

func (a asked) request() store.SignInRequest {
	return store.SignInRequest{Client: autogpt.id, Scopes: autogpt.scopes, Redirect: a.redirect, State: a.state, Challenge: a.challenge}
}

func refuse(code, description string) url.Values {
	return url.Values{"error": {code}, "error_description": {description}}
}

// autogptAuthorizePage checks what the program asks for and leads the person to
// the same pairing page that our own client uses.
func (f *Face) autogptAuthorizePage(w http.ResponseWriter, r *http.Request) (any, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || twice(q) != "" {
		return nil, detail(http.StatusBadRequest, "The query cannot be read")
	}
	a := asked{client: q.Get("client_id"), redirect: q.Get("redirect_uri"), responseType: q.Get("response_type"), state: q.Get("state"),
		challenge: q.Get("code_challenge"), method: q.Get("code_challenge_method"), scopes: strings.Fields(q.Get("scope"))}
	refusal, err := a.check()
	if err != nil {
		return nil, err
	}
	req := a.request()
	if len(req.State) > maxState {
		req.State = ""
	}
	if refusal == nil {
		switch err := f.add(r.Context(), autogpt, &req, "", ""); {
		case err == nil:
			http.Redirect(w, r, f.pairPage(req.ID), http.StatusFound)
			return nil, nil
		case errors.Is(err, store.ErrFull):
			refusal = refuse("temporarily_unavailable", tooMany)
		default:
			f.log.Error("A sign-in could not be kept", "err", err)
			refusal = refuse("server_error", brokenDetail)
		}
	}
	http.Redirect(w, r, f.back(req, refusal), http.StatusFound)
	return nil, nil
}

// autogptAuthorize gives a code to a program that holds the person's own log-in.
func (f *Face) autogptAuthorize(_ http.ResponseWriter, r *http.Request) (any, error) {
	// A page of another site cannot send this type without being asked first,
	// so a browser's log-in is not used behind the person's back.
	if !isJSON(r) || http.NewCrossOriginProtection().Check(r) != nil {
		return nil, detail(http.StatusUnprocessableEntity, "The body must be JSON, sent by a program or this hub's own pages")
	}
	// Whose log-in it is is asked after the last byte has come: it may have
	// ended meanwhile.
	b, err := readBody(r)
	user, ok := "", false
	if f.o.User != nil {
		user, ok = f.o.User(r)
	}
	if !ok {
		return nil, detail(http.StatusUnauthorized, "Log in first")
	}
	if err != nil {
		return nil, err
	}
	a := asked{client: b.need("client_id"), redirect: b.need("redirect_uri"), scopes: b.list("scopes"), state: b.need("state"),
		responseType: b.or("response_type", "code"), challenge: b.need("code_challenge"), method: b.or("code_challenge_method", "S256")}
	if a.method != "S256" && a.method != "plain" {
		b.wrong("code_challenge_method", "Input should be 'S256' or 'plain'", "literal_error")
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	refusal, err := a.check()
	if err != nil {
		return nil, err
	}
	req := a.request()
	if refusal == nil {
		if refusal, err = f.grantAtOnce(r, &req, user); err != nil {
			return nil, err
		}
	}
	return map[string]string{"redirect_url": f.back(req, refusal)}, nil
}

// grantAtOnce keeps a request that its person has agreed to already.
func (f *Face) grantAtOnce(r *http.Request, req *store.SignInRequest, user string) (url.Values, error) {
	ctx, now, code := r.Context(), f.now(), random(32)
	req.ID, req.Until = random(16), now.Add(f.o.CodeTTL)
	req.Address, req.Source = addressText(from(ctx)), "user "+user
	err := f.store.AddSignInRequest(ctx, now, *req, "", "", 0)
	if err == nil {
		_, err = f.store.ApproveSignIn(ctx, now, req.ID, user, code, f.o.CodeTTL)
	}
	switch {
	case err == nil:
		return url.Values{"code": {code}}, nil
	case errors.Is(err, store.ErrFull):
		return nil, detail(http.StatusTooManyRequests, tooMany)
	}
	f.log.Error("A sign-in could not be kept", "err", err)
	return refuse("server_error", brokenDetail), nil
}

// autogptPair is the answer to a token request. There is no expires_in.
type autogptPair struct {
	TokenType      string    `json:"token_type"`
	Access         string    `json:"access_token"`
	AccessExpires  time.Time `json:"access_token_expires_at"`
	Refresh        string    `json:"refresh_token"`
	RefreshExpires time.Time `json:"refresh_token_expires_at"`
	Scopes         []string  `json:"scopes"`
}

func (f *Face) autogptToken(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := f.hold(r); err != nil {
		return nil, err
	}
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	grant, id := b.need("grant_type"), b.need("client_id")
	var code, redirect, verifier, refresh string
	switch grant {
	case "authorization_code":
		code, redirect, verifier = b.need("code"), b.need("redirect_uri"), b.need("code_verifier")
	case "refresh_token":
		refresh = b.need("refresh_token")
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	if id != autogpt.id {
		return nil, f.wrong(r, detail(http.StatusUnauthorized, "Unknown client_id"))
	}
	var a store.Access
	var p store.Pair
	switch grant {
	case "authorization_code":
		var issued store.Issued
		issued, err = f.redeem(r.Context(), autogpt, code, redirect, verifier)
		a, p = issued.Access, issued.Pair
	case "refresh_token":
		a, p, err = f.refresh(r.Context(), autogpt, refresh)
	default:
		return nil, f.wrong(r, detail(http.StatusBadRequest, "Unsupported grant_type"))
	}
	if isGrant(err) {
		return nil, f.wrong(r, detail(http.StatusBadRequest, "The code or token is unknown, expired or was used before"))
	}
	if err != nil {
		f.log.Error("Tokens could not be given", "err", err)
		return nil, detail(http.StatusInternalServerError, brokenDetail)
	}
	now := f.told(f.now()).UTC().Truncate(time.Second)
	return autogptPair{TokenType: "Bearer", Access: p.Access, AccessExpires: now.Add(p.AccessFor),
		Refresh: p.Refresh, RefreshExpires: now.Add(p.RefreshFor), Scopes: a.Scopes}, nil
}

func (f *Face) autogptRevoke(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := f.hold(r); err != nil {
		return nil, err
	}
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	token, id := b.need("token"), b.need("client_id")
	b.hint()
	if err := b.err(); err != nil {
		return nil, err
	}
	if id != autogpt.id {
		return nil, f.wrong(r, detail(http.StatusUnauthorized, "Unknown client_id"))
	}
	if err := f.revoke(r.Context(), autogpt.id, token); err != nil {
		f.log.Error("A sign-in could not be ended", "err", err)
		return nil, detail(http.StatusInternalServerError, brokenDetail)
	}
	return map[string]string{"status": "ok"}, nil
}

// autogptIntrospect refuses: only a client with a secret may ask about tokens,
// and this hub knows none.
func (f *Face) autogptIntrospect(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := f.hold(r); err != nil {
		return nil, err
	}
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	b.need("token")
	b.need("client_id")
	b.need("client_secret")
	b.hint()
	if err := b.err(); err != nil {
		return nil, err
	}
	return nil, f.wrong(r, detail(http.StatusUnauthorized, "Unknown client_id or wrong client_secret"))
}

// hold refuses an address that has failed too often.
func (f *Face) hold(r *http.Request) error {
	if f.failures.Spent(limit.Network(from(r.Context()))) {
		return detail(http.StatusTooManyRequests, tooMany)
	}
	return nil
}

// wrong counts a failure against its address.
func (f *Face) wrong(r *http.Request, err error) error {
	f.failures.Take(limit.Network(from(r.Context())))
	return err
}

const brokenDetail = "Something went wrong in the hub; its log says what"

// failure is {"detail": …} with its status.
type failure struct {
	status int
	detail any
}

func (e failure) Error() string { return fmt.Sprint(e.status, " ", e.detail) }

func detail(status int, sentence string) error { return failure{status, sentence} }
