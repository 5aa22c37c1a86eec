// index.js: the package liblade.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native } = require('./native.js');
const { connect, connectSync, openTicket, Connection, Dataset, Column } = require('./share.js');
const { encode, encodeSync, decode, decodeSync } = require('./codec.js');
const { LadeFile, openFile, openFileSync, writeFile, writeFileSync } = require('./file.js');
const { DeviceMemory } = require('./device.js');
const { ZarrNode, openZarr, openZarrSync } = require('./zarr.js');

const { version } = native;

// Short names only: Node finds neither `a: b.c` nor what follows it for import { ... }.
module.exports = {
  version,
  connect, connectSync, openTicket, Connection, Dataset, Column,
  encode, encodeSync, decode, decodeSync,
  LadeFile, openFile, openFileSync, writeFile, writeFileSync,
  ZarrNode, openZarr, openZarrSync,
  DeviceMemory,
};
