//go:build unix

package e2b_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/tunnel/wire"
)

// A paused sandbox stands still and says so, is kept for a day, and goes on
// when a program connects to it.
func TestSDKPauseAndResume(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var got struct {
		ID                                 string
		Paused, Again, Running             bool
		State, After, OnTimeout, NoTimeout string
		Left                               float64
		Run, Read, Write, List, Timeout    *failure
		Output                             string
		Same, Killed                       bool
		Lives                              float64
	}
	s.js(t, `
const s = await Sandbox.create({ timeoutMs: 600_000 }), r = { id: s.sandboxId }
r.noTimeout = (await s.getInfo()).lifecycle.onTimeout
r.paused = await s.pause(); r.again = await s.pause()
const i = await s.getInfo()
r.state = i.state; r.left = (i.endAt - Date.now()) / 3600_000
r.running = await s.isRunning()
r.run = await failure(s.commands.run('true')); r.read = await failure(s.files.read('x')); r.write = await failure(s.files.write('x', 'y')); r.list = await failure(s.files.list('.'))
r.timeout = await failure(s.setTimeout(1000))
const c = await Sandbox.connect(s.sandboxId)
r.same = c.sandboxId == s.sandboxId && await s.isRunning()
r.output = (await s.commands.run('echo on')).stdout
const a = await c.getInfo()
r.after = a.state; r.lives = (a.endAt - Date.now()) / 60_000
await s.pause(); r.killed = await Sandbox.kill(s.sandboxId)
r.onTimeout = (await (await Sandbox.create({ lifecycle: { onTimeout: 'pause' } })).getInfo()).lifecycle.onTimeout
out(r)`, &got)
	if !got.Paused || got.Again || got.Running || got.State != "paused" || got.After != "running" || !got.Same || got.Output != "on\n" || !got.Killed {
		t.Errorf("got %+v", got)
	}
	if got.NoTimeout != "kill" || got.OnTimeout != "pause" {
		t.Errorf("at the end of the time: %s, %s", got.NoTimeout, got.OnTimeout)
	}
	if got.Left < 23.5 || got.Left > 24 || got.Lives < 9 || got.Lives > 10.1 {
		t.Errorf("paused it is kept for %g hours, then it has %g minutes", got.Left, got.Lives)
	}
	for what, f := range map[string]*failure{"run": got.Run, "read": got.Read, "write": got.Write, "list": got.List, "setTimeout": got.Timeout} {
		f.is(t, what+" while paused", "SandboxError", "This sandbox is paused. Connect to it")
	}
}

// At the end of its time it is paused if it was made so, and a call wakes it if
// it was made so, too.
func TestSDKPauseAtEnd(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var ids struct{ Waits, Wakes string }
		s.js(t, `
out({ waits: (await Sandbox.create({ timeoutMs: 2000, lifecycle: { onTimeout: 'pause' } })).sandboxId,
  wakes: (await Sandbox.create({ timeoutMs: 2000, lifecycle: { onTimeout: 'pause', autoResume: true } })).sandboxId })`, &ids)
		eventually(t, "both are paused", func() bool { return s.Asleep(ids.Waits) && s.Asleep(ids.Wakes) })
		var got struct {
			States                 []string
			Waits                  *failure
			Output, Woken, Resumed string
		}
		s.js(t, `
const open = async id => { const i = await Sandbox.getInfo(id); return i.state }
const r = { states: [await open(process.env.WAITS), await open(process.env.WAKES)] }
const token = {}
for (const id of [process.env.WAITS, process.env.WAKES]) {
  const res = await fetch(process.env.E2B_SANDBOX_URL + '/files?path=none', { headers: { 'E2b-Sandbox-Id': id, 'X-Access-Token': 'x' } })
  if (res.status != 401) throw new Error('without its token: ' + res.status)
}
out(r)`, &got, "WAITS="+ids.Waits, "WAKES="+ids.Wakes)
		if len(got.States) != 2 || got.States[0] != "paused" || got.States[1] != "paused" {
			t.Errorf("states: %v", got.States)
		}
		if !s.Asleep(ids.Wakes) {
			t.Error("a call without the right to it woke a sandbox")
		}
	})
}

