#!/usr/bin/env python3
"""charts.py [--check]: draws the charts of README.md from the newest results in bench/results.

Writes docs/performance/cpu.svg and gpu.svg, and writes what they show into README.md, as the text
that stands for a picture.  With --check nothing is written; a chart or a text that differs from
what the results give is named, and the exit status is 1.

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
# <processor>-<date>/codecs-json.u1.csv, and lade-<version>-<card>.csv with its summary.
CPU = max(RESULTS.glob("*/codecs-json.u1.csv"), key=lambda path: path.parent.name[-10:])
GPU = max((path for path in RESULTS.iterdir() if re.fullmatch(r"lade-[\d.]+-\w+\.csv", path.name)),
          key=lambda path: [int(n) for n in path.name.split("-")[1].split(".")])

# A chart has its own background, so that it is legible on any page.
STYLE = """
.page { fill: #ffffff; stroke: #d0d7de }
.a { fill: #1f6feb } .b { fill: #7db1f7 } .c { fill: #8c959f }
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 17px; font-weight: 600 }
.small { font-size: 12.5px; fill: #57606a }
.number { font-size: 12.5px }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; stroke: #30363d }
.a { fill: #388bfd } .b { fill: #a5cdff } .c { fill: #6e7681 }
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


def cpu():
    found = {}
    for row in rows(CPU):
        if row["direction"] == "decode":
            found[row["part"], row["codec"].removesuffix(" (fast)")] = row
    lines = []
    for codec, library in [("lz4", "lz4"), ("snappy", "snappy"),
                           ("blosc(lz4,level=5,typesize=4)", "c-blosc"),
                           ("gzip(level=6)", "libdeflate"), ("zstd(level=3)", "libzstd"),
                           ("blosc(zstd,level=5,typesize=4)", "c-blosc")]:
        loop, threads = found["loop", codec], found["threads", codec]
        rates = [float(v) / 1000 for v in (threads["lade"], loop["lade"], loop["base"])]
        label = re.sub(r",level=\d+,typesize=\d+", "", codec).replace("level=", "")
        lines.append((label, [(rate, f"{rate:.1f}" + (f" ({library})" if i == 2 else ""))
                              for i, rate in enumerate(rates)]))
    machine = CPU.with_name("machine.txt")
    return Chart(
        "cpu", "Decoding on the CPU, GB/s",
        [f"64 MiB of JSON log lines in chunks of 64 KiB; {fact(machine, 'threads')} cores of an "
         f"{fact(machine, 'processor')}; liblade {fact(machine, 'liblade')},",
         f"lz4 {fact(machine, 'lz4')}, zstd {fact(machine, 'zstd')}, libdeflate "
         f"{fact(machine, 'libdeflate')}, c-blosc {fact(machine, 'c-blosc')}"],
        [("a", "liblade, two threads"), ("b", "liblade, one thread"),
         ("c", "the library alone, one thread")], lines)


def gpu():
    rates = collections.defaultdict(list)
    versions = {}
    for row in rows(GPU):
        if row["chunk"] == "65536" and row["batch"] == "10000":
            rates[row["peer"], row["codec"]].append(float(row["decode_gbps"]))
            versions[row["peer"]] = row["version"]
    lines = []
    # LZ4 and Snappy: what the libraries on the CPU encoded.  The others: each peer's own format.
    for label, codec in [("lz4", "lz4/cpu"), ("snappy", "snappy/cpu"), ("ans", "ans"),
                         ("bitcomp", "bitcomp"), ("cascaded", "cascaded")]:
        ours, theirs = (geometric_mean(rates[peer, codec]) for peer in ("liblade", "nvcomp"))
        lines.append((label, [(ours, f"{ours:.0f} ({ours / theirs:.1f} times)"),
                              (theirs, f"{theirs:.0f}")]))
    nvcomp = int(versions["nvcomp"])
    summary = GPU.with_name(GPU.stem + "-summary.md")
    return Chart(
        "gpu", "Decoding on a GPU, GB/s",
        [f"{fact(summary, 'card').split(',')[0]}; 10,000 chunks of 64 KiB in its memory; geometric "
         f"mean over {len(rates['liblade', 'lz4/cpu'])} data sets,",
         "which are those that liblade's kernels were tuned on (bench/make_data.py)"],
        [("a", f"liblade {versions['liblade']}"),
         ("c", f"nvCOMP {nvcomp // 1000}.{nvcomp // 100 % 10}")], lines)


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
        x += 44 + 7 * len(name)
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
