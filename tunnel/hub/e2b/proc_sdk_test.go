//go:build unix

package e2b_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSDKStdin(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			None, Echoed, Split, Closed string
			Count, Much                 string
			Late, Without, TooMuch      *failure
			CanClose                    bool
			ExitCode                    int
		}
		s.js(t, `
const s = await Sandbox.create(), r = {}
// Nothing to read, unless it is asked for: cat ends at once.
r.none = (await s.commands.run('cat; echo none')).stdout
const h = await s.commands.run('read a; echo "got $a"; read b; echo "and $b"', { background: true, stdin: true })
await s.commands.sendStdin(h.pid, 'one\n')
while (!h.stdout.includes('got')) await sleep(20)
await s.commands.sendStdin(h.pid, 'two\n')
r.echoed = (await h.wait()).stdout
// Pieces of one character.
const c = await s.commands.run('head -n1', { background: true, stdin: true })
for (const b of Buffer.from('h\u00e4\u{1f600}\n')) await s.commands.sendStdin(c.pid, new Uint8Array([b]))
r.split = (await c.wait()).stdout
const n = await s.commands.run('head -c 2000000 | wc -c', { background: true, stdin: true })
await s.commands.sendStdin(n.pid, 'x'.repeat(1_500_000)); await s.commands.sendStdin(n.pid, 'y'.repeat(500_000))
r.count = (await n.wait()).stdout
const m = await s.commands.run('head -c 8000000 | wc -c', { background: true, stdin: true })
r.tooMuch = await failure(s.commands.sendStdin(m.pid, 'x'.repeat(16_000_000)))
await s.commands.sendStdin(m.pid, 'x'.repeat(8_000_000)); r.much = (await m.wait()).stdout
r.late = await failure(s.commands.sendStdin(n.pid, 'z'))
const w = await s.commands.run('sleep 1', { background: true })
r.without = await failure(s.commands.sendStdin(w.pid, 'x'))
r.canClose = !!s.commands.closeStdin
if (r.canClose) {
  const k = await s.commands.run('cat; sleep 1; exit 3', { background: true, stdin: true })
  await s.commands.sendStdin(k.pid, 'last words'); await s.commands.closeStdin(k.pid); await s.commands.closeStdin(k.pid)
  const e = await failure(k.wait()); r.closed = e.stdout; r.exitCode = e.exitCode
}
out(r)`, &got)
		if strings.TrimSpace(got.Much) != "8000000" {
			t.Errorf("of much at once %q bytes came", got.Much)
		}
		got.TooMuch.is(t, "too much at once", "SandboxError", "At most 9 MiB")
		if got.None != "none\n" || got.Echoed != "got one\nand two\n" || got.Split != "hä😀\n" || strings.TrimSpace(got.Count) != "2000000" {
			t.Errorf("got %+v", got)
		}
		got.Late.is(t, "input after the end", "NotFoundError", "runs in this sandbox")
		got.Without.is(t, "input without stdin", "SandboxError", "9: [failed_precondition]", "started without standard input")
		if got.CanClose && (got.Closed != "last words" || got.ExitCode != 3) {
			t.Errorf("after closeStdin: %q, %d", got.Closed, got.ExitCode)
		}
		if s.version == versions[0] && !got.CanClose {
			t.Error("the newest SDK has no closeStdin")
		}
	})
}

