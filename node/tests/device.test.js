// device.test.js: memory of a device: the emulated one, where the library's tests were built.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { DeviceMemory } = require('liblade');
const rapids = require('liblade/rapids');

const emulated = path.join(process.env.LADE_BUILD, 'tests/gpu/emulated');
const missing = !fs.existsSync(path.join(emulated, 'libcuda.so.1')) && 'no emulated device';

test('copies and slices', { skip: missing }, () => {
  const script = `
const assert = require('node:assert');
const { DeviceMemory } = require('liblade');
(async () => {
  const data = Int32Array.from({ length: 1000 }, (_, i) => i);
  const memory = await DeviceMemory.alloc(4000);
  await memory.copyFromHost(data);
  const part = memory.slice(400, 800);
  memory.close();
  assert.deepStrictEqual([part.byteLength, part.device], [400, 0]);
  assert.deepStrictEqual(await part.copyToHost(new Int32Array(3), 40), data.slice(110, 113));
  assert.strictEqual((await part.slice(396).copyToHost())[0], 199);
  await assert.rejects(part.copyToHost(new Uint8Array(9), 392), { code: 'LADE_E_RANGE' });
  await assert.rejects(part.copyFromHost(data), { code: 'LADE_E_RANGE' });
  assert.throws(() => part.slice(0, 401), { code: 'LADE_E_RANGE' });
  assert.throws(() => part.slice(5, 2), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(memory.copyToHost(), { code: 'LADE_E_STATE' });
  await assert.rejects(DeviceMemory.alloc(8, 99), { code: 'LADE_E_NO_DEVICE' });
  console.log('done');
})();`;
  const out = execFileSync(process.execPath, ['-e', script],
    { env: { ...process.env, LD_LIBRARY_PATH: emulated }, timeout: 30000 });
  assert.strictEqual(String(out), 'done\n');
});

test('without a device', async () => {
  assert.strictEqual(rapids.DeviceMemory, DeviceMemory);
  await assert.rejects(DeviceMemory.alloc(-1), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(DeviceMemory.alloc(8, 99), { code: /LADE_E_(NO_DEVICE|DEVICE)/ });
});
