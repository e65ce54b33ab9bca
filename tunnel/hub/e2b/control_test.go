//go:build unix

package e2b_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/wire"
)

func TestSDKSandboxLife(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	type info struct {
		SandboxID, TemplateID, EnvdVersion, State string
		StartedAt, EndAt                          time.Time
		Metadata                                  map[string]string
	}
	var got struct {
		ID                                     string
		Info, Later, Longer, Shorter           info
		Running, Gone                          bool
		Output                                 string
		Killed, Again, StaticAgain             bool
		InfoAfter, ConnectAfter, RunAfter, TTL *failure
		ReadAfter, WriteAfter                  *failure
	}
	s.js(t, `
const s = await Sandbox.create({ metadata: { folder: '~/Photos', title: 'Sort my photos', agent: 'sorter' }, envs: { COLOUR: 'green' } })
const r = { id: s.sandboxId, running: await s.isRunning(), info: await s.getInfo() }
await s.setTimeout(7200_000)
r.later = await s.getInfo()
const c = await Sandbox.connect(s.sandboxId, { timeoutMs: 3 * 3600_000 })
r.longer = await c.getInfo()
r.shorter = await (await Sandbox.connect(s.sandboxId, { timeoutMs: 60_000 })).getInfo()
r.output = (await c.commands.run('echo $COLOUR')).stdout
r.ttl = await failure(s.setTimeout(-1000))
r.killed = await s.kill(); r.again = await s.kill(); r.staticAgain = await Sandbox.kill(s.sandboxId)
r.gone = await s.isRunning()
r.infoAfter = await failure(s.getInfo())
r.connectAfter = await failure(Sandbox.connect(s.sandboxId))
r.runAfter = await failure(s.commands.run('true'))
r.readAfter = await failure(s.files.read('x')); r.writeAfter = await failure(s.files.write('x', 'y'))
out(r)
`, &got)
	if i := got.Info; i.SandboxID != got.ID || i.TemplateID != "base" || i.EnvdVersion != "0.6.13" || i.State != "running" || i.Metadata["title"] != "Sort my photos" {
		t.Errorf("getInfo: %+v", i)
	}
	life := func(i info) time.Duration { return i.EndAt.Sub(i.StartedAt).Round(time.Minute) }
	if d := life(got.Info); d != time.Hour {
		t.Errorf("without a timeout it lives %s, want an hour", d)
	}
	if d := life(got.Later); d != 2*time.Hour {
		t.Errorf("after setTimeout it lives %s", d)
	}
	if life(got.Longer) != 3*time.Hour || life(got.Shorter) != 3*time.Hour {
		t.Errorf("connect made it live %s, then %s: it may only make it longer", life(got.Longer), life(got.Shorter))
	}
	if !got.Running || got.Gone || got.Output != "green\n" {
		t.Errorf("got %+v", got)
	}
	if !got.Killed || got.Again || got.StaticAgain {
		t.Errorf("kill: %v, again %v %v", got.Killed, got.Again, got.StaticAgain)
	}
	got.InfoAfter.is(t, "getInfo of a killed sandbox", "SandboxNotFoundError")
	got.ConnectAfter.is(t, "connect to a killed sandbox", "SandboxNotFoundError")
	got.RunAfter.is(t, "run in a killed sandbox", "SandboxNotFoundError")
	got.ReadAfter.is(t, "read in a killed sandbox", "TimeoutError", "not running any more")
	got.WriteAfter.is(t, "write in a killed sandbox", "TimeoutError", "not running any more")
	got.TTL.is(t, "a negative timeout", "SandboxError", "The timeout must be")
	if open := s.Sessions(); len(open) != 0 {
		t.Errorf("still open on the machine: %v", open)
	}
}