func TestSDKTerminal(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Text, Other string
			PID         int
			Exit        *failure
			Killed      *failure
			KilledIt    bool
			Again       bool
			Listed      []string
			User        *failure
			Resize      *failure
		}
		s.js(t, `
const s = await Sandbox.create(), r = {}
const dec = new TextDecoder(), enc = new TextEncoder()
let text = ''
const until = async (what, get) => { for (const end = Date.now() + 120_000; !what.test(get()); await sleep(20)) if (Date.now() > end) throw new Error(what + ' did not come: ' + get()) }
const p = await s.pty.create({ cols: 91, rows: 17, envs: { PS1: '', COLOUR: 'green' }, cwd: '/', onData: d => { text += dec.decode(d, { stream: true }) } })
const type = t => s.pty.sendInput(p.pid, enc.encode(t))
r.pid = p.pid
await type('stty -echo; stty size; echo $TERM $LANG $COLOUR $PWD\n')
await until(/17 91[^]*xterm-256color C.UTF-8 green \//, () => text)
await s.pty.resize(p.pid, { cols: 132, rows: 43 })
await type('stty size\n')
await until(/43 132/, () => text)
// Ctrl+C ends what runs in it, and not the terminal. What says that it has begun
// is what it is for: between two commands the shell may not mind it.
await type("sh -c 'echo be\"\"gun; exec sleep 100'\n"); await until(/begun/, () => text)
await type('\x03'); await type('echo sti""ll here: \u00e4\u{1f600}\n')
await until(/still here: \u00e4\u{1f600}/u, () => text)
r.listed = (await s.commands.list()).map(c => [c.cmd, ...c.args].join(' '))
// Another client takes part, and goes on when the first has left.
let other = ''
const c = await s.pty.connect(p.pid, { onData: d => { other += new TextDecoder().decode(d) } })
await type('echo bo""th\n'); await until(/both/, () => text); await until(/both/, () => other)
await p.disconnect()
await type('echo on""ly\n'); await until(/only/, () => other)
await type('exit 3\n')
r.exit = await failure(c.wait()); r.text = text; r.other = other
const k = await s.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 0 })
r.killedIt = await s.pty.kill(k.pid); r.killed = await failure(k.wait()); r.again = await s.pty.kill(k.pid)
r.user = await failure(s.pty.create({ cols: 80, rows: 24, onData: () => {}, user: 'nobody-of-that-name' }))
r.resize = await failure(s.pty.resize(k.pid, { cols: 10, rows: 10 }))
out(r)`, &got)
		if strings.Contains(got.Text, "only") || strings.Contains(got.Other, "begun") {
			t.Errorf("the first saw %q, the second %q", got.Text, got.Other)
		}
		if got.Exit == nil || got.Exit.ExitCode != 3 {
			t.Errorf("exit: %+v", got.Exit)
		}
		if len(got.Listed) != 1 || got.Listed[0] != "/bin/bash -i -l" {
			t.Errorf("listed %q", got.Listed)
		}
		got.Killed.is(t, "killed", "CommandExitError", "signal: killed")
		if !got.KilledIt || got.Again {
			t.Errorf("kill: %v, again %v", got.KilledIt, got.Again)
		}
		got.User.is(t, "another user", "AuthenticationError", "nobody-of-that-name")
		got.Resize.is(t, "resize of what has ended", "NotFoundError")
	})
}

// Several clients follow one command; each comes and goes as it likes.
func TestSDKConnect(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			First, Second, Third string
			Code, Late           *failure
			Running              int
			Callback             string
			Left                 string
			Gone                 *failure
			Short                *failure
			StillThere           int
		}
		s.js(t, `
const s = await Sandbox.create(), r = {}
const a = await s.commands.run('for i in 1 2 3; do read; echo $i; done; exit 6', { background: true, stdin: true, timeoutMs: 0 })
const t = await Sandbox.connect(s.sandboxId), u = await Sandbox.connect(s.sandboxId)
let callback = ''
const b = await t.commands.connect(a.pid, { onStdout: d => { callback += d } })
const go = () => s.commands.sendStdin(a.pid, '\n')
await go(); while (!a.stdout.includes('1') || !b.stdout.includes('1')) await sleep(20)
await a.disconnect()
const c = await u.commands.connect(a.pid)
await go(); while (!b.stdout.includes('2') || !c.stdout.includes('2')) await sleep(20)
r.running = (await u.commands.list()).length
r.left = await Promise.race([a.wait().then(() => 'ended', e => 'told: ' + e.message), sleep(300).then(() => 'nothing')])
await go()
r.code = await failure(b.wait()); await failure(c.wait())
r.first = a.stdout; r.second = b.stdout; r.third = c.stdout; r.callback = callback
r.late = await failure((await u.commands.connect(a.pid)).wait())
r.gone = await failure(u.commands.connect(4_000_000))
const l = await s.commands.run('sleep 30', { background: true, timeoutMs: 0 })
r.short = await failure((await t.commands.connect(l.pid, { timeoutMs: 700 })).wait())
r.stillThere = (await s.commands.list()).length
await l.kill()
out(r)`, &got)
		if got.First != "1\n" || got.Second != "1\n2\n3\n" || got.Third != "2\n3\n" || got.Callback != got.Second || got.Running != 1 {
			t.Errorf("got %+v", got)
		}
		for what, f := range map[string]*failure{"at the end": got.Code, "late": got.Late} {
			f.is(t, what, "CommandExitError")
			if f != nil && f.ExitCode != 6 {
				t.Errorf("%s: exit code %d", what, f.ExitCode)
			}
		}
		got.Gone.is(t, "connect to nothing", "NotFoundError", "4000000")
		got.Short.is(t, "connected for too short", "TimeoutError")
		if got.StillThere != 1 {
			t.Errorf("%d processes after the connection ended, want the one", got.StillThere)
		}
	})
}

