//go:build unix

package e2b_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"localpc/tunnel"
	"localpc/tunnel/hub"
	"localpc/tunnel/wire"
)

func TestSDKCommands(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Plain, Env, Cwd      struct{ Stdout, Stderr string }
			Streamed             []string
			First, All           int
			Big                  int
			Exit, Timeout, Start *failure
			Killed               *failure
			KilledIt, KilledGone bool
			Listed               []struct {
				PID  int
				Cmd  string
				Args []string
			}
			ListedAfter       int
			Connected, AsUser string
			Late              *failure
			Gone, User        *failure
		}
		s.js(t, `
const s = await Sandbox.create({ envs: { A: 'session', B: 'session' } })
const r = {}
r.plain = await s.commands.run('echo out; echo err >&2')
r.env = await s.commands.run('echo $A $B', { envs: { B: 'call' } })
await s.commands.run('mkdir sub')
r.cwd = await s.commands.run('basename $PWD', { cwd: 'sub' })
const began = Date.now(), streamed = []
await s.commands.run('echo one; sleep 1; echo two', { onStdout: d => { streamed.push(d); r.first ??= Date.now() - began } })
r.all = Date.now() - began; r.streamed = streamed
r.big = (await s.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')).stdout.length
r.exit = await failure(s.commands.run('echo some; echo bad >&2; exit 3'))
r.timeout = await failure(s.commands.run('sleep 60', { timeoutMs: 1500 }))
while ((await s.commands.list()).length) await sleep(20) // the computer's clock began a little later
r.user = await failure(s.commands.run('x', { user: 'nobody-of-that-name' }))
r.asUser = (await s.commands.run('echo $COLOUR', { user: 'user', envs: { COLOUR: 'green' } })).stdout
r.start = await failure(s.commands.run('x', { cwd: 'no-such-folder' }))
const h = await s.commands.run('echo hello; sleep 1; echo end; exit 7', { background: true, timeoutMs: 0 })
r.listed = await s.commands.list()
const c = await s.commands.connect(h.pid)
await h.disconnect()
r.late = await failure(c.wait()); r.connected = c.stdout
r.gone = await failure(s.commands.connect(999999))
const k = await s.commands.run('sleep 60', { background: true })
r.killedIt = await k.kill(); r.killed = await failure(k.wait()); r.killedGone = await s.commands.kill(k.pid)
r.listedAfter = (await s.commands.list()).length
out(r)
`, &got)
		if got.Plain.Stdout != "out\n" || got.Plain.Stderr != "err\n" || got.Env.Stdout != "session call\n" || got.Cwd.Stdout != "sub\n" {
			t.Errorf("got %+v", got)
		}
		if strings.Join(got.Streamed, "") != "one\ntwo\n" || got.First > got.All-700 {
			t.Errorf("streamed %q, the first after %d of %d ms", got.Streamed, got.First, got.All)
		}
		if got.Big != 3000000 {
			t.Errorf("%d bytes of 3,000,000 arrived", got.Big)
		}
		got.Exit.is(t, "exit 3", "CommandExitError")
		if e := got.Exit; e != nil && (e.ExitCode != 3 || e.Stdout != "some\n" || e.Stderr != "bad\n") {
			t.Errorf("exit 3: %+v", e)
		}
		got.Timeout.is(t, "past its time", "TimeoutError")
		got.User.is(t, "another user", "AuthenticationError", "nobody-of-that-name")
		if got.AsUser != "green\n" {
			t.Errorf("as the user it said %q", got.AsUser)
		}
		got.Start.is(t, "missing cwd", "InvalidArgumentError", "cannot be started")
		if len(got.Listed) != 1 || got.Listed[0].Cmd != "/bin/bash" || got.Listed[0].Args[2] != "echo hello; sleep 1; echo end; exit 7" || got.Listed[0].PID == 0 {
			t.Errorf("listed %+v", got.Listed)
		}
		got.Late.is(t, "connected", "CommandExitError")
		if got.Late != nil && got.Late.ExitCode != 7 || !strings.HasSuffix(got.Connected, "end\n") {
			t.Errorf("connected saw %q, %+v", got.Connected, got.Late)
		}
		got.Gone.is(t, "connect to nothing", "NotFoundError", "999999")
		got.Killed.is(t, "killed", "CommandExitError", "signal: killed")
		if !got.KilledIt || got.KilledGone || got.ListedAfter != 0 {
			t.Errorf("kill %v, again %v, %d still listed", got.KilledIt, got.KilledGone, got.ListedAfter)
		}
	})
}

// The limit counts from the start, not from the call: the wait for the person
// is not the command's.
func TestSDKLimitCountsFromStart(t *testing.T) {
	t.Parallel()
	started := make(chan *wire.ProcessStart, 8)
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if p, ok := m.Payload.(*wire.ProcessStart); ok {
			started <- p
		}
		return nil
	})
	var done bool
	s.js(t, `
const s = await Sandbox.create()
await s.commands.run('true')
await s.commands.run('true', { timeoutMs: 20_000 })
await s.commands.run('true', { timeoutMs: 3_000 })
await s.commands.run('true', { timeoutMs: 0 })
out(true)`, &done)
	for _, want := range []struct{ limit, wait int }{{60_000, 50_000}, {20_000, 15_000}, {3_000, 1}, {0, 50_000}} {
		p := <-started
		if p.TimeoutMS != want.limit || p.WaitMS > want.wait || p.WaitMS < max(want.wait-3000, 1) {
			t.Errorf("limit %d ms and %d ms for the person, want %d and %d", p.TimeoutMS, p.WaitMS, want.limit, want.wait)
		}
	}
}