// What a program says of itself reaches the machine as that, beside what its
// key proves.
func TestSDKClaims(t *testing.T) {
	t.Parallel()
	opened := make(chan wire.SessionOpen, 2)
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if o, ok := m.Payload.(*wire.SessionOpen); ok {
			opened <- *o
		}
		return nil
	})
	var done bool
	s.js(t, `
await Sandbox.create({ metadata: { folder: '~/Photos', title: 'Sort\nmy \u202ephotos', agent: 'sorter' }, timeoutMs: 90_000 })
await Sandbox.create()
out(true)`, &done)
	o := <-opened
	if o.PrincipalName != "Test program" || !strings.HasPrefix(o.PrincipalID, "k") || o.Agent != "sorter" || o.Title != "Sort\nmy \u202ephotos" || o.Folder != "~/Photos" || o.TTLSeconds != 90 {
		t.Errorf("opened with %+v", o)
	}
	if o.WaitMS < 45_000 || o.WaitMS > 50_000 {
		t.Errorf("the person has %d ms", o.WaitMS)
	}
	o = <-opened
	if !strings.HasPrefix(o.Agent, "e2b-js-sdk/") || o.Title != "" || o.Folder != "" {
		t.Errorf("opened with %+v", o)
	}
}

func TestSDKList(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var got struct {
		IDs, All, Asc, Tagged, Odd, Since, Other []string
		Paused, Running                          []string
		Pages                                    [][]string
	}
	other, err := s.Hub.MakeKey(t.Context(), "Another program")
	if err != nil {
		t.Fatal(err)
	}
	s.js(t, `
const all = async o => { const p = Sandbox.list(o); const ids = []; while (p.hasNext) ids.push(...(await p.nextItems()).map(i => i.sandboxId)); return ids }
const ids = []
let third
for (let i = 0; i < 5; i++) {
  if (i == 3) { await sleep(50); third = new Date() }
  ids.push((await Sandbox.create({ metadata: { n: String(i % 2), 'a=b&': 'c% +d/ü' + i } })).sandboxId); await sleep(5)
}
await Sandbox.pause(ids[1])
const pages = []
const p = Sandbox.list({ limit: 2 })
while (p.hasNext) pages.push((await p.nextItems()).map(i => i.sandboxId))
out({ ids, pages, all: await all(), asc: await all({ order: 'asc', limit: 3 }), tagged: await all({ query: { metadata: { n: '1' } } }),
  odd: await all({ query: { metadata: { n: '0', 'a=b&': 'c% +d/ü2' } } }), paused: await all({ query: { state: ['paused'] } }), running: await all({ query: { state: ['running'] } }),
  since: await all({ query: { startedAfter: third } }), other: await all({ apiKey: process.env.OTHER }) })
`, &got, "OTHER="+other)
	ids := got.IDs
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	for what, pair := range map[string][2][]string{
		"all": {got.All, newest}, "oldest first": {got.Asc, ids}, "by metadata": {got.Tagged, {ids[3], ids[1]}}, "by odd metadata": {got.Odd, {ids[2]}},
		"paused": {got.Paused, {ids[1]}}, "running": {got.Running, {ids[4], ids[3], ids[2], ids[0]}}, "since": {got.Since, {ids[4], ids[3]}}, "with another key": {got.Other, {}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v (all: %v)", what, pair[0], pair[1], ids)
		}
	}
	if len(got.Pages) != 3 || !slices.Equal(slices.Concat(got.Pages...), newest) {
		t.Errorf("pages %v, want %v", got.Pages, newest)
	}
}

