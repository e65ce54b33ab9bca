package oauth

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"localpc/tunnel/hub/limit"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 16 << 10

var endpoints = op.Endpoints{
	Authorization:       op.NewEndpoint("/oauth/authorize"),
	Token:               op.NewEndpoint("/oauth/token"),
	Revocation:          op.NewEndpoint("/oauth/revoke"),
	JwksURI:             op.NewEndpoint("/oauth/keys"),
	DeviceAuthorization: op.NewEndpoint("/oauth/device_authorization"),
}

// registration is where programs sign themselves up.
const registration = "/oauth/register"

func (f *Face) routes() http.Handler {
	s := server{Face: f}
	// No page of another site has business here, so there is no CORS.
	serve := op.RegisterServer(s, endpoints, op.WithServerCORSOptions(nil), op.WithEncoder(issuing{oidc.NewEncoder(), f.o.Issuer}))
	about := op.RegisterMetadataServer(metadata{Face: f}, op.WithServerCORSOptions(nil))
	mux := http.NewServeMux()
	mux.Handle("GET /oauth/authorize", f.visit(byPerson(f.authorizeDoor(serve))))
	for _, e := range []*op.Endpoint{endpoints.Token, endpoints.Revocation, endpoints.DeviceAuthorization} {
		mux.Handle("POST "+e.Relative(), f.visit(f.formDoor(serve)))
	}
	mux.Handle("GET /oauth/keys", serve)
	if f.o.Resource != "" {
		mux.Handle("POST "+registration, f.visit(http.HandlerFunc(f.register)))
	}
	mux.Handle("GET /.well-known/oauth-authorization-server", about)
	mux.Handle("GET /.well-known/openid-configuration", about)
	return mux
}

// visit notes who comes, and keeps answers out of caches.
func (f *Face) visit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), fromKey{}, limit.From(r))))
	})
}

// byPerson takes what a browser's window goes to. A page of another site that
// names the address as a picture, say, would use up the requests that its
// visitor may make; and a check of the link, as mail programs do, is no request.
func byPerson(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "document" || r.Method != http.MethodGet {
			http.Error(w, "Open this page in a window of its own.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// twice names a parameter that comes more than once, which RFC 6749 forbids:
// two readers could take different ones.
func twice(form url.Values) string {
	for name, values := range form {
		if len(values) > 1 {
			return name
		}
	}
	return ""
}

// authorizeDoor answers a browser whose request may not be sent back to a
// program, with a sentence.
func (f *Face) authorizeDoor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, err := url.ParseQuery(r.URL.RawQuery)
		switch {
		case err != nil || twice(form) != "":
			http.Error(w, "This link is damaged. Start again from the program on your computer.", http.StatusBadRequest)
		case form.Get("client_id") != own.id && f.o.Resource != "":
			f.authorizeProgram(w, r, form)
		case form.Get("client_id") != own.id:
			http.Error(w, "This hub does not know the program that asks.", http.StatusBadRequest)
		case !own.redirect(form.Get("redirect_uri")):
			http.Error(w, "The program asks for an answer at an address that this hub does not send answers to.", http.StatusBadRequest)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// formDoor takes forms only, with nothing in the address, where it would be
// logged, and holds off an address that has failed too often.
func (f *Face) formDoor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.failures.Spent(limit.Network(from(r.Context()))) {
			w.Header().Set("Retry-After", "60")
			op.WriteError(w, r, op.NewStatusError(&oidc.Error{ErrorType: "temporarily_unavailable", Description: tooMany}, http.StatusTooManyRequests), nil)
			return
		}
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		bad := ""
		if kind != "application/x-www-form-urlencoded" || r.URL.RawQuery != "" {
			bad = "the parameters must be sent as a form in the body"
		} else if err := r.ParseForm(); err != nil {
			bad = "the form cannot be read"
		} else if name := twice(r.PostForm); name != "" {
			bad = fmt.Sprintf("a parameter is there more than once: %.40q", name)
		}
		if bad != "" {
			op.WriteError(w, r, oidc.ErrInvalidRequest().WithDescription("%s", bad), nil)
			return
		}
		if id := r.PostForm.Get("client_id"); f.o.Resource != "" && id != "" && id != own.id {
			switch r.URL.Path {
			case endpoints.Token.Relative():
				f.programToken(w, r)
				return
			case endpoints.Revocation.Relative():
				f.programRevoke(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// issuing adds the issuer to what goes back to the client (RFC 9207).
type issuing struct {
	encoder interface {
		Encode(src any, dst map[string][]string) error
	}
	issuer string
}

func (e issuing) Encode(src any, dst map[string][]string) error {
	dst["iss"] = []string{e.issuer}
	return e.encoder.Encode(src, dst)
}

type metadata struct {
	op.UnimplementedMetadataServer
	*Face
}

// described is RFC 8414's document with what the library's type lacks.
type described struct {
	oidc.DiscoveryConfiguration
	IssParameter bool `json:"authorization_response_iss_parameter_supported"`
	// Described: a program's client_id may be the address of its description.
	Described bool `json:"client_id_metadata_document_supported,omitempty"`
}

func (m metadata) OpenIDConfiguration(ctx context.Context, r *op.Request[op.MetadataRequest]) (*op.Response, error) {
	return m.AuthorizationServerMetadata(ctx, r)
}

func (m metadata) AuthorizationServerMetadata(context.Context, *op.Request[op.MetadataRequest]) (*op.Response, error) {
	at := m.o.Issuer
	scopes, register := own.scopes, ""
	if m.o.Resource != "" {
		scopes, register = slices.Concat(scopes, programScopes), at+registration
	}
	return op.NewResponse(described{IssParameter: true, Described: register != "", DiscoveryConfiguration: oidc.DiscoveryConfiguration{
		Issuer:                                 at,
		AuthorizationEndpoint:                  endpoints.Authorization.Absolute(at),
		TokenEndpoint:                          endpoints.Token.Absolute(at),
		RevocationEndpoint:                     endpoints.Revocation.Absolute(at),
		JwksURI:                                endpoints.JwksURI.Absolute(at),
		DeviceAuthorizationEndpoint:            endpoints.DeviceAuthorization.Absolute(at),
		RegistrationEndpoint:                   register,
		ScopesSupported:                        scopes,
		ResponseTypesSupported:                 []string{string(oidc.ResponseTypeCode)},
		ResponseModesSupported:                 []string{string(oidc.ResponseModeQuery)},
		GrantTypesSupported:                    ownClient{}.GrantTypes(),
		SubjectTypesSupported:                  []string{"public"},
		IDTokenSigningAlgValuesSupported:       []string{string(jose.ES256)},
		TokenEndpointAuthMethodsSupported:      []oidc.AuthMethod{oidc.AuthMethodNone},
		RevocationEndpointAuthMethodsSupported: []oidc.AuthMethod{oidc.AuthMethodNone},
		CodeChallengeMethodsSupported:          []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
	}}), nil
}
