package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"localpc/tunnel/hub/limit"
	"localpc/tunnel/hub/store"
)

// oauthError answers a program as RFC 6749 says.
func oauthError(w http.ResponseWriter, status int, code, description string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": description})
}

func (f *Face) brokenAnswer(w http.ResponseWriter, err error) {
	f.log.Error("A program could not be answered", "err", err)
	oauthError(w, http.StatusInternalServerError, "server_error", "Something went wrong in the hub; its log says what.")
}

// resourceOf is what a token is for (RFC 8707): programs come to one place
// here, which those that name none mean too.
func (f *Face) resourceOf(form url.Values) (string, bool) {
	asked := form.Get("resource")
	return f.o.Resource, asked == "" || strings.TrimSuffix(asked, "/") == f.o.Resource
}

// authorizeProgram takes a program's request to the page where its person
// decides. Until it is clear where an answer may go, only the browser hears
// what is wrong; and where it may go elsewhere than to the person's computer,
// until they have answered.
func (f *Face) authorizeProgram(w http.ResponseWriter, r *http.Request, form url.Values) {
	ctx := r.Context()
	p, err := f.lookUp(ctx, form.Get("client_id"))
	var unknown errUnknown
	switch {
	case errors.As(err, &unknown):
		http.Error(w, string(unknown), http.StatusBadRequest)
		return
	case err != nil:
		f.brokenAnswer(w, err)
		return
	case !p.allows(form.Get("redirect_uri")):
		http.Error(w, "The program asks for an answer at an address that this hub does not send answers to.", http.StatusBadRequest)
		return
	}
	back := func(code, description string) {
		// Anybody can sign up with an address elsewhere. Until a person has answered,
		// this hub sends nobody there: its name would vouch for where they end up.
		if !strings.HasPrefix(form.Get("redirect_uri"), "http://") {
			switch code {
			case "server_error":
				http.Error(w, description, http.StatusInternalServerError)
			case "temporarily_unavailable":
				http.Error(w, description, http.StatusTooManyRequests)
			default:
				http.Error(w, "The program asks for something that this hub can't give: "+description, http.StatusBadRequest)
			}
			return
		}
		state := form.Get("state")
		if len(state) > maxState {
			state = ""
		}
		to := f.back(store.SignInRequest{Client: p.id, Redirect: form.Get("redirect_uri"), State: state}, url.Values{"error": {code}, "error_description": {description}})
		http.Redirect(w, r, to, http.StatusFound)
	}
	asked := strings.Fields(form.Get("scope"))
	scopes := slices.DeleteFunc(slices.Clone(programScopes), func(s string) bool { return !slices.Contains(asked, s) })
	if len(asked) == 0 {
		scopes = usualScopes
	}
	resource, ok := f.resourceOf(form)
	switch {
	case form.Get("response_type") != "code":
		back("unsupported_response_type", "response_type must be code")
		return
	case form.Has("request") || form.Has("request_uri"):
		back("request_not_supported", "requests as objects are not supported")
		return
	case form.Get("response_mode") != "" && form.Get("response_mode") != "query":
		back("invalid_request", "response_mode must be query")
		return
	case form.Get("code_challenge_method") != "S256" || !challengePattern.MatchString(form.Get("code_challenge")):
		back("invalid_request", "PKCE with code_challenge_method S256 is required")
		return
	case len(form.Get("state")) > maxState:
		back("invalid_request", "state is too long")
		return
	case !ok:
		back("invalid_target", "resource must be "+f.o.Resource)
		return
	case len(scopes) == 0:
		back("invalid_scope", "known scopes are "+strings.Join(programScopes, " "))
		return
	case form.Get("prompt") == "none":
		back("interaction_required", "A person has to answer.")
		return
	}
	req := store.SignInRequest{Scopes: scopes, Redirect: form.Get("redirect_uri"), State: form.Get("state"), Challenge: form.Get("code_challenge"),
		MachineName: p.name, System: p.at, Resource: resource}
	if err := f.add(ctx, program(p.id), &req, "", ""); err != nil {
		if errors.Is(err, store.ErrFull) {
			back("temporarily_unavailable", tooMany)
			return
		}
		f.log.Error("A program's request could not be kept", "err", err)
		back("server_error", "Something went wrong in the hub; its log says what.")
		return
	}
	http.Redirect(w, r, f.o.Issuer+"/connect?"+url.Values{"request": {req.ID}}.Encode(), http.StatusFound)
}

