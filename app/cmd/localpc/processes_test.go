//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
)

// alone starts localpc with nobody there, under a policy that settles what may
// be done in folder, and returns the lines of a key's environment.
func alone(t *testing.T, policy string) (d *apptest.Desktop, folder string, env []string) {
	t.Helper()
	d = apptest.New(t, apptest.Options{NoTray: true, NoNotifications: true})
	bin := d.Install("localpc/app/cmd/localpc", "localpc/app/cmd/localpc-spawn", "localpc/app/cmd/localpc-hub")
	p := &program{t: t, d: d, bin: bin, data: filepath.Join(d.Home, "data"), addr: freeAddress(t)}
	folder = filepath.Join(d.Home, "work")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Give(folder)
	cmd := d.Command(filepath.Join(bin, "localpc"), "run", "--data", p.data, "--embedded-hub", p.addr, "--policy", policy, "--folder", folder)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "DISPLAY=") })
	p.p = d.StartCmd("localpc", cmd)
	d.WaitOutput(p.p, time.Minute, "running")
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(p.data, "localpc.log")); t.Failed() && err == nil {
			t.Logf("log of localpc:\n%s", b)
		}
	})
	p.pair()
	return d, folder, p.key("Research agent")
}

// drive runs a program that uses the SDK as npm has it under that name, and
// reads what it gives to out() into v.
func drive(t *testing.T, name string, env []string, program string, v any) {
	t.Helper()
	beginDrive(t, name, env, program)(v)
}

// beginDrive is drive in the background; the returned function waits.
func beginDrive(t *testing.T, name string, env []string, program string) func(v any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir = sdkDir
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(`
import { readdirSync, readFileSync } from 'node:fs'
import { Sandbox } from '` + name + `'
const out = v => process.stdout.write(JSON.stringify(v))
// running counts the processes of this computer with such a command line.
const running = (...words) => readdirSync('/proc').filter(p => { try { return /^\d+$/.test(p) && readFileSync('/proc/' + p + '/cmdline', 'utf8') == words.join('\0') + '\0' } catch { return false } }).length
const sleep = ms => new Promise(r => setTimeout(r, ms))
const until = async (what, ok) => { for (const end = Date.now() + 120_000; !await ok(); await sleep(50)) if (Date.now() > end) throw new Error('not so: ' + what) }
// failure tells of what a promise throws; null when it does not.
const failure = async p => { try { await p; return null } catch (e) { return { name: e.constructor.name, message: e.message, exitCode: e.exitCode ?? 0 } } }
` + program + "\nprocess.exit(0)") // clocks of the SDK are no reason to stay
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func(v any) {
		t.Helper()
		if err := <-ended; err != nil {
			t.Fatalf("the program failed: %v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
		}
		if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
			t.Fatalf("output %q: %v\n%s", stdout.Bytes(), err, stderr.Bytes())
		}
	}
}

type threw struct {
	Name, Message string
	ExitCode      int
}

// Commands of the SDK in a session's container: what the SDK's handles promise
// holds, and the end of a command is the end of everything that it began.
func TestCommandsWholePath(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"e2b", "e2b-2.15"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			_, _, env := alone(t, "contained")
			var got struct {
				Good, Last          int
				Why                 *threw
				Limit, Late, Killed *threw
				Heard, Cat          string
				KilledIt, Again     bool
				Listed, After       int
				Health, Gone        bool
				Under               *threw
			}
			drive(t, version, env, `
const s = await Sandbox.create(), r = { good: 0, last: 0 }
await Promise.all([...Array(100).keys()].map(async i => {
  try { if ((await s.commands.run('echo ' + i, { timeoutMs: 240_000 })).stdout == i + '\n') r.good++ } catch (e) { r.why = { name: e.constructor.name, message: e.message } }
}))
for (let i = 0; i < 10; i++) if ((await s.commands.run('head -c 70000 /dev/zero; echo end')).stdout.endsWith('end\n')) r.last++
const mark = '1' + process.pid // seconds that nobody else sleeps
r.limit = await failure(s.commands.run('sleep ' + mark + '1', { timeoutMs: 2000 }))
const h = await s.commands.run('echo one; sleep 1; echo two; exit 5', { background: true, timeoutMs: 0 })
await h.disconnect()
const c = await s.commands.connect(h.pid)
r.late = await failure(c.wait()); r.heard = c.stdout
// A tree: a child, a child of a child that is gone, one with a session of its own, one below a shell.
const tree = await s.commands.run('sleep M & (sleep M &); setsid sleep M & bash -c "sleep M; true" & wait'.replaceAll('M', mark), { background: true, timeoutMs: 0 })
await until('the tree is up', () => running('sleep', mark) == 4)
r.listed = (await s.commands.list()).length
r.killedIt = await tree.kill(); r.killed = await failure(tree.wait()); r.again = await tree.kill(); r.after = (await s.commands.list()).length
await until('the tree is gone', () => running('sleep', mark) == 0)
r.cat = (await s.commands.run('cat; echo nothing')).stdout
const u = await s.commands.run('sleep ' + mark + '2', { background: true, timeoutMs: 0 }), under = failure(u.wait())
await until('the last is up', () => running('sleep', mark + '2') == 1)
r.health = await s.isRunning(); await s.kill(); r.gone = !(await s.isRunning()); r.under = await under
await until('the last is gone', () => running('sleep', mark + '2') + running('sleep', mark + '1') == 0)
out(r)`, &got)
			if got.Good != 100 {
				t.Errorf("%d of 100 commands at once worked: %+v", got.Good, got.Why)
			}
			if got.Last != 10 {
				t.Errorf("%d of 10 commands were heard to the end", got.Last)
			}
			if got.Limit == nil || got.Limit.Name != "TimeoutError" {
				t.Errorf("past its time: %+v", got.Limit)
			}
			if got.Late == nil || got.Late.ExitCode != 5 || !strings.HasSuffix(got.Heard, "two\n") {
				t.Errorf("connected: %q, %+v", got.Heard, got.Late)
			}
			if !got.KilledIt || got.Again || got.Killed == nil || got.Killed.ExitCode != -1 || got.Listed != 1 || got.After != 0 {
				t.Errorf("kill: %+v, %+v", got, got.Killed)
			}
			if got.Cat != "nothing\n" {
				t.Errorf("cat of nothing: %q", got.Cat)
			}
			if !got.Health || !got.Gone || got.Under == nil || got.Under.Name != "TimeoutError" || !strings.Contains(got.Under.Message, "The sandbox was ended") {
				t.Errorf("kill of the sandbox: running %v, gone %v, %+v", got.Health, got.Gone, got.Under)
			}
		})
	}
}

