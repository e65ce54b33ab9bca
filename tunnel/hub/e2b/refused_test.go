//go:build unix

package e2b_test

import (
	"net/http"
	"strings"
	"testing"
)

// @e2b/desktop and @e2b/code-interpreter are sandboxes as any other; what they
// have beyond that is refused so that a developer reads why.
func TestOtherSDKs(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var got struct{ ID string }
	s.js(t, `out({ id: (await Sandbox.create({ timeoutMs: 600_000 })).sandboxId })`, &got)

	var desktop struct {
		Create          *failure
		Stdout, Text    string
		Background      *failure
		Screenshot, Own *failure
		Left            int
	}
	s.version = "@e2b/desktop"
	s.js(t, `
const r = { create: await failure(Sandbox.create()) }
r.left = (await Sandbox.list().nextItems()).length
const s = await Sandbox.connect('`+got.ID+`')
r.stdout = (await s.commands.run('echo hello')).stdout
await s.files.write('a.txt', 'text'); r.text = await s.files.read('a.txt')
await s.wait(10)
r.background = await failure((await s.commands.run('sleep 0.1; exit 3', { background: true })).wait())
r.screenshot = await failure(s.screenshot())
// A screen that a program makes by itself is a command as any other.
r.own = await failure(s.commands.run('Xvfb-that-is-not-there :0 -ac -screen 0 1024x768x24'))
out(r)`, &desktop)
	desktop.Create.is(t, "create of a desktop", "SandboxError", "9: [failed_precondition]", "@e2b/desktop can't create its desktop", "DISPLAY: ':0'", "Sandbox.connect", "commands.run('Xvfb :0")
	if desktop.Left != 1 || desktop.Stdout != "hello\n" || desktop.Text != "text" || desktop.Background == nil || desktop.Background.ExitCode != 3 {
		t.Errorf("got %+v", desktop)
	}
	if f := desktop.Screenshot; f == nil || f.Name != "CommandExitError" || f.Stderr == "" {
		t.Errorf("a screenshot: %+v", f)
	}
	if f := desktop.Own; f == nil || f.ExitCode != 127 {
		t.Errorf("an own screen: %+v", f)
	}

	var code struct {
		Create, Run, Context, Contexts, Remove *failure
		Stdout                                 string
	}
	s.version = "@e2b/code-interpreter"
	s.js(t, `
const r = { create: await failure(Sandbox.create()) }
const s = await Sandbox.connect('`+got.ID+`')
r.stdout = (await s.commands.run('echo $((1 + 1))')).stdout
r.run = await failure(s.runCode('1 + 1')); r.context = await failure(s.createCodeContext())
r.contexts = await failure(s.listCodeContexts()); r.remove = await failure(s.removeCodeContext('x'))
out(r)`, &code)
	code.Create.is(t, "create for code", "SandboxError", "code-interpreter-v1", "folder of a person's computer")
	for what, f := range map[string]*failure{"runCode": code.Run, "createCodeContext": code.Context, "listCodeContexts": code.Contexts, "removeCodeContext": code.Remove} {
		f.is(t, what, "NotFoundError", "Running code in contexts (@e2b/code-interpreter) is not offered on a person's own computer.", "commands.run")
	}
	if code.Stdout != "2\n" {
		t.Errorf("a command said %q", code.Stdout)
	}
}

// What is asked of other ports is refused in words.
func TestPortsRefused(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s)
	for port, says := range map[string]string{"49999": "commands.run", "50005": "/mcp", "3000": "not reachable"} {
		h.Set("E2b-Sandbox-Port", port)
		if r := get(t, s.URL+"/sbx/contexts", h); r.status != http.StatusNotFound || !strings.Contains(r.body, says) {
			t.Errorf("port %s: %d %s", port, r.status, r.body)
		}
	}
}
