// Drives a screen of its own with @e2b/desktop as published, in a sandbox that
// the package e2b made. The arguments are the folder whose node_modules hold
// both, the name of the one there, and a display that must not be reached. What
// comes back is one JSON object on standard output.
import { createRequire } from 'node:module'

const load = createRequire(process.argv[2] + '/package.json')
const out = {}
const made = await load('e2b').Sandbox.create({ envs: { DISPLAY: ':0' }, timeoutMs: 600_000 })
await made.commands.run('Xvfb :0 -screen 0 800x600x24', { background: true, timeoutMs: 0 })
const s = await load(process.argv[3]).Sandbox.connect(made.sandboxId)
out.up = await s.waitAndVerify('xdpyinfo', (r) => r.exitCode === 0, 60)
await s.commands.run('openbox', { background: true, timeoutMs: 0 })
const run = async (line) => s.commands.run(line).then((r) => r.exitCode, (e) => e.exitCode)
const until = async (ok) => { for (const end = Date.now() + 40_000; Date.now() < end; await s.wait(100)) if (await ok().catch(() => false)) return true; return false }

// What the terminal wrote down since the last look, once it ends with this and
// has as many of it.
let seen = 0
const got = async (end, count = 1) => {
  let text = ''
  await until(async () => (text = (await s.files.read('got')).slice(seen)).endsWith(end) && text.split(end).length > count)
  seen += text.length
  return text
}

out.size = await s.getScreenSize()
const picture = async () => Buffer.from(await s.screenshot()).toString('base64')
out.before = await picture()
// A terminal that writes down all that reaches it: its desktop entry names it.
await s.launch('watch')
out.ready = await until(() => s.files.exists('ready'))
out.watches = await until(async () => (out.windows = await s.getApplicationWindows('Watch')).length == 1)
out.focused = await until(async () => (out.current = await s.getCurrentWindowId()) == out.windows[0])
out.title = await s.getWindowTitle(out.windows[0])
// Where a character of its 40 by 10 is on the screen, as another program tells.
const place = (await s.commands.run(`xwininfo -id ${out.windows[0]}`)).stdout
const [left, top, width, height] = ['Absolute upper-left X', 'Absolute upper-left Y', 'Width', 'Height'].map((k) => Number(place.match(new RegExp(k + ': +(\\d+)'))[1]))
const cell = (x, y) => [left + Math.round((x - 0.5) * width / 40), top + Math.round((y - 0.5) * height / 10)]
const at = cell(7, 4), to = cell(20, 8)

await s.moveMouse(...at)
Object.assign(out, { at, window: [left, top, width, height] })
out.cursor = await s.getCursorPosition()
await s.leftClick(...at); out.left = await got('m')
await s.rightClick(...at); out.right = await got('m')
await s.middleClick(...at); out.middle = await got('m')
await s.doubleClick(...at); out.double = await got('m', 2)
await s.scroll('up'); out.up1 = await got('M')
await s.scroll('down', 2); out.down2 = await got('M', 2)
await s.drag(at, to); out.drag = await got('m')
await s.write("hello 'you' $HOME"); await s.press('enter'); out.typed = await got('\r')
await s.press(['shift', 'a']); out.chord = await got('A')
await s.press('esc'); out.key = await got('\x1b')
out.after = await picture()

// What opens a file is what the folder's settings say.
await s.open('note.txt')
out.opens = await until(async () => (out.opened = await s.getWindowTitle((await s.getApplicationWindows('Reader'))[0])) && (out.shown = await s.files.read('shown')).endsWith('\n'))

out.own = await run('xdpyinfo -display :0')
out.others = await run(`xdpyinfo -display ${process.argv[4]}`)
await s.kill()
console.log(JSON.stringify(out))
