// Drives every call for files, and those that pause, resume and measure, with
// the E2B SDK as published. The first argument is the folder whose node_modules
// hold the SDK, the second the name that it has there. What comes back is one
// JSON object on standard output.
import { createRequire } from 'node:module'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { Readable } from 'node:stream'

const { Sandbox } = createRequire(process.argv[2] + '/package.json')(process.argv[3])
const newest = process.argv[3] == 'e2b'
const out = {}
const sleep = (ms) => new Promise((ok) => setTimeout(ok, ms))
const until = async (ok) => { for (let i = 0; !ok() && i < 1500; i++) await sleep(20); return ok() }
const failure = (p) => p.then(() => null, (e) => `${e.constructor.name}: ${e.message}`)
const s = await Sandbox.create({ timeoutMs: 600_000 }), f = s.files

// Names that other programs stumble over, each written, read, listed, renamed.
const odd = ['two words', 'quo"te', "apos'trophe", '100%', '%22 %0A', 'new\nline', '😀 ü', 'ha#sh', 'pl+us', 'back\\slash', 'double\\\\back', 'a&b=c;d', '-rf', 'star*?[x]', '$HOME `id`']
out.odd = []
for (const name of odd) {
  const path = `odd/${name}.txt`
  const w = await f.write(path, `of ${name}`)
  if (w.name != `${name}.txt` || await f.read(path) != `of ${name}` || (await f.getInfo(path)).name != `${name}.txt`) out.odd.push(name)
}
out.oddListed = (await f.list('odd')).map((e) => e.name.slice(0, -4)).sort().join() == [...odd].sort().join()
for (const name of odd) {
  await f.rename(`odd/${name}.txt`, `moved/${name}`)
  if (await f.exists(`odd/${name}.txt`) || await f.read(`/home/user/moved/${name}`) != `of ${name}`) out.odd.push('moved ' + name)
}
const many = ['a b', 'ü', 'pl+us', 'ha#sh', '100%'].map((n) => ({ path: `many/${n}`, data: n }))
out.many = (await f.write(many)).map((w) => w.path).join() == many.map((m) => m.path).join() && await f.read('many/100%') == '100%'

// Every form of what is written and read.
const bytes = new Uint8Array([0, 255, 254, 0x80, 13, 10])
await f.write('forms/bytes', bytes.buffer)
await f.write('forms/blob', new Blob(['blob']))
await f.write('forms/stream', new Blob(['from a stream']).stream())
await f.write('forms/empty', '')
out.bytes = [...await f.read('forms/bytes', { format: 'bytes' })]
out.blob = await (await f.read('forms/blob', { format: 'blob' })).text()
out.stream = await new Response(await f.read('forms/stream', { format: 'stream' })).text()
out.empty = await f.read('forms/empty')
if (newest) {
  await f.write('forms/gzip', 'packed '.repeat(100_000), { gzip: true })
  out.gzip = (await f.read('forms/gzip', { gzip: true })) == 'packed '.repeat(100_000)
  await f.write('forms/octets', 'octets', { useOctetStream: true })
  out.octets = await f.read('forms/octets')
  const w = await f.write('forms/meta', 'x', { metadata: { Author: 'Ann', purpose: 'a test' } })
  out.meta = [w.metadata, (await f.getInfo('forms/meta')).metadata, (await f.list('forms')).find((e) => e.name == 'meta').metadata]
  await f.write('forms/meta', 'y')
  out.noMeta = (await f.getInfo('forms/meta')).metadata ?? null
}

// What is at a name.
out.made = [await f.makeDir('dir/sub'), await f.makeDir('dir/sub')]
await s.commands.run('cd dir && ln -s ../forms/blob link && ln -s nowhere dangling && mkfifo pipe')
const link = await f.getInfo('dir/link')
out.link = [link.type, link.symlinkTarget, await f.read('dir/link')]
out.exists = [await f.exists('dir/dangling'), await f.exists('dir/none')]
out.list = (await f.list('dir')).map((e) => `${e.name}:${e.type}`)
out.deep = (await f.list('.', { depth: 2 })).filter((e) => e.path.includes('dir/')).map((e) => e.name).sort()
await f.write('over', 'old'); await f.write('under', 'new'); await f.rename('under', 'over')
out.over = await f.read('over')
await f.remove('dir'); await f.remove('dir')
out.gone = await failure(f.list('dir')); out.goneRead = await failure(f.read('dir/x')); out.dirRead = await failure(f.read('odd'))
out.outside = await failure(f.read('/etc/hostname')); out.root = await failure(f.read('over', { user: 'root' }))