// What reads, and terminals, under full access: in a container nobody is there
// to be asked about what nobody can judge.
func TestInputWholePath(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"e2b", "e2b-2.15"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			_, _, env := alone(t, "full")
			var got struct {
				Echoed, Closed, Count string
				Text, Other           string
				Exit, Killed          *threw
				KilledIt              bool
			}
			drive(t, version, env, `
const s = await Sandbox.create(), r = {}
const h = await s.commands.run('read a; echo "got $a"; read b; echo "and $b"', { background: true, stdin: true })
await s.commands.sendStdin(h.pid, 'one\n'); await until('it answered', () => h.stdout.includes('got'))
await s.commands.sendStdin(h.pid, 'two\n'); r.echoed = (await h.wait()).stdout
const n = await s.commands.run('wc -c; sleep 1', { background: true, stdin: true })
for (let i = 0; i < 4; i++) await s.commands.sendStdin(n.pid, 'x'.repeat(1_000_000))
await s.commands.closeStdin(n.pid); r.count = (await n.wait()).stdout
const k = await s.commands.run('cat; sleep 1', { background: true, stdin: true })
await s.commands.sendStdin(k.pid, 'h\u00e4\u{1f600}'); await s.commands.closeStdin(k.pid); r.closed = (await k.wait()).stdout
const dec = new TextDecoder(), enc = new TextEncoder()
let text = '', other = ''
const p = await s.pty.create({ cols: 91, rows: 17, envs: { COLOUR: 'green' }, onData: d => { text += dec.decode(d, { stream: true }) } })
const type = t => s.pty.sendInput(p.pid, enc.encode(t))
await type('stty -echo; stty size; echo $TERM $COLOUR\n'); await until('its size', () => /17 91[^]*xterm-256color green/.test(text))
await s.pty.resize(p.pid, { cols: 132, rows: 43 })
await until('its new size', async () => { await type('stty size\n'); await sleep(300); return /43 132/.test(text) })
await type("sh -c 'echo be\"\"gun; exec sleep 1000'\n"); await until('it sleeps', () => text.includes('begun'))
await type('\x03'); await type('echo sti""ll here\n'); await until('it was interrupted', () => text.includes('still here'))
const c = await s.pty.connect(p.pid, { onData: d => { other += new TextDecoder().decode(d) } })
await p.disconnect()
await type('echo on""ly\n'); await until('the second hears', () => other.includes('only'))
await type('exit 3\n'); r.exit = await failure(c.wait())
const q = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
r.killedIt = await s.pty.kill(q.pid); r.killed = await failure(q.wait())
r.text = text; r.other = other
out(r)`, &got)
			if got.Echoed != "got one\nand two\n" || strings.TrimSpace(got.Count) != "4000000" || got.Closed != "hä😀" {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(got.Text, "only") || strings.Contains(got.Other, "begun") {
				t.Errorf("the first saw %q, the second %q", got.Text, got.Other)
			}
			if got.Exit == nil || got.Exit.ExitCode != 3 || !got.KilledIt || got.Killed == nil || got.Killed.ExitCode != -1 {
				t.Errorf("exit %+v, killed %+v", got.Exit, got.Killed)
			}
		})
	}
}

