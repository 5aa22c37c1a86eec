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
  copy?: 'if-needed' | 'never' | 'always';
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
export type Column_ = TypedArray | arrow.Vector | arrow.Table | arrow.RecordBatch | Dataset |
  { schema: CSchema; batches: CArray[] };
export type Publishable = Column_ | { [name: string]: Column_ };

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
  statistics(): Promise<Record<string, number>>;
  /** Ends the connection; data sets stay valid. */
  close(): void;
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
  /** Releases the version; with detach its arrays become empty, and the memory is free at once. */
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
