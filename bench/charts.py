#!/usr/bin/env python3
"""charts.py [--check]: draws the charts of README.md from the newest results in bench/results.

Writes docs/performance/cpu.svg and gpu.svg, what they show into README.md, as the text that stands
for a picture, and the tables of cpu.md and gpu.md between the marks "charts".  With --check nothing
is written; what differs from what the results give is named, and the exit status is 1.

Two groups of data: those that the GPU's kernels were tuned on (bench/make_data.py), and those that
nothing was tuned on (bench/make_untuned.py).

SPDX-License-Identifier: Apache-2.0
"""
import collections
import csv
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
# <processor>-<date>/codecs-SET.csv of bench/run_untuned.sh and of run_all.sh; and
# lade-<version>-<card>.csv with its summary, and the same with -untuned.
CPU = max(RESULTS.glob("*/codecs-photos.u1.csv"), key=lambda path: path.parent.name[-10:]).parent
GPU = max((path for path in RESULTS.iterdir() if re.fullmatch(r"lade-[\d.]+-\w+\.csv", path.name)),
          key=lambda path: [int(n) for n in path.name.split("-")[1].split(".")])
GPU_NEW = GPU.with_name(GPU.stem + "-untuned.csv")
BEGIN, END = "<!-- charts: begin -->\n", "<!-- charts: end -->\n"

# A chart has its own background, so that it is legible on any page.
STYLE = """
.page { fill: #ffffff; stroke: #d0d7de }
.a { fill: #1f6feb } .b { fill: #7db1f7 } .c { fill: #8c959f } .d { fill: #c4cad1 }
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: 600 }
.small { font-size: 12.5px; fill: #57606a }
.number { font-size: 12.5px }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; stroke: #30363d }
.a { fill: #388bfd } .b { fill: #a5cdff } .c { fill: #6e7681 } .d { fill: #484f58 }
text { fill: #e6edf3 }
.small { fill: #9ea7b3 }
}
"""
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD = 760, 116, 140, 15, 14, 116

Chart = collections.namedtuple("Chart", "name title notes series rows")
# A row is a label and, for each of the series, a value and the text at the end of its bar.


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def fact(path, name):
    """The value of a line 'name: value', which may begin with '- '."""
    found = re.search(rf"^(?:- )?{re.escape(name)}: (.*)$", path.read_text(), flags=re.M)
    return found[1]


def geometric_mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def cpu_ratios():
    """By codec and direction: how many times as fast as the library liblade is, by set."""
    found = collections.defaultdict(dict)
    for path in sorted(CPU.glob("codecs-*.csv")):
        for row in rows(path):
            if row["part"] == "loop":
                found[row["codec"], row["direction"]][path.stem[7:-3]] = 1 / float(row["result"])
    return found


def cpu():
    found = cpu_ratios()
    lines = []
    for codec, library in [("lz4", "lz4"), ("snappy", "snappy"), ("gzip(level=6)", "libdeflate"),
                           ("zstd(level=3)", "libzstd"),
                           ("blosc(lz4,level=5,typesize=4)", "c-blosc"),
                           ("blosc(zstd,level=5,typesize=4)", "c-blosc")]:
        label = re.sub(r",level=\d+,typesize=\d+", "", codec).replace("level=", "")
        values = [geometric_mean(found[codec, way].values()) for way in ("decode", "encode")]
        lines.append((label, [(value, f"{value:.2f}" + (f" ({library} is 1)" if i == 0 else ""))
                              for i, value in enumerate(values)]))
    machine = CPU / "machine.txt"
    return Chart(
        "cpu", "The CPU: speed of one thread, the library alone = 1",
        ["Six sets that nothing was tuned on (photographs, programs, terrain, labels, prices, "
         "tokens), chunks of 64 KiB;",
         f"{fact(machine, 'processor')}; liblade {fact(machine, 'liblade')}, lz4 "
         f"{fact(machine, 'lz4')}, zstd {fact(machine, 'zstd')}, libdeflate "
         f"{fact(machine, 'libdeflate')}, c-blosc {fact(machine, 'c-blosc')}"],
        [("a", "decoding"), ("b", "encoding")], lines)


def gpu_rates(path, way="decode"):
    """By peer, codec and batch: GB/s or, of one chunk, microseconds; and the version of nvCOMP."""
    rates = collections.defaultdict(list)
    for row in rows(path):
        if row["chunk"] == "65536" and float(row[way + "_gbps"]) > 0:
            value = float(row[way + ("_us" if row["batch"] == "1" else "_gbps")])
            rates[row["peer"], row["codec"], row["batch"]].append(value)
    return rates, max(int(row["version"]) for row in rows(path) if row["peer"] == "nvcomp")


# /cpu: what the libraries on the CPU encoded.  The others: each peer's own format.
GPU_CODECS = [("lz4", "lz4/cpu"), ("snappy", "snappy/cpu"), ("zstd", "zstd/cpu"),
              ("deflate", "deflate/cpu"), ("ans", "ans"),
              ("bitcomp", "bitcomp"), ("cascaded", "cascaded")]


