// Reads the table of trips.py in Python's memory, computes, and publishes a table for it.
// SPDX-License-Identifier: Apache-2.0
'use strict';
const arrow = require('apache-arrow');
const { connect } = require('liblade');

async function main(socket) {
  const share = await connect({ socket });
  await share.wait('trips');
  const trips = await share.getDataset('trips');
  const table = trips.toArrow();
  const miles = trips.column('miles').values();
  const fares = table.getChild('fare');
  const rates = arrow.vectorFromArray(
    Array.from(miles, (one, i) => (fares.isValid(i) ? Number(fares.get(i)) / one : null)),
    new arrow.Float64());
  // Columns of Python's and a new one.
  await share.publish('trips/rates', {
    when: table.getChild('when'), stops: table.getChild('stops'), rate: rates,
  });
  console.log(`${table.numRows} trips, ${fares.nullCount} without a fare`);
  trips.close();
  share.close();
}

main(process.argv[2]);
