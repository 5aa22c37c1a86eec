// Types of liblade/rapids; docs/node.md describes it.
// SPDX-License-Identifier: Apache-2.0
import type * as arrow from 'apache-arrow';
import type { Bytes, CArray, CSchema } from './index.js';

export { DeviceMemory } from './index.js';

export interface SeriesProps {
  /** A type of apache-arrow with values of a fixed size. */
  type: arrow.DataType;
  data: Bytes;
  /** A bitmap, lowest bit first, or true and false for each row: false is null. */
  nullMask?: Bytes | Iterable<boolean | number> | null;
  /** The first row, in data and in a bitmap. */
  offset?: number;
  length?: number;
  name?: string;
}

/** A column, which publish() takes. */
export class Series {
  private constructor();
  static new(props: SeriesProps): Series;
  readonly schema: CSchema;
  readonly batches: CArray[];
  readonly name: string;
  readonly length: number;
  toArrow(module?: typeof arrow): arrow.Vector;
}
