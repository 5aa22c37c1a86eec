// Types of the package liblade; docs/node.md describes it.
// SPDX-License-Identifier: Apache-2.0
import type * as arrow from 'apache-arrow';

/** The version of the library. */
export const version: string;

/** An error of the library: `code` is "LADE_E_CORRUPT" and the like (docs/errors.md). */
export interface LadeError extends Error {
  code: string;
  /** The first bad byte of the input, where there is one. */
  offset?: number;
}

export type TypedArray =
  | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array
  | Uint32Array | BigInt64Array | BigUint64Array | Float32Array | Float64Array;

// ---- shared columns -----------------------------------------------------------------------------

export interface ConnectOptions {
  /** The broker's socket; without it the user's own broker. */
  socket?: string | null;
  /** How long a call waits for an answer, in milliseconds: 10000. */
  timeout?: number;
}

export interface OpenOptions {
  /** That version; without it, or 0: the latest. */
  version?: number;
  /** How much is checked: "default" is "full" for versions of other users. */
  check?: 'default' | 'layout' | 'full';
  /**
   * Map the memory without the right to write: it can be published again without a copy, and
   * writing to it ends the process.  Otherwise what is written changes this data set's own pages.
   */
  readonly?: boolean;
}

export interface PublishOptions {
  /** "if-needed" (share what can be shared), "never" or "always". */
  copy?: 'if-needed' | 'if_needed' | 'never' | 'always';
  /** The same as copy: "always": only the rows of a slice become readable. */
  compact?: boolean;
}

/** What was published. */
export interface Published {
  version: number;
  /** Bytes that were not copied. */
  shared: number;
  /** Bytes that were. */
  copied: number;
  /** Why something was copied; "" if nothing was. */
  why: string;
}

/** What the broker knows of a version. */
export interface Info {
  name: string;
  version: number;
  rows: number;
  bytes: number;
  time: Date;
  columns: number;
  batches: number;
  uid: number;
  pid: number;
  /** In a listing, where it is; an opened version is in memory. */
  place: 'memory' | 'compressed' | 'disk';
}

/** What a broker holds and has done. */
export interface Statistics {
  names: number;
  versions: number;
  /** Of memory; what versions have in common counts once. */
  bytes: number;
  /** 0: no limit. */
  bytesCap: number;
  descriptors: number;
  descriptorCap: number;
  clients: number;
  clientCap: number;
  /** Versions that clients have open. */
  held: number;
  /** Since the broker's start, as the next three. */
  published: number;
  opened: number;
  removed: number;
  refused: number;
  keeperPid: number;
  keeperStarts: number;
  /** Bytes of `bytes` that are compressed. */
  compressed: number;
  /** Bytes in files. */
  disk: number;
  /** 0: no limit, or no folder. */
  diskCap: number;
  /** Blocks compressed, written to files, and brought back. */
  evicted: number;
  stored: number;
  returned: number;
  /** Calls that wait for room, or for blocks to come back. */
  waiting: number;
}

/** A schema of the Arrow C data interface. */
export interface CSchema {
  name: string;
  format: string;
  flags?: number;
  metadata?: [string, string][] | null;
  children?: CSchema[];
  dictionary?: CSchema | null;
}

/** An array of the Arrow C data interface: one offset for all its buffers. */
export interface CArray {
  length: number;
  nullCount?: number;
  offset?: number;
  buffers: (ArrayBuffer | ArrayBufferView | null)[];
  children?: CArray[];
  dictionary?: CArray | null;
}

/** What can be published: an object of columns is a table. */
export type PublishableColumn =
  | TypedArray | arrow.Vector | arrow.Table | arrow.RecordBatch | Dataset
  | { schema: CSchema; batches: CArray[] };
export type Publishable = PublishableColumn | { [name: string]: PublishableColumn };

/** A connection to a broker of shared columns. */
export class Connection implements Disposable {
  private constructor();
  getDataset(name: string, options?: OpenOptions): Promise<Dataset>;
  getDatasetSync(name: string, options?: OpenOptions): Dataset;
  publish(name: string, source: Publishable, options?: PublishOptions): Promise<Published>;
  publishSync(name: string, source: Publishable, options?: PublishOptions): Published;
  /** Zeros that are published without a copy.  They stay writable: writing changes a copy. */
  alloc(byteLength: number): ArrayBuffer;
  /** The latest version of each name that begins with the prefix, in order. */
  datasets(prefix?: string): Promise<Info[]>;
  datasetsSync(prefix?: string): Info[];
  /** Removes a name, or one version; those who have it open keep it. */
  remove(name: string, version?: number): Promise<void>;
  /** Resolves to a version above `after` (0), as soon as there is one; the timeout is in ms. */
  wait(name: string, options?: { after?: number; timeout?: number; signal?: AbortSignal }):
    Promise<number>;
  /** What is published and removed from now on, of names that begin with the prefix. */
  subscribe(prefix?: string, options?: { signal?: AbortSignal }): Promise<Subscription>;
  statistics(): Promise<Statistics>;
  /** Ends the connection; data sets stay valid. */
  close(): void;
  [Symbol.dispose](): void;
}