// A command in the background outlives the 60 s that a client waits by itself.
func TestSDKBackground(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	var got struct {
		Late   *failure
		Stdout string
	}
	s.js(t, `
const s = await Sandbox.create()
const h = await s.commands.run('sleep 62; echo late; exit 4', { background: true, timeoutMs: 0 })
await h.disconnect()
await sleep(60_500)
const c = await s.commands.connect(h.pid, { timeoutMs: 0 })
out({ late: await failure(c.wait()), stdout: c.stdout })`, &got)
	if got.Late == nil || got.Late.ExitCode != 4 || got.Stdout != "late\n" {
		t.Errorf("got %q, %+v", got.Stdout, got.Late)
	}
}

func TestSDKHundredAtOnce(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Good, Failed int
			Why          *failure
		}
		s.js(t, `
const s = await Sandbox.create(), r = { good: 0, failed: 0 }
await Promise.all([...Array(100).keys()].map(async i => {
  try { if ((await s.commands.run('sleep 0.2; echo ' + i)).stdout == i + '\n') r.good++ } catch (e) { r.failed++; r.why = { name: e.constructor.name, message: e.message } }
}))
out(r)`, &got)
		if got.Good != 100 {
			t.Errorf("%d of 100 worked, %d failed: %+v", got.Good, got.Failed, got.Why)
		}
	})
}

// A client that goes away in the middle of endless output harms nobody.
func TestSDKGoneInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newSDK(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir = npmDir
	cmd.Env = append(os.Environ(), "E2B_API_KEY="+s.Key, "E2B_API_URL="+s.URL+"/api", "E2B_SANDBOX_URL="+s.URL+"/sbx")
	cmd.Stdin = strings.NewReader(`
import { Sandbox } from 'e2b'
const s = await Sandbox.create()
let n = 0
await s.commands.run('echo $$ > pid; yes', { timeoutMs: 0, onStdout: d => { if ((n += d.length) > 10_000_000) process.kill(process.pid, 'SIGKILL') } })`)
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the program was not killed: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Listed []int
		More   bool
		Killed bool
		After  int
	}
	s.js(t, `
const [found] = await Sandbox.list().nextItems()
const s = await Sandbox.connect(found.sandboxId), r = {}
r.listed = (await s.commands.list()).map(p => p.pid)
const h = await s.commands.connect(r.listed[0])
while (h.stdout.length < 1_000_000) await sleep(10)
r.more = true
r.killed = await h.kill(); await failure(h.wait())
r.after = (await s.commands.list()).length
out(r)`, &got)
	if len(got.Listed) != 1 || got.Listed[0] != pid || !got.More || !got.Killed || got.After != 0 {
		t.Errorf("got %+v, want process %d", got, pid)
	}
	eventually(t, "it has ended", func() bool { return s.Processes() == 0 })
}

