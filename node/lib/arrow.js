// arrow.js: arrays of the Arrow C data interface, as objects, and vectors of apache-arrow.  Both
// ways the memory stays where it is.
//
// A C array has one offset for all its buffers.  In apache-arrow offsets, values and children are
// already cut, and `offset` counts bits of the bitmap (and of booleans) only.
//
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { failure } = require('./native.js');
const { KIND, typeOf, fieldOf, schemaOf } = require('./arrow_types.js');

const EMPTY = new Uint8Array(0);

/** `count` elements of a buffer, from element `from` on. */
function view(ArrayType, buffer, from, count) {
  if (!buffer || count === 0) return new ArrayType(0);
  const at = from * ArrayType.BYTES_PER_ELEMENT;
  if (!ArrayBuffer.isView(buffer)) return new ArrayType(buffer, at, count);
  return new ArrayType(buffer.buffer, buffer.byteOffset + at, count);
}

const bytesOf = (buffer) => (buffer ? view(Uint8Array, buffer, 0, buffer.byteLength) : EMPTY);

/** Rows of a Data. */
function cut(arrow, data, from, count) {
  if (from === 0 && count === data.length) return data;
  // slice() would not know how many nulls there are.
  if (data.type.typeId === KIND.Null) return new arrow.Data(data.type, 0, count, count);
  return data.slice(from, count);
}

// ---- to apache-arrow ----------------------------------------------------------------------------

/** What a Data of apache-arrow has for an array: [offsets, values, bitmap, type ids], and more. */
function partsOf(arrow, type, schema, array) {
  const { offset, length, buffers, children } = array;
  const parts = { buffers: [], children: [], variadic: [], dictionary: undefined };
  const child = (i, from, count) =>
    cut(arrow, dataOf(arrow, type.children[i].type, schema.children[i], children[i]), from, count);
  const whole = (i) => child(i, 0, children[i].length);
  switch (type.typeId) {
    case KIND.Null: break;
    case KIND.Bool:
      parts.buffers[1] = bytesOf(buffers[1]);
      break;
    case KIND.Utf8: case KIND.Binary: case KIND.LargeUtf8: case KIND.LargeBinary:
      parts.buffers[0] = view(type.OffsetArrayType, buffers[1], offset, length ? length + 1 : 0);
      parts.buffers[1] = bytesOf(buffers[2]);
      break;
    case KIND.Utf8View: case KIND.BinaryView:
      parts.buffers[1] = view(Uint8Array, buffers[1], offset * 16, length * 16);
      parts.variadic = buffers.slice(2, -1).map(bytesOf);
      break;
    case KIND.List: case KIND.LargeList: case KIND.Map:
      parts.buffers[0] = view(type.OffsetArrayType, buffers[1], offset, length ? length + 1 : 0);
      parts.children = [whole(0)];
      break;
    case KIND.FixedSizeList:
      parts.children = [child(0, offset * type.listSize, length * type.listSize)];
      break;
    case KIND.Struct:
      parts.children = type.children.map((_, i) => child(i, offset, length));
      break;
    case KIND.Union: {
      const dense = type.mode === arrow.UnionMode.Dense;
      parts.buffers[3] = view(Int8Array, buffers[0], offset, length);
      if (dense) parts.buffers[0] = view(Int32Array, buffers[1], offset, length);
      parts.children = type.children.map((_, i) => (dense ? whole(i) : child(i, offset, length)));
      break;
    }
    case KIND.Dictionary:
      parts.buffers[1] = view(type.indices.ArrayType, buffers[1], offset, length);
      parts.dictionary = new arrow.Vector(
        [dataOf(arrow, type.dictionary, schema.dictionary, array.dictionary)]);
      break;
    default: {
      const stride = strideOf(type);
      parts.buffers[1] = view(type.ArrayType, buffers[1], offset * stride, length * stride);
    }
  }
  return parts;
}

/** Elements of the type's ArrayType in a value. */
function strideOf(type) {
  switch (type.typeId) {
    case KIND.Decimal: return type.bitWidth / 32;
    case KIND.Interval: return [1, 2, 4][type.unit];
    case KIND.FixedSizeBinary: return type.byteWidth;
    default: return 1;
  }
}

/** A Data of apache-arrow for an array. */
function dataOf(arrow, type, schema, array) {
  const { offset, length } = array;
  const parts = partsOf(arrow, type, schema, array);
  let { nullCount } = array;
  if (type.typeId === KIND.Null) nullCount = length;
  else if (type.typeId === KIND.Union || !array.buffers[0]) nullCount = 0;
  else parts.buffers[2] = bytesOf(array.buffers[0]);
  return new arrow.Data(type, offset, length, nullCount, parts.buffers, parts.children,
    parts.dictionary, parts.variadic);
}

/** True if rows of a table are null as a whole, which a Table cannot say. */
function hasNullRows({ buffers, nullCount }) {
  return nullCount !== 0 && buffers[0] !== null;
}

