package e2b

import "net/http"

// noPort refuses what an SDK asks of a port of the sandbox other than the one
// of its own service: what answers there on E2B's machines is not on a person's
// computer. The status is one to which the SDKs put no words of their own.
func noPort(w http.ResponseWriter, port string) {
	text := "Ports of the computer cannot be reached through this hub."
	switch port {
	case "49999":
		text = "Running code in contexts (@e2b/code-interpreter) is not offered on a person's own computer. Run it as a command instead: commands.run(\"python3 …\")."
	case "50005":
		text = "The gateway for MCP servers is not offered on a person's own computer. This hub itself is an MCP server, at /mcp."
	}
	writeError(w, http.StatusNotImplemented, text)
}
