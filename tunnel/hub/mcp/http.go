package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"localpc/tunnel/hub/store"
)

const (
	// maxBody bounds one message: a file to write is in it.
	maxBody = 8 << 20
	// maxBeyond is read of one that is larger, so that a client that still writes
	// comes to read why it is refused; the deadline of bodies bounds it too.
	maxBeyond = 64 << 20
	// bodyWithin is how long it may take to come.
	bodyWithin = 30 * time.Second
	// writeWithin is how long a client may take to take the next piece.
	writeWithin = time.Minute
	// maxActive requests of one principal are served at once.
	maxActive = 64
)

// conversationHeader names a session of the protocol. This face keeps none; a name
// is given to a client that begins one, and all it says is which calls belong
// together. Newer versions of the protocol have no such sessions.
const conversationHeader = "Mcp-Session-Id"

// MetadataPath is where Metadata is served, before the path of the resource.
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadataURL is the address of Metadata, or "".
func (f *Face) metadataURL() string {
	if f.o.Issuer == "" {
		return ""
	}
	return strings.TrimSuffix(f.o.Resource, "/mcp") + MetadataPath + "/mcp"
}

// Metadata tells clients which authorization server makes tokens for this
// face (RFC 9728). Anybody may ask.
func (f *Face) Metadata() http.Handler {
	return auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: f.o.Resource, AuthorizationServers: []string{f.o.Issuer}, ScopesSupported: Scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: f.o.Name,
	})
}

// Handler serves the protocol, to who shows a key (as a bearer token or in
// X-API-KEY) or an access token.
func (f *Face) Handler() http.Handler {
	protocol := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return f.server }, &sdk.StreamableHTTPOptions{
		// Any node of a hub can answer any request, and nothing has to be cleared
		// away after a client that is gone.
		Stateless:                    true,
		PropagateRequestCancellation: true,
		// The hub checks Host and Origin itself; behind a proxy of the same computer
		// the name is not a loopback one.
		DisableLocalhostProtection: true,
		MaxRequestBodyBytes:        maxBody,
	})
	bearer := auth.RequireBearerToken(f.verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: f.metadataURL(), AllowMissingExpiration: true})
	checked := bearer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(protocol, w, r) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("X-API-KEY"); key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		if f.o.Issuer == "" {
			w = &challenge{w}
		}
		checked.ServeHTTP(w, r)
	})
}

// challenge names the scheme where there is no metadata to point at.
type challenge struct{ http.ResponseWriter }

func (c *challenge) WriteHeader(status int) {
	if status == http.StatusUnauthorized && c.Header().Get("WWW-Authenticate") == "" {
		c.Header().Set("WWW-Authenticate", "Bearer")
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *challenge) Unwrap() http.ResponseWriter { return c.ResponseWriter }

const principalKey = "principal"

func (f *Face) verify(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	who, err := f.principal(ctx, token)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("%w: a key or token is needed that this hub knows", auth.ErrInvalidToken)
	case err != nil:
		f.o.Log.Error("Token could not be checked", "err", err)
		return nil, sentence(wrong)
	}
	return &auth.TokenInfo{UserID: who.ID, Scopes: who.Scopes, Expiration: who.Expires, Extra: map[string]any{principalKey: who}}, nil
}

func (f *Face) principal(ctx context.Context, token string) (Principal, error) {
	if strings.HasPrefix(token, store.KeyPrefix) || f.o.Verify == nil {
		k, err := f.o.Store.FindKey(ctx, token)
		return Principal{ID: k.ID, Name: k.Name, User: k.User, Scopes: Scopes}, err
	}
	return f.o.Verify(ctx, token)
}

// message is what has to be known of a JSON-RPC message before it is served.
type message struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params struct {
		Name      string          `json:"name"`
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
}

// messages reads the messages of a body; none when it is not readable, which
// the protocol's own handler says better.
func messages(body []byte) []message {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		var all []message
		_ = json.Unmarshal(body, &all)
		return all
	}
	var one message
	if json.Unmarshal(body, &one) != nil {
		return nil
	}
	return []message{one}
}

// callKey names a call as its client does. Two clients with the same key may
// use the same ids.
type callKey struct{ principal, id string }

