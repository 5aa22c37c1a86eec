// matrix.test.js: all Arrow types, from Python to JavaScript and back.  Oracles: pyarrow, and
// apache-arrow's reader of Arrow streams.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test, before, after } = require('node:test');
const arrow = require('apache-arrow');
const { connect } = require('liblade');
const kit = require('./kit.js');

// Types that apache-arrow 21 does not have.
const NO_TYPE = /^(list_view|run_ends)/;

let broker, share;
before(async () => {
  broker = await kit.serve();
  share = await connect({ socket: broker.socket });
});
after(async () => {
  share.close();
  await broker.stop();
});

/** The rows of a vector, as text: everything that it shows of a value. */
const rows = (vector) => Array.from({ length: vector.length }, (_, i) => kit.show(vector.get(i)));

test('all types, to JavaScript and back', { skip: kit.noPython }, async () => {
  const script = path.join(__dirname, 'matrix.py');
  await kit.pythonFile(script, 'publish', broker.socket, broker.folder);
  const all = await share.datasets('py/');
  assert(all.length > 130);
  for (const { name: full } of all) {
    const name = full.slice(3);
    const data = await share.getDataset(full, { readonly: true });
    await share.publish(`js/raw/${name}`, data);
    if (NO_TYPE.test(name)) {
      assert.throws(() => data.toArrow(), { code: 'LADE_E_UNSUPPORTED', message: /no type/ });
      continue;
    }
    const table = data.toArrow();
    await share.publish(`js/arrow/${name}`, table);
    const want = arrow.tableFromIPC(fs.readFileSync(path.join(broker.folder, `${name}.arrows`)));
    await share.publish(`js/read/${name}`, want);
    assert.strictEqual(table.numRows, want.numRows);
    table.schema.fields.forEach((field, i) => {
      const columns = [table.getChildAt(i), want.getChildAt(i), data.column(i).toArrow()];
      // That of a union counts what its children have, shown or not.
      const [ours, theirs, alone] = columns.map((one) => ({
        name, type: String(one.type), rows: rows(one),
        nulls: name.includes('union') ? 0 : one.nullCount,
      }));
      assert.deepStrictEqual(ours, theirs);
      assert.deepStrictEqual(alone, theirs);
      assert.deepStrictEqual([...field.metadata], [...want.schema.fields[i].metadata]);
    });
  }
  const { seen, wrong, count } = JSON.parse(
    await kit.pythonFile(script, 'check', broker.socket, broker.folder));
  assert.deepStrictEqual(wrong, []);
  assert.deepStrictEqual(seen, { raw: count, arrow: count - 6, read: count - 6 });
});
