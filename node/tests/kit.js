// kit.js: brokers, other processes, and counts of what this process has.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { spawn, execFile } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const liblade = require('liblade');

const BUILD = process.env.LADE_BUILD;
const run = promisify(execFile);

/** A broker: {socket, folder, stop()}.  `args` go to the command, other options to spawn(). */
async function serve({ args = [], ...options } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lade-node-'));
  const socket = path.join(folder, 's');
  const broker = spawn(path.join(BUILD, 'lade'), ['share', 'serve', '--socket', socket, ...args],
    { stdio: ['ignore', 'ignore', 'inherit'], ...options });
  const ended = new Promise((resolve) => broker.on('exit', resolve));
  for (let i = 0; ; i++) {
    try {
      liblade.connectSync({ socket }).close();
      break;
    } catch (error) {
      if (i === 500) throw error;
      await sleep(10);
    }
  }
  return {
    socket, folder,
    async stop() {
      broker.kill('SIGTERM');
      const code = await ended;
      fs.rmSync(folder, { recursive: true });
      if (code !== 0) throw new Error(`the broker ended with ${code}`);
    },
  };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls a function until it returns something, for at most 10 seconds; collects meanwhile. */
async function until(what, look) {
  for (let i = 0; i < 1000; i++) {
    global.gc();
    if (await look()) return;
    await sleep(10);
  }
  throw new Error(`after 10 s there is still: ${what}`);
}

const PYTHON = path.join(BUILD, 'python/venv/bin/python');
/** Why tests with Python are skipped; false: they are not. */
const noPython = !fs.existsSync(PYTHON) && 'there is no Python package in the build folder';

/** Runs Python with `share` connected; what it prints. */
async function python(socket, script) {
  const start = 'import sys, liblade.share, pyarrow as pa\n' +
    'share = liblade.share.connect(sys.argv[1])\n';
  const { stdout } = await run(PYTHON, ['-c', start + script, socket]);
  return stdout.trim();
}

/** Runs a file of Python; what it prints. */
async function pythonFile(...args) {
  const { stdout } = await run(PYTHON, args, { maxBuffer: 1 << 26 });
  return stdout.trim();
}

/** A value of apache-arrow as text. */
function show(value) {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'object' && value[Symbol.iterator] && !ArrayBuffer.isView(value)) {
    return `[${[...value].map(show).join()}]`;
  }
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${[...value].join()})`;
  return `${typeof value} ${String(value)}`;
}

/** Runs JavaScript in another Node with `share` and `arrow`; what it prints. */
async function node(socket, script) {
  const start = 'const liblade = require("liblade"), arrow = require("apache-arrow");\n' +
    'const share = liblade.connectSync({socket: process.argv[1]});\n';
  const { stdout } = await run(process.execPath,
    ['-e', `${start}(async () => {${script}})()`, socket]);
  return stdout.trim();
}

/** Runs a file of JavaScript; what it prints. */
async function nodeFile(...args) {
  const { stdout } = await run(process.execPath, args);
  return stdout.trim();
}

/** Maps of shared memory, and descriptors, of this process. */
const mapCount = () =>
  (fs.readFileSync('/proc/self/maps', 'latin1').match(/memfd:lade/g) ?? []).length;
const fdCount = () => fs.readdirSync('/proc/self/fd').length;

/** Collects until a count is back; finalizers run after the collector. */
async function collected(what, count, want) {
  await until(`${what}: want ${want}`, async () => {
    await sleep(1);
    return count() <= want;
  });
}

module.exports = {
  serve, sleep, until, noPython, python, pythonFile, show, node, nodeFile, mapCount, fdCount,
  collected,
};
