package hub

import (
	"context"
	"strings"

	"localpc/tunnel/hub/mcp"
)

// mcpAddress is where MCP clients come to, as they know it: what their tokens
// are for.
func (h *Hub) mcpAddress() string { return strings.TrimRight(h.o.PublicURL, "/") + "/mcp" }

// programOf tells whom an access token stands for: a program that a person let
// in on the hub's pages. Each time that they do, it is a new one.
func (h *Hub) programOf(ctx context.Context, token string) (mcp.Principal, error) {
	a, err := h.oauth.Program(ctx, token)
	return mcp.Principal{ID: a.SignIn, Name: a.Called, Agent: a.Name, User: a.User, Scopes: a.Scopes, Expires: a.Expires}, err
}

// mcpOptions are what the face for MCP clients needs of the hub.
func (h *Hub) mcpOptions() mcp.Options {
	o := mcp.Options{Backend: backend{h}, Store: h.store, Name: h.o.Name, Wait: h.o.Wait, Patience: h.o.Patience, Log: h.log}
	if h.oauth != nil {
		o.Verify, o.Resource, o.Issuer = h.programOf, h.mcpAddress(), strings.TrimRight(h.o.PublicURL, "/")
	}
	if h.o.MCP != nil {
		h.o.MCP(&o)
	}
	return o
}
