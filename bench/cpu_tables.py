#!/usr/bin/env python3
"""cpu_tables.py RESULTS: the tables of docs/performance/cpu.md, from a folder that run_all.sh made.

Prints Markdown; with --write puts it into README.md, between its two marks.

SPDX-License-Identifier: Apache-2.0
"""
import csv
import pathlib
import sys

BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->\n"


def rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def fact(folder, name):
    for line in (folder / "machine.txt").read_text().splitlines():
        key, _, value = line.partition(": ")
        if key == name:
            return value
    return "?"


def codec_table(folder):
    found = {}
    for row in rows(folder / "codecs-json.u1.csv"):
        name = row["codec"].removesuffix(" (fast)")
        if row["part"] != "split":
            found.setdefault(name, {})[row["part"], row["direction"]] = row
    yield ("| codec | ratio | encode, decode MB/s | time over the library's | two threads over one "
           "| a 4 KiB call adds, µs |")
    yield "|---|---|---|---|---|---|"
    for name, parts in found.items():
        if ("loop", "decode") not in parts:
            continue

        def pair(part, key, form):
            return ", ".join(form.format(float(parts[part, d][key])) if (part, d) in parts else "-"
                             for d in ("encode", "decode"))
        yield (f"| `{name}` | {float(parts['loop', 'decode']['size_ratio']):.2f} "
               f"| {pair('loop', 'lade', '{:.0f}')} | {pair('loop', 'result', '{:.2f}')} "
               f"| {pair('threads', 'result', '{:.2f}')} | {pair('call', 'result', '{:.2f}')} |")


def command_table(folder):
    yield "| command | MB/s | compared with | times as fast | peak MiB |"
    yield "|---|---|---|---|---|"
    for row in rows(folder / "cli.csv"):
        if row["ratio"]:
            yield (f"| `{row['command']}` | {row['MBs']} | `{row['to']}` "
                   f"| {1 / float(row['ratio']):.2f} | {float(row['peak_MiB']):.0f} |")


def main():
    folder = pathlib.Path(sys.argv[1])
    lines = [f"Measured by `bench/run_all.sh` on {fact(folder, 'threads')} cores of an "
             f"{fact(folder, 'processor')} ({fact(folder, 'instruction sets')}), with",
             f"lz4 {fact(folder, 'lz4')}, zstd {fact(folder, 'zstd')}, libdeflate "
             f"{fact(folder, 'libdeflate')}, c-blosc {fact(folder, 'c-blosc')}. Medians;",
             "MB is 10^6 decoded bytes. 64 MiB of JSON log lines in chunks of 64 KiB.",
             "Times: 1.00 = as fast as calling the library in a loop, in the same process, one "
             "thread.", "",
             *codec_table(folder), "",
             "The command as a whole process, on the same data four times over:", "",
             *command_table(folder)]
    text = "\n".join(lines) + "\n"
    if "--write" not in sys.argv:
        print(text, end="")
        return
    page = pathlib.Path(__file__).resolve().parent.parent / "docs/performance/cpu.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        sys.exit(f"{page} has not the two marks")
    page.write_text(before + BEGIN + text + END + after)


if __name__ == "__main__":
    main()