func TestSDKAnswers(t *testing.T) {
	t.Parallel()
	answers := map[string]error{
		"declined":    wire.Errorf(wire.CodeDenied, "Ann declined: run \"declined\"."),
		"expired":     wire.Errorf(wire.CodeExpired, "Nobody answered within 50 s: run \"expired\"."),
		"undelivered": wire.Errorf(wire.CodeUndelivered, "The question could not be shown, since there is no display."),
		"paused":      wire.Errorf(wire.CodePaused, "Ann paused this computer."),
		"stopped":     wire.Errorf(wire.CodeStopped, "Everything was stopped."),
		"busy":        wire.Errorf(wire.CodeOverloaded, "This computer already works on 32 requests."),
		"outside":     wire.Errorf(wire.CodePathOutside, "/etc/x is outside the folder of this session."),
		"full":        wire.Errorf(wire.CodeDiskFull, "The disk of this computer is full."),
	}
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		switch p := m.Payload.(type) {
		case *wire.SessionOpen:
			return answers[p.Title]
		case *wire.ProcessStart:
			return answers[p.Args[len(p.Args)-1]]
		case *wire.FileRead:
			return answers[p.Path]
		case *wire.FileWrite:
			return answers[p.Path]
		case *wire.FileStat:
			return answers[p.Path]
		case *wire.FilePath:
			return answers[p.Path]
		case *wire.FileDelete:
			return answers[p.Path]
		}
		return nil
	}, func(h *hub.Options, _ *tunnel.Options) { h.Wait = 3 * time.Second }) // so long they wait for one that stays busy
	var got map[string]map[string]*failure
	s.js(t, `
const s = await Sandbox.create()
const r = {}
for (const a of ['declined', 'expired', 'undelivered', 'paused', 'stopped', 'busy', 'outside', 'full'])
  r[a] = { run: await failure(s.commands.run(a)), read: await failure(s.files.read(a)), write: await failure(s.files.write(a, 'x')), stat: await failure(s.files.exists(a)),
    remove: await failure(s.files.remove(a)), create: a == 'busy' ? null : await failure(Sandbox.create({ metadata: { title: a } })) }
out(r)`, &got)
	type codes struct{ rpc, http string }
	for answer, want := range map[string]codes{
		"declined": {"7: [permission_denied]", "403: "}, "expired": {"9: [failed_precondition]", "412: "}, "undelivered": {"9: [failed_precondition]", "412: "},
		"paused": {"9: [failed_precondition]", "412: "}, "stopped": {"10: [aborted]", "409: "}, "outside": {"7: [permission_denied]", "403: "},
	} {
		text := answers[answer].Error()
		for _, call := range []string{"run", "stat", "remove"} {
			got[answer][call].is(t, answer+" "+call, "SandboxError", want.rpc, text)
		}
		for _, call := range []string{"read", "write", "create"} {
			got[answer][call].is(t, answer+" "+call, "SandboxError", want.http, text)
		}
	}
	for _, call := range []string{"run", "stat", "read", "write"} {
		got["busy"][call].is(t, "busy "+call, "RateLimitError", answers["busy"].Error())
	}
	got["full"]["write"].is(t, "full write", "NotEnoughSpaceError", answers["full"].Error())
	got["full"]["remove"].is(t, "full remove", "SandboxError", answers["full"].Error())
}

// A program that gives up takes its question with it.
func TestSDKGivesUp(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 4)
	s := newSDK(t, func(ctx context.Context, m wire.Message) error {
		if m.Type != wire.TypeProcessStart && m.Type != wire.TypeFileDelete {
			return nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	})
	var got struct{ Run, Remove *failure }
	s.js(t, `
const s = await Sandbox.create()
out({ run: await failure(s.commands.run('x', { requestTimeoutMs: 1000 })), remove: await failure(s.files.remove('x', { requestTimeoutMs: 1000 })) })`, &got)
	if got.Run == nil || got.Remove == nil {
		t.Errorf("got %+v", got)
	}
	for range 2 {
		select {
		case err := <-ended:
			if wire.CodeOf(err) != wire.CodeCancelled {
				t.Errorf("the request ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the request was not cancelled on the machine")
		}
	}
}

// While the person is asked, the client has the headers and nothing else.
func TestHeadersComeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if m.Type == wire.TypeProcessStart {
			close(asked)
			<-answer
		}
		return nil
	})
	h := raw(t, s)
	message := `{"process":{"cmd":"/bin/bash","args":["-l","-c","echo hi"]}}`
	body := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/sbx/process.Process/Start", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	req.Header.Set("Content-Type", "application/connect+json")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("Connect-Timeout-Ms", "500") // of the process, and not of the call
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/connect+json" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	<-asked
	first := make(chan string, 1)
	go func() {
		head := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, head); err != nil {
			first <- err.Error()
			return
		}
		event := make([]byte, head[4])
		_, _ = io.ReadFull(resp.Body, event)
		first <- string(event)
	}()
	select {
	case e := <-first:
		t.Errorf("before the answer came %s", e)
	case <-time.After(time.Second):
	}
	close(answer)
	if e := <-first; !strings.Contains(e, `"start":{"pid":`) {
		t.Errorf("the first event is %s", e)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), `"stdout":"aGkK"`) || !strings.Contains(string(rest), `"exited":true`) {
		t.Errorf("then %q, %v", rest, err)
	}
}
