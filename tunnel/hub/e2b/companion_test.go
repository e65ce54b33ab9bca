//go:build unix

package e2b_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/hub"
	"localpc/tunnel/hub/autogpt/companiontest"
	"localpc/tunnel/tunneltest"
)

// The SDK as published works on a computer of AutoGPT's wire.
func TestSDKOnCompanion(t *testing.T) {
	t.Parallel()
	if err := install(); err != nil {
		t.Fatalf("npm ci: %v", err)
	}
	data, home := t.TempDir(), t.TempDir()
	h, url := tunneltest.Serve(t, hub.Options{Data: data, Pages: true, PublicURL: "http://127.0.0.1", Log: tunneltest.Log(t)})
	key, err := h.MakeKey(t.Context(), "Test program")
	if err != nil {
		t.Fatal(err)
	}
	token := tunneltest.CompanionToken(t, data)
	c := companiontest.New(companiontest.Options{URL: url, Token: func(bool) string { return token }, MachineID: "m1", Name: "Workshop", Home: home, Shell: true, Secret: "s",
		BackoffBase: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, TermWait: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	eventually(t, "the computer is connected", func() bool { return h.Online() == 1 })
	s := &sdk{Pair: &tunneltest.Pair{Hub: h, URL: url, Key: key}}
	var got struct {
		None, Background, Slow, Exit *failure
		Stdin, Terminal              *failure
		Pause, Metrics, Watch, Meta  *failure
		State                        string
		Run                          struct{ Stdout, Stderr string }
		Text, Moved                  string
		Names                        []string
		Exists, Gone                 bool
	}
	s.js(t, `out({ none: await failure(Sandbox.create()) })`, &got)
	got.None.is(t, "without a folder", "SandboxError", "No folder is set yet for the computer Workshop")
	folder := filepath.Join(home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	tunneltest.SetFolder(t, data, "m1", folder)
	s.js(t, `
const s = await Sandbox.create({ envs: { A: 'session' } }), r = {}
r.run = await s.commands.run('echo $A; pwd; echo err >&2')
r.exit = await failure(s.commands.run('exit 3'))
r.slow = await failure(s.commands.run('sleep 20', { timeoutMs: 1000 }))
r.background = await failure(s.commands.run('sleep 1', { background: true, timeoutMs: 0 }))
r.stdin = await failure(s.commands.run('cat', { stdin: true }))
r.terminal = await failure(s.pty.create({ cols: 80, rows: 24, onData: () => {} }))
await s.files.write('notes/a.txt', 'hello')
r.text = await s.files.read('/home/user/notes/a.txt')
await s.files.makeDir('empty')
r.names = (await s.files.list('/home/user')).map(e => e.path + ' ' + e.type)
r.moved = (await s.files.rename('notes/a.txt', 'b.txt')).path
await s.files.remove('notes'); r.exists = await s.files.exists('b.txt'); r.gone = !(await s.files.exists('notes'))
r.pause = await failure(s.pause()); r.state = (await s.getInfo()).state; r.metrics = await failure(s.getMetrics())
r.watch = await failure(s.files.watchDir('.', () => {})); r.meta = await failure(s.files.write('m.txt', 'x', { metadata: { a: 'b' } }))
await s.kill()
out(r)
`, &got)
	if got.State != "running" {
		t.Errorf("after a pause that failed it is %s", got.State)
	}
	for what, f := range map[string]*failure{"pause": got.Pause, "metrics": got.Metrics, "watch": got.Watch, "metadata": got.Meta} {
		f.is(t, what, "SandboxError", "a computer that is connected with AutoGPT's program")
	}
	if got.Run.Stdout != "session\n"+folder+"\n" || got.Run.Stderr != "err\n" || got.Text != "hello" || got.Moved != "b.txt" || !got.Exists || !got.Gone {
		t.Errorf("got %+v", got)
	}
	if len(got.Names) != 2 || got.Names[0] != "/home/user/empty dir" || got.Names[1] != "/home/user/notes dir" {
		t.Errorf("listed %q", got.Names)
	}
	got.Exit.is(t, "exit 3", "CommandExitError")
	got.Slow.is(t, "past its time", "TimeoutError")
	got.Background.is(t, "in the background", "SandboxError", "cannot run on this computer", "30 seconds")
	got.Stdin.is(t, "one that reads", "SandboxError", "Commands that read input, and terminals, cannot run on this computer")
	got.Terminal.is(t, "a terminal", "SandboxError", "Commands that read input, and terminals, cannot run on this computer")
	eventually(t, "its end has reached the computer", func() bool { return c.Running() == 0 })
	if d := c.Dropped(); len(d) > 0 {
		t.Errorf("dropped: %q", d)
	}
}
