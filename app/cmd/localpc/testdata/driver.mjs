// Drives the E2B SDK as published: one JSON command a line on standard input,
// one JSON answer a line on standard output. The first argument is the folder
// whose node_modules hold the SDK.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const { Sandbox } = createRequire(process.argv[2] + '/package.json')('e2b')
let sandbox

const ops = {
  create: async (o) => { sandbox = await Sandbox.create(o); return { id: sandbox.sandboxId } },
  connect: async ({ id }) => { sandbox = await Sandbox.connect(id); return { id: sandbox.sandboxId } },
  info: async () => await sandbox.getInfo(),
  kill: async () => await sandbox.kill(),
  setTimeout: async ({ ms }) => await sandbox.setTimeout(ms),
  run: async ({ cmd, ...opts }, id) => {
    const r = await sandbox.commands.run(cmd, { ...opts, onStdout: (d) => say({ id, stdout: d }), onStderr: (d) => say({ id, stderr: d }) })
    return { exitCode: r.exitCode, stdout: r.stdout, stderr: r.stderr }
  },
  write: async ({ path, data }) => await sandbox.files.write(path, data),
  read: async ({ path }) => await sandbox.files.read(path),
  list: async ({ path, ...o }) => await sandbox.files.list(path, o),
  exists: async ({ path }) => await sandbox.files.exists(path),
  getInfo: async ({ path }) => await sandbox.files.getInfo(path),
  makeDir: async ({ path }) => await sandbox.files.makeDir(path),
  remove: async ({ path }) => (await sandbox.files.remove(path)) ?? null,
  rename: async ({ from, to }) => await sandbox.files.rename(from, to),
}

function say(o) { process.stdout.write(JSON.stringify(o) + '\n') }

for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, args } = JSON.parse(line)
  ops[op](args ?? {}, id).then(
    (value) => say({ id, done: true, value: value ?? null }),
    (e) => say({ id, done: true, error: e.message ?? String(e), name: e.name ?? e.constructor.name, exitCode: e.exitCode ?? null, stdout: e.stdout ?? '', stderr: e.stderr ?? '' }))
}
