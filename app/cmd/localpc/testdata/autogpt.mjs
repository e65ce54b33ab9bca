// Makes the calls that AutoGPT's shell and file tools make, in their order,
// with the E2B SDK as published. The first argument is the folder whose
// node_modules hold the SDK, the second the name that it has there. What comes
// back is one JSON object on standard output.
import { createRequire } from 'node:module'

const { Sandbox, Volume } = createRequire(process.argv[2] + '/package.json')(process.argv[3])
const HOME = '/home/user'
const TEMPLATE = 'agpt-desktop-1x2-68f7fe36'
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'
const out = {}
const words = (e) => `${e.constructor.name}: ${e.message}`
const quote = (s) => /^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", `'"'"'`)}'`
const failure = (p) => p.then(() => null, words)

// The image is looked for before it is used, and built where it is missing.
const api = async (path) => {
  const r = await fetch(process.env.E2B_API_URL + path, { headers: { 'X-API-KEY': process.env.E2B_API_KEY } })
  return { status: r.status, body: await r.json() }
}
const alias = await api(`/templates/aliases/${TEMPLATE}`)
const template = await api(`/templates/${alias.body.templateID}`)
out.template = template.body.builds.map((b) => b.status)

// A volume is made or named, then mounted; the last try is without it.
out.volume = Volume ? await failure(Volume.create('expert-1')) : 'none'
const options = (mounts) => ({
  timeoutMs: 300_000, lifecycle: { onTimeout: 'pause', autoResume: true },
  metadata: { autogpt_owner: 'session:chat-1', autogpt_kind: 'shell', autogpt_mounts: mounts ? 'attached' : 'none' },
  ...(mounts && { volumeMounts: { [`${HOME}/workspace`]: 'expert-1' } }),
})
out.mounted = Volume ? await failure(Sandbox.create(TEMPLATE, options(true))) : 'none'
const made = await Sandbox.create(TEMPLATE, options(false))
const id = made.sandboxId

// What runs before a command is looked at: there is nothing of it.
const missing = async (path) => (await failure((async () => {
  const s = await made.files.read(path, { format: 'stream' })
  for await (const _ of s) { /* to the end */ }
})())) ?? 'it is there'
out.profiles = (await failure(made.files.list('/etc/profile.d', { depth: 1 })) ?? '').split(':')[0]
out.login = await Promise.all(['/etc/profile', '/etc/bash.bashrc', ...['.bash_profile', '.bash_login', '.profile', '.bashrc', '.bash_aliases'].map((n) => `${HOME}/${n}`)].map(missing))

// The next turn finds it by what it was stamped with, and connects to it.
const owner = { autogpt_owner: 'session:chat-1', autogpt_kind: 'shell' }
out.found = (await Sandbox.list({ query: { metadata: owner, state: ['running', 'paused'] }, limit: 10 }).nextItems()).map((i) => i.sandboxId == id && i.state)
out.stamped = (await Sandbox.getInfo(id)).metadata.autogpt_mounts
const box = await Sandbox.connect(id, { timeoutMs: 300_000 })
out.running = await box.isRunning()

// Write, read and edit a file.
const inside = async (dir) => (await box.commands.run(`readlink -f ${quote(dir)}`, { cwd: HOME, timeoutMs: 5000 })).stdout.trim()
const write = async (path, content) => {
  const dir = path.slice(0, path.lastIndexOf('/'))
  if (dir != HOME && dir != '/tmp') await box.files.makeDir(dir)
  const real = `${await inside(dir)}/${path.slice(path.lastIndexOf('/') + 1)}`
  if (!real.startsWith('/tmp/')) { await box.files.write(real, content); return real }
  const r = await box.commands.run(`echo ${quote(Buffer.from(content).toString('base64'))} | base64 -d > ${quote(real)}`, { cwd: HOME, timeoutMs: 10_000 })
  return r.exitCode == 0 && real
}
const read = async (path) => Buffer.from(await box.files.read(path, { format: 'bytes' })).toString()
out.wrote = await write(`${HOME}/project/src/hello world.py`, 'def hello():\n    return "héllo"\n')
await write(`${HOME}/notes.md`, '# Notes\n')
out.tmp = await write('/tmp/scratch.txt', "it's scratch\n")
out.tmpAgain = await write('/tmp/scratch.txt', 'over\n')
out.tmpDir = await write('/tmp/deep/er/x.txt', 'deep\n')
out.scratch = await read('/tmp/scratch.txt') + await read('/tmp/deep/er/x.txt')
const before = await read(out.wrote)
await inside(`${HOME}/project/src`)
await box.files.write(out.wrote, before.replaceAll('hello', 'hallo'))
out.edited = await read(out.wrote)
out.missing = await failure(read(`${HOME}/none.txt`))

