// native.js: the add-on of prebuilds/, and what all parts need of it.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const path = require('node:path');
const { constants } = require('node:buffer');

const native = require('node-gyp-build')(path.join(__dirname, '..'));
native.setLargest(constants.MAX_LENGTH);

/** The value of a table of names; else a TypeError that has all of them. */
function oneOf(what, table, value) {
  if (typeof value !== 'string' || !Object.hasOwn(table, value)) {
    throw Object.assign(
      new TypeError(`${what} is ${String(value)}, it can be ${Object.keys(table).join(', ')}`),
      { code: 'ERR_INVALID_ARG_VALUE' });
  }
  return table[value];
}

/** The options of a call, which are among `names`; else a TypeError. */
function optionsOf(names, options = {}) {
  const bad = typeof options !== 'object' || options === null || Array.isArray(options)
    ? `options: want an object, have ${options === null ? 'null' : typeof options}`
    : Object.keys(options).filter((name) => !names.includes(name))
      .map((name) => `there is no option '${name}', only ${names.join(', ')}`)[0];
  if (bad) throw Object.assign(new TypeError(bad), { code: 'ERR_INVALID_ARG_VALUE' });
  return options;
}

/** An error with one of the library's codes. */
function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

// The ArrayBuffers that calls use, each with how many do, and those to detach after the last.
const uses = new Map();
const waiting = new Set();

/** The promise of a call that uses buffers, or views of such; a call that is over has none. */
function using(memory, done) {
  if (!(done instanceof Promise)) return done;
  const buffers = new Set(memory.map((one) => (ArrayBuffer.isView(one) ? one.buffer : one)));
  for (const buffer of buffers) uses.set(buffer, (uses.get(buffer) ?? 0) + 1);
  return done.finally(() => {
    for (const buffer of buffers) {
      const left = uses.get(buffer) - 1;
      if (left) {
        uses.set(buffer, left);
      } else {
        uses.delete(buffer);
        if (waiting.delete(buffer)) native.detach(buffer);
      }
    }
  });
}

/** Makes a buffer empty, when no call uses it any more. */
function detach(buffer) {
  if (uses.has(buffer)) waiting.add(buffer);
  else native.detach(buffer);
}

/** Something that is closed: by close(), at the end of a `using` block, or by the collector. */
class Closing {
  close() {}
}
Object.defineProperty(Closing.prototype, Symbol.dispose ?? Symbol.for('nodejs.dispose'), {
  value() { this.close(); },
  configurable: true,
  writable: true,
});

module.exports = { native, using, detach, oneOf, optionsOf, failure, Closing };