// Parts, by signed address and with a shared address for all sandboxes.
await f.write('parts.txt', '0123456789')
const part = async (url, range, method = 'GET') => { const r = await fetch(url, { method, headers: range ? { Range: range } : {} }); return `${r.status} ${r.headers.get('content-range')} ${await r.text()}` }
const url = await s.downloadUrl('parts.txt', { useSignatureExpiration: 60 })
out.parts = [await part(url), await part(url, 'bytes=2-4'), await part(url, 'bytes=-3'), await part(url, 'bytes=10-'), await part(url, '', 'HEAD')]
const form = new FormData()
form.append('file', new Blob(['by form']), 'ignored')
out.up = [(await fetch(await s.uploadUrl('up.txt'), { method: 'POST', body: form })).status, await f.read('up.txt')]

// A large one, both ways, in pieces.
const size = 48 << 20, piece = Buffer.alloc(1 << 20, 'piece')
const sum = createHash('sha256')
for (let i = 0; i < size >> 20; i++) sum.update(piece)
await f.write('large', Readable.toWeb(Readable.from((function* () { for (let i = 0; i < size >> 20; i++) yield piece })())))
const back = createHash('sha256')
for await (const chunk of await f.read('large', { format: 'stream' })) back.update(chunk)
out.large = back.digest('hex') == sum.digest('hex')
await f.remove('large')

// A small one that is packed into much less than it is.
const headers = { 'E2b-Sandbox-Id': s.sandboxId, 'X-Access-Token': s.envdAccessToken, 'Content-Type': 'application/octet-stream', 'Content-Encoding': 'gzip' }
const bomb = gzipSync(Buffer.alloc(64 << 20))
out.bomb = [bomb.length < 1 << 20, (await fetch(`${process.env.E2B_SANDBOX_URL}/files?path=bomb`, { method: 'POST', headers, body: bomb })).status, (await f.getInfo('bomb')).size]
await f.remove('bomb')

// What others do in a directory is told of, below it too.
await f.write('watched/sub/old.txt', '1')
const events = []
const w = await f.watchDir('watched', (e) => events.push(`${e.type} ${e.name}` + (e.entry ? ` ${e.entry.type} ${e.entry.size}` : '')), { recursive: true, timeoutMs: 0, ...(newest && { includeEntry: true }) })
await s.commands.run('cd watched && echo 12 > sub/old.txt && mv sub/old.txt new.txt && rm new.txt && mkdir later && sleep 0.3 && echo 1 > later/x')
const told = (text) => events.some((e) => e.startsWith(text))
out.watched = await until(() => told('write sub/old.txt') && told('rename sub/old.txt') && told('create new.txt') && told('remove new.txt') && told('create later/x'))
out.entries = !newest || told('write sub/old.txt file 3') || told('write sub/old.txt file 0')
await w.stop()
if (!out.watched || !out.entries) out.events = events
const ask = async (method, body) => {
  const r = await fetch(`${process.env.E2B_SANDBOX_URL}/filesystem.Filesystem/${method}`, { method: 'POST', body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': s.sandboxId, 'X-Access-Token': s.envdAccessToken } })
  return r.json()
}
const { watcherId } = await ask('CreateWatcher', { path: 'watched', recursive: true })
await f.write('watched/polled.txt', 'x')
const polled = []
for (let i = 0; i < 500 && !polled.includes('polled.txt'); i++) { for (const e of (await ask('GetWatcherEvents', { watcherId })).events ?? []) polled.push(e.name); await sleep(20) }
out.polled = polled.includes('polled.txt') && JSON.stringify(await ask('RemoveWatcher', { watcherId })) == '{}'

// Numbers of the computer.
const info = await s.getInfo()
out.info = [info.cpuCount > 0, info.memoryMB > 100]
const m = (await s.getMetrics()).at(-1)
out.metrics = m && m.cpuCount == info.cpuCount && m.cpuUsedPct >= 0 && m.memUsed > 0 && m.memTotal > m.memUsed && m.diskTotal > m.diskUsed && Math.abs(m.timestamp - Date.now()) < 60_000

// A paused one stands still, and goes on where it was.
await s.commands.run('i=0; while :; do i=$((i+1)); echo $i > next; mv next count; sleep 0.05; done', { background: true, timeoutMs: 0 })
const count = async (box) => Number(await box.files.read('count').catch((e) => { out.counted = e.message; return 0 }))
while (await count(s) < 3) await sleep(50)
out.paused = [await s.pause(), newest ? await s.pause() : false, (await Sandbox.getInfo(s.sandboxId)).state, await s.isRunning()]
out.whilePaused = await failure(s.commands.run('true'))
await sleep(1500)
const on = await Sandbox.connect(s.sandboxId, { timeoutMs: 600_000 })
const at = await count(on)
while (await count(on) < at + 5) await sleep(50)
out.resumed = at
out.killed = (await s.kill()) ?? true // 2.15 says nothing
out.running = await s.isRunning()
process.stdout.write(JSON.stringify(out) + '\n')
process.exit(0)
