// codec.test.js: chunks in memory, .lade files, Zarr arrays.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { execFileSync } = require('node:child_process');
const { test, before, after } = require('node:test');
const { pathToFileURL } = require('node:url');
const zlib = require('node:zlib');
const lade = require('liblade');
const kit = require('./kit.js');

const SPEC = 'shuffle(4)|zstd(level=1)|crc32c';
const field = Float32Array.from({ length: 100000 }, (_, i) => Math.round(1000 * Math.sin(i / 500)));
let folder;
before(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lade-node-')); });
after(() => fs.rmSync(folder, { recursive: true }));

test('a chunk, there and back', async () => {
  const packed = await lade.encode(field, SPEC);
  assert(packed instanceof Uint8Array && packed.length < field.byteLength / 3);
  const out = new Float32Array(field.length + 5);
  const back = await lade.decode(packed, SPEC, { out });
  assert.deepStrictEqual(back, field);
  assert.strictEqual(back.buffer, out.buffer);
  assert.deepStrictEqual(new Float32Array(lade.decodeSync(packed, SPEC).buffer), field);
  assert.deepStrictEqual(lade.encodeSync(field, SPEC), packed);
  assert.strictEqual((await lade.encode(new Uint8Array(0), 'lz4')).length, 1);
  // What others write and read.
  const text = Buffer.from('of another writer '.repeat(100));
  assert.deepStrictEqual(Buffer.from(await lade.decode(zlib.gzipSync(text), 'gzip')), text);
  assert.deepStrictEqual(zlib.gunzipSync(await lade.encode(text, 'gzip')), text);
});

test('a batch; parts of one buffer', async () => {
  const chunks = Array.from({ length: 10 }, (_, i) => field.subarray(10000 * i, 10000 * (i + 1)));
  const packed = await lade.encode(chunks, SPEC);
  assert.strictEqual(packed.length, 10);
  const whole = new Float32Array(field.length);
  const out = packed.map((_, i) => whole.subarray(10000 * i, 10000 * (i + 1)));
  await lade.decode(packed, SPEC, { out });
  assert.deepStrictEqual(whole, field);
  packed[7] = packed[7].slice(0, 20);
  await assert.rejects(lade.decode(packed, SPEC, { out }), { code: /LADE_E/, message: /item 7/ });
  assert.deepStrictEqual(await lade.decode([], SPEC), []);
});

test('failures have a code, and a place', async () => {
  const packed = lade.encodeSync(field, SPEC);
  packed[packed.length >> 1] ^= 1;
  await assert.rejects(lade.decode(packed, SPEC), { code: 'LADE_E_CHECKSUM' });
  assert.throws(() => lade.decodeSync(packed, 'zstt'), { code: 'LADE_E_NOT_FOUND', offset: 0 });
  await assert.rejects(lade.encode(field, SPEC, { out: new Uint8Array(9) }),
    { code: 'LADE_E_NOSPACE' });
  await assert.rejects(lade.encode(field, 'copy', { out: field }),
    { code: 'LADE_E_ARG', message: /overlap/ });
  await assert.rejects(lade.decode(lade.encodeSync(field, 'zstd'), 'zstd', { largest: 1000 }),
    { code: 'LADE_E_LIMIT' });
  await assert.rejects(lade.decode(lade.encodeSync(new Uint8Array(7), 'zstd'), 'zstd',
    { out: new Float64Array(9) }), { code: 'LADE_E_DTYPE' });
});

test('calls do not stop the event loop, and can be cancelled', async () => {
  const large = new Uint8Array(1 << 24).map((_, i) => (i * i) >> 7);
  let turns = 0;
  const timer = setInterval(() => { turns++; }, 1);
  await lade.encode(large, 'zstd(level=12)');
  clearInterval(timer);
  assert(turns > 3, `${turns} turns`);
  const abort = new AbortController();
  const chunks = Array.from({ length: 400 }, (_, i) => large.subarray(i * 4e4, i * 4e4 + 4e4));
  const rejected = assert.rejects(lade.encode(chunks, 'zstd(level=19)', { signal: abort.signal }),
    { name: 'AbortError' });
  setTimeout(() => abort.abort(), 2);
  await rejected;
  await assert.rejects(lade.encode(large, 'zstd', { signal: AbortSignal.abort() }),
    { name: 'AbortError' });
});

test('.lade files', async () => {
  const file = path.join(folder, 'x.lade');
  const bytes = await lade.writeFile(file, field, { spec: 'shuffle(4)|zstd', shape: [100, 1000] });
  assert.strictEqual(bytes, fs.statSync(file).size);
  const opened = await lade.openFile(file);
  assert.deepStrictEqual([opened.dtype, opened.shape, opened.size], ['<f4', [100, 1000], 400000]);
  assert.deepStrictEqual(await opened.read(), field);
  assert.deepStrictEqual(lade.openFileSync(pathToFileURL(file)).info, opened.info);
  assert.deepStrictEqual(opened.readSync({ start: 99997 }), field.slice(99997));
  assert.deepStrictEqual(await opened.read({ start: 5, count: 2 }), field.slice(5, 7));
  const out = new Float32Array(10);
  assert.strictEqual(await opened.read({ start: 50, out }), out);
  assert.deepStrictEqual(out, field.slice(50, 60));
  await assert.rejects(opened.read({ start: 99999, count: 2 }), { code: 'LADE_E_RANGE' });
  opened.close();
  await assert.rejects(opened.read(), { code: 'LADE_E_STATE' });
  // The command reads it, and we what the command writes.
  const lines = execFileSync(path.join(process.env.LADE_BUILD, 'lade'), ['inspect', file]);
  assert.match(String(lines), /100.*1000/);
  assert.deepStrictEqual(fs.readdirSync(folder), ['x.lade']);
  lade.writeFileSync(file, new BigInt64Array([1n, -2n]), { checksums: false });
  assert.deepStrictEqual(lade.openFileSync(file).readSync(), new BigInt64Array([1n, -2n]));
  // A big-endian file.
  lade.writeFileSync(file, new Uint8Array([1, 2, 3, 4]), { dtype: '>i2' });
  assert.deepStrictEqual(lade.openFileSync(file).readSync(), new Int16Array([0x102, 0x304]));
  const whole = fs.readFileSync(file);
  fs.writeFileSync(file, whole.subarray(0, whole.length - 1));
  await assert.rejects(lade.openFile(file), { code: /LADE_E_(TRUNCATED|CORRUPT)/ });
  await assert.rejects(lade.openFile(path.join(folder, 'none')), { code: 'LADE_E_NOT_FOUND' });
  await assert.rejects(lade.writeFile(path.join(folder, 'no/x'), field), { code: /LADE_E/ });
  await assert.rejects(lade.writeFile(file, field, { shape: [7] }), { code: 'LADE_E_ARG' });
});

/** A Zarr 3 array of 4 x 6 int16, 0 to 23, in chunks of 2 x 3. */
function makeZarr(to) {
  fs.mkdirSync(path.join(to, 'c/0'), { recursive: true });
  fs.mkdirSync(path.join(to, 'c/1'));
  fs.writeFileSync(path.join(to, 'zarr.json'), JSON.stringify({
    zarr_format: 3, node_type: 'array', shape: [4, 6], data_type: 'int16', fill_value: -1,
    chunk_grid: { name: 'regular', configuration: { chunk_shape: [2, 3] } },
    chunk_key_encoding: { name: 'default', configuration: { separator: '/' } },
    codecs: [{ name: 'bytes', configuration: { endian: 'big' } },
      { name: 'gzip', configuration: { level: 1 } }],
    dimension_names: ['y', 'x'], attributes: { unit: 'K', 'é': [1] },
  }));
  for (const [y, x] of [[0, 0], [0, 1], [1, 0]]) {
    const chunk = Buffer.alloc(12);
    for (let i = 0; i < 6; i++) {
      chunk.writeInt16BE((2 * y + Math.floor(i / 3)) * 6 + 3 * x + (i % 3), 2 * i);
    }
    fs.writeFileSync(path.join(to, `c/${y}/${x}`), zlib.gzipSync(chunk));
  }
}

test('Zarr arrays, of a folder and of a server', async () => {
  const data = path.join(folder, 'data.zarr');
  makeZarr(data);
  const server = http.createServer((request, response) => {
    const file = path.join(data, request.url.slice(1));
    const found = request.headers.authorization === 'Bearer x' && fs.existsSync(file);
    response.writeHead(found ? 200 : 404);
    response.end(found && request.method === 'GET' ? fs.readFileSync(file) : undefined);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  try {
    for (const where of [data, url]) {
      const zarr = await lade.openZarr(where, { headers: { Authorization: 'Bearer x' } });
      assert.deepStrictEqual(
        [zarr.kind, zarr.shape, zarr.chunks, zarr.dtype, zarr.attributes, zarr.info.dimensionNames],
        ['array', [4, 6], [2, 3], 'int16', { unit: 'K', 'é': [1] }, ['y', 'x']]);
      const whole = await zarr.read();
      assert.deepStrictEqual(whole.shape, [4, 6]);
      const want = Int16Array.from({ length: 24 }, (_, i) => (i >= 12 && i % 6 > 2 ? -1 : i));
      assert.deepStrictEqual(whole.data, want);
      assert.deepStrictEqual((await zarr.read('1:4:2, 2:4')).data, new Int16Array([8, 9, 20, -1]));
      assert.deepStrictEqual(await zarr.read([null, 5]),
        { data: new Int16Array([5, 11, -1, -1]), shape: [4] });
      assert.deepStrictEqual((await zarr.read([[0, 2], { start: 4 }])).data,
        new Int16Array([4, 5, 10, 11]));
      const out = new Int16Array(6);
      assert.strictEqual((await zarr.read([0], { out })).data, out);
      assert.deepStrictEqual([...out], [0, 1, 2, 3, 4, 5]);
      if (where === data) assert.deepStrictEqual(zarr.readSync('0, 0').shape, []);
      await assert.rejects(zarr.read('9'), { code: 'LADE_E_RANGE' });
      await assert.rejects(zarr.read('0, 0, 0'), { code: 'LADE_E_ARG' });
      await assert.rejects(zarr.read([0], { out: new Int16Array(5) }), { code: 'LADE_E_RANGE' });
      await assert.rejects(zarr.read('x'), { code: 'LADE_E_ARG', offset: 0 });
      await assert.rejects(zarr.read(7), { code: 'ERR_INVALID_ARG_TYPE' });
      zarr.close();
      await assert.rejects(zarr.read(), { code: 'LADE_E_STATE' });
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
  await assert.rejects(lade.openZarr(path.join(folder, 'none')), { code: 'LADE_E_NOT_FOUND' });
  await assert.rejects(lade.openZarr(data, { path: 'a' }), { code: 'LADE_E_NOT_FOUND' });
  fs.writeFileSync(path.join(data, 'c/0/0'), 'no gzip');
  await assert.rejects(lade.openZarr(data).then((zarr) => zarr.read()),
    { code: /LADE_E_(CORRUPT|TRUNCATED)/, message: /c\/0\/0/ });
  kit.sleep(0);
});
