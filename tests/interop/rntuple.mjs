// rntuple.mjs: what JSROOT reads of RNTuples.  Stdin: [[path, [field, ...]], ...]; stdout: for each
// file {field: [value, ...] or {"error": text}}.  Fields are read one by one, so that one that
// JSROOT does not know does not spoil the others.
// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const folder = process.env.LADE_JSROOT + '/node_modules/jsroot/modules/';
const { openFile } = await import(pathToFileURL(folder + 'io.mjs'));
const { TSelector } = await import(pathToFileURL(folder + 'tree.mjs'));
const { rntupleProcess } = await import(pathToFileURL(folder + 'rntuple.mjs'));

async function readField(file, name) {
  const values = [], selector = new TSelector();
  selector.addBranch(name);
  selector.Process = function () { values.push(this.tgtobj[name]); };
  await rntupleProcess(await file.readObject('t'), selector);
  return values;
}

const out = process.stdout.write.bind(process.stdout);
for (const name of ['log', 'warn', 'error', 'info'])
  console[name] = () => {};
const results = [];
for (const [path, fields] of JSON.parse(readFileSync(0))) {
  const file = await openFile('file://' + path), result = {};
  for (const name of fields)
    try {
      result[name] = await readField(file, name);
    } catch (e) {
      result[name] = { error: String(e.message ?? e) };
    }
  results.push(result);
}
out(JSON.stringify(results, (key, value) => typeof value === 'bigint' ? Number(value) : value));