def gpu():
    lines = []
    for label, codec in GPU_CODECS:
        bars = []
        for path in (GPU_NEW, GPU):
            rates, nvcomp = gpu_rates(path)
            if not rates["liblade", codec, "10000"]:
                break
            ours, theirs = (geometric_mean(rates[peer, codec, "10000"])
                            for peer in ("liblade", "nvcomp"))
            bars += [(ours, f"{ours:.0f} ({ours / theirs:.1f} times)"), (theirs, f"{theirs:.0f}")]
        else:
            lines.append((label, bars))
    summary = GPU.with_name(GPU.stem + "-summary.md")
    theirs = f"nvCOMP {nvcomp // 1000}.{nvcomp // 100 % 10}"
    ours = "liblade " + GPU.name.split("-")[1]
    return Chart(
        "gpu", "Decoding on a GPU, GB/s",
        [f"{fact(summary, 'card').split(',')[0]}; 10,000 chunks of 64 KiB in its memory; geometric "
         "means. New: six sets that nothing was tuned on;",
         "tuned: twelve sets that liblade's kernels were tuned on"],
        [("a", ours + ", new"), ("c", theirs + ", new"),
         ("b", ours + ", tuned"), ("d", theirs + ", tuned")], lines)


def cpu_table():
    yield "| codec | decoding | worst set | encoding | worst set |"
    yield "|---|---|---|---|---|"
    found = cpu_ratios()
    for codec in dict.fromkeys(codec for codec, way in found):
        cells = []
        for way in ("decode", "encode"):
            by_set = found[codec, way]
            worst = min(by_set, key=by_set.get)
            cells.append(f"{geometric_mean(by_set.values()):.2f} | {worst} {by_set[worst]:.2f}")
        yield f"| `{codec}` | {' | '.join(cells)} |"


def gpu_table():
    yield ("| | data | decode 10,000 | 1,000 | 100 | one chunk, µs | encode 10,000 |")
    yield "|---|---|---|---|---|---|---|"
    for label, codec in [*GPU_CODECS, ("ans(dtype)", "ans-float")]:
        for data, path in (("new", GPU_NEW), ("tuned", GPU)):
            cells = []
            for batch, way in (("10000", "decode"), ("1000", "decode"), ("100", "decode"),
                               ("1", "decode"), ("10000", "encode")):
                rates = gpu_rates(path, way)[0]
                name = codec.removesuffix("/cpu") if way == "encode" else codec
                pair = [rates[peer, name, batch] for peer in ("liblade", "nvcomp")]
                if all(pair):
                    ours, theirs = map(geometric_mean, pair)
                    factor = theirs / ours if batch == "1" else ours / theirs
                    cells.append(f"{ours:.{0 if ours >= 20 else 1}f} "
                                 f"({factor:.{0 if factor >= 10 else 1}f})")
                else:
                    cells.append("")
            if any(cells):
                yield f"| `{label}` | {data} | {' | '.join(cells)} |"


def svg(chart):
    step = BAR * len(chart.series) + GAP
    height = HEAD + step * len(chart.rows) + 12
    scale = (WIDTH - LEFT - RIGHT) / max(value for _, bars in chart.rows for value, _ in bars)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" role="img">',
           f"<title>{chart.title}</title>", f"<style>{STYLE}</style>",
           f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
           f'<text class="title" x="16" y="28">{chart.title}</text>']
    for i, note in enumerate(chart.notes):
        out.append(f'<text class="small" x="16" y="{50 + 18 * i}">{note}</text>')
    x = LEFT
    for colour, name in chart.series:
        out.append(f'<rect class="{colour}" x="{x}" y="{HEAD - 30}" width="12" height="12"/>'
                   f'<text class="number" x="{x + 18}" y="{HEAD - 19}">{name}</text>')
        x += 38 + 6.6 * len(name)
    for i, (label, bars) in enumerate(chart.rows):
        y = HEAD + step * i
        middle = y + BAR * len(bars) / 2 + 5
        out.append(f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{label}</text>')
        for (colour, _), (value, text) in zip(chart.series, bars):
            out.append(f'<rect class="{colour}" x="{LEFT}" y="{y}" width="{value * scale:.1f}" '
                       f'height="{BAR - 1}"/><text class="number" '
                       f'x="{LEFT + value * scale + 6:.1f}" y="{y + 11.5}">{text}</text>')
            y += BAR
    return "\n".join([*out, "</svg>", ""])


def words(chart):
    """What the chart shows, for those who cannot see it."""
    names = " / ".join(name for _, name in chart.series)
    figures = ", ".join(f"{label} " + " / ".join(text.split()[0] for _, text in bars)
                        for label, bars in chart.rows)
    return f"{chart.title} ({names}): {figures}"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    files = {ROOT / "README.md": (ROOT / "README.md").read_text()}
    for chart in (cpu(), gpu()):
        path = ROOT / f"docs/performance/{chart.name}.svg"
        files[path] = svg(chart)
        target = f"](docs/performance/{chart.name}.svg)"
        text, count = re.subn(r"!\[[^]]*" + re.escape(target), f"![{words(chart)}{target}",
                              files[ROOT / "README.md"])
        if count != 1:
            sys.exit(f"README.md shows {chart.name}.svg {count} times, want once")
        files[ROOT / "README.md"] = text
    for name, table in (("cpu", cpu_table), ("gpu", gpu_table)):
        path = ROOT / f"docs/performance/{name}.md"
        before, _, rest = path.read_text().partition(BEGIN)
        _, mark, after = rest.partition(END)
        if not mark:
            sys.exit(f"{path} has not the two marks {BEGIN.strip()}, {END.strip()}")
        files[path] = before + BEGIN + "\n".join(table()) + "\n" + END + after
    stale = [path for path, text in files.items()
             if not path.exists() or path.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is not what bench/results gives: run bench/charts.py")
        else:
            path.write_text(files[path])
    if check and not stale:
        print("the charts and their texts are what bench/results gives")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
