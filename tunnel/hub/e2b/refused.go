package e2b

import (
	"io"
	"net/http"
	"regexp"

	"connectrpc.com/connect"

	"localpc/tunnel/hub/e2b/process"
)

// noPort refuses what an SDK asks of a port of the sandbox other than the one
// of its own service: what answers there on E2B's machines is not on a person's
// computer.
func noPort(w http.ResponseWriter, port string) {
	if port == "49999" {
		// Its SDK shows the body of a 404 as it is, and of no other refusal.
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "Running code in contexts (@e2b/code-interpreter) is not offered on a person's own computer. Run it as a command instead, commands.run('python3 …') for one.")
		return
	}
	text := "Ports of the computer are not reachable through this hub."
	if port == "50005" {
		text = "The gateway for MCP servers is not offered on a person's own computer. This hub is an MCP server itself, at /mcp."
	}
	writeError(w, http.StatusNotFound, text)
}

// ownScreen is the command with which @e2b/desktop makes a screen of its own.
var ownScreen = regexp.MustCompile(`^Xvfb :\d+ -ac -screen 0 \d+x\d+x24 -retro -dpi \d+ -nolisten tcp -nolisten unix$`)

// noScreen refuses the start of that screen at once: create then starts XFCE and
// waits a minute to find it among the processes that another command sees. Here
// a command sees its own only, which is also how what one of them was allowed is
// kept from the others.
func noScreen(c *process.ProcessConfig) error {
	if args := c.GetArgs(); len(args) == 0 || !ownScreen.MatchString(args[len(args)-1]) {
		return nil
	}
	return connect.NewError(connect.CodeFailedPrecondition, sentence("@e2b/desktop can't create its desktop on a person's own computer, but it can use one. Create the sandbox with the package e2b and envs: { DISPLAY: ':0' }, "+
		"start a screen with commands.run('Xvfb :0 -screen 0 1024x768x24', { background: true, timeoutMs: 0 }) and openbox in the same way, and use Sandbox.connect of @e2b/desktop with its id. The computer needs xvfb, openbox, xdotool and scrot for that."))
}