export interface ShareEvent {
  /** "lost": nobody read the events for too long, and some are missing. */
  what: 'published' | 'removed' | 'lost';
  name: string;
  version: number;
}

/** Events; it closes at the end of a loop over it. */
export class Subscription implements AsyncIterableIterator<ShareEvent>, Disposable {
  private constructor();
  next(): Promise<IteratorResult<ShareEvent, undefined>>;
  return(): Promise<IteratorResult<ShareEvent, undefined>>;
  close(): void;
  [Symbol.asyncIterator](): this;
  [Symbol.dispose](): void;
}

/** An opened version: a table, or a column. */
export class Dataset implements Disposable {
  private constructor();
  readonly info: Readonly<Info>;
  readonly name: string;
  readonly version: number;
  readonly numRows: number;
  readonly schema: CSchema;
  readonly columnNames: string[];
  readonly batches: CArray[];
  batch(index: number): CArray;
  /** A column of a table, by name or index; without either, a version that is one column. */
  column(name?: string | number): Column;
  /** Resolves to the data set with all columns on the host. */
  compute(): Promise<Dataset>;
  /** A Table in place; a Vector for a column, and for a table whose rows may be null. */
  toArrow(module?: typeof arrow): arrow.Table | arrow.Vector;
  /** A text that openTicket() opens in another process of this machine. */
  readonly ticket: string;
  /**
   * Releases the version; with detach its arrays become empty, and the memory is free, at once or
   * when the calls that use it are done.
   */
  close(options?: { detach?: boolean }): void;
  [Symbol.dispose](): void;
}

/** A column of an opened version. */
export class Column {
  private constructor();
  readonly name: string;
  /** The type, as the Arrow C data interface writes it. */
  readonly format: string;
  readonly schema: CSchema;
  readonly length: number;
  readonly nullCount: number;
  /** The numbers of one batch in place; half floats are bits.  Fails if there are nulls. */
  values(batch?: number): TypedArray;
  toArrow(module?: typeof arrow): arrow.Vector;
}

export function connect(options?: ConnectOptions): Promise<Connection>;
export function connectSync(options?: ConnectOptions): Connection;
/** Opens what a ticket names, through its broker or that of options.socket. */
export function openTicket(ticket: string, options?: ConnectOptions): Promise<Dataset>;

// ---- chunks in memory ---------------------------------------------------------------------------

export type Bytes = ArrayBuffer | ArrayBufferView;

