// hostile.test.js: arguments that make no sense.  Each call fails, and nothing crashes.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const path = require('node:path');
const { test, before, after } = require('node:test');
const arrow = require('apache-arrow');
const lade = require('liblade');
const kit = require('./kit.js');

const root = path.dirname(require.resolve('liblade/package.json'));
const { native } = require(path.join(root, 'lib/native.js'));
let broker, share;
before(async () => {
  broker = await kit.serve();
  share = await lade.connect({ socket: broker.socket });
});
after(async () => {
  share.close();
  await broker.stop();
});

function detached(bytes) {
  const buffer = new ArrayBuffer(bytes);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

/** A table of one column, given as the C interface has it. */
const raw = (schema, array) => ({
  schema: { name: '', format: 'i', flags: 2, children: [], ...schema },
  batches: [{ length: 4, nullCount: 0, offset: 0, buffers: [null, new Int32Array(4)],
    children: [], ...array }],
});

test('memory that can change or go is refused', async () => {
  const shared = new Int32Array(new SharedArrayBuffer(64));
  const resizable = new Int32Array(new ArrayBuffer(64, { maxByteLength: 128 }));
  for (const source of [shared, resizable]) {
    if (source === resizable && resizable.buffer.resizable === undefined) continue; // Node 18
    await assert.rejects(share.publish('x', source), { code: 'ERR_INVALID_ARG_TYPE' });
    await assert.rejects(lade.encode(source, 'lz4'), { code: 'ERR_INVALID_ARG_TYPE' });
    await assert.rejects(lade.decode(lade.encodeSync(new Uint8Array(9), 'lz4'), 'lz4',
      { out: source }), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  await assert.rejects(lade.encode(shared, 'lz4'), { message: /SharedArrayBuffer/ });
  // Nothing is left of a detached one: an empty chunk, and no table.
  assert.strictEqual((await lade.encode(detached(64), 'copy')).length, 0);
  await assert.rejects(share.publish('x', raw({}, { buffers: [null, detached(16)] })),
    { code: 'LADE_E_ARG', message: /has 0 bytes, want 16/ });
});

test('arrays that contradict their schema', async () => {
  const huge = 2 ** 53;
  const offsets = (...list) => [null, new Int32Array(list), new Uint8Array(8)];
  const cases = {
    'a short buffer': raw({}, { length: 5 }),
    'a huge length': raw({}, { length: huge }),
    'a huge offset': raw({}, { offset: huge }),
    'a sum that wraps': raw({}, { length: huge, offset: huge }),
    'a negative length': raw({}, { length: -1 }),
    'no length': raw({}, { length: undefined }),
    'half a row': raw({}, { length: 1.5 }),
    'NaN': raw({}, { length: NaN }),
    'too few buffers': raw({}, { buffers: [null] }),
    'too many': raw({}, { buffers: [null, new Int32Array(4), new Int32Array(4)] }),
    'no buffers': raw({}, { buffers: undefined }),
    'a buffer that is none': raw({}, { buffers: [null, 'abcd'] }),
    'nulls without a bitmap': raw({}, { nullCount: 2 }),
    'a short bitmap': raw({ format: 'c' },
      { length: 100, nullCount: 1, buffers: [new Uint8Array(12), new Int8Array(100)] }),
    'an unknown format': raw({ format: 'q' }),
    'a format of bytes that wraps': raw({ format: 'w:18446744073709551615' }),
    'a format of a negative width': raw({ format: 'w:-4' }),
    'a list of a huge width': raw({ format: '+w:9007199254740992', children: [raw({}).schema] },
      { buffers: [null], children: raw({}).batches }),
    'no format': raw({ format: null }),
    'a name with NUL': raw({ name: 'a\0b' }),
    'children that the schema lacks': raw({}, { children: raw({}).batches }),
    'a schema of a child that is none': raw({ format: '+s', children: [3] }, { children: [3] }),
    'offsets that fall': raw({ format: 'u' }, { length: 2, buffers: offsets(4, 2, 1) }),
    'an offset past the data': raw({ format: 'u' }, { length: 1, buffers: offsets(0, 9) }),
    'a negative offset': raw({ format: 'u' }, { length: 1, buffers: offsets(0, -1) }),
    'too few offsets': raw({ format: 'u' }, { length: 3, buffers: offsets(0, 1, 2) }),
    'views without their sizes': raw({ format: 'vu' }, { buffers: [null, new Uint8Array(64)] }),
    'views of too many bytes': raw({ format: 'vu' },
      { buffers: [null, new Uint8Array(64), new Uint8Array(8), new BigInt64Array([9n])] }),
    'a negative size of views': raw({ format: 'vu' },
      { buffers: [null, new Uint8Array(64), new Uint8Array(8), new BigInt64Array([-9n])] }),
    'a dictionary that is missing': raw({ dictionary: raw({}).schema }),
    'columns of different rows': { a: new Int8Array(3), b: new Int8Array(4) },
    'a number': 7, 'a string': 'x', 'nothing': undefined, 'null': null, 'a date': new Date(),
    'an array': [1, 2], 'a DataView': new DataView(new ArrayBuffer(8)),
    'a column that is none': { a: 7 },
  };
  let deep = raw({}).schema;
  for (let i = 0; i < 100; i++) deep = { ...raw({}).schema, format: '+s', children: [deep] };
  cases['a deep schema'] = { schema: deep, batches: [] };
  const circle = raw({ format: '+s' });
  circle.schema.children.push(circle.schema);
  cases['a circle'] = circle;
  for (const [name, source] of Object.entries(cases)) {
    for (const copy of ['if-needed', 'always', 'never']) {
      await assert.rejects(share.publish('x', source, { copy }),
        { code: /^(LADE_E_|ERR_INVALID_ARG)/ }, name);
    }
  }
  assert.deepStrictEqual(await share.datasets(), []);
});

test('names, options and columns that are not there', async () => {
  const one = new Uint8Array(1);
  for (const name of ['', 'a@b', 'a\nb', 'x'.repeat(256), 'a\0b', 7, null, undefined, {}]) {
    await assert.rejects(share.publish(name, one), { code: /^(LADE_E_ARG|ERR_INVALID)/ });
    await assert.rejects(share.getDataset(name), { code: /^(LADE_E_|ERR_INVALID)/ });
  }
  await share.publish('x', { a: one });
  await assert.rejects(share.publish('x', one, { copy: 'maybe' }), { message: /maybe.*if-needed/ });
  for (const version of [-1, 1.5, 2 ** 54, 'a', NaN, 1n]) {
    await assert.rejects(share.getDataset('x', { version }), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  await assert.rejects(share.getDataset('x', { version: 2 ** 52 }), { code: 'LADE_E_NOT_FOUND' });
  await share.publish('plain', one);
  const plain = await share.getDataset('plain');
  for (const column of ['b', 0]) {
    assert.throws(() => plain.column(column), { code: 'LADE_E_NOT_FOUND',
      message: `'plain' is one array without named columns: want column(), ` +
        `have column('${column}')` });
  }
  // The child of a list is no column.
  await share.publish('lists', arrow.vectorFromArray([[1, 2], [3]],
    new arrow.List(new arrow.Field('item', new arrow.Int32()))));
  const lists = await share.getDataset('lists');
  assert.throws(() => lists.column(0), { message: /one array/ });
  const x = await share.getDataset('x');
  for (const column of ['b', 1, -1, undefined, '__proto__', 'length']) {
    assert.throws(() => x.column(column), { code: 'LADE_E_NOT_FOUND', message: /has a$/ });
  }
  for (const size of [-1, 2 ** 60, 'x', 0.5]) assert.throws(() => share.alloc(size), /./);
  assert.strictEqual(share.alloc(0).byteLength, 0);
  assert.throws(() => share.alloc(2 ** 52), { code: /LADE_E_(NOMEM|LIMIT|IO)/ });
  await assert.rejects(lade.openTicket('lade-share:x'), { code: 'LADE_E_ARG' });
  await assert.rejects(lade.connect({ socket: '/none/there' }), { code: 'LADE_E_NOT_FOUND' });
});

test('options that are no object, and options that do not exist', async () => {
  const one = new Uint8Array(1);
  const file = path.join(broker.folder, 'x.lade');
  await lade.writeFile(file, one);
  const opened = await lade.openFile(file);
  await share.publish('x', one);
  const x = await share.getDataset('x');
  const calls = {
    connect: (options) => lade.connect(options),
    connectSync: async (options) => lade.connectSync(options),
    openTicket: (options) => lade.openTicket(x.ticket, options),
    getDataset: (options) => share.getDataset('x', options),
    publish: (options) => share.publish('x', one, options),
    wait: (options) => share.wait('x', options),
    subscribe: async (options) => (await share.subscribe('x', options)).close(),
    close: async (options) => x.close(options),
    encode: (options) => lade.encode(one, 'lz4', options),
    decodeSync: async (options) => lade.decodeSync(lade.encodeSync(one, 'lz4'), 'lz4', options),
    openFile: (options) => lade.openFile(file, options),
    read: (options) => opened.read(options),
    writeFile: (options) => lade.writeFile(file, one, options),
    openZarr: (options) => lade.openZarr(broker.folder, options),
  };
  for (const [name, call] of Object.entries(calls)) {
    for (const options of ['/tmp/none', 5, null, true, [], () => {}]) {
      await assert.rejects(call(options), { name: 'TypeError', message: /want an object, have/ },
        name);
    }
    await assert.rejects(call({ sockt: '/tmp/none' }),
      { name: 'TypeError', message: /no option 'sockt', only \w/ }, name);
  }
  opened.close();
  for (const socket of [5, {}, true]) {
    await assert.rejects(lade.connect({ socket }), { name: 'TypeError', message: /socket/ });
  }
});

test('nulls are not dropped', async () => {
  await share.publish('nulls', arrow.tableFromArrays({ a: [1, null], s: ['x', null] }));
  const nulls = await share.getDataset('nulls');
  assert.throws(() => nulls.column('a').values(), { code: 'LADE_E_VALUE', message: /1 nulls/ });
  assert.throws(() => nulls.column('s').values(), { code: 'LADE_E_DTYPE' });
  assert.deepStrictEqual(nulls.columnNames.map((name) => nulls.column(name).nullCount), [1, 1]);
});

test("the add-on's own functions, with anything", async () => {
  const handle = await native.shareConnect(false, undefined, broker.socket, 1000);
  const version = await (async () => {
    await share.publish('any', new Int8Array(3));
    return native.shareOpen(true, handle, 'any', 0, 0, true);
  })();
  const throws = new Proxy({}, { get() { throw new Error('no'); } });
  const values = [undefined, null, true, false, 0, 1, -1, 2 ** 53, NaN, Infinity, 5n, '', 'any', {},
    [], [[]], [{}], [null], new Uint8Array(8), new ArrayBuffer(8), detached(8), handle, version,
    native.cancelNew(), throws, [throws], () => {}, Symbol('s'), new Float64Array(0),
    raw({}).schema, raw({}).batches, { shape: [2 ** 54], spec: 'zstd', chunkSize: 3 }];
  let state = 12345;
  const random = (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
  const calls = Object.entries(native).filter(([name, one]) =>
    typeof one === 'function' && !['setLargest', 'fileWrite'].includes(name));
  const pending = [];
  for (let round = 0; round < 300; round++) {
    for (const [name, call] of calls) {
      const args = Array.from({ length: random(8) }, () => values[random(values.length)]);
      // The real handles stay open, and nothing waits or takes all memory.
      if (name === 'close' && (args[0] === handle || args[0] === version)) continue;
      if (name === 'shareAlloc' && typeof args[1] === 'number' && args[1] > 1e6) continue;
      if (name === 'eventsWait') continue;
      try {
        pending.push(Promise.resolve(call(...args)).catch(() => {}));
      } catch (error) {
        assert(error instanceof Error, name);
      }
    }
    if (pending.length > 100) await Promise.all(pending.splice(0));
  }
  await Promise.all(pending);
  assert.strictEqual(native.versionInfo(version).name, 'any');
});
