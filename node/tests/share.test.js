// share.test.js: publishing and opening, in one process and in two.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test, before, after } = require('node:test');
const arrow = require('apache-arrow');
const { connect, connectSync, openTicket } = require('liblade');
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

test('a column of Python, as a typed array in place', { skip: kit.noPython }, async () => {
  await kit.python(broker.socket, 'share.publish("ids", pa.table({"id": range(100000)}))');
  const ids = await share.getDataset('ids');
  assert.deepStrictEqual(ids.columnNames, ['id']);
  const values = ids.column('id').values();
  assert(values instanceof BigInt64Array);
  assert.strictEqual(values.length, 100000);
  assert.strictEqual(values[99999], 99999n);
  // The same memory each time.
  assert.strictEqual(values.buffer, ids.column('id').values().buffer);
  ids.close();
  // Back, computed.
  const twice = new Float64Array(share.alloc(8 * values.length));
  values.forEach((value, i) => { twice[i] = 2 * Number(value); });
  const done = await share.publish('twice', { id: values, twice });
  assert.strictEqual(done.shared, 8 * values.length);
  assert.match(done.why, /'id'/);
  assert.strictEqual(await kit.python(broker.socket, `
t = share.get("twice").to_pyarrow()
print(t.schema.names, sum(t["twice"].to_pylist()))`), "['id', 'twice'] 9999900000.0");
});

test('memory of alloc() is published in place, and writing to it changes nothing', async () => {
  const memory = share.alloc(800000);
  const mine = new Float64Array(memory).map((_, i) => i);
  new Float64Array(memory).set(mine);
  const done = await share.publish('own', new Float64Array(memory), { copy: 'never' });
  assert.deepStrictEqual([done.shared, done.copied, done.why], [800000, 0, '']);
  const view = new Float64Array(memory);
  view[7] = -1;
  const opened = await share.getDataset('own');
  const values = opened.column().values();
  assert.deepStrictEqual(values, mine);
  assert.strictEqual(view[7], -1);
  // What is read can be written, too, and is this data set's own then.
  values[8] = -1;
  assert.strictEqual((await share.getDataset('own')).column().values()[8], 8);
  // Once more: a copy, which has what was written.
  const again = await share.publish('own', view);
  assert.deepStrictEqual([again.shared, again.copied], [0, 800000]);
  assert.strictEqual((await share.getDataset('own')).column().values()[7], -1);
});

test('what is opened can be passed on without a copy', async () => {
  await share.publish('first', new Int32Array(100000).map((_, i) => i));
  const first = await share.getDataset('first', { readonly: true });
  const part = first.toArrow().slice(1000, 90000);
  const done = await share.publish('second', part, { copy: 'never' });
  assert.strictEqual(done.copied, 0);
  first.close();
  const second = (await share.getDataset('second')).column().values();
  assert.deepStrictEqual([second.length, second[0]], [89000, 1000]);
});

test('tables of apache-arrow', async () => {
  const table = arrow.tableFromArrays({ a: [1, null, 3], b: ['x', 'yy', null] });
  await share.publish('small', table);
  const back = share.getDatasetSync('small').toArrow();
  assert(back instanceof arrow.Table);
  assert.deepStrictEqual(back.toArray().map((row) => row.toJSON()),
    table.toArray().map((row) => row.toJSON()));
});

test("Python's name of copy: 'if-needed'", async () => {
  const source = new Float64Array(share.alloc(800000));
  const done = await share.publish('python', source, { copy: 'if_needed' });
  assert.deepStrictEqual([done.shared, done.copied], [800000, 0]);
});

test('what a small budget moves: the numbers and places that the command shows', async (t) => {
  const small = await kit.serve({ args: ['--memory', '2M', '--disk', '64M', '--spill',
    fs.mkdtempSync(path.join(broker.folder, 'spill-'))] });
  t.after(() => small.stop());
  const command = (...args) => JSON.parse(execFileSync(path.join(process.env.LADE_BUILD, 'lade'),
    ['share', ...args, '--json', '--socket', small.socket]));
  const own = await connect({ socket: small.socket });
  t.after(() => own.close());
  for (let i = 0; i < 4; i++) {
    await own.publish(`noise ${i}`, new Float64Array(100000).map(Math.random));
  }
  const n = await own.statistics();
  assert(n.stored >= 1 && n.disk > 0 && n.diskCap === 64 << 20, JSON.stringify(n));
  const names = Object.keys(command('top')).map((name) =>
    name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()));
  assert.deepStrictEqual(Object.keys(n), names);
  const places = (await own.datasets()).map(({ name, place }) => [name, place]);
  assert.deepStrictEqual(places, command('ls').map(({ name, place }) => [name, place]));
  assert(places.some(([, place]) => place === 'disk'), String(places));
  assert.strictEqual(own.getDatasetSync('noise 0').info.place, 'memory');
});

test('names, versions, tickets', async () => {
  const first = await share.publish('named', new Uint8Array([1, 2, 3]));
  const second = await share.publish('named', new Uint8Array([4, 5]));
  assert(second.version > first.version);
  const all = await share.datasets('nam');
  assert.strictEqual(all.length, 1);
  assert.deepStrictEqual([all[0].name, all[0].version, all[0].rows, all[0].pid],
    ['named', second.version, 2, process.pid]);
  assert(Math.abs(all[0].time - Date.now()) < 60000);
  const opened = await share.getDataset('named');
  const again = await openTicket(opened.ticket);
  assert.deepStrictEqual([...again.column().values()], [4, 5]);
  await share.remove('named');
  await assert.rejects(share.getDataset('named'), { code: 'LADE_E_NOT_FOUND', message: /named/ });
  assert((await share.statistics()).published >= 2);
});

test('a closed connection, a closed data set', async () => {
  const own = connectSync({ socket: broker.socket });
  own.publishSync('closing', new Int32Array(100000).fill(7));
  const opened = own.getDatasetSync('closing');
  const values = opened.column().values();
  own.close();
  own.close();
  await assert.rejects(own.getDataset('closing'), { code: 'LADE_E_STATE', message: /closed/ });
  opened.close();
  opened.close();
  assert.strictEqual(values[99999], 7);
  assert.throws(() => opened.batch(0), { code: 'LADE_E_STATE' });
  const other = share.getDatasetSync('closing');
  const detached = other.column().values();
  other.close({ detach: true });
  assert.deepStrictEqual([detached.length, detached[0]], [0, undefined]);
});
