#!/usr/bin/env python3
"""Says what gpu_bench and fed_bench measured: summary.py [--info=FILE] CSV...

Takes the files of gpu_bench (rates, and host time of calls) and of fed_bench, which it tells by their
columns, and prints: geometric means over the sets for each peer; liblade's factor over nvCOMP, the
factor that is wanted, and the share of it that was reached; the worst set of each cell; every set
where liblade is slower; the ratios of the encoders; host-fed work against its bound.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import csv
import math
import sys

# What is wanted: liblade's rate over nvCOMP's, 64 KiB chunks, mean over the sets; by codec,
# direction, batch.
TARGETS = {
    ("lz4/cpu", "decode", 10000): 2.5, ("lz4/cpu", "decode", 1000): 5.5,
    ("lz4/cpu", "decode", 100): 11, ("lz4/cpu", "decode", 1): 12, ("lz4", "encode", 10000): 3,
    ("snappy/cpu", "decode", 10000): 2, ("snappy/cpu", "decode", 1000): 2.5,
    ("snappy/cpu", "decode", 100): 4, ("snappy/cpu", "decode", 1): 3,
    ("snappy", "encode", 10000): 2.5,
}
MIB_TARGET = 8  # decoding of 1 MiB chunks, by both formats
FED_TARGET = 90  # percent of the bound, from pinned memory to the device


def mean(values):
    values = list(values)
    if not values or min(values) <= 0:
        return 0
    return math.exp(sum(map(math.log, values)) / len(values))


def short(name):
    return name.split(".")[0]


def table(head, rows):
    """A table in Markdown, which is readable as it is: columns padded."""
    rows = [[str(c) for c in r] for r in rows]
    width = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    for r in [head, ["-" * w for w in width]] + rows:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(r, width)) + " |")
    print()


def rate(row, direction):
    return float(row[direction + "_gbps"] or 0)


def rates(rows):
    """Cells of codec, direction, chunk, batch: peers' means, factor, worst set."""
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        for direction in ("decode", "encode"):
            if direction == "encode" and "/" in row["codec"]:
                continue
            key = row["codec"], direction, int(row["chunk"]), int(row["batch"])
            cells[key][row["peer"]][row["data"]] = row
    print("## Rates, geometric means over the sets\n")
    out, slower = [], []
    order = sorted(cells, key=lambda k: (k[2] != 65536, k[0], k[1], k[2], -k[3]))
    for key in order:
        codec, direction, chunk, batch = key
        ours, theirs = cells[key].get("liblade", {}), cells[key].get("nvcomp", {})
        if not ours or mean(rate(r, direction) for r in ours.values()) == 0:
            continue
        if codec.endswith(("/nvcomp", "/liblade")):
            continue
        both = sorted(set(ours) & set(theirs))
        factors = {s: rate(ours[s], direction) / rate(theirs[s], direction)
                   for s in both if rate(theirs[s], direction) > 0}
        factor = mean(factors.values())
        want = TARGETS.get((codec, direction, batch), 0) if chunk == 65536 else 0
        if chunk == 1 << 20 and direction == "decode" and codec.endswith("/cpu"):
            want = MIB_TARGET
        worst = min(factors, key=factors.get) if factors else ""
        slower += [(factors[s], codec, direction, chunk, batch, s) for s in factors
                   if factors[s] < 1]
        us = mean(float(r[direction + "_us"] or 0) for r in ours.values())
        roof = mean(float(r.get(direction + "_roof_pct") or 0) for r in ours.values())
        out.append([
            codec, direction, f"{chunk >> 10} KiB", batch,
            f"{mean(rate(r, direction) for r in ours.values()):.1f}", f"{us:.1f}", f"{roof:.1f}",
            f"{mean(rate(r, direction) for r in theirs.values()):.1f}" if theirs else "",
            f"{factor:.2f}" if factors else "", want or "",
            f"{100 * factor / want:.0f}" if want and factors else "",
            f"{short(worst)} {factors[worst]:.2f}" if worst else ""])
    table(["codec", "", "chunk", "batch", "liblade GB/s", "us", "% of roof", "nvCOMP GB/s",
           "factor", "wanted", "% reached", "worst set"], out)
    return cells, slower


def by_set(cells):
    """Each set's rates where the targets are."""
    print("## Sets, 64 KiB chunks: liblade GB/s (factor over nvCOMP)\n")
    head, columns = ["set"], []
    for codec, direction, batch in TARGETS:
        if (codec, direction, 65536, batch) in cells:
            columns.append((codec, direction, 65536, batch))
            head.append(f"{codec} {direction} {batch}")
    sets = sorted({s for c in columns for s in cells[c].get("liblade", {})})
    out = []
    for name in sets:
        line = [short(name)]
        for c in columns:
            ours = cells[c].get("liblade", {}).get(name)
            theirs = cells[c].get("nvcomp", {}).get(name)
            text = f"{rate(ours, c[1]):.1f}" if ours else ""
            if ours and theirs and rate(theirs, c[1]) > 0:
                text += f" ({rate(ours, c[1]) / rate(theirs, c[1]):.1f})"
            line.append(text)
        out.append(line)
    table(head, out)