// A sandbox belongs to the key it was opened with.
func TestSDKOtherKey(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	ctx := t.Context()
	other, err := s.Hub.MakeKey(ctx, "Another program")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kill                          bool
		Info, Connect, Wrong, Revoked *failure
		Still                         string
	}
	var id string
	s.js(t, `out((await Sandbox.create()).sandboxId)`, &id)
	s.js(t, `
const apiKey = process.env.OTHER, id = process.env.ID
out({ kill: await Sandbox.kill(id, { apiKey }), info: await failure(Sandbox.getInfo(id, { apiKey })), connect: await failure(Sandbox.connect(id, { apiKey })),
  wrong: await failure(Sandbox.create({ apiKey: 'e2b_0123' })), still: (await (await Sandbox.connect(id)).commands.run('echo mine')).stdout })
`, &got, "OTHER="+other, "ID="+id)
	if got.Kill || got.Still != "mine\n" {
		t.Errorf("got %+v", got)
	}
	got.Info.is(t, "getInfo", "SandboxNotFoundError")
	got.Connect.is(t, "connect", "SandboxNotFoundError")
	got.Wrong.is(t, "create with an unknown key", "AuthenticationError", "localpc-hub key add")

	// Revoking the key ends what was opened with it, there too.
	keys, err := s.Hub.Keys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.Name == "Test program" {
			if err := s.Hub.RevokeKey(ctx, k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the session is closed on the machine", func() bool { return len(s.Sessions()) == 0 })
	s.js(t, `out({ revoked: await failure(Sandbox.connect(process.env.ID)) })`, &got, "ID="+id)
	got.Revoked.is(t, "a revoked key", "AuthenticationError")
	if err := s.Hub.RevokeKey(ctx, "k0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoking an unknown key: %v", err)
	}
}

// What cannot be had on a person's computer is refused with a sentence, and
// nobody is asked about it.
func TestSDKNotOffered(t *testing.T) {
	t.Parallel()
	asked := make(chan wire.Message, 100)
	s := newSDK(t, func(_ context.Context, m wire.Message) error {
		if m.Type == wire.TypeSessionOpen {
			asked <- m
		}
		return nil
	})
	var got map[string]*failure
	s.js(t, `
const s = await Sandbox.create()
out({
  internet: await failure(Sandbox.create({ allowInternetAccess: false })),
  network: await failure(Sandbox.create({ network: { denyOut: ['1.1.1.1'] } })),
  memory: await failure(Sandbox.create({ lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })),
  volumes: await failure(Sandbox.create({ volumeMounts: { '/data': 'v' } })),
  template: await failure(Sandbox.create('my-image')),
  interpreter: await failure(Sandbox.create('code-interpreter-v1')),
  snapshot: await failure(s.createSnapshot()),
  fork: await failure(s.fork()),
  networkNow: await failure(s.updateNetwork({ denyOut: ['1.1.1.1'] })),
  pauseMemory: await failure(s.pause({ keepMemory: false })),
  reboot: await failure(Sandbox.connect(s.sandboxId, { onResume: 'reboot' })),
  volume: await failure(e2b.Volume.create('v')),
  root: await failure(s.commands.run('id', { user: 'root' })),
  rootFile: await failure(s.files.read('x', { user: 'root' })),
})`, &got)
	for what, want := range map[string]string{
		"internet": "Network rules", "network": "Network rules", "memory": "only the files", "volumes": "Leave the volume mounts out", "template": `no template "my-image"`,
		"interpreter": "no template", "snapshot": "Snapshots", "fork": "Forks", "networkNow": "Network rules", "pauseMemory": "only the files", "reboot": "Starting a sandbox anew",
	} {
		got[what].is(t, what, "SandboxError", want)
	}
	got["volume"].is(t, "a volume", "VolumeError", "Volumes")
	got["root"].is(t, "another user", "AuthenticationError", "root")
	got["rootFile"].is(t, "another user's file", "AuthenticationError", "root")
	if len(asked) != 1 {
		t.Errorf("the person was asked for %d sessions, want 1", len(asked))
	}
}

