#!/usr/bin/env python3
"""Geometric means of a lz_bench CSV by codec and batch: summary.py FILE [--sets].

SPDX-License-Identifier: Apache-2.0
"""
import collections
import csv
import math
import sys

rows = collections.defaultdict(dict)
for row in csv.DictReader(open(sys.argv[1])):
    rows[row["codec"], int(row["chunk"]), int(row["batch"])][row["data"]] = (
        float(row["decode_gbps"]), float(row["decode_us"]), row["ok"])
for key, sets in sorted(rows.items()):
    gbps = math.exp(sum(math.log(v[0]) for v in sets.values()) / len(sets))
    us = math.exp(sum(math.log(v[1]) for v in sets.values()) / len(sets))
    bad = [k for k, v in sets.items() if v[2] != "yes"]
    print(f"{key[0]:14} {key[1]:8} {key[2]:6} {gbps:9.1f} GB/s {us:10.1f} us",
          "BAD " + " ".join(bad) if bad else "")
    if "--sets" in sys.argv:
        print("    ", "  ".join(f"{k.split('.')[0]} {v[0]:.0f}" for k, v in sorted(sets.items())))