def ratios(cells):
    """Encoders: the ratios that the largest batches of each chunk size came to."""
    print("## Ratios of the encoders\n")
    most = {}
    for codec, direction, chunk, batch in cells:
        if direction == "encode":
            most[codec, chunk] = max(batch, most.get((codec, chunk), 0))
    out, notes = [], []
    for (codec, chunk), batch in sorted(most.items()):
        peers = cells[codec, "encode", chunk, batch]
        ours, theirs = peers.get("liblade", {}), peers.get("nvcomp", {})
        by_cpu = cells.get((codec + "/cpu", "decode", chunk, batch), {}).get("liblade", {})
        both = {s: float(ours[s]["ratio"]) / float(theirs[s]["ratio"])
                for s in ours if s in theirs and float(theirs[s]["ratio"]) > 0}
        worst = min(both, key=both.get) if both else ""
        out.append([codec, f"{chunk >> 10} KiB",
                    f"{mean(float(r['ratio']) for r in ours.values()):.3f}",
                    f"{mean(float(r['ratio']) for r in theirs.values()):.3f}" if theirs else "",
                    f"{mean(float(r['ratio']) for r in by_cpu.values()):.3f}" if by_cpu else "",
                    f"{short(worst)} {100 * both[worst] - 100:+.1f} %" if worst else ""])
        notes += [f"{codec}, {chunk >> 10} KiB, {short(s)}: {100 * q - 100:+.1f} %"
                  for s, q in sorted(both.items(), key=lambda x: x[1]) if q < 0.98]
    table(["codec", "chunk", "liblade", "nvCOMP", "on the CPU", "worst set against nvCOMP"], out)
    print("More than 2 % worse than nvCOMP's: " + ("; ".join(notes) if notes else "none") + ".\n")


def host(rows):
    print("## Host time of a call that only enqueues, microseconds (median, quartiles)\n")
    table(["peer", "codec", "", "batch", "us"],
          [[r["peer"], r["codec"], r["direction"], r["batch"],
            f"{float(r['host_us']):.1f} ({float(r['host_us_q1']):.1f} to "
            f"{float(r['host_us_q3']):.1f})"] for r in rows])
    worst = max((float(r["host_us"]) for r in rows if r["peer"] == "liblade"), default=0)
    print(f"liblade's worst: {worst:.1f} us; wanted: 10 us at most.\n")


def fed(rows):
    """Host-fed work; the mean of percent over the sets, and the worst."""
    print("## Fed from the host, and to it\n")
    cells = collections.defaultdict(list)
    for r in rows:
        cells[r["direction"], r["source"], r["dest"], r["layout"], int(r["chunk"]), r["codec"],
              r["peer"], r["way"]].append(r)
    out, missed = [], []
    for key, group in sorted(cells.items()):
        good = [r for r in group if float(r["us"]) > 0]
        direction, source, dest, layout, chunk, codec, peer, way = key
        low = min(good, key=lambda r: float(r["percent"])) if good else None
        out.append([direction, f"{source} to {dest}", layout, f"{chunk >> 10} KiB", codec, peer,
                    way, f"{mean(float(r['coded_gbps']) for r in good):.1f}",
                    f"{mean(float(r['decoded_gbps']) for r in good):.1f}",
                    f"{mean(float(r['kernel_gbps']) for r in good):.0f}",
                    f"{mean(float(r['percent']) for r in good):.0f}",
                    f"{short(low['data'])} {float(low['percent']):.0f}" if low else ""])
        if (direction, source, dest, peer) == ("decode", "pinned", "device", "liblade") and \
                way == "into":
            missed += [f"{codec} {layout} {chunk >> 10} KiB {short(r['data'])} "
                       f"{float(r['percent']):.0f}" for r in good
                       if float(r["percent"]) < FED_TARGET]
    table(["", "from, to", "chunks", "size", "codec", "peer", "way", "coded GB/s",
           "decoded GB/s", "kernels GB/s", "% of bound", "worst set"], out)
    print(f"Below {FED_TARGET} % of the bound, from pinned memory to the device, way `into`: "
          + ("; ".join(missed) if missed else "none") + ".\n")


def main():
    args = sys.argv[1:]
    if not args or "--help" in args:
        sys.exit(__doc__)
    kinds = collections.defaultdict(list)
    facts = {}  # in order, each once
    for path in args:
        if path.startswith("--info="):
            with open(path[7:], encoding="utf-8") as f:
                facts.update((line.rstrip(), None) for line in f)
            continue
        with open(path, newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                kind = "fed" if "way" in row else "host" if "host_us" in row else "rates"
                kinds[kind].append(row)
    if facts:
        print("\n".join("- " + fact for fact in facts) + "\n")
    bad = [r for k in ("rates", "fed") for r in kinds[k] if r["ok"] != "yes"]
    checked = [r for k in ("rates", "fed") for r in kinds[k] if r["ok"] == "yes"]
    print(f"{len(checked)} rows, every result of theirs compared and right; {len(bad)} not:"
          + ("" if bad else " none") + "\n")
    for r in bad[:40]:
        print(f"- {r['peer']} {r['codec']} {r['data']}, {r['batch']} x {r['chunk']}: {r['ok']}")
    if kinds["rates"]:
        good = [r for r in kinds["rates"] if r["ok"] == "yes"]
        cells, slower = rates(good)
        by_set(cells)
        print("Slower than nvCOMP: " + ("; ".join(
            f"{c} {d} {short(s)}, {b} x {k >> 10} KiB: {f:.2f}"
            for f, c, d, k, b, s in sorted(slower)) if slower else "no set, in no cell") + ".\n")
        ratios(cells)
    if kinds["host"]:
        host(kinds["host"])
    if kinds["fed"]:
        fed(kinds["fed"])


main()