// Look for files, and in them.
const stdout = async (cmd, timeoutMs) => (await box.commands.run(cmd, { cwd: HOME, timeoutMs })).stdout
out.glob = (await stdout(`find ${HOME} -name ${quote('*.py')} -type f 2>/dev/null | head -500`, 10_000)).trim().split('\n')
out.grep = await stdout(['grep', '-rn', '--color=never', '--include', '*.py', 'hal+o', HOME].map(quote).join(' ') + ' 2>/dev/null | head -200', 15_000)
out.grepE = await stdout(['grep', '-rn', '--color=never', 'return', `${HOME}/project`].map(quote).join(' ') + ' 2>/dev/null | head -200', 15_000)

// A command, followed in the background to its end.
const bash = async (command, timeoutMs, follow) => {
  const o = [], e = []
  await box.setTimeout(Math.max(300_000, timeoutMs + 60_000))
  const h = await box.commands.run(`bash -c ${quote(command)}`, { background: true, cwd: HOME, timeoutMs, envs: { PATH, GIT_AUTHOR_NAME: 'Ann', GIT_AUTHOR_EMAIL: 'ann@example.org' }, onStdout: (d) => o.push(d), onStderr: (d) => e.push(d) })
  if (follow) return follow(h, o, e)
  try {
    const r = await h.wait()
    return { code: r.exitCode, out: o.join(''), err: e.join('') }
  } catch (x) {
    return { code: x.exitCode, out: o.join(''), err: e.join(''), thrown: x.constructor.name, pid: h.pid }
  }
}
out.bash = await bash('pwd; echo "$HOME"; printf %s "$GIT_AUTHOR_NAME"; echo oops >&2; python3 -c "print(6 * 7)"', 120_000)
out.fails = await bash("echo out; exit 3", 120_000)

// Its stream breaks off; who comes back by its number hears the rest.
out.again = await bash('echo first; sleep 2; echo last; exit 5', 120_000, async (h, o) => {
  while (!o.length) await new Promise((ok) => setTimeout(ok, 20))
  await h.disconnect()
  const rest = []
  const back = await box.commands.connect(h.pid, { timeoutMs: 60_000, onStdout: (d) => rest.push(d) })
  const end = await back.wait().catch((x) => x)
  return { code: end.exitCode, out: rest.join('') }
})
out.gone = await failure(box.commands.connect(999_999))

// One that takes too long is killed, with what it started.
const slow = await bash('sleep 300 & sleep 300', 1500)
out.slow = slow.thrown
await box.commands.kill(slow.pid)
const forked = await bash('sleep 301 & echo on; wait', 0, async (h, o) => { while (!o.length) await new Promise((ok) => setTimeout(ok, 20)); return h.pid })
out.list = (await box.commands.list()).some((p) => p.pid == forked)
out.killedFork = await box.commands.kill(forked)

// A long result is copied there for the next command.
const big = JSON.stringify({ rows: Array.from({ length: 6000 }, (_, i) => `row ${i}`) })
await box.files.write(`${HOME}/0a1b2c3d4e5f-result.json`, big)
out.big = (await stdout(`wc -c < ${HOME}/0a1b2c3d4e5f-result.json`, 10_000)).trim() == String(big.length)

// Between turns it is paused; a call wakes it, and so does connecting.
out.paused = await box.pause()
out.state = (await Sandbox.getInfo(id)).state
out.woken = await read(`${HOME}/notes.md`)
await box.pause()
const back = await Sandbox.connect(id, { timeoutMs: 300_000 })
out.back = await back.isRunning() && (await back.files.read('/tmp/scratch.txt'))
out.ended = await Sandbox.kill(id)
process.stdout.write(JSON.stringify(out) + '\n')
process.exit(0)