// Killing a sandbox shows at once, and in what was under way.
func TestSDKKilledUnderway(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Running, After bool
			Wait, Terminal *failure
			Connect        *failure
		}
		s.js(t, `
const s = await Sandbox.create(), r = { running: await s.isRunning() }
const h = await s.commands.run('sleep 60', { background: true }), p = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
const ends = [failure(h.wait()), failure(p.wait())]
await s.kill(); r.after = await s.isRunning();
[r.wait, r.terminal] = await Promise.all(ends)
r.connect = await failure(s.commands.connect(h.pid))
out(r)`, &got)
		if !got.Running || got.After {
			t.Errorf("isRunning: %v, after kill %v", got.Running, got.After)
		}
		got.Wait.is(t, "the command under way", "TimeoutError", "The sandbox was ended, and the command with it.")
		got.Terminal.is(t, "the terminal under way", "TimeoutError", "The sandbox was ended, and the command with it.")
		got.Connect.is(t, "connect after kill", "SandboxNotFoundError")
		eventually(t, "nothing runs any more", func() bool { return s.Processes() == 0 })
	})
}

// Output just before the end is never lost, and a character is whole.
func TestSDKLastWords(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Short, Long, Pieces int
			Whole               bool
			Odd                 string
		}
		s.js(t, `
const s = await Sandbox.create(), r = { short: 0, pieces: 0 }
for (let i = 0; i < 25; i++) if ((await s.commands.run('echo last')).stdout == 'last\n') r.short++
r.long = (await s.commands.run('head -c 5000000 /dev/zero | tr "\\0" x; echo; echo end')).stdout.length
const line = 'a\u00e4\u20ac\u{1f600}', all = (await s.commands.run('printf x; yes ' + line + ' | head -n 100000', { onStdout: () => { r.pieces++ } })).stdout
r.whole = all == 'x' + (line + '\n').repeat(100000)
r.odd = (await s.commands.run('printf "\\360\\237"')).stdout
out(r)`, &got)
		if got.Short != 25 || got.Long != 5000005 || !got.Whole || got.Pieces < 2 || got.Odd != "\uFFFD" {
			t.Errorf("got %+v", got)
		}
	})
}

// The git helpers of the SDK, which are commands, against a repository beside.
func TestSDKGit(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, s *sdk) {
		var got struct {
			Offered         bool
			Branch, Pulled  string
			Before, After   struct{ Clean, Ahead bool }
			Staged          []string
			Missing, Author string
			Branches        []string
			Clone           *failure
			Log             string
		}
		s.js(t, `
const s = await Sandbox.create(), r = { offered: !!s.git }
if (r.offered) {
  await s.commands.run('git init -q --bare -b main origin.git')
  const url = 'file://' + (await s.commands.run('pwd')).stdout.trim() + '/origin.git'
  await s.git.clone(url, { path: 'work' })
  await s.git.configureUser('Ann Other', 'ann@example.org', { scope: 'local', path: 'work' })
  await s.files.write('work/with space.txt', 'one')
  await s.git.add('work')
  const st = await s.git.status('work')
  r.before = { clean: st.isClean, ahead: st.ahead > 0 }; r.staged = st.fileStatus.map(f => f.name)
  await s.git.commit('work', 'first: "quotes" and $money', { authorName: 'Ann Other', authorEmail: 'ann@example.org' })
  await s.git.push('work', { remote: 'origin', branch: 'main', setUpstream: true })
  const end = await s.git.status('work')
  r.after = { clean: end.isClean, ahead: end.ahead > 0 }; r.branch = end.currentBranch
  await s.git.createBranch('work', 'topic')
  r.branches = (await s.git.branches('work')).branches
  await s.git.clone(url, { path: 'second' })
  r.pulled = await s.files.read('second/with space.txt')
  r.log = (await s.commands.run('git -C second log --format=%an:%s')).stdout
  r.clone = await failure(s.git.clone('file:///nowhere.git', { path: 'third' }))
}
out(r)`, &got)
		if s.version == versions[0] && !got.Offered {
			t.Fatal("the newest SDK has no git helpers")
		}
		if !got.Offered {
			return
		}
		if got.Before.Clean || !got.After.Clean || got.After.Ahead || got.Branch != "main" || len(got.Branches) != 2 || len(got.Staged) != 1 ||
			got.Pulled != "one" || got.Log != "Ann Other:first: \"quotes\" and $money\n" {
			t.Errorf("got %+v", got)
		}
		if got.Clone == nil || got.Clone.Name != "CommandExitError" || !strings.Contains(got.Clone.Stderr, "nowhere.git") {
			t.Errorf("clone of nothing: %+v", got.Clone)
		}
	})
}
