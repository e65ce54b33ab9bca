package hub

import (
	"context"
	"errors"
	"net/http"

	"localpc/tunnel/hub/mcp"
	"localpc/tunnel/hub/oauth"
	"localpc/tunnel/hub/web"
)

// openPages makes the faces with which people sign in, and their computers.
func (h *Hub) openPages() error {
	if h.o.PublicURL == "" {
		return errors.New("a hub with pages needs its public address")
	}
	var err error
	h.oauth, err = oauth.New(h.ctx, oauth.Options{
		Store: h.store, Issuer: h.o.PublicURL, Resource: h.mcpAddress(), Log: h.log, Revoked: h.signInEnded,
		SignedIn: h.o.Meter.SignIn, Reused: h.o.Meter.Reused, User: h.loggedIn,
		AccessTTL: h.o.AccessTTL, RefreshTTL: h.o.RefreshTTL, CodeTTL: h.o.CodeTTL, DeviceTTL: h.o.DeviceTTL,
	})
	if err != nil {
		return err
	}
	h.web, err = web.New(web.Options{Store: h.store, OAuth: h.oauth, Hub: connections{h}, PublicURL: h.o.PublicURL, Name: h.o.Name, Log: h.log})
	return err
}

// loggedIn is whose browser a request comes from. A program's key is not enough
// to agree: it could connect a computer of its own to the person's account, to
// which other programs' work would go then.
func (h *Hub) loggedIn(r *http.Request) (string, bool) { return h.web.User(r) }

func (h *Hub) closePages() {
	if h.oauth != nil {
		_ = h.oauth.Close()
	}
}

func (h *Hub) pageRoutes(mux *http.ServeMux) {
	mux.Handle("/oauth/", h.oauth.Handler())
	mux.Handle("/.well-known/", h.oauth.Handler())
	mux.Handle("GET "+mcp.MetadataPath, h.mcp.Metadata())
	mux.Handle("GET "+mcp.MetadataPath+"/mcp", h.mcp.Metadata())
	mux.Handle("/auth/", h.oauth.AutoGPT())
	mux.Handle("/api/oauth/", h.oauth.AutoGPT())
	mux.Handle("/", h.web.Handler())
}

// SetupURL is the one-time link that makes the owner; false when the hub has
// one, or no pages.
func (h *Hub) SetupURL(ctx context.Context) (string, bool) {
	if h.web == nil {
		return "", false
	}
	return h.web.SetupURL(ctx)
}

// connections is the hub as the pages see it.
type connections struct{ *Hub }

// Capabilities are what a connected machine said that it offers.
func (h connections) Capabilities(machine string) []string {
	h.mu.Lock()
	c := h.machines[machine]
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.offers()
}

func (h connections) Recheck() { h.recheckAll() }
