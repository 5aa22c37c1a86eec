// memory.js: element types, and signals that cancel calls.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { fileURLToPath } = require('node:url');
const { native, failure } = require('./native.js');

// Type strings of the library without their byte order; others than these are bytes.
const ARRAYS = {
  b1: Uint8Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array,
  u4: Uint32Array, i8: BigInt64Array, u8: BigUint64Array, f2: Uint16Array, f4: Float32Array,
  f8: Float64Array,
};
const TYPES = new Map([
  [Int8Array, '|i1'], [Uint8Array, '|u1'], [Uint8ClampedArray, '|u1'], [Int16Array, '<i2'],
  [Uint16Array, '<u2'], [Int32Array, '<i4'], [Uint32Array, '<u4'], [BigInt64Array, '<i8'],
  [BigUint64Array, '<u8'], [Float32Array, '<f4'], [Float64Array, '<f8'],
]);

/** The class of arrays for elements of a type string; bytes for those that JavaScript lacks. */
function classOf(type) {
  if (type === 'bfloat16') return Uint16Array;
  return ARRAYS[type?.slice(1)] ?? Uint8Array;
}

/** The type string of a typed array's elements; null: it is none. */
function typeOf(array) {
  for (const [ArrayType, type] of TYPES) if (array instanceof ArrayType) return type;
  return null;
}

/** A path of a string or a file: URL; other URLs as they are. */
const pathOf = (path) =>
  (path instanceof URL && path.protocol === 'file:' ? fileURLToPath(path) : String(path));

/** The first `bytes` bytes of a view or an ArrayBuffer, of its class. */
function start(out, bytes) {
  if (!ArrayBuffer.isView(out)) return new Uint8Array(out, 0, bytes);
  if (out instanceof DataView) return new DataView(out.buffer, out.byteOffset, bytes);
  if (bytes % out.BYTES_PER_ELEMENT) {
    throw failure('LADE_E_DTYPE',
      `${bytes} bytes are no multiple of the ${out.BYTES_PER_ELEMENT} of ${out.constructor.name}`);
  }
  return out.subarray(0, bytes / out.BYTES_PER_ELEMENT);
}

/** Calls a function with a token that a signal sets; then the signal's reason is thrown. */
async function cancellable(signal, call) {
  if (!signal) return call(null);
  signal.throwIfAborted();
  const token = native.cancelNew();
  const abort = () => native.cancelSet(token);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await call(token);
  } catch (error) {
    if (error.code === 'LADE_E_CANCELLED') signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    native.close(token);
  }
}

module.exports = { classOf, typeOf, pathOf, start, cancellable };
