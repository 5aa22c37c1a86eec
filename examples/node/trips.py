"""Publishes a slice of a table with nulls, waits for what Node makes of it (trips.js), reads that.

    lade share serve &
    python trips.py & node trips.js

SPDX-License-Identifier: Apache-2.0
"""

import datetime
import sys

import pyarrow as pa

import liblade.share

start = datetime.datetime(2026, 11, 24, tzinfo=datetime.timezone.utc)
trips = pa.table(
    {
        "when": [start + datetime.timedelta(minutes=7 * i) for i in range(1000)],
        "fare": [None if i % 10 == 3 else 5 + i % 40 for i in range(1000)],
        "miles": [1.5 + i % 8 for i in range(1000)],
        "stops": [["depot", None, f"stop {i}"][: i % 4] for i in range(1000)],
    }
)

with liblade.share.connect(*sys.argv[1:]) as share:
    share.publish("trips", trips[100:900])
    share.wait("trips/rates", timeout=30)
    with share.get("trips/rates") as rates:
        table = rates.to_pyarrow()
print(f"{table.num_rows} rows, {table['rate'].null_count} without a fare")
print(f"the first rates: {[round(rate, 2) for rate in table['rate'].to_pylist()[:2]]}")
assert table["when"].equals(trips["when"][100:900])
assert table["stops"].equals(trips["stops"][100:900])
