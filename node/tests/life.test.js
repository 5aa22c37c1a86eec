// life.test.js: memory and descriptors go: with the collector, close(), a worker, a killed process.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { test, before, after } = require('node:test');
const { Worker } = require('node:worker_threads');
const arrow = require('apache-arrow');
const { connect, connectSync, decodeSync, encode, encodeSync } = require('liblade');
const kit = require('./kit.js');

let broker, share;
before(async () => {
  broker = await kit.serve();
  share = await connect({ socket: broker.socket });
});
after(async () => {
  share.close();
  await broker.stop();
});

const held = async () => (await share.statistics()).held;

test('a gigabyte as a typed array does not grow the heap', async () => {
  const SIZE = 2 ** 30;
  let memory = new Float64Array(share.alloc(SIZE));
  memory[memory.length - 1] = 7;
  await share.publish('large', memory, { copy: 'never' });
  memory = null;
  const other = connectSync({ socket: broker.socket });
  const { heapUsed, rss } = process.memoryUsage();
  const large = other.getDatasetSync('large');
  const values = large.column().values();
  assert.deepStrictEqual([values.byteLength, values[values.length - 1]], [SIZE, 7]);
  const vector = large.toArrow();
  assert.strictEqual(vector.data[0].values.buffer, values.buffer);
  assert.strictEqual(vector.get(values.length - 1), 7);
  const now = process.memoryUsage();
  assert(now.heapUsed - heapUsed < 2 ** 23, `the heap grew by ${now.heapUsed - heapUsed}`);
  assert(now.rss - rss < 2 ** 26, `${now.rss - rss} bytes became resident`);
  large.close({ detach: true });
  other.close();
  await share.remove('large');
});

test('what the collector takes is released: maps, descriptors, versions', async () => {
  await share.publish('taken', new Int32Array(100000));
  await kit.collected('maps', kit.mapCount, 0);
  const descriptors = kit.fdCount();
  (function forget() {
    for (let i = 0; i < 20; i++) {
      const taken = share.getDatasetSync('taken');
      if (i % 2) taken.column().values();
      if (i % 3 === 0) taken.toArrow();
      share.alloc(100000);
      connectSync({ socket: broker.socket });
    }
    assert(kit.mapCount() > 20);
  })();
  await kit.collected('maps', kit.mapCount, 0);
  await kit.collected('descriptors', kit.fdCount, descriptors);
  await kit.until('versions held', async () => (await held()) === 0);
});

test('views after close() keep the memory; detached ones do not', async () => {
  await share.publish('viewed', new Int32Array(100000).fill(5));
  (function use() {
    const viewed = share.getDatasetSync('viewed');
    const values = viewed.column().values();
    viewed.close();
    assert.strictEqual(kit.mapCount(), 1);
    assert.strictEqual(values[99999], 5);
  })();
  await kit.collected('maps', kit.mapCount, 0);
  const viewed = share.getDatasetSync('viewed');
  const values = viewed.column().values();
  const table = viewed.toArrow();
  viewed.close({ detach: true });
  await kit.until('maps', () => kit.mapCount() === 0);
  assert.deepStrictEqual([values.length, table.get(3)], [0, undefined]);
});

test('memory that calls use is detached when they are done', async () => {
  const source = new Int32Array(1 << 20).map((_, i) => i * 7919);
  await share.publish('used', source);
  await kit.collected('maps', kit.mapCount, 0);
  const used = share.getDatasetSync('used');
  const values = used.column().values();
  const calls = [encode(values, 'zstd(level=3)'), share.publish('again', used, { copy: 'always' })];
  used.close({ detach: true });
  assert.deepStrictEqual([values.length, kit.mapCount()], [source.length, 1]);
  const [encoded] = await Promise.all(calls);
  assert.strictEqual(values.length, 0);
  await kit.until('maps', () => kit.mapCount() === 0);
  const back = new Int32Array(source.length);
  decodeSync(encoded, 'zstd', { out: back });
  assert.deepStrictEqual(back, source);
});

test('a thousand rounds leave nothing', async () => {
  const source = new Int32Array(20000);
  for (let i = 0; i < 1000; i++) {
    source[0] = i;
    share.publishSync('round', source);
    const round = share.getDatasetSync('round');
    assert.strictEqual(round.column().values()[0], i);
    round.close({ detach: true });
    if (i % 100 === 99) await kit.sleep(1); // memory goes between two turns of the loop
  }
  await kit.collected('maps', kit.mapCount, 0);
  const { versions, names } = await share.statistics();
  assert.strictEqual(versions, names);
});

