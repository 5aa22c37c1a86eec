// zarr.js: reads Zarr arrays.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native, using, optionsOf, failure, Closing } = require('./native.js');
const { classOf, pathOf, cancellable } = require('./memory.js');

// Of lade_zarr_class.
const COMPLEX = 6, DATETIME = 10, TIMEDELTA = 11, STRING = 13;

/** The class of arrays for a type of the library's: complex numbers are pairs. */
function arrayClass({ type, class: kind, itemSize, dtype }) {
  if (kind >= STRING) {
    throw failure('LADE_E_UNSUPPORTED', `elements of ${dtype}, of any length, are not read here`);
  }
  if (kind === COMPLEX) return itemSize === 8 ? Float32Array : Float64Array;
  if (kind === DATETIME || kind === TIMEDELTA) return BigInt64Array;
  return classOf(type);
}

/** The text of a selection: numbers, null (all), and {start, stop, step} or [start, stop, step]. */
function textOf(selection) {
  if (selection === undefined || selection === null) return null;
  if (typeof selection === 'string') return selection;
  if (!Array.isArray(selection)) {
    throw Object.assign(new TypeError('selection: want a string or an array'),
      { code: 'ERR_INVALID_ARG_TYPE' });
  }
  return selection.map((one) => {
    if (one === null) return ':';
    if (typeof one === 'number') return String(one);
    const { start, stop, step } = Array.isArray(one)
      ? { start: one[0], stop: one[1], step: one[2] } : one;
    return `${start ?? ''}:${stop ?? ''}${step === undefined || step === null ? '' : `:${step}`}`;
  }).join(', ');
}

/** An open Zarr array or group. */
class ZarrNode extends Closing {
  #own;
  /** Shape, chunks, dtype, and what else the metadata say. */
  info;

  constructor(own) {
    super();
    this.#own = own;
    this.info = Object.freeze(native.zarrInfo(own));
  }

  get kind() { return this.info.kind; }
  get shape() { return this.info.shape; }
  get chunks() { return this.info.chunks; }
  get dtype() { return this.info.dtype; }
  get attributes() { return JSON.parse(this.info.attributes); }

  #read(sync, selection, options, token = null) {
    const { out } = optionsOf(['out', 'signal'], options);
    const text = textOf(selection);
    const result = native.zarrShape(this.#own, text);
    const ArrayType = arrayClass(result);
    const data = out ?? new ArrayType(result.size / ArrayType.BYTES_PER_ELEMENT);
    const finish = () => ({ data, shape: result.shape });
    const done = using([data], native.zarrRead(sync, this.#own, text, data, token));
    return sync ? finish() : done.then(finish);
  }

  /** Reads a selection, such as "0:10, :, 5" or [[0, 10], null, 5]: {data, shape}, in C order. */
  async read(selection, options) {
    return cancellable(options?.signal, (token) => this.#read(false, selection, options, token));
  }

  readSync(selection, options) {
    return this.#read(true, selection, options);
  }

  /** Closes it when its last call is done. */
  close() {
    native.close(this.#own);
  }
}

function open(sync, url, options) {
  const { path = null, format = 0, headers = {} } =
    optionsOf(['path', 'format', 'headers'], options);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return native.zarrOpen(sync, pathOf(url), path, format, lines);
}

/** Opens an array or a group of a directory, a .zip file or an http(s) URL. */
async function openZarr(url, options) {
  return new ZarrNode(await open(false, url, options));
}

const openZarrSync = (url, options) => new ZarrNode(open(true, url, options));

module.exports = { ZarrNode, openZarr, openZarrSync };
