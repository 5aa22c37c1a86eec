#!/usr/bin/env python3
"""Says what gpu_bench and fed_bench measured: summary.py [--info=FILE] CSV...

Takes the files of gpu_bench (rates, and host time of calls) and of fed_bench, which it tells by
their columns, and prints: liblade's factor over nvCOMP where one is wanted, the share of it that
was reached, and the worst set; geometric means over the sets for each peer; every set where
liblade is slower; the ratios of the encoders; host-fed work against its bound.

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
    ("ans", "decode", 10000): 1.5, ("ans", "decode", 1000): 1.35, ("ans", "decode", 100): 1.6,
    ("ans", "decode", 1): 1 / 0.6, ("ans", "encode", 10000): 1.5,
    ("ans-float", "decode", 10000): 1.1, ("ans-float", "decode", 1000): 1.05,
    ("ans-float", "decode", 100): 1.1, ("ans-float", "decode", 1): 1,
    ("ans-float", "encode", 10000): 1.3,
    ("bitcomp", "decode", 10000): 3.5, ("bitcomp", "decode", 1000): 4,
    ("bitcomp", "decode", 100): 10, ("bitcomp", "decode", 1): 10,
    ("bitcomp", "encode", 10000): 2,
    ("cascaded", "decode", 10000): 3, ("cascaded", "decode", 1000): 3.5,
    ("cascaded", "decode", 100): 8, ("cascaded", "decode", 1): 6,
    ("cascaded", "encode", 10000): 8,
}
# And by itself, 10,000 chunks: decoded GB/s, mean over the sets; percent of the copy's rate.
RATES_WANTED = {"ans": 1650, "bitcomp": 2200, "cascaded": 1900}
ROOFS_WANTED = {"crc32": 60, "crc32c": 60, "xxh64": 60, "shuffle": 80, "bitshuffle": 80,
                "delta": 80, "zigzag": 80}
# What CPU tools wrote: decoded GB/s at 10,000, 1,000 and 100 chunks, microseconds of one chunk.
LIBRARIES_WANTED = {"zstd/cpu": (200, 120, 16, 450), "deflate/cpu": (160, 110, 40, 140)}
# And relative to another codec of the same run: gzip is Deflate and a sum.
SHARES_WANTED = {"gzip/cpu": ("deflate/cpu", 95), "zlib/cpu": ("deflate/cpu", 95)}
MIB_FACTORS = {"zstd/cpu": 7, "deflate/cpu": 8}
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


def figure(value):
    """Three digits that matter, no fewer than the whole ones."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value else ""


def rate(row, direction):
    return float(row[direction + "_gbps"] or 0)


def cells_of(rows):
    """Rows by codec, direction, chunk and batch, then by peer, then by set."""
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        for direction in ("decode", "encode"):
            if rate(row, direction) > 0:
                key = row["codec"], direction, int(row["chunk"]), int(row["batch"])
                cells[key][row["peer"]][row["data"]] = row
    # What one encoded and both decoded stands in rows of its own.
    for codec, direction, chunk, batch in list(cells):
        base, _, source = codec.partition("/")
        if source in ("liblade", "nvcomp"):
            cells[codec, direction, chunk, batch][source] = \
                cells[base, direction, chunk, batch].get(source, {})
    return cells


def factors_of(cell, direction):
    """liblade's rate over nvCOMP's, by set."""
    ours, theirs = cell.get("liblade", {}), cell.get("nvcomp", {})
    column = direction + "_us"
    return {s: float(theirs[s][column]) / float(ours[s][column]) for s in ours if s in theirs}


