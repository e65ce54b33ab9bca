//go:build unix

package e2b_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localpc/tunnel"
	"localpc/tunnel/hub"
)

// A watched directory tells of what happens in it, by names relative to it,
// with what is there then if that is asked for.
func TestSDKWatch(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Events, Deep, Entries []string
			Missing, File, Limit  *failure
			Over                  string
			Exits                 []string
		}
		s.js(t, `
const s = await Sandbox.create(), r = { exits: [] }
const until = async ok => { for (let i = 0; !ok() && i < 1500; i++) await sleep(20) }
await s.files.write('dir/sub/old.txt', '1')
const events = [], deep = [], entries = []
const w = await s.files.watchDir('dir', e => events.push(e.type + ' ' + e.name), { onExit: e => r.exits.push(e ? e.message : 'left') })
const d = await s.files.watchDir('/home/user/dir', e => deep.push(e.type + ' ' + e.name), { recursive: true, timeoutMs: 0 })
const i = await s.files.watchDir('dir', e => e.entry && entries.push(e.name + ' ' + e.entry.path + ' ' + e.entry.type), { includeEntry: true })
await s.files.write('dir/new ü.txt', 'x'); await s.files.write('dir/sub/old.txt', '2')
await s.files.rename('dir/new ü.txt', 'dir/renamed.txt'); await s.files.remove('dir/renamed.txt')
await until(() => events.includes('remove renamed.txt') && deep.includes('write sub/old.txt') && (entries.length || `+fmt.Sprint(s.version == "e2b-2.15")+`))
await w.stop(); await d.stop(); await i.stop()
const stopped = events.length
await s.files.write('dir/later.txt', 'x'); await sleep(200)
if (events.length != stopped) throw new Error('told of ' + events.slice(stopped) + ' after it was stopped')
r.events = events; r.deep = deep; r.entries = entries
r.missing = await failure(s.files.watchDir('none', () => {})); r.file = await failure(s.files.watchDir('dir/later.txt', () => {}))
let exited
const gone = new Promise(ok => exited = ok)
await s.files.watchDir('dir', () => {}, { timeoutMs: 500, onExit: e => exited(e) })
r.limit = await failure(gone.then(e => { if (e) throw e }))
out(r)`, &got)
		for _, want := range []string{"create new ü.txt", "write new ü.txt", "rename new ü.txt", "create renamed.txt", "remove renamed.txt"} {
			if !slices.Contains(got.Events, want) {
				t.Errorf("no %q in %q", want, got.Events)
			}
		}
		if slices.ContainsFunc(got.Events, func(e string) bool { return strings.Contains(e, "/") }) {
			t.Errorf("told of what is in a directory below: %q", got.Events)
		}
		if !slices.Contains(got.Deep, "write sub/old.txt") {
			t.Errorf("nothing was told of a directory below: %q", got.Deep)
		}
		if s.version != "e2b-2.15" && !slices.Contains(got.Entries, "new ü.txt dir/new ü.txt file") {
			t.Errorf("entries: %q", got.Entries)
		}
		got.Missing.is(t, "a directory that is not there", "FileNotFoundError")
		got.File.is(t, "a file", "InvalidArgumentError")
		if got.Limit == nil {
			t.Error("a watch went on after its time")
		}
	})
}

// fsnotify#343: more than can be told ends a watch with words that say so.
func TestSDKWatchOverflow(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	s.Flood = "flood"
	var got struct{ Over *failure }
	s.js(t, `
const s = await Sandbox.create()
let exited
const over = failure(new Promise((_, no) => exited = no))
await s.files.watchDir('.', () => {}, { onExit: exited })
await s.files.write('flood', 'x')
out({ over: await over })`, &got)
	got.Over.is(t, "an overflow", "SandboxError", "Look at it anew")
}

// Clients that ask again and again get what came since the last time.
func TestPolledWatch(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil, func(_ *hub.Options, o *tunnel.Options) { o.MaxConcurrent = 100 })
	s.Flood = "flood"
	h := raw(t, s)
	call := func(method, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest("POST", s.URL+"/sbx/filesystem.Filesystem/"+method, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = h.Clone()
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Connect-Protocol-Version", "1")
		return do(t, req)
	}
	create := func(body string) string {
		t.Helper()
		status, text := call("CreateWatcher", body)
		var made struct{ WatcherID string }
		if err := json.Unmarshal([]byte(text), &made); status != 200 || err != nil || made.WatcherID == "" {
			t.Fatalf("create: %d %s, %v", status, text, err)
		}
		return `{"watcherId":"` + made.WatcherID + `"}`
	}
	if status, text := call("CreateWatcher", `{"path":"none"}`); status != 404 {
		t.Errorf("a directory that is not there: %d %s", status, text)
	}
	w := create(`{"path":".","includeEntry":true,"allowNetworkMounts":true}`)
	if status, text := call("GetWatcherEvents", w); status != 200 || text != "{}" {
		t.Errorf("nothing happened: %d %s", status, text)
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt")
	eventually(t, "it is told of", func() bool {
		status, text := call("GetWatcherEvents", w)
		// Their JSON has a space here and there, by the build.
		var told struct {
			Events []struct {
				Name, Type string
				Entry      struct{ Name, Type, Path string }
			}
		}
		if err := json.Unmarshal([]byte(text), &told); status != 200 || err != nil {
			t.Fatalf("%d %s, %v", status, text, err)
		}
		for _, e := range told.Events {
			if e.Type == "EVENT_TYPE_CREATE" && e.Name == "a.txt" && e.Entry.Name == "a.txt" && e.Entry.Type == "FILE_TYPE_FILE" && e.Entry.Path == "a.txt" {
				return true
			}
		}
		return false
	})
	write("flood")
	eventually(t, "the overflow is told of, after what came before it", func() bool {
		status, text := call("GetWatcherEvents", w)
		return status != 200 && strings.Contains(text, "Look at it anew")
	})
	if status, text := call("RemoveWatcher", w); status != 200 {
		t.Errorf("remove: %d %s", status, text)
	}
	for _, method := range []string{"RemoveWatcher", "GetWatcherEvents"} {
		if status, text := call(method, w); status != 404 {
			t.Errorf("%s of what is not there: %d %s", method, status, text)
		}
	}
	for range 32 {
		w = create(`{"path":"."}`)
	}
	if status, text := call("CreateWatcher", `{"path":"."}`); status != 429 || !strings.Contains(text, "32 watchers") {
		t.Errorf("one too many: %d %s", status, text)
	}
	if status, _ := call("RemoveWatcher", w); status != 200 {
		t.Error("removing one of many failed")
	}
	create(`{"path":"."}`)
	other := raw(t, s)
	h.Set("E2b-Sandbox-Id", other.Get("E2b-Sandbox-Id"))
	h.Set("X-Access-Token", other.Get("X-Access-Token"))
	if status, text := call("GetWatcherEvents", w); status != 404 {
		t.Errorf("another sandbox's: %d %s", status, text)
	}
}
