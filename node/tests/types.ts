// types.ts: calls that the types allow, and calls that they must not allow.  It is checked only.
// SPDX-License-Identifier: Apache-2.0
import * as arrow from 'apache-arrow';
import * as lade from 'liblade';

async function allowed(): Promise<void> {
  using share = await lade.connect({ socket: '/tmp/s', timeout: 100 });
  using trips = await share.getDataset('trips', { version: 3, readonly: true });
  const table: arrow.Table | arrow.Vector = trips.toArrow();
  const again = trips.toArrow(arrow);
  const fares = trips.column('fare').values() as Float64Array;
  const done = await share.publish('x', { fare: fares, again: trips.column(0).toArrow() });
  const bytes: number = done.shared + done.copied;
  await share.publish('y', table, { copy: 'never' });
  await share.publish('y', table, { copy: 'if_needed' });
  const onDisk: number = (await share.statistics()).disk;
  const there: boolean = (await share.datasets())[0].place === 'memory';
  await share.publish('z', trips, { compact: true });
  await share.publish('w', { schema: trips.schema, batches: trips.batches });
  for await (const { what, name } of await share.subscribe()) if (what === 'lost') return void name;
  const version: number = await share.wait('x', { after: done.version, timeout: 1000 });
  const packed: Uint8Array = await lade.encode(fares, 'zstd');
  const out: Float64Array = await lade.decode(packed, 'zstd', { out: new Float64Array(9) });
  const many: Uint8Array[] = lade.encodeSync([fares, fares], 'zstd');
  await lade.writeFile('x.lade', out, { spec: 'zstd', shape: [3, 3] });
  const file = await lade.openFile('x.lade');
  const part: lade.TypedArray = await file.read({ start: 1, count: 2 });
  const zarr = await lade.openZarr('https://example.org/a.zarr');
  const { data, shape } = await zarr.read([[0, 10], null, { step: 2 }, 5],
    { out: new Float32Array(9), signal: AbortSignal.timeout(10) });
  const first: number = data[0] + shape[0];
  void [again, onDisk, there, bytes, version, many, part, first];
}

async function refused(share: lade.Connection): Promise<void> {
  // @ts-expect-error
  await share.publish('x', 7);
  // @ts-expect-error
  await share.publish('x', new Uint8Array(1), { copy: 'maybe' });
  // @ts-expect-error
  await share.getDataset(7);
  // @ts-expect-error
  await lade.connect({ sockt: '/tmp/s' });
  // @ts-expect-error
  new lade.Dataset();
  // @ts-expect-error
  await lade.encode('text', 'zstd');
}
void [allowed, refused];