def targets(cells):
    """What is wanted, and what was reached."""
    wanted = [(c, d, 65536, b, f) for (c, d, b), f in TARGETS.items()]
    mib = {"lz4/cpu": MIB_TARGET, "snappy/cpu": MIB_TARGET, **MIB_FACTORS}
    wanted += [(c, "decode", k, b, factor) for c, factor in mib.items()
               for k, b in sorted({key[2:] for key in cells}) if k == 1 << 20]
    out = []
    for codec, direction, chunk, batch, want in wanted:
        factors = factors_of(cells.get((codec, direction, chunk, batch), {}), direction)
        if not factors:
            continue
        reached, worst = mean(factors.values()), min(factors, key=factors.get)
        out.append([codec, direction, f"{batch} x {chunk >> 10} KiB", len(factors),
                    f"{want:.1f}", f"{reached:.2f}", f"{100 * reached / want:.0f}",
                    f"{short(worst)} {factors[worst]:.2f}"])
    if out:
        print("## liblade's rate over nvCOMP's: wanted and reached\n")
        table(["codec", "", "batch", "sets", "wanted", "reached", "%", "worst set"], out)
    out = []
    for codec, direction, chunk, batch in sorted(cells):
        ours = cells[codec, direction, chunk, batch].get("liblade", {})
        want, column = (RATES_WANTED.get(codec), "_gbps") if direction == "decode" else (None, "")
        if codec in ROOFS_WANTED:
            want, column = ROOFS_WANTED[codec], "_roof_pct"
        if not ours or not want or (chunk, batch) != (65536, 10000):
            continue
        worst = min(ours, key=lambda s: float(ours[s][direction + column]))
        reached = mean(float(r[direction + column]) for r in ours.values())
        out.append([codec, direction, "GB/s" if column == "_gbps" else "% of the copy", want,
                    figure(reached), f"{short(worst)} "
                    + figure(float(ours[worst][direction + column]))])
    if out:
        print("## 10,000 chunks of 64 KiB: wanted and reached\n")
        table(["codec", "", "of", "wanted", "reached", "worst set"], out)


def libraries(cells):
    """What libraries on the CPU encoded: liblade's rates by themselves, wanted and reached."""
    out = []

    def reached(codec, batch):
        ours = cells.get((codec, "decode", 65536, batch), {}).get("liblade", {})
        column = "decode_us" if batch == 1 else "decode_gbps"
        return mean(float(r[column]) for r in ours.values()) if ours else 0

    for codec, wanted in LIBRARIES_WANTED.items():
        for batch, want in zip((10000, 1000, 100, 1), wanted):
            got = reached(codec, batch)
            if got:
                out.append([codec, batch, "us" if batch == 1 else "GB/s", want, figure(got),
                            f"{100 * (want / got if batch == 1 else got / want):.0f}"])
    for codec, (other, want) in SHARES_WANTED.items():
        for batch in (10000, 1000, 100, 1):
            got, whole = reached(codec, batch), reached(other, batch)
            if got and whole:
                share = 100 * (whole / got if batch == 1 else got / whole)
                out.append([codec, batch, f"% of {other}", want, f"{share:.0f}",
                            f"{100 * share / want:.0f}"])
    if out:
        print("## What libraries encoded, chunks of 64 KiB: wanted and reached\n")
        table(["codec", "chunks", "", "wanted", "reached", "%"], out)


def rates(cells):
    """Each cell's means and factor; gives those where liblade is slower."""
    print("## Rates, geometric means over the sets\n")
    out, slower = [], []
    for key in sorted(cells, key=lambda k: (k[2] != 65536, k[0], k[1], k[2], -k[3])):
        codec, direction, chunk, batch = key
        ours, theirs = cells[key].get("liblade", {}), cells[key].get("nvcomp", {})
        factors = factors_of(cells[key], direction)
        slower += [(f, codec, direction, chunk, batch, s) for s, f in factors.items() if f < 1]
        worst = min(factors, key=factors.get) if factors else ""

        def of(rows, column):
            return figure(mean(float(r.get(column) or 0) for r in rows.values()))

        out.append([
            codec, direction, f"{batch} x {chunk >> 10} KiB", of(ours, direction + "_gbps"),
            of(theirs, direction + "_gbps"), of(ours, direction + "_us"),
            of(theirs, direction + "_us"), of(ours, direction + "_roof_pct"),
            of(theirs, direction + "_roof_pct"),
            f"{mean(factors.values()):.2f}" if factors else "",
            f"{short(worst)} {factors[worst]:.2f}" if worst else ""])
    table(["codec", "", "batch", "liblade GB/s", "nvCOMP", "liblade us", "nvCOMP",
           "liblade % of roof", "nvCOMP", "factor", "worst set"], out)
    return slower


