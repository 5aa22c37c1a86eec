// modules.test.mjs: every name of the package can be imported by name.
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { connect } from 'liblade';
import * as lade from 'liblade';
import * as rapids from 'liblade/rapids';

const require = createRequire(import.meta.url);

test('import { name }', () => {
  assert.strictEqual(connect, require('liblade').connect);
  for (const [module, names] of [[lade, require('liblade')], [rapids, require('liblade/rapids')]]) {
    const { default: all, ...found } = module;
    delete found['module.exports']; // Node 23
    assert.strictEqual(all, names);
    assert.deepStrictEqual(found, { ...names });
  }
});
