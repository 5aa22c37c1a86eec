// example.test.js: examples/node: Python publishes, Node computes, Python reads.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const path = require('node:path');
const { test } = require('node:test');
const kit = require('./kit.js');

test('the example: from Python to Node and back', { skip: kit.noPython }, async () => {
  const broker = await kit.serve();
  const folder = path.join(__dirname, '../examples');
  const [python, node] = await Promise.all([
    kit.pythonFile(path.join(folder, 'trips.py'), broker.socket),
    kit.nodeFile(path.join(folder, 'trips.js'), broker.socket),
  ]);
  assert.strictEqual(node, '800 trips, 80 without a fare');
  assert.strictEqual(python, '800 rows, 80 without a fare\nthe first rates: [4.55, 4.0]');
  await broker.stop();
});
