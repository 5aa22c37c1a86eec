// events.test.js: waiting for names, and events.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const assert = require('node:assert');
const { test, before, after } = require('node:test');
const { connect } = require('liblade');
const kit = require('./kit.js');

let broker, share;
before(async () => {
  broker = await kit.serve();
  share = await connect({ socket: broker.socket });
});
after(async () => {
  share.close();
  await broker.stop();
});

const one = new Uint8Array(1);

test('waiting: for what is there, for what comes, for what does not', async () => {
  const { version } = await share.publish('a', one);
  assert.strictEqual(await share.wait('a'), version);
  // More waits than the pool has threads: they take none.
  const waits = Array.from({ length: 20 }, () => share.wait('a', { after: version }));
  await kit.sleep(20);
  const next = await share.publish('a', one);
  assert.deepStrictEqual(await Promise.all(waits), Array(20).fill(next.version));
  await assert.rejects(share.wait('b', { timeout: 20 }), { name: 'TimeoutError' });
  await assert.rejects(share.wait('b', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  const abort = new AbortController();
  const rejected = assert.rejects(share.wait('b', { signal: abort.signal }),
    { name: 'AbortError' });
  setTimeout(() => abort.abort(), 5);
  await rejected;
});

test('events, in order, of a prefix', async () => {
  const events = await share.subscribe('e/');
  const { version } = await share.publish('e/1', one);
  await share.publish('other', one);
  await share.remove('e/1');
  await share.publish('e/2', one);
  const seen = [];
  for await (const event of events) {
    seen.push(event);
    if (seen.length === 3) break;
  }
  assert.deepStrictEqual(seen.map(({ what, name }) => `${what} ${name}`),
    ['published e/1', 'removed e/1', 'published e/2']);
  assert.strictEqual(seen[0].version, version);
  // The loop's end has closed it.
  assert.deepStrictEqual(await events.next(), { value: undefined, done: true });
  const waiting = await share.subscribe();
  const next = waiting.next();
  waiting.close();
  assert.deepStrictEqual(await next, { value: undefined, done: true });
});

test('nobody who waits keeps the process alive for ever', async () => {
  assert.strictEqual(await kit.node(broker.socket, `
    const events = await share.subscribe();
    share.close();
    console.log('done');`), 'done');
});