export interface CodecOptions<T> {
  /** Where the result goes; the call returns the part of it that is used. */
  out?: T;
  /** Decoding without `out`: larger results fail with LADE_E_LIMIT. */
  largest?: number;
}
export interface AsyncOptions {
  /** Ends the call early: it rejects with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * Encodes a buffer, or an array of buffers in one batch, by a spec such as "shuffle(4)|zstd"
 * (docs/format/codecs.md), on the library's threads.
 */
export function encode<T extends Bytes = Uint8Array>(data: Bytes, spec: string,
  options?: CodecOptions<T> & AsyncOptions): Promise<T>;
export function encode<T extends Bytes = Uint8Array>(data: Bytes[], spec: string,
  options?: CodecOptions<T[]> & AsyncOptions): Promise<T[]>;
export function encodeSync<T extends Bytes = Uint8Array>(data: Bytes, spec: string,
  options?: CodecOptions<T>): T;
export function encodeSync<T extends Bytes = Uint8Array>(data: Bytes[], spec: string,
  options?: CodecOptions<T[]>): T[];
/** Decodes what encode(), or another writer of the format, has made. */
export function decode<T extends Bytes = Uint8Array>(data: Bytes, spec: string,
  options?: CodecOptions<T> & AsyncOptions): Promise<T>;
export function decode<T extends Bytes = Uint8Array>(data: Bytes[], spec: string,
  options?: CodecOptions<T[]> & AsyncOptions): Promise<T[]>;
export function decodeSync<T extends Bytes = Uint8Array>(data: Bytes, spec: string,
  options?: CodecOptions<T>): T;
export function decodeSync<T extends Bytes = Uint8Array>(data: Bytes[], spec: string,
  options?: CodecOptions<T[]>): T[];

// ---- .lade files --------------------------------------------------------------------------------

export interface FileInfo {
  spec: string;
  /** Decoded bytes. */
  size: number;
  encodedSize: number;
  chunkCount: number;
  chunkSize: number;
  /** A type string such as "<f4"; null: bytes. */
  dtype: string | null;
  shape: number[] | null;
  fortranOrder: boolean;
}

export interface ReadOptions<T> {
  /** The first element. */
  start?: number;
  /** How many; without it, to the end. */
  count?: number;
  out?: T;
}

export interface WriteOptions {
  /** "copy": not compressed. */
  spec?: string;
  /** Decoded bytes of a chunk: 1 MiB. */
  chunkSize?: number;
  shape?: number[];
  /** Without it, that of the typed array. */
  dtype?: string;
  checksums?: boolean;
}

/** An open .lade file. */
export class LadeFile implements Disposable {
  private constructor();
  readonly info: Readonly<FileInfo>;
  readonly dtype: string | null;
  readonly shape: number[] | null;
  readonly size: number;
  /** Elements as a typed array of the file's dtype, little-endian, or in `out`. */
  read<T extends Bytes = TypedArray>(options?: ReadOptions<T> & AsyncOptions): Promise<T>;
  readSync<T extends Bytes = TypedArray>(options?: ReadOptions<T>): T;
  close(): void;
  [Symbol.dispose](): void;
}

export function openFile(path: string | URL, options?: AsyncOptions): Promise<LadeFile>;
export function openFileSync(path: string | URL): LadeFile;
/** Writes a file whole, or not at all; the result is its bytes. */
export function writeFile(path: string | URL, data: Bytes, options?: WriteOptions & AsyncOptions):
  Promise<number>;
export function writeFileSync(path: string | URL, data: Bytes, options?: WriteOptions): number;

// ---- Zarr ---------------------------------------------------------------------------------------

/**
 * NumPy's selections as text, such as "0:10, :, 5"; or for each axis a number, null (all of it),
 * or a range.
 */
export type Selection = string | null |
  (number | null | [start?: number | null, stop?: number | null, step?: number | null] |
    { start?: number; stop?: number; step?: number })[];

export interface ZarrInfo {
  kind: 'array' | 'group';
  format: 2 | 3;
  path: string;
  /** JSON. */
  attributes: string;
  /** Of a group with consolidated metadata. */
  members: string[];
  shape?: number[];
  /** 0 for an axis whose chunks differ. */
  chunks?: number[];
  dimensionNames?: (string | null)[];
  dtype?: string;
}

export interface ZarrOptions {
  /** Of the array or group in the store. */
  path?: string;
  format?: 2 | 3;
  /** Of requests to a server. */
  headers?: Record<string, string>;
}

/** An open Zarr array or group. */
export class ZarrNode implements Disposable {
  private constructor();
  readonly info: Readonly<ZarrInfo>;
  readonly kind: 'array' | 'group';
  readonly shape: number[] | undefined;
  readonly chunks: number[] | undefined;
  readonly dtype: string | undefined;
  readonly attributes: Record<string, unknown>;
  /** Reads a selection in C order.  Complex numbers are pairs, times int64, half floats bits. */
  read<T extends Bytes = TypedArray>(selection?: Selection, options?: { out?: T } & AsyncOptions):
    Promise<{ data: T; shape: number[] }>;
  readSync<T extends Bytes = TypedArray>(selection?: Selection, options?: { out?: T }):
    { data: T; shape: number[] };
  close(): void;
  [Symbol.dispose](): void;
}

/** Opens an array or a group of a directory, a .zip file or an http(s) URL. */
export function openZarr(url: string | URL, options?: ZarrOptions): Promise<ZarrNode>;
export function openZarrSync(url: string | URL, options?: ZarrOptions): ZarrNode;

// ---- GPUs ---------------------------------------------------------------------------------------

/** Memory of a GPU, or a slice of it. */
export class DeviceMemory implements Disposable {
  private constructor();
  readonly byteLength: number;
  readonly device: number;
  /** Allocates memory with undefined contents. */
  static alloc(byteLength: number, device?: number): Promise<DeviceMemory>;
  /** The same memory, which stays as long as a slice of it. */
  slice(begin?: number, end?: number): DeviceMemory;
  /** Copies to `out`, from byte `offset` on; without it, all of it to a new Uint8Array. */
  copyToHost<T extends Bytes = Uint8Array>(out?: T, offset?: number): Promise<T>;
  copyFromHost(data: Bytes, offset?: number): Promise<void>;
  close(): void;
  [Symbol.dispose](): void;
}
