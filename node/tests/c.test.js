// c.test.js: from C to JavaScript and back.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const arrow = require('apache-arrow');
const { connect } = require('liblade');
const kit = require('./kit.js');

const PROGRAM = path.join(process.env.LADE_BUILD, 'node/c_side');
// A device that the library's tests have.
const EMULATED = path.join(process.env.LADE_BUILD, 'tests/gpu/emulated');

test('a table of C, and tables for C', async (t) => {
  const broker = await kit.serve();
  t.after(() => broker.stop());
  const side = (...args) => String(execFileSync(PROGRAM, [broker.socket, ...args]));
  side('publish');
  const share = await connect({ socket: broker.socket });
  const data = await share.getDataset('c/table');
  const table = data.toArrow();
  assert.deepStrictEqual([table.numRows, data.column('number').nullCount], [19995, 2857]);
  const [numbers, texts, lists, codes] = table.schema.names.map((name) => table.getChild(name));
  for (let row = 0; row < table.numRows; row++) {
    const i = row + 5;
    assert.strictEqual(numbers.get(row), i % 7 ? BigInt(3 * i) : null);
    assert.strictEqual(texts.get(row), `t${i % 10}`);
    assert.deepStrictEqual([...lists.get(row)], [i & 255, (i + 1) & 255].slice(0, i % 3));
    assert.strictEqual(codes.get(row), i % 5 ? 'no' : 'yes');
  }
  const name = ['c/same', 'c/parts', 'c/made', 'c/read'];
  await share.publish(name[0], data);
  await share.publish(name[1], new arrow.Table([
    ...table.slice(0, 1001).batches, ...table.slice(1001).batches,
  ]));
  const readonly = await share.getDataset('c/table', { readonly: true });
  const done = await share.publish(name[3], readonly, { copy: 'never' });
  assert.strictEqual(done.copied, 0);
  // Made here, of values.
  const rows = Array.from({ length: 19995 }, (_, row) => row + 5);
  await share.publish(name[2], new arrow.Table({
    number: arrow.vectorFromArray(rows.map((i) => (i % 7 ? BigInt(3 * i) : null)),
      new arrow.Int64()),
    text: arrow.vectorFromArray(rows.map((i) => `t${i % 10}`), new arrow.Utf8()),
    list: arrow.vectorFromArray(rows.map((i) => [i & 255, (i + 1) & 255].slice(0, i % 3)),
      new arrow.List(new arrow.Field('item', new arrow.Uint8()))),
    code: arrow.vectorFromArray(rows.map((i) => (i % 5 ? 'no' : 'yes')),
      new arrow.Dictionary(new arrow.Utf8(), new arrow.Int8())),
  }));
  for (const one of name) assert.strictEqual(side('check', one), '19995 rows\n');
  share.close();
});

test('a column on a device, as a copy on the host', {
  skip: !fs.existsSync(path.join(EMULATED, 'libcuda.so.1')) && 'no emulated device is built',
}, async (t) => {
  const env = { ...process.env, LD_LIBRARY_PATH: EMULATED };
  const broker = await kit.serve({ env });
  t.after(() => broker.stop());
  execFileSync(PROGRAM, [broker.socket, 'device'], { env });
  const share = await connect({ socket: broker.socket });
  for (const readonly of [false, true]) {
    const values = (await share.getDataset('c/device', { readonly })).column().values();
    assert.deepStrictEqual(values, BigInt64Array.from({ length: 20000 }, (_, i) => 3n * BigInt(i)));
  }
  share.close();
});
