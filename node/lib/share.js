// share.js: tables and columns that processes publish once and open by name, in the same memory.
// docs/node.md and docs/share.md have the rules.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native, using, detach, oneOf, optionsOf, failure, Closing } = require('./native.js');
const { toArrow, columnToArrow, fromArrow } = require('./arrow.js');

// Python writes if_needed.
const COPY = { 'if-needed': 0, if_needed: 0, never: 1, always: 2 };
const CHECK = { default: 0, layout: 1, full: 2 };
const TICKET = 'lade-share:';
// The classes of numbers, and of what numbers stand for; half floats are bits.
const ARRAYS = {
  c: Int8Array, C: Uint8Array, s: Int16Array, S: Uint16Array, i: Int32Array, I: Uint32Array,
  l: BigInt64Array, L: BigUint64Array, e: Uint16Array, f: Float32Array, g: Float64Array,
  tdD: Int32Array, tdm: BigInt64Array, tts: Int32Array, ttm: Int32Array, ttu: BigInt64Array,
  ttn: BigInt64Array, tDs: BigInt64Array, tDm: BigInt64Array, tDu: BigInt64Array,
  tDn: BigInt64Array,
};
const FORMATS = new Map([
  [Int8Array, 'c'], [Uint8Array, 'C'], [Uint8ClampedArray, 'C'], [Int16Array, 's'],
  [Uint16Array, 'S'], [Int32Array, 'i'], [Uint32Array, 'I'], [BigInt64Array, 'l'],
  [BigUint64Array, 'L'], [Float32Array, 'f'], [Float64Array, 'g'],
]);

function classOf({ format, dictionary }) {
  if (dictionary) return undefined;
  return ARRAYS[format] ?? (/^ts[smun]:/.test(format) ? BigInt64Array : undefined);
}

/** Nulls of an array, counted if nobody has. */
function countNulls({ nullCount, offset, length, buffers }) {
  if (nullCount >= 0 || !buffers[0]) return Math.max(nullCount, 0);
  const bits = new Uint8Array(buffers[0]);
  let nulls = 0;
  for (let i = offset; i < offset + length; i++) nulls += ((bits[i >> 3] >> (i & 7)) & 1) ^ 1;
  return nulls;
}

// ---- what can be published ----------------------------------------------------------------------

/** {schema, batches} of a typed array; null: it is none. */
function fromTypedArray(source) {
  if (!ArrayBuffer.isView(source) || source instanceof DataView) return null;
  for (const [ArrayType, format] of FORMATS) {
    if (source instanceof ArrayType) {
      return {
        schema: { name: '', format, flags: 0, children: [] },
        batches: [{ length: source.length, nullCount: 0, offset: 0, buffers: [null, source] }],
      };
    }
  }
  return null;
}

/** {schema, batches} of whatever can be published. */
function contentOf(source) {
  if (source instanceof Dataset) {
    return { schema: source.schema, batches: source.batches };
  }
  if (typeof source?.schema?.format === 'string' && Array.isArray(source.batches)) return source;
  return fromTypedArray(source) ?? fromArrow(source) ?? fromColumns(source);
}

/** A table of an object of columns, which have the same rows in each batch. */
function fromColumns(source) {
  const proto = source && typeof source === 'object' ? Object.getPrototypeOf(source) : undefined;
  if (proto !== Object.prototype && proto !== null) {
    throw Object.assign(new TypeError('want a Table or Vector of apache-arrow, a typed array, a ' +
      'Dataset, or an object of such columns'), { code: 'ERR_INVALID_ARG_TYPE' });
  }
  const columns = Object.entries(source).map(([name, column]) => [name, contentOf(column)]);
  const first = columns[0]?.[1].batches ?? [];
  for (const [name, { batches }] of columns) {
    const at = first.findIndex((batch, i) => batch.length !== batches[i]?.length);
    if (at >= 0 || batches.length !== first.length) {
      throw failure('LADE_E_ARG', `column '${name}' has ${batches[at]?.length ?? batches.length} ` +
        `${at >= 0 ? 'rows' : 'batches'}, '${columns[0][0]}' ${first[at]?.length ?? first.length}`);
    }
  }
  return {
    schema: {
      name: '', format: '+s', flags: 0,
      children: columns.map(([name, { schema }]) => ({ ...schema, name })),
    },
    batches: first.map(({ length }, i) => ({
      length, nullCount: 0, offset: 0, buffers: [null],
      children: columns.map(([, { batches }]) => batches[i]),
    })),
  };
}

