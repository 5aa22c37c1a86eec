// device.js: memory of a GPU.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native, using, Closing } = require('./native.js');

/** Memory of a device, or a slice of it.  DeviceMemory.alloc() makes it. */
class DeviceMemory extends Closing {
  #own;

  constructor(own, byteLength, device) {
    super();
    this.#own = own;
    Object.defineProperties(this, {
      byteLength: { value: byteLength, enumerable: true },
      device: { value: device, enumerable: true },
    });
  }

  /** Allocates memory with undefined contents. */
  static async alloc(byteLength, device = 0) {
    return new DeviceMemory(await native.deviceNew(false, byteLength, device), byteLength, device);
  }

  /** Bytes from `begin` to `end` of the same memory, which stays as long as a slice of it. */
  slice(begin = 0, end = this.byteLength) {
    const own = native.deviceSlice(this.#own, begin, end - begin);
    return new DeviceMemory(own, end - begin, this.device);
  }

  /** Copies to `out`, from byte `offset` on, or all of it to a new Uint8Array. */
  async copyToHost(out, offset = 0) {
    const to = out ?? new Uint8Array(Math.max(this.byteLength - offset, 0));
    await using([to], native.deviceCopy(false, this.#own, true, offset, to));
    return to;
  }

  /** Copies a buffer to byte `offset`. */
  async copyFromHost(data, offset = 0) {
    await using([data], native.deviceCopy(false, this.#own, false, offset, data));
  }

  /** Frees it when its last copy is done, and no slice is left. */
  close() {
    native.close(this.#own);
  }
}

module.exports = { DeviceMemory };
