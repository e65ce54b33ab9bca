package hub

import "localpc/tunnel/hub/mcp"

// mcpOptions are what the face for MCP clients needs of the hub.
func (h *Hub) mcpOptions() mcp.Options {
	o := mcp.Options{Backend: backend{h}, Store: h.store, Name: h.o.Name, Wait: h.o.Wait, Patience: h.o.Patience, Log: h.log}
	if h.o.MCP != nil {
		h.o.MCP(&o)
	}
	return o
}