const WORKER = `
const { parentPort, workerData } = require('node:worker_threads');
const { connect, encode } = require('liblade');
(async () => {
  const share = await connect({ socket: workerData.socket });
  const data = await share.getDataset('worked');
  const values = data.column().values();
  const mine = share.alloc(80000);
  new Float64Array(mine).set(values);
  await share.publish('back', new Float64Array(mine));
  parentPort.postMessage(values[9999]);
  if (workerData.what === 'wait') await share.wait('never published');
  if (workerData.what === 'subscribe') for await (const event of await share.subscribe()) {}
  if (workerData.what === 'encode') for (;;) await encode(new Uint8Array(1 << 22), 'zstd(level=9)');
})();`;

test('workers: each has its own; ended in the middle of anything', async () => {
  await share.publish('worked', Float64Array.from({ length: 10000 }, (_, i) => i));
  const maps = kit.mapCount();
  for (const what of ['nothing', 'wait', 'subscribe', 'encode']) {
    const worker = new Worker(WORKER,
      { eval: true, workerData: { socket: broker.socket, what } });
    const [seen] = await once(worker, 'message');
    assert.strictEqual(seen, 9999);
    if (what === 'nothing') {
      assert.deepStrictEqual(await once(worker, 'exit'), [0]);
    } else {
      await kit.sleep(20);
      await worker.terminate();
    }
  }
  assert.strictEqual(kit.mapCount(), maps);
  await kit.until('versions held', async () => (await held()) === 0);
  assert.strictEqual(share.getDatasetSync('back').column().values()[9999], 9999);
});

/** Another Node that prints "ready", to be killed. */
async function killed(script) {
  const start = 'const liblade = require("liblade");' +
    'const share = liblade.connectSync({ socket: process.argv[1] });';
  const child = spawn(process.execPath, ['-e', `${start}${script}`, broker.socket],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('a killed consumer holds nothing; what a killed producer published stays', async () => {
  await share.publish('stays', new Int32Array(100000).fill(3));
  await killed(`
    const stays = share.getDatasetSync('stays');
    const values = stays.column().values();
    setInterval(() => values[0], 1000);
    console.log('ready');`);
  await kit.until('versions held', async () => (await held()) === 0);
  await killed(`
    const memory = new Int32Array(share.alloc(400000)).fill(9);
    share.publishSync('left', memory, { copy: 'never' });
    setInterval(() => memory[0], 1000);
    console.log('ready');`);
  assert.strictEqual(share.getDatasetSync('left').column().values()[99999], 9);
  await killed(`
    const numbers = new Int32Array(200000);
    (async () => { for (let i = 0; ; i++) { numbers.fill(i); await share.publish('torn', numbers);
      if (i === 3) console.log('ready'); } })();`);
  const torn = share.getDatasetSync('torn').column().values();
  assert(torn.every((one) => one === torn[0]));
});

test('a broker that ends, and the next one', async () => {
  const own = await kit.serve();
  const mine = await connect({ socket: own.socket });
  await mine.publish('x', new Int32Array(100000).fill(1));
  const values = (await mine.getDataset('x')).column().values();
  const events = await mine.subscribe();
  const rejected = assert.rejects(events.next(), { code: 'LADE_E_IO' });
  await own.stop();
  await rejected;
  await assert.rejects(mine.getDataset('x'), { code: /LADE_E_(IO|NOT_FOUND)/ });
  assert.strictEqual(values[99999], 1);
  mine.close();
});

test('tables of several batches, one map', async () => {
  const batch = (i) => arrow.tableFromArrays({ x: new Int32Array(50000).fill(i) }).batches[0];
  await share.publish('batches', new arrow.Table([batch(1), batch(2), batch(3)]));
  await kit.collected('maps', kit.mapCount, 0);
  const data = share.getDatasetSync('batches');
  assert.deepStrictEqual([data.info.batches, data.numRows, kit.mapCount()], [3, 150000, 1]);
  assert.strictEqual(data.column('x').values(2)[49999], 3);
  assert.throws(() => data.column('x').values(3), { code: 'LADE_E_RANGE' });
  assert(encodeSync(data.column('x').values(1), 'zstd').length < 1000);
  data.close({ detach: true });
});