/** A Table of a version's schema and arrays, or a Vector of a column, or of null rows. */
function toArrow(arrow, schema, arrays) {
  const type = typeOf(arrow, schema);
  const data = arrays.map((array) => dataOf(arrow, type, schema, array));
  if (type.typeId !== KIND.Struct || arrays.some(hasNullRows)) {
    return new arrow.Vector(data.length ? data : [new arrow.Data(type, 0, 0, 0)]);
  }
  const fields = new arrow.Schema(type.children, new Map(schema.metadata ?? []));
  return new arrow.Table(fields, data.map((one) => new arrow.RecordBatch(fields, one)));
}

/** A Vector of column `index` of a table. */
function columnToArrow(arrow, schema, arrays, index) {
  const { type } = fieldOf(arrow, schema.children[index]);
  const data = arrays.map(({ children, offset, length }) =>
    cut(arrow, dataOf(arrow, type, schema.children[index], children[index]), offset, length));
  return new arrow.Vector(data.length ? data : [new arrow.Data(type, 0, 0, 0)]);
}

// ---- from apache-arrow --------------------------------------------------------------------------

/** Bits from `offset` on, at the start of memory of their own. */
function shifted(bitmap, offset, length) {
  const out = new Uint8Array((length + 7) >> 3);
  const from = offset >> 3;
  const shift = offset & 7;
  for (let i = 0; i < out.length; i++) {
    out[i] = (bitmap[from + i] >> shift) | ((bitmap[from + i + 1] ?? 0) << (8 - shift));
  }
  return out;
}

/** The same elements with `count` more before them, if their buffer has these. */
function before(array, count) {
  const start = array.byteOffset - count * array.BYTES_PER_ELEMENT;
  return start < 0 ? null : new array.constructor(array.buffer, start, array.length + count);
}

/** The buffers behind the bitmap: of the rows of `data`, without an offset. */
function contentOf(data) {
  const { type, values, valueOffsets, typeIds, length } = data;
  switch (type.typeId) {
    case KIND.Null: return [];
    case KIND.Utf8: case KIND.Binary: case KIND.LargeUtf8: case KIND.LargeBinary:
      return [length ? valueOffsets : new type.OffsetArrayType(1), values];
    case KIND.List: case KIND.LargeList: case KIND.Map:
      return [length ? valueOffsets : new type.OffsetArrayType(1)];
    case KIND.Utf8View: case KIND.BinaryView: {
      const texts = data.variadicBuffers ?? [];
      return [values, ...texts, BigInt64Array.from(texts, (one) => BigInt(one.byteLength))];
    }
    case KIND.FixedSizeList: case KIND.Struct: return [];
    case KIND.Union: return type.mode === 1 ? [typeIds, valueOffsets] : [typeIds];
    default: return [values];
  }
}

// Children, or more than one buffer of values, go by the offset.
const STIFF = new Set([KIND.Struct, KIND.FixedSizeList, KIND.Utf8View, KIND.BinaryView]);

/** An array of the C interface, as an object, of a Data of apache-arrow. */
function arrayOf(data) {
  const { type, length } = data;
  const kind = type.typeId;
  const children = (data.children ?? []).map(arrayOf);
  const dictionary = kind === KIND.Dictionary ? dictionaryOf(data) : null;
  let buffers = contentOf(data);
  let offset = 0;
  if (kind === KIND.Null) return { length, nullCount: length, offset, buffers, children };
  if (kind === KIND.Union) return { length, nullCount: 0, offset, buffers, children };
  const nulls = data.nullCount;
  let bitmap = nulls > 0 ? data.nullBitmap : null;
  if (kind === KIND.Bool) {
    // Bits, too.
    offset = data.offset;
  } else if (bitmap && data.offset) {
    // The rest of the way from a whole byte is gone with all buffers, or with a new bitmap.
    const back = data.offset & 7;
    const stretched = STIFF.has(kind) ? [null]
      : buffers.map((one, i) => (i === 1 ? one : before(one, back * strideOf(type))));
    if (back === 0 || stretched.every(Boolean)) {
      bitmap = bitmap.subarray(data.offset >> 3);
      buffers = back ? stretched : buffers;
      offset = back;
    } else {
      bitmap = shifted(bitmap, data.offset, length);
    }
  }
  return { length, nullCount: bitmap ? nulls : 0, offset, buffers: [bitmap, ...buffers], children,
    dictionary };
}

function dictionaryOf({ dictionary }) {
  if (dictionary.data.length !== 1) {
    throw failure('LADE_E_UNSUPPORTED',
      `a dictionary in ${dictionary.data.length} pieces; make a vector of one`);
  }
  return arrayOf(dictionary.data[0]);
}

/** The schema and arrays of a Table, RecordBatch or Vector of apache-arrow; null: it is none. */
function fromArrow(source) {
  if (Array.isArray(source?.schema?.fields)) {
    const batches = (source.batches ?? [source]).map((batch) => arrayOf(batch.data));
    const { fields, metadata } = source.schema;
    return { schema: schemaOf('', { typeId: KIND.Struct, children: fields }, false, metadata),
      batches };
  }
  if (Array.isArray(source?.data) && source.type?.typeId !== undefined) {
    return { schema: schemaOf('', source.type), batches: source.data.map(arrayOf) };
  }
  return null;
}

module.exports = { toArrow, columnToArrow, fromArrow };
