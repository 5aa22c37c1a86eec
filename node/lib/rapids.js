// rapids.js: columns by the names of node-rapids.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { failure } = require('./native.js');
const { schemaOf } = require('./arrow_types.js');
const { toArrow } = require('./arrow.js');
const { DeviceMemory } = require('./device.js');

/** The bits of a null mask: a bitmap, or true and false for each row. */
function bitmapOf(mask, offset, length) {
  if (mask === undefined || mask === null) return null;
  if (ArrayBuffer.isView(mask) || mask instanceof ArrayBuffer) return mask;
  const bits = new Uint8Array((offset + length + 7) >> 3);
  let i = offset;
  for (const valid of mask) {
    if (valid) bits[i >> 3] |= 1 << (i & 7);
    i++;
  }
  if (i !== offset + length) {
    throw failure('LADE_E_ARG', `nullMask has ${i - offset} rows, want ${length}`);
  }
  return bits;
}

/** A column on the host, which publish() takes.  Series.new() makes it. */
class Series {
  /** As the Arrow C data interface has them. */
  schema;
  batches;

  constructor(schema, batch) {
    this.schema = schema;
    this.batches = [batch];
  }

  /**
   * A column of {type, data, nullMask, offset, length, name}: type is one of apache-arrow's, with
   * values of a fixed size; offset and length are rows of data and of nullMask, a bitmap.
   */
  static new(props) {
    // node-rapids ignores it here, and so drops nulls.
    if (props.mask !== undefined) {
      throw Object.assign(new TypeError('Series.new() has no `mask`: give `nullMask`'),
        { code: 'ERR_INVALID_ARG_VALUE' });
    }
    const { type, data, offset = 0, name = '' } = props;
    const schema = schemaOf(name, type);
    if (schema.children.length || schema.dictionary || /^[uUzZvn]/.test(schema.format)) {
      throw failure('LADE_E_UNSUPPORTED',
        `Series.new() makes columns of numbers, times and booleans: ${type}`);
    }
    const { length = rowsOf(type, schema, data) - offset } = props;
    const bitmap = bitmapOf(props.nullMask, offset, length);
    return new Series(schema,
      { length, offset, nullCount: bitmap ? -1 : 0, buffers: [bitmap, data], children: [] });
  }

  get name() { return this.schema.name; }
  get length() { return this.batches[0].length; }

  /** A Vector of apache-arrow, in place. */
  toArrow(arrow = require('apache-arrow')) {
    return toArrow(arrow, this.schema, this.batches);
  }
}

function rowsOf(type, { format }, data) {
  if (format === 'b') return data.byteLength * 8;
  const width = format.startsWith('w:') ? type.byteWidth
    : format.startsWith('d:') ? type.bitWidth / 8 : type.ArrayType.BYTES_PER_ELEMENT;
  return Math.floor(data.byteLength / width);
}

module.exports = { Series, DeviceMemory };