// In a container, what runs whatever is typed to it is asked about once; what
// only reads is not.
func TestTypingIsAsked(t *testing.T) {
	t.Parallel()
	p, keyboard := startHeadless(t)
	answer := func(text, more string) {
		if _, err := io.WriteString(keyboard, p.lastDigits(text)+more+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	p.pair()
	wait := beginDrive(t, "e2b", p.key("Research agent"), `
const s = await Sandbox.create(), r = {}
const cat = await s.commands.run('cat; sleep 1', { background: true, stdin: true })
await s.commands.sendStdin(cat.pid, 'not asked'); await s.commands.closeStdin(cat.pid); r.cat = (await cat.wait()).stdout
let text = ''
const t = await s.pty.create({ cols: 91, rows: 17, onData: d => { text += new TextDecoder().decode(d) } })
await s.pty.resize(t.pid, { cols: 101, rows: 27 })
await s.pty.sendInput(t.pid, new TextEncoder().encode('echo si""ze $(stty size); pwd; exit 4\n'))
r.exit = await failure(t.wait()); r.text = text
const sh = await s.commands.run('bash -s', { background: true, stdin: true })
await s.commands.sendStdin(sh.pid, 'echo typed later; exit 6\n')
r.shell = await failure(sh.wait()); r.said = sh.stdout
r.declined = await failure(s.commands.run('sh -s', { background: true, stdin: true }))
out(r)`)
	answer("wants to work on this computer", " w")
	answer("wants to open a terminal on this computer", "")
	answer("bash -s", "")
	p.lastDigits("sh -s")
	if !p.d.Until(20*time.Second, func() bool { return strings.Count(p.p.Output(), "to send it more later") >= 2 }) {
		t.Fatal("no second card about a shell")
	}
	if _, err := io.WriteString(keyboard, "d\n"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cat, Text, Said       string
		Exit, Shell, Declined *threw
	}
	wait(&got)
	if got.Cat != "not asked" || !strings.Contains(got.Text, "size 27 101") || !strings.Contains(got.Text, "/home/user") || got.Exit == nil || got.Exit.ExitCode != 4 {
		t.Errorf("got %+v, %+v", got, got.Exit)
	}
	if got.Said != "typed later\n" || got.Shell == nil || got.Shell.ExitCode != 6 {
		t.Errorf("the shell said %q, %+v", got.Said, got.Shell)
	}
	if got.Declined == nil || !strings.Contains(got.Declined.Message, "declined") {
		t.Errorf("declined: %+v", got.Declined)
	}
}

// The git helpers of the SDK do ordinary work in the container with nobody there.
// What they write into settings that git runs programs by is asked about.
func TestGitHelpersWholePath(t *testing.T) {
	t.Parallel()
	_, _, env := alone(t, "contained")
	var got struct {
		Failed           map[string]string
		Staged, Branches []string
		Log              string
		User, Remote     *threw
	}
	drive(t, "e2b", env, `
const s = await Sandbox.create(), g = s.git, r = { failed: {} }
const step = async (name, p) => { try { return await p } catch (e) { r.failed[name] = e.message + ' ' + (e.stderr ?? '') } }
await step('bare', s.commands.run('git init -q --bare -b main origin.git'))
const url = 'file:///home/user/origin.git', me = { authorName: 'Ann Other', authorEmail: 'ann@example.org' }
await step('clone', g.clone(url, { path: 'work' }))
await s.files.write('work/with space.txt', 'one')
await step('add', g.add('work'))
r.staged = (await step('status', g.status('work')))?.fileStatus.map(f => f.name)
await step('commit', g.commit('work', 'first: "quotes" and $money', me))
await step('push', g.push('work', { remote: 'origin', branch: 'main', setUpstream: true }))
await step('pull', g.pull('work'))
await step('branch', g.createBranch('work', 'topic')); await step('checkout', g.checkoutBranch('work', 'main'))
r.branches = (await step('branches', g.branches('work')))?.branches
await step('deleteBranch', g.deleteBranch('work', 'topic'))
await step('restore', g.restore('work', { paths: ['with space.txt'] })); await step('init', g.init('fresh'))
r.log = (await step('log', s.commands.run('git -C work log --format=%an:%s')))?.stdout
r.user = await failure(g.configureUser('Ann Other', 'ann@example.org', { scope: 'local', path: 'work' })); r.remote = await failure(g.remoteAdd('fresh', 'origin', url))
out(r)`, &got)
	if len(got.Failed) > 0 || len(got.Staged) != 1 || len(got.Branches) != 2 || got.Log != "Ann Other:first: \"quotes\" and $money\n" {
		t.Errorf("got %+v", got)
	}
	for what, f := range map[string]*threw{"a user for git": got.User, "a remote": got.Remote} {
		if f == nil || !strings.Contains(f.Message, "to ask the person on") {
			t.Errorf("%s: %+v", what, f)
		}
	}
}