func TestControlBadInput(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"not JSON", "POST", "/v2/sandboxes", "{", 400},
		{"another type", "POST", "/sandboxes", `{"timeout":"long"}`, 400},
		{"a number that is none here", "POST", "/sandboxes", `{"timeout":1e297}`, 400},
		{"no object", "POST", "/sandboxes", `[1]`, 400},
		{"too long a life", "POST", "/sandboxes", `{"timeout":99999999}`, 400},
		{"a body without end", "POST", "/sandboxes", strings.Repeat(" ", 2<<20), 413},
		{"an environment that cannot be", "POST", "/sandboxes", `{"envVars":{"A=B":"c"}}`, 400},
		{"a gateway for MCP servers", "POST", "/v2/sandboxes", `{"mcp":{"browserbase":{}}}`, 400},
		{"an identity", "POST", "/v2/sandboxes", `{"iam":{"role":"x"}}`, 400},
		{"going on by itself without a pause", "POST", "/v2/sandboxes", `{"autoResume":{"enabled":true}}`, 400},
		{"a title without end", "POST", "/sandboxes", `{"metadata":{"title":"` + strings.Repeat("x", 2000) + `"}}`, 400},
		{"no such sandbox", "GET", "/sandboxes/x", "", 404},
		{"an odd id", "DELETE", "/sandboxes/%00%0a", "", 404},
		{"no timeout", "POST", "/sandboxes/x/timeout", "{}", 400},
		{"a limit that is none", "GET", "/v2/sandboxes?limit=many", "", 400},
		{"a page that is none", "GET", "/v2/sandboxes?nextToken=!", "", 400},
		{"a time that is none", "GET", "/v2/sandboxes?startedAfter=soon", "", 400},
		{"metadata that is none", "GET", "/v2/sandboxes?metadata=%25zz", "", 400},
		{"nothing there", "GET", "/templates", "", 501},
	} {
		req, err := http.NewRequest(c.method, s.URL+"/api"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-KEY", s.Key)
		status, body := do(t, req)
		if status != c.status || !strings.Contains(body, `"message":"`) || strings.Contains(body, `"message":""`) || strings.Contains(body, "Go ") {
			t.Errorf("%s: %d %s, want %d and a sentence", c.name, status, body, c.status)
		}
	}
}

// What SDKs before 2.51 send when they are asked for nothing special.
func TestOlderCreate(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	req, err := http.NewRequest("POST", s.URL+"/api/sandboxes", strings.NewReader(
		`{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true,"autoPause":false,"network":{},"mcp":null,"metadata":{},"envVars":null}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", s.Key)
	status, body := do(t, req)
	if status != 201 || !strings.Contains(body, `"envdAccessToken":"`) {
		t.Errorf("%d %s", status, body)
	}
	if open := s.Sessions(); len(open) != 1 {
		t.Errorf("open on the machine: %v", open)
	}
}

// With no machine connected the SDK says so in the hub's words.
func TestSDKOffline(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var id string
	s.js(t, `out((await Sandbox.create()).sandboxId)`, &id)
	if err := s.Hub.RevokeMachine(t.Context(), s.MachineID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the machine is offline", func() bool {
		m, err := s.Hub.Machines(t.Context())
		return err == nil && len(m) == 1 && !m[0].Online
	})
	var got struct {
		Create, Run, Read, List, Extend *failure
		Running, Killed                 bool
	}
	s.js(t, `
const s = await Sandbox.connect(process.env.ID)
out({ create: await failure(Sandbox.create()), run: await failure(s.commands.run('true')), read: await failure(s.files.read('x')),
  list: await failure(s.files.list('.')), extend: await failure(s.setTimeout(7200_000)), running: await s.isRunning(), killed: await s.kill() })
`, &got, "ID="+id)
	got.Create.is(t, "create", "ServiceBusyError", "No computer is connected")
	got.Run.is(t, "run", "SandboxError", "not connected to the hub")
	got.Read.is(t, "read", "SandboxError", "not connected to the hub")
	got.List.is(t, "list", "SandboxError", "not connected to the hub")
	got.Extend.is(t, "setTimeout", "ServiceBusyError", "not connected to the hub")
	if got.Running || !got.Killed {
		t.Errorf("running %v, killed %v", got.Running, got.Killed)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so in 10 s: %s", what)
		}
	}
}