def by_set(cells):
    """Each set's rates where the targets are."""
    print("## Sets, 64 KiB chunks: liblade GB/s (factor over nvCOMP)\n")
    head, columns = ["set"], []
    libraries_cells = [(c, "decode", b) for c in (*LIBRARIES_WANTED, *SHARES_WANTED)
                       for b in (10000, 1000, 100, 1)]
    for codec, direction, batch in [*TARGETS, *libraries_cells]:
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
            text = figure(rate(ours, c[1])) if ours else ""
            if ours and theirs:
                text += f" ({factors_of(cells[c], c[1])[name]:.1f})"
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
                    *(f"{mean(float(r['ratio']) for r in peer.values()):.3f}" if peer else ""
                      for peer in (ours, theirs, by_cpu)),
                    f"{short(worst)} {100 * both[worst] - 100:+.1f} %" if worst else ""])
        notes += [f"{codec}, {chunk >> 10} KiB, {short(s)}: {100 * q - 100:+.1f} %"
                  for s, q in sorted(both.items(), key=lambda x: x[1]) if q < 0.98]
    table(["codec", "chunk", "liblade", "nvCOMP", "on the CPU", "worst set against nvCOMP"], out)
    print("More than 2 % worse than nvCOMP's: " + ("; ".join(notes) if notes else "none") + ".\n")


def host(rows):
    print("## Host time of a call that only enqueues, microseconds (median, quartiles)\n")
    table(["peer", "call", "codec", "", "batch", "us"],
          [[r["peer"], r["call"], r["codec"], r["direction"], r["batch"],
            f"{float(r['host_us']):.1f} ({float(r['host_us_q1']):.1f} to "
            f"{float(r['host_us_q3']):.1f})"] for r in rows])
    worst = max((float(r["host_us"]) for r in rows if r["peer"] == "liblade"), default=0)
    print(f"liblade's worst: {worst:.1f} us; wanted: 10 us at most.\n")


def fed(rows):
    """Host-fed work, a line a case: means over the sets, and the worst where it counts."""
    print("## Fed from the host, and to it: decoded GB/s (percent of the bound)\n")
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))
    for r in rows:
        if float(r["us"]) > 0:
            key = r["direction"], f"{r['source']} to {r['dest']}", r["layout"], \
                int(r["chunk"]), r["codec"]
            cells[key][r["peer"], r["way"]][r["data"]] = r
    ways = [("liblade", "into"), ("liblade", "device"), ("liblade", "copy"), ("nvcomp", "copy")]
    out, missed = [], []
    for key, cell in sorted(cells.items()):
        line = [key[0], key[1], key[2], f"{key[3] >> 10} KiB", key[4]]
        for way in ways:
            good = cell.get(way, {}).values()
            line.append(f"{mean(float(r['decoded_gbps']) for r in good):.1f} "
                        f"({mean(float(r['percent']) for r in good):.0f})" if good else "")
        ours = cell.get(("liblade", "into"), {})
        low = min(ours, key=lambda s: float(ours[s]["percent"])) if ours else ""
        line.append(f"{short(low)} {float(ours[low]['percent']):.0f}" if low else "")
        out.append(line)
        if key[:2] == ("decode", "pinned to device"):
            missed += [f"{key[4]} {key[2]} {key[3] >> 10} KiB {short(s)} {float(r['percent']):.0f}"
                       for s, r in ours.items() if float(r["percent"]) < FED_TARGET]
    table(["", "from, to", "chunks", "size", "codec", "into", "device", "copy, kernels",
           "copy, nvCOMP", "worst set, into"], out)
    print(f"Below {FED_TARGET} % of the bound, from pinned memory to the device, `into`: "
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
    for what, count in collections.Counter(
            f"{r['peer']} {r['codec']}: {r['ok']}" for r in bad).most_common(40):
        print(f"- {count} x {what}")
    if bad:
        print()
    if kinds["rates"]:
        cells = cells_of(r for r in kinds["rates"] if r["ok"] == "yes")
        targets(cells)
        libraries(cells)
        slower = rates(cells)
        print("Slower than nvCOMP: " + ("; ".join(
            f"{c} {d} {short(s)}, {b} x {k >> 10} KiB: {f:.2f}"
            for f, c, d, k, b, s in sorted(slower)) if slower else
            "no set, in no cell" if any(r["peer"] == "nvcomp" for r in kinds["rates"]) else
            "not known, there are no rows of it") + ".\n")
        by_set(cells)
        ratios(cells)
    if kinds["host"]:
        host(kinds["host"])
    if kinds["fed"]:
        fed(kinds["fed"])


main()
