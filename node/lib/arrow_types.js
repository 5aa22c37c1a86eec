// arrow_types.js: types of apache-arrow and the format strings of the Arrow C data interface.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { failure } = require('./native.js');

const UNITS = 'smun';
const SIMPLE = {
  n: 'Null', b: 'Bool', c: 'Int8', C: 'Uint8', s: 'Int16', S: 'Uint16', i: 'Int32', I: 'Uint32',
  l: 'Int64', L: 'Uint64', e: 'Float16', f: 'Float32', g: 'Float64', u: 'Utf8', U: 'LargeUtf8',
  z: 'Binary', Z: 'LargeBinary', vu: 'Utf8View', vz: 'BinaryView', tdD: 'DateDay',
  tdm: 'DateMillisecond', tts: 'TimeSecond', ttm: 'TimeMillisecond', ttu: 'TimeMicrosecond',
  ttn: 'TimeNanosecond', tDs: 'DurationSecond', tDm: 'DurationMillisecond',
  tDu: 'DurationMicrosecond', tDn: 'DurationNanosecond', tiM: 'IntervalYearMonth',
  tiD: 'IntervalDayTime', tin: 'IntervalMonthDayNano',
};
// Of Type in apache-arrow.
const KIND = {
  Null: 1, Int: 2, Float: 3, Binary: 4, Utf8: 5, Bool: 6, Decimal: 7, Date: 8, Time: 9,
  Timestamp: 10, Interval: 11, List: 12, Struct: 13, Union: 14, FixedSizeBinary: 15,
  FixedSizeList: 16, Map: 17, Duration: 18, LargeBinary: 19, LargeUtf8: 20, LargeList: 21,
  BinaryView: 23, Utf8View: 24, Dictionary: -1,
};
const PLAIN = {
  [KIND.Null]: 'n', [KIND.Binary]: 'z', [KIND.Utf8]: 'u', [KIND.Bool]: 'b', [KIND.List]: '+l',
  [KIND.Struct]: '+s', [KIND.Map]: '+m', [KIND.LargeBinary]: 'Z', [KIND.LargeUtf8]: 'U',
  [KIND.LargeList]: '+L', [KIND.BinaryView]: 'vz', [KIND.Utf8View]: 'vu',
};

/** The class of a type, or an error: versions of apache-arrow have more and more of them. */
function classOf(arrow, name, format) {
  if (!name || !arrow[name]) {
    throw failure('LADE_E_UNSUPPORTED',
      `apache-arrow has no type for the format '${format}': batch() has its buffers`);
  }
  return arrow[name];
}

/** A type of apache-arrow for a schema of the C interface. */
function typeOf(arrow, schema) {
  if (schema.dictionary) {
    return new arrow.Dictionary(typeOf(arrow, schema.dictionary),
      typeOf(arrow, { ...schema, dictionary: null }), null, (schema.flags & 1) !== 0);
  }
  const { format } = schema;
  const [head, rest = ''] = format.split(':', 2);
  const fields = schema.children.map((child) => fieldOf(arrow, child));
  const make = (name, ...args) => new (classOf(arrow, name, format))(...args);
  switch (head) {
    case 'w': return make('FixedSizeBinary', Number(rest));
    case 'd': {
      const [precision, scale, bits = 128] = rest.split(',').map(Number);
      return make('Decimal', scale, precision, bits);
    }
    case 'tss': case 'tsm': case 'tsu': case 'tsn':
      // A zone may have a colon of its own.
      return make('Timestamp', UNITS.indexOf(head[2]), format.slice(4) || null);
    case '+l': return make('List', fields[0]);
    case '+L': return make('LargeList', fields[0]);
    case '+w': return make('FixedSizeList', Number(rest), fields[0]);
    case '+s': return make('Struct', fields);
    case '+m': return make('Map_', fields[0], (schema.flags & 4) !== 0);
    case '+ud': case '+us':
      return make('Union', head === '+ud' ? arrow.UnionMode.Dense : arrow.UnionMode.Sparse,
        rest === '' ? [] : rest.split(',').map(Number), fields);
    default: return make(Object.hasOwn(SIMPLE, format) ? SIMPLE[format] : '');
  }
}

function fieldOf(arrow, schema) {
  return new arrow.Field(schema.name, typeOf(arrow, schema), (schema.flags & 2) !== 0,
    new Map(schema.metadata ?? []));
}

function formatOf(type) {
  switch (type.typeId) {
    case KIND.Int: {
      const letter = { 8: 'c', 16: 's', 32: 'i', 64: 'l' }[type.bitWidth];
      return type.isSigned ? letter : letter.toUpperCase();
    }
    case KIND.Float: return 'efg'[type.precision];
    case KIND.Decimal:
      return `d:${type.precision},${type.scale}${type.bitWidth === 128 ? '' : `,${type.bitWidth}`}`;
    case KIND.Date: return type.unit === 0 ? 'tdD' : 'tdm';
    case KIND.Time: return `tt${UNITS[type.unit]}`;
    case KIND.Timestamp: return `ts${UNITS[type.unit]}:${type.timezone ?? ''}`;
    case KIND.Duration: return `tD${UNITS[type.unit]}`;
    case KIND.Interval: return `ti${'MDn'[type.unit]}`;
    case KIND.FixedSizeBinary: return `w:${type.byteWidth}`;
    case KIND.FixedSizeList: return `+w:${type.listSize}`;
    case KIND.Union: return `+u${type.mode === 1 ? 'd' : 's'}:${[...type.typeIds].join(',')}`;
    default:
      if (PLAIN[type.typeId]) return PLAIN[type.typeId];
      throw failure('LADE_E_UNSUPPORTED', `the type ${type} is not known`);
  }
}

/** A schema of the C interface for a type of apache-arrow. */
function schemaOf(name, type, nullable = true, metadata = null) {
  const schema = {
    name, format: '', flags: nullable ? 2 : 0, children: [], dictionary: null,
    metadata: metadata?.size ? [...metadata] : null,
  };
  if (type.typeId === KIND.Dictionary) {
    schema.format = formatOf(type.indices);
    schema.flags |= type.isOrdered ? 1 : 0;
    schema.dictionary = schemaOf('', type.dictionary);
    return schema;
  }
  schema.format = formatOf(type);
  if (type.typeId === KIND.Map && type.keysSorted) schema.flags |= 4;
  schema.children = (type.children ?? []).map((field) =>
    schemaOf(field.name, field.type, field.nullable, field.metadata));
  return schema;
}

module.exports = { KIND, typeOf, fieldOf, schemaOf };