// A call to a paused sandbox wakes it, if that was asked for at its start.
func TestAutoResume(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	h := raw(t, s, "{ timeoutMs: 3600_000, lifecycle: { onTimeout: 'pause', autoResume: true } }")
	id := h.Get("E2b-Sandbox-Id")
	pause := func(want int) {
		t.Helper()
		if r := control(t, s, "POST", "/sandboxes/"+id+"/pause", "{}"); r.status != want {
			t.Fatalf("pause: %d %s", r.status, r.body)
		}
	}
	pause(204)
	pause(409)
	if r := get(t, s.URL+"/sbx/health", h); r.status != 502 || !s.Asleep(id) {
		t.Errorf("health: %d %s; asleep %v", r.status, r.body, s.Asleep(id))
	}
	if r := get(t, s.URL+"/sbx/files?path=none", h); r.status != 404 || s.Asleep(id) {
		t.Errorf("read: %d %s; asleep %v", r.status, r.body, s.Asleep(id))
	}
	if r := get(t, s.URL+"/sbx/health", h); r.status != 204 {
		t.Errorf("health once awake: %d %s", r.status, r.body)
	}
	pause(204)
	if r := control(t, s, "POST", "/sandboxes/"+id+"/resume", `{"timeout":60}`); r.status != 201 || s.Asleep(id) {
		t.Errorf("resume: %d %s", r.status, r.body)
	}
	if r := control(t, s, "POST", "/sandboxes/"+id+"/resume", `{"timeout":60}`); r.status != 409 {
		t.Errorf("resume of one that runs: %d %s", r.status, r.body)
	}
	for _, v := range []string{"", "/v2"} {
		if r := control(t, s, "POST", v+"/sandboxes/"+id+"/connect", `{"timeout":60}`); r.status != 200 {
			t.Errorf("%s connect to one that runs: %d %s", v, r.status, r.body)
		}
		pause(204)
		if r := control(t, s, "POST", v+"/sandboxes/"+id+"/connect", `{"timeout":60}`); r.status != 201 || !strings.Contains(r.body, `"envdAccessToken":"`) {
			t.Errorf("%s connect to one that is paused: %d %s", v, r.status, r.body)
		}
	}
	// Setting the time to nothing ends it in the way that it was made for.
	if r := control(t, s, "POST", "/sandboxes/"+id+"/timeout", `{"timeout":0}`); r.status != 204 || !s.Asleep(id) {
		t.Errorf("no more time: %d %s; asleep %v", r.status, r.body, s.Asleep(id))
	}
}

// A computer that does not pause is told of, and the sandbox runs on.
func TestPauseFails(t *testing.T) {
	t.Parallel()
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if m.Type == wire.TypeSessionPause {
			return wire.Errorf(wire.CodeNotSupported, "This computer does not pause.")
		}
		return nil
	})
	h := raw(t, s)
	id := h.Get("E2b-Sandbox-Id")
	if r := control(t, s, "POST", "/sandboxes/"+id+"/pause", ""); r.status != 501 || !strings.Contains(r.body, "does not pause") {
		t.Errorf("pause: %d %s", r.status, r.body)
	}
	if r := control(t, s, "GET", "/sandboxes/"+id, ""); r.status != 200 || !strings.Contains(r.body, `"state":"running"`) {
		t.Errorf("state: %d %s", r.status, r.body)
	}
	s.Forget(id)
	if r := control(t, s, "POST", "/sandboxes/"+id+"/pause", ""); r.status != 404 {
		t.Errorf("pause of one that the computer has no more: %d %s", r.status, r.body)
	}
	if r := control(t, s, "GET", "/sandboxes/"+id, ""); r.status != 404 {
		t.Errorf("state: %d %s", r.status, r.body)
	}
}