// ---- connections --------------------------------------------------------------------------------

/** A connection to a broker.  connect() makes one. */
class Connection extends Closing {
  #own;
  #socket;

  constructor(own, socket) {
    super();
    this.#own = own;
    this.#socket = socket;
  }

  /** Ends the connection when its last call is done; data sets stay valid. */
  close() {
    native.close(this.#own);
  }

  #open(sync, name, options) {
    const { version = 0, check = 'default', readonly = false } =
      optionsOf(['version', 'check', 'readonly'], options);
    return native.shareOpen(sync, this.#own, text('name', name), version,
      oneOf('check', CHECK, check), !readonly);
  }

  /** Opens the latest version of a name, or that version. */
  async getDataset(name, options) {
    return new Dataset(await this.#open(false, name, options), this.#socket);
  }

  getDatasetSync(name, options) {
    return new Dataset(this.#open(true, name, options), this.#socket);
  }

  #publish(sync, name, source, options) {
    const { copy = 'if-needed', compact = false } = optionsOf(['copy', 'compact'], options);
    const mode = oneOf('copy', COPY, copy);
    const { schema, batches } = contentOf(source);
    const done = native.sharePublish(sync, this.#own, text('name', name), schema, batches,
      compact ? COPY.always : mode);
    return using(batches.flatMap(buffersOf), done);
  }

  /** Publishes a new version of a name: {version, shared, copied, why}. */
  async publish(name, source, options) {
    return this.#publish(false, name, source, options);
  }

  publishSync(name, source, options) {
    return this.#publish(true, name, source, options);
  }

  /** An ArrayBuffer of zeros that is published without a copy. */
  alloc(byteLength) {
    return native.shareAlloc(this.#own, byteLength);
  }

  /** The latest version of each name that begins with a prefix, in order. */
  async datasets(prefix) {
    return native.shareList(false, this.#own, prefix);
  }

  datasetsSync(prefix) {
    return native.shareList(true, this.#own, prefix);
  }

  /** Removes a name, or one version; those who have it open keep it. */
  async remove(name, version = 0) {
    return native.shareRemove(false, this.#own, text('name', name), version);
  }

  /** Names as they are published and removed, from now on: for await (const event of ...). */
  async subscribe(prefix, options) {
    const { signal } = optionsOf(['signal'], options);
    signal?.throwIfAborted();
    return new Subscription(await native.shareSubscribe(false, this.#own, prefix), signal);
  }

  /** Waits until a name has a version above `after`, and resolves to it. */
  async wait(name, options) {
    const { after = 0, timeout, signal } = optionsOf(['after', 'timeout', 'signal'], options);
    const ends = [signal, timeout === undefined ? null : AbortSignal.timeout(timeout)];
    const events = await this.subscribe(text('name', name), { signal: anyOf(ends) });
    try {
      for (;;) {
        const version = await native.shareNewer(false, this.#own, name, after);
        if (version) return version;
        await events.next();
      }
    } finally {
      events.close();
    }
  }

  /** What the broker holds and has done. */
  async statistics() {
    return native.shareStatistics(false, this.#own);
  }
}

function text(what, value) {
  if (typeof value === 'string') return value;
  throw Object.assign(new TypeError(`${what}: want a string`), { code: 'ERR_INVALID_ARG_TYPE' });
}

/** A signal that is aborted when one of several is; those may be null. */
function anyOf(signals) {
  const there = signals.filter(Boolean);
  if (there.length < 2) return there[0];
  const both = new AbortController();
  for (const one of there) {
    if (one.aborted) both.abort(one.reason);
    one.addEventListener('abort', () => both.abort(one.reason), { once: true });
  }
  return both.signal;
}

/** Events of names; it ends at close(), and at the end of a loop over it. */
class Subscription extends Closing {
  #own;
  #signal;
  #waiting = null; // who waits for an event: {resolve, reject}
  #abort = () => this.#end(this.#signal.reason);

  constructor(own, signal) {
    super();
    this.#own = own;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort, { once: true });
    if (signal?.aborted) this.#abort();
  }

  #end(error) {
    this.#signal?.removeEventListener('abort', this.#abort);
    if (this.#own) native.close(this.#own);
    this.#own = null;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (error) waiting?.reject(error);
    else waiting?.resolve({ value: undefined, done: true });
  }

  /** The next event: {value: {what, name, version}, done}. */
  async next() {
    this.#signal?.throwIfAborted();
    if (this.#waiting) throw failure('LADE_E_STATE', 'somebody waits for the next event already');
    while (this.#own) {
      const value = native.eventsNext(this.#own);
      if (value) return { value, done: false };
      const ended = await new Promise((resolve, reject) => {
        this.#waiting = { resolve, reject };
        native.eventsWait(this.#own, () => resolve(null));
      });
      this.#waiting = null;
      if (ended) return ended;
    }
    return { value: undefined, done: true };
  }

  async return() {
    this.close();
    return { value: undefined, done: true };
  }

  close() {
    this.#end(null);
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

// ---- opened versions ----------------------------------------------------------------------------

/** An opened version: a table, or a column. */
class Dataset extends Closing {
  #own;
  #socket;
  #schema;
  #batches = [];
  /** What the broker knows of it. */
  info;

  constructor(own, socket) {
    super();
    this.#own = own;
    this.#socket = socket;
    this.info = Object.freeze(native.versionInfo(own));
  }

  get name() { return this.info.name; }
  get version() { return this.info.version; }
  get numRows() { return this.info.rows; }

  /** The schema, as the Arrow C data interface has it. */
  get schema() {
    this.#schema ??= native.versionSchema(this.#own);
    return this.#schema;
  }

  /** The names of a table's columns; of a column none. */
  get columnNames() {
    return this.schema.format === '+s' ? this.schema.children.map(({ name }) => name) : [];
  }

  /** The arrays of one batch, as the Arrow C data interface has them; buffers in place. */
  batch(index) {
    this.#batches[index] ??= native.versionArray(this.#own, index);
    return this.#batches[index];
  }

  get batches() {
    return Array.from({ length: this.info.batches }, (_, i) => this.batch(i));
  }

  /** Resolves to the data set with all columns on the host. */
  async compute() {
    return this;
  }

  /** A Table of apache-arrow, or a Vector of a column, in place. */
  toArrow(arrow = require('apache-arrow')) {
    return toArrow(arrow, this.schema, this.batches);
  }

  /** A column of a table, by name or index; without either, a version that is one column. */
  column(name) {
    if (this.schema.format !== '+s') {
      if (name === undefined) return new Column(this, -1);
      throw failure('LADE_E_NOT_FOUND', `'${this.name}' is one array without named columns: ` +
        `want column(), have column('${String(name)}')`);
    }
    const index = typeof name === 'number' ? name : this.columnNames.indexOf(name);
    if (!this.schema.children[index]) {
      throw failure('LADE_E_NOT_FOUND',
        `'${this.name}' has no column '${String(name)}'; it has ${this.columnNames.join(', ')}`);
    }
    return new Column(this, index);
  }

  /** A text that openTicket() opens in another process of this machine. */
  get ticket() {
    return `${TICKET}${this.#socket ?? ''}#${this.name}@${this.version}`;
  }

  /**
   * Releases the version.  Arrays that were made of it stay valid, and keep its memory until they
   * are collected; with {detach: true} they become empty, and the memory is free at once, or when
   * the calls that use it are done.
   */
  close(options) {
    const { detach: empty = false } = optionsOf(['detach'], options);
    native.close(this.#own);
    if (empty) this.#batches.flatMap(buffersOf).forEach(detach);
    this.#batches = [];
  }
}

/** The buffers of an array, and of those below it. */
function buffersOf({ buffers, children, dictionary }) {
  const below = [...(children ?? []), dictionary].filter(Boolean);
  return [...(buffers ?? []).filter(Boolean), ...below.flatMap(buffersOf)];
}

/** A column of an opened version. */
class Column {
  #dataset;
  #index;

  constructor(dataset, index) {
    this.#dataset = dataset;
    this.#index = index;
  }

  get schema() {
    const { schema } = this.#dataset;
    return this.#index < 0 ? schema : schema.children[this.#index];
  }

  get name() { return this.schema.name; }
  get format() { return this.schema.format; }
  get length() { return this.#dataset.numRows; }

  /** The array of one batch, with the batch's rows. */
  #array(batch) {
    const array = this.#dataset.batch(batch);
    if (this.#index < 0) return array;
    const child = array.children[this.#index];
    return { ...child, offset: child.offset + array.offset, length: array.length,
      nullCount: child.length === array.length ? child.nullCount : -1 };
  }

  get nullCount() {
    return this.#dataset.batches.reduce((sum, _, i) => sum + countNulls(this.#array(i)), 0);
  }

  /** The numbers of one batch as a typed array, in place.  It has no nulls, or this fails. */
  values(batch = 0) {
    const ArrayType = classOf(this.schema);
    if (!ArrayType) {
      throw failure('LADE_E_DTYPE', `'${this.name}' has the format '${this.format}', which is no ` +
        'number: toArrow() has its values');
    }
    const array = this.#array(batch);
    const nulls = countNulls(array);
    if (nulls) {
      throw failure('LADE_E_VALUE',
        `'${this.name}' has ${nulls} nulls, which a typed array cannot: toArrow() has them`);
    }
    return new ArrayType(array.buffers[1] ?? new ArrayBuffer(0),
      array.offset * ArrayType.BYTES_PER_ELEMENT, array.length);
  }

  /** A Vector of apache-arrow, in place. */
  toArrow(arrow = require('apache-arrow')) {
    if (this.#index < 0) return this.#dataset.toArrow(arrow);
    return columnToArrow(arrow, this.#dataset.schema, this.#dataset.batches, this.#index);
  }
}

// ---- opening ------------------------------------------------------------------------------------

function connectOptions(options) {
  const { socket = null, timeout = 10000 } = optionsOf(['socket', 'timeout'], options);
  return { socket, timeout };
}

/** Connects to the user's broker, or to that of options.socket. */
async function connect(options) {
  const { socket, timeout } = connectOptions(options);
  return new Connection(await native.shareConnect(false, undefined, socket, timeout), socket);
}

function connectSync(options) {
  const { socket, timeout } = connectOptions(options);
  return new Connection(native.shareConnect(true, undefined, socket, timeout), socket);
}

/** Opens what a ticket names, through its broker or that of options.socket. */
async function openTicket(ticket, options) {
  const parts = /^lade-share:([^#]*)#([^@]+)@(\d+)$/.exec(text('ticket', ticket));
  if (!parts) {
    throw failure('LADE_E_ARG', `'${ticket}' is no ticket: want ${TICKET}PATH#NAME@VERSION`);
  }
  const { socket, timeout } = connectOptions(options);
  const share = await connect({ socket: socket ?? (parts[1] || null), timeout });
  try {
    return await share.getDataset(parts[2], { version: Number(parts[3]) });
  } finally {
    share.close();
  }
}

module.exports = { connect, connectSync, openTicket, Connection, Dataset, Column, contentOf };
