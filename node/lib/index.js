// index.js: the package liblade.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const { native } = require('./native.js');
const { connect, connectSync, openTicket, Connection, Dataset, Column } = require('./share.js');

module.exports = {
  version: native.version,
  connect, connectSync, openTicket, Connection, Dataset, Column,
};
