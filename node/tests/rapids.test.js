// rapids.test.js: the names of node-rapids.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { test } = require('node:test');
const arrow = require('apache-arrow');
const { connect } = require('liblade');
const { Series } = require('liblade/rapids');
const kit = require('./kit.js');

test('Series.new(): nulls, offset, length; `mask` is refused', async () => {
  const data = Int32Array.from({ length: 20 }, (_, i) => i);
  const nullMask = new Uint8Array([0b10110111, 0xff, 0xff]);
  const type = new arrow.Int32();
  const series = Series.new({ type, data, nullMask, offset: 2, length: 6, name: 'a' });
  const want = [2, null, 4, 5, null, 7];
  assert.deepStrictEqual([series.length, ...series.toArrow()], [6, ...want]);
  assert.deepStrictEqual([...Series.new({ type, data: data.subarray(2, 8),
    nullMask: want.map((one) => one !== null) }).toArrow()], want);
  assert.deepStrictEqual([...Series.new({ type: new arrow.Bool(), data: new Uint8Array([5]),
    length: 3 }).toArrow()], [true, false, true]);
  assert.strictEqual(Series.new({ type: new arrow.TimestampMillisecond(),
    data: new BigInt64Array(7), offset: 3 }).length, 4);
  assert.throws(() => Series.new({ type, data, mask: nullMask }), { message: /nullMask/ });
  assert.throws(() => Series.new({ type, data, nullMask: [true] }), { code: 'LADE_E_ARG' });
  assert.throws(() => Series.new({ type: new arrow.Utf8(), data }), { code: 'LADE_E_UNSUPPORTED' });

  const broker = await kit.serve();
  const share = await connect({ socket: broker.socket });
  await share.publish('column', series);
  await share.publish('table', { a: series, b: series });
  assert.deepStrictEqual([...(await share.getDataset('column')).toArrow()], want);
  const table = (await share.getDataset('table')).toArrow();
  assert.deepStrictEqual(table.toArray().map(({ a, b }) => [a, b]), want.map((one) => [one, one]));
  await assert.rejects(share.publish('x', Series.new({ type, data, length: 21 })),
    { code: 'LADE_E_ARG', message: /80 bytes, want 84/ });
  share.close();
  await broker.stop();
});
