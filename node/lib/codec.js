// codec.js: encodes and decodes chunks in memory.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native, using, optionsOf } = require('./native.js');
const { start, cancellable } = require('./memory.js');

/** The arguments of the add-on's function, and what makes the results of its own. */
function call(decode, sync, data, spec, options, token = null) {
  const { out = null, largest = 0 } = optionsOf(['out', 'largest', 'signal'], options);
  const many = Array.isArray(data);
  const sources = many ? data : [data];
  const targets = out === null || out === undefined ? null : many ? out : [out];
  const done = using(targets ? [...sources, ...targets] : sources,
    native.codecRun(sync, decode, spec, sources, targets, largest, token));
  const finish = (results) => {
    const arrays = results.map((one, i) =>
      (targets ? start(targets[i], one) : new Uint8Array(one)));
    return many ? arrays : arrays[0];
  };
  return sync ? finish(done) : done.then(finish);
}

async function run(decode, data, spec, options) {
  return cancellable(options?.signal, (token) => call(decode, false, data, spec, options, token));
}

/** Encodes a buffer, or an array of buffers in one batch, by a spec such as "shuffle(4)|zstd". */
async function encode(data, spec, options) {
  return run(false, data, spec, options);
}

/** Decodes a buffer, or an array of buffers in one batch. */
async function decode(data, spec, options) {
  return run(true, data, spec, options);
}

const encodeSync = (data, spec, options) => call(false, true, data, spec, options);
const decodeSync = (data, spec, options) => call(true, true, data, spec, options);

module.exports = { encode, encodeSync, decode, decodeSync };