// Metrics are the computer's own, and so are the numbers of getInfo.
func TestSDKMetrics(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Metrics []struct {
				Timestamp                              time.Time
				CPUCount                               int
				CPUUsedPct                             float64
				MemTotal, MemUsed, DiskTotal, DiskUsed int64
			}
			CPUs, Memory int
			Gone         *failure
		}
		s.js(t, `
const s = await Sandbox.create()
const i = await s.getInfo()
const r = { metrics: await s.getMetrics({ start: new Date(Date.now() - 60_000), end: new Date() }), cpus: i.cpuCount, memory: i.memoryMB }
await s.kill()
r.gone = await failure(Sandbox.getMetrics(s.sandboxId))
out(r)`, &got)
		if len(got.Metrics) != 1 || got.CPUs != 4 || got.Memory != 8192 {
			t.Fatalf("got %+v", got)
		}
		m := got.Metrics[0]
		if time.Since(m.Timestamp).Abs() > time.Minute || m.CPUCount != 4 || m.CPUUsedPct != 12.5 || m.MemTotal != 8<<30 || m.MemUsed != 3<<30 || m.DiskTotal != 100<<30 || m.DiskUsed != 40<<30 {
			t.Errorf("metrics: %+v", m)
		}
		if got.Gone == nil {
			t.Error("there are metrics of what is not there")
		}
	})
	s := newSDK(t, nil)
	h := raw(t, s)
	for query, status := range map[string]int{"": 200, "?start=1&end=2": 200, "?start=soon": 400, "?end=-1": 400} {
		if r := control(t, s, "GET", "/sandboxes/"+h.Get("E2b-Sandbox-Id")+"/metrics"+query, ""); r.status != status {
			t.Errorf("metrics%s: %d %s", query, r.status, r.body)
		}
	}
}

// control is a call to the control API with the test's key.
func control(t *testing.T, s *sdk, method, path, body string) response {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+"/api"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", s.Key)
	status, text := do(t, req)
	return response{status: status, body: text}
}

// The names that AutoGPT gives its image lead to the folder as base does.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	for _, name := range []string{"base", "desktop", "agpt-desktop-1x2-68f7fe36", "base:default"} {
		if r := control(t, s, "GET", "/templates/aliases/"+name, ""); r.status != 200 || !strings.Contains(r.body, `"templateID":"`+name+`"`) {
			t.Errorf("alias %s: %d %s", name, r.status, r.body)
		}
		if r := control(t, s, "GET", "/templates/"+name, ""); r.status != 200 || !strings.Contains(r.body, `"status":"ready"`) {
			t.Errorf("template %s: %d %s", name, r.status, r.body)
		}
		if r := control(t, s, "POST", "/sandboxes", fmt.Sprintf(`{"templateID":%q}`, name)); r.status != 201 || !strings.Contains(r.body, `"templateID":"`+name+`"`) {
			t.Errorf("create from %s: %d %s", name, r.status, r.body)
		}
	}
	for _, path := range []string{"/templates/aliases/my-image", "/templates/my-image", "/templates/agpt-desktops"} {
		if r := control(t, s, "GET", path, ""); r.status != 404 || !strings.Contains(r.body, `"code":404`) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// Who declines is not asked again by a program that tries again by itself, as
// AutoGPT does twice; a moment later, and for another folder, they are.
func TestDeclinedOnce(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if m.Type != wire.TypeSessionOpen {
			return nil
		}
		asked <- struct{}{}
		return wire.Errorf(wire.CodeDenied, "The person at this computer declined.")
	})
	create := func(body string) {
		t.Helper()
		if r := control(t, s, "POST", "/v2/sandboxes", body); r.status != 403 || !strings.Contains(r.body, `"code":403,"message":"The person at this computer declined."`) {
			t.Errorf("create: %d %s", r.status, r.body)
		}
	}
	first := time.Now()
	create("{}")
	create("{}")
	if n := len(asked); n != 1 && time.Since(first) < 5*time.Second {
		t.Errorf("the person was asked %d times", n)
	}
	n := len(asked)
	create(`{"metadata":{"folder":"~/Photos"}}`)
	if len(asked) != n+1 {
		t.Error("the person was not asked for another folder")
	}
	n++
	time.Sleep(time.Until(first.Add(6 * time.Second)))
	create("{}")
	if len(asked) != n+1 {
		t.Error("the person was not asked again later")
	}
}

// A computer that does not answer keeps no other sandbox from being paused at
// its end.
func TestPauseAtEndBesideOneThatHangs(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hangs := "" // the one that is asked first
	s := newSDK(t, func(ctx context.Context, m wire.Message) error {
		if m.Type != wire.TypeSessionPause {
			return nil
		}
		id := m.Payload.(*wire.SessionRef).SessionID
		mu.Lock()
		if hangs == "" {
			hangs = id
		}
		hang := hangs == id
		mu.Unlock()
		if hang {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	var ids []string
	s.js(t, `
const o = { timeoutMs: 4000, lifecycle: { onTimeout: 'pause' } }
out([(await Sandbox.create(o)).sandboxId, (await Sandbox.create(o)).sandboxId])`, &ids)
	eventually(t, "the other one is paused", func() bool { return s.Asleep(ids[0]) || s.Asleep(ids[1]) })
}