// httpCall is one POST. Clients of older versions of the protocol cancel it by
// a message of its own; those of newer ones close the connection.
type httpCall struct {
	key       callKey
	cancelled chan struct{}
	gone      <-chan struct{} // the client has gone
}

type httpCallKey struct{}

func callOf(ctx context.Context) *httpCall {
	if c, ok := ctx.Value(httpCallKey{}).(*httpCall); ok {
		return c
	}
	return &httpCall{}
}

func (f *Face) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	who, ok := auth.TokenInfoFromContext(r.Context()).Extra[principalKey].(Principal)
	if !ok {
		http.Error(w, wrong, http.StatusInternalServerError)
		return
	}
	if !f.enter(who.ID) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "This program already has too many requests under way at this hub; try again in a moment.", http.StatusTooManyRequests)
		return
	}
	defer f.leave(who.ID)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(f.bodyWithin))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	tooLarge := len(body) > maxBody
	if tooLarge {
		body = nil
		_, err = io.CopyN(io.Discard, r.Body, maxBeyond)
	}
	if err == nil || errors.Is(err, io.EOF) {
		_ = rc.SetReadDeadline(time.Time{})
	}
	switch {
	case tooLarge:
		http.Error(w, fmt.Sprintf("The message has more than %d bytes. Write a large file in pieces, or with a command.", maxBody), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "The message could not be read.", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	all := messages(body)
	for _, m := range all {
		if m.Method == "initialize" {
			w.Header().Set(conversationHeader, newID("c"))
		}
		if need := f.scope[m.Params.Name]; m.Method == "tools/call" && need != "" && !slices.Contains(who.Scopes, need) {
			f.insufficient(w, need)
			return
		}
		if m.Method == "notifications/cancelled" && len(m.Params.RequestID) > 0 {
			f.cancelCall(callKey{who.ID, string(m.Params.RequestID)})
		}
	}
	if len(all) == 1 && len(all[0].ID) > 0 {
		c := &httpCall{key: callKey{who.ID, string(all[0].ID)}, cancelled: make(chan struct{}), gone: r.Context().Done()}
		f.addCall(c)
		defer f.removeCall(c)
		r = r.WithContext(context.WithValue(r.Context(), httpCallKey{}, c))
	}
	w.Header().Set("X-Accel-Buffering", "no") // progress is to arrive when it is sent
	// A client that does not take what it is sent is as good as gone.
	ctx, gone := context.WithCancel(r.Context())
	defer gone()
	next.ServeHTTP(&patient{w, rc, f.writeWithin, gone}, r.WithContext(ctx))
	_ = rc.SetWriteDeadline(time.Time{})
}

func (f *Face) insufficient(w http.ResponseWriter, need string) {
	header := fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, need)
	if url := f.metadataURL(); url != "" {
		header += fmt.Sprintf(", resource_metadata=%q", url)
	}
	w.Header().Set("WWW-Authenticate", header)
	http.Error(w, "The person allowed this program less than this needs ("+need+"). It has to be connected again with that.", http.StatusForbidden)
}

func (f *Face) enter(principal string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.active[principal] >= maxActive {
		return false
	}
	f.active[principal]++
	return true
}

func (f *Face) leave(principal string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active[principal]--; f.active[principal] == 0 {
		delete(f.active, principal)
	}
}

func (f *Face) addCall(c *httpCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[c.key] = append(f.calls[c.key], c)
}

func (f *Face) removeCall(c *httpCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[c.key] = slices.DeleteFunc(f.calls[c.key], func(o *httpCall) bool { return o == c }); len(f.calls[c.key]) == 0 {
		delete(f.calls, c.key)
	}
}

// cancelCall cancels the one call of that name. Of two, either may be meant,
// and it is not guessed.
func (f *Face) cancelCall(k callKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.calls[k]; len(all) == 1 {
		close(all[0].cancelled)
		delete(f.calls, k)
	}
}

// patient bounds how long a client may take to take the next piece.
type patient struct {
	http.ResponseWriter
	rc     *http.ResponseController
	within time.Duration
	gone   func()
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.within))
	n, err := p.ResponseWriter.Write(b)
	if err != nil {
		p.gone()
	}
	return n, err
}

// FlushError is what http.ResponseController calls.
func (p *patient) FlushError() error {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.within))
	err := p.rc.Flush()
	if err != nil {
		p.gone()
	}
	return err
}

func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
