// file.js: .lade files.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native, using, optionsOf, Closing } = require('./native.js');
const { classOf, typeOf, pathOf, cancellable } = require('./memory.js');

/** An open .lade file. */
class LadeFile extends Closing {
  #own;
  /** Spec, sizes, dtype and shape. */
  info;

  constructor(own) {
    super();
    this.#own = own;
    this.info = Object.freeze(native.fileInfo(own));
  }

  get dtype() { return this.info.dtype; }
  get shape() { return this.info.shape; }
  get size() { return this.info.size; }

  #read(sync, options, token = null) {
    const { start = 0, count, out } = optionsOf(['start', 'count', 'out', 'signal'], options);
    const { dtype, size } = this.info;
    const ArrayType = classOf(dtype);
    const width = ArrayType.BYTES_PER_ELEMENT;
    const target = out ?? new ArrayType(Math.max(count ?? Math.floor(size / width) - start, 0));
    const swap = dtype?.startsWith('>') ? width : 0;
    const done = using([target],
      native.fileRead(sync, this.#own, start * width, target, swap, token));
    return sync ? target : done.then(() => target);
  }

  /** Elements from `start` on, as a typed array of the file's dtype, or in `out`. */
  async read(options) {
    return cancellable(options?.signal, (token) => this.#read(false, options, token));
  }

  readSync(options) {
    return this.#read(true, options);
  }

  /** Closes the file when its last call is done. */
  close() {
    native.close(this.#own);
  }
}

/** Opens a .lade file. */
async function openFile(path, options) {
  const { signal } = optionsOf(['signal'], options);
  return cancellable(signal,
    async (token) => new LadeFile(await native.fileOpen(false, pathOf(path), token)));
}

function openFileSync(path) {
  return new LadeFile(native.fileOpen(true, pathOf(path), null));
}

function write(sync, path, data, options, token = null) {
  const { spec = 'copy', chunkSize = 0, shape = null, checksums = true, dtype = typeOf(data) } =
    optionsOf(['spec', 'chunkSize', 'shape', 'checksums', 'dtype', 'signal'], options);
  const layout = { spec, chunkSize, shape, checksums, dtype };
  return using([data], native.fileWrite(sync, pathOf(path), data, layout, token));
}

/** Writes a .lade file whole, or not at all; returns its bytes. */
async function writeFile(path, data, options) {
  return cancellable(options?.signal, (token) => write(false, path, data, options, token));
}

const writeFileSync = (path, data, options) => write(true, path, data, options);

module.exports = { LadeFile, openFile, openFileSync, writeFile, writeFileSync };