// programToken answers a program at the token endpoint.
func (f *Face) programToken(w http.ResponseWriter, r *http.Request) {
	ctx, form := r.Context(), r.PostForm
	id := form.Get("client_id")
	refuse := func(status int, code, description string) {
		f.failures.Take(limit.Network(from(ctx)))
		oauthError(w, status, code, description)
	}
	if f.ask(w, r, refuse) {
		return
	}
	resource, ok := f.resourceOf(form)
	if !ok {
		refuse(http.StatusBadRequest, "invalid_target", "resource must be "+f.o.Resource)
		return
	}
	var a store.Access
	var p store.Pair
	var err error
	switch form.Get("grant_type") {
	case "authorization_code":
		var issued store.Issued
		issued, err = f.redeem(ctx, program(id), form.Get("code"), form.Get("redirect_uri"), form.Get("code_verifier"))
		a, p = issued.Access, issued.Pair
	case "refresh_token":
		a, p, err = f.refresh(ctx, program(id), form.Get("refresh_token"))
	default:
		oauthError(w, http.StatusBadRequest, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
		return
	}
	switch {
	case isGrant(err), err == nil && a.Resource != resource:
		refuse(http.StatusBadRequest, "invalid_grant", "The code or token is unknown, expired or was used before; connect the program again.")
		return
	case err != nil:
		f.brokenAnswer(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": p.Access, "refresh_token": p.Refresh, "token_type": "Bearer",
		"expires_in": int(p.AccessFor / time.Second), "scope": strings.Join(a.Scopes, " ")})
}

// ask answers a program that does not show itself as it must: it is public, and
// its id is one that is known. true: it was answered.
func (f *Face) ask(w http.ResponseWriter, r *http.Request, refuse func(status int, code, description string)) bool {
	form := r.PostForm
	id := form.Get("client_id")
	if r.Header.Get("Authorization") != "" || form.Has("client_secret") || form.Has("client_assertion") {
		refuse(http.StatusUnauthorized, "invalid_client", "Programs have no secret here: send client_id in the body.")
		return true
	}
	if strings.HasPrefix(id, "https://") {
		return false // it was looked up when it asked; its tokens say the rest
	}
	switch _, err := f.store.Program(r.Context(), id); {
	case errors.Is(err, store.ErrNotFound):
		refuse(http.StatusUnauthorized, "invalid_client", "This hub does not know the program; it has to sign up again.")
		return true
	case err != nil:
		f.brokenAnswer(w, err)
		return true
	}
	return false
}

// programRevoke ends what a program's token stands for (RFC 7009).
func (f *Face) programRevoke(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, description string) { oauthError(w, status, code, description) }
	if f.ask(w, r, refuse) {
		return
	}
	if err := f.revoke(r.Context(), r.PostForm.Get("client_id"), r.PostForm.Get("token")); err != nil {
		f.brokenAnswer(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// Program gives what a program's access token stands for, if it was made for
// this hub's Resource. store.ErrNotFound when it is not good. Expires is as
// Access has it.
func (f *Face) Program(ctx context.Context, bearer string) (store.Access, error) {
	if len(bearer) > MaxToken || !strings.HasPrefix(bearer, program("").access) || f.o.Resource == "" {
		return store.Access{}, store.ErrNotFound
	}
	a, err := f.store.FindAccess(ctx, f.now(), bearer)
	if err != nil {
		return store.Access{}, err
	}
	if a.Resource != f.o.Resource {
		return store.Access{}, store.ErrNotFound
	}
	a.Expires = f.told(a.Expires)
	return a, nil
}
