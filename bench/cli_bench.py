#!/usr/bin/env python3
"""Time the command against zstd, lz4 and pigz, as whole processes.

    cli_bench.py --lade=build/lade --file=build/bench-data/json.u1 [--copies=4] [--rounds=7]
                 [--csv=FILE] [--work=FOLDER] [--only=TEXT]

Input comes from the page cache, output goes to /dev/null.  In each round every command runs
once, and the order turns from round to round.  A row is a command; 'ratio' is the median of the
rounds' ratios of its time to that of the command it is compared with ('to'), with quartiles.
Peak memory is the largest resident set of the process, as the kernel counts it: never less than
that of this script, about 15 MiB.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import csv
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def quartiles(values):
    values = sorted(values)
    if len(values) == 1:
        return values[0], values[0], values[0]
    q = statistics.quantiles(values, n=4, method="inclusive")
    return q[1], q[0], q[2]


class Command:
    """One row: its name, what it is compared with, its arguments, the file that it reads."""

    def __init__(self, name, to, arguments, suffix):
        self.name, self.to, self.arguments, self.suffix = name, to, arguments, suffix
        self.walls, self.cpus, self.peak = [], [], 0

    def run(self, path, out):
        start = time.perf_counter()
        process = subprocess.Popen([*self.arguments, str(path)], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(self.arguments)} {path}: exit code {process.returncode}")
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands(lade):
    lz4 = ["--algorithm=lz4"]
    rows = [
        # (name, compared with, arguments, input suffix)
        ("zstd -3 -T1", None, ["zstd", "-q", "-3", "--single-thread", "-c"], ""),
        ("lade -3 -T1", "zstd -3 -T1", [lade, "-q", "-3", "-T1", "-c"], ""),
        ("zstd -3 -T0", None, ["zstd", "-q", "-3", "-T0", "-c"], ""),
        ("lade -3", "zstd -3 -T0", [lade, "-q", "-3", "-c"], ""),
        ("lz4 -1", None, ["lz4", "-q", "-1", "-c"], ""),
        ("lade lz4 -T1", "lz4 -1", [lade, "-q", *lz4, "-T1", "-c"], ""),
        ("lade lz4", "lz4 -1", [lade, "-q", *lz4, "-c"], ""),
        ("pigz -6 -p1", None, ["pigz", "-6", "-p1", "-c"], ""),
        ("lade gz -T1", "pigz -6 -p1", [lade, "-q", "--format=gz", "-6", "-T1", "-c"], ""),
        ("pigz -6", None, ["pigz", "-6", "-c"], ""),
        ("lade gz", "pigz -6", [lade, "-q", "--format=gz", "-6", "-c"], ""),
        ("zstd -d single", None, ["zstd", "-q", "-d", "--single-thread", "-c"], ".zst"),
        ("lade -d -T1 .lade", "zstd -d single", [lade, "-q", "-d", "-T1", "-c"], ".lade"),
        ("lade -d -T1 .zst", "zstd -d single", [lade, "-q", "-d", "-T1", "-c"], ".zst"),
        ("zstd -d", None, ["zstd", "-q", "-d", "-c"], ".zst"),
        ("lade -d .lade", "zstd -d", [lade, "-q", "-d", "-c"], ".lade"),
        ("lz4 -d", None, ["lz4", "-q", "-d", "-c"], ".lz4"),
        ("lade -d lz4 -T1", "lz4 -d", [lade, "-q", "-d", "-T1", "-c"], ".lz4.lade"),
        ("lade -d lz4", "lz4 -d", [lade, "-q", "-d", "-c"], ".lz4.lade"),
        ("lade -d .lz4", "lz4 -d", [lade, "-q", "-d", "-c"], ".lz4"),
        ("pigz -d", None, ["pigz", "-d", "-c"], ".gz"),
        ("lade -d .gz", "pigz -d", [lade, "-q", "-d", "-c"], ".gz"),
    ]
    return [Command(*row) for row in rows if shutil.which(row[2][0]) or row[2][0] == lade]


def prepare(lade, big):
    """The compressed forms of the input, each by its own tool."""
    makers = {
        ".zst": ["zstd", "-q", "-3", "-T1", "-c"],
        ".lz4": ["lz4", "-q", "-1", "-c"],
        ".gz": ["pigz", "-6", "-c"],
        ".lade": [lade, "-q", "-3", "-c"],
        ".lz4.lade": [lade, "-q", "--algorithm=lz4", "-c"],
    }
    for suffix, command in makers.items():
        with open(f"{big}{suffix}", "wb") as out:
            subprocess.run([*command, str(big)], stdout=out, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lade", default="build/lade")
    parser.add_argument("--file", default="build/bench-data/json.u1")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv")
    parser.add_argument("--work")
    parser.add_argument("--only", default="", help="only commands with this text, and what they "
                                                   "are compared with")
    args = parser.parse_args()
    lade = str(pathlib.Path(args.lade).resolve())
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        big = pathlib.Path(folder) / "data"
        # Copied by pieces: what this process holds would count as its children's peak memory.
        with open(big, "wb") as out:
            for _ in range(args.copies):
                with open(args.file, "rb") as data:
                    shutil.copyfileobj(data, out, 1 << 20)
        size = big.stat().st_size
        prepare(lade, big)
        rows = commands(lade)
        wanted = {c.name for c in rows if args.only in c.name}
        wanted |= {c.to for c in rows if c.name in wanted}
        rows = [c for c in rows if c.name in wanted]
        with open(os.devnull, "wb") as null:
            for round_number in range(args.rounds + 1):
                for i in range(len(rows)):
                    command = rows[(i + round_number) % len(rows)]
                    wall, cpu, peak = command.run(f"{big}{command.suffix}", null)
                    if round_number > 0:  # the first one warms the caches
                        command.walls.append(wall)
                        command.cpus.append(cpu)
                        command.peak = max(command.peak, peak)
    report(rows, size, args.csv)


def report(rows, size, path):
    by_name = {c.name: c for c in rows}
    lines = [["command", "to", "wall_s", "q1", "q3", "cpu_s", "MBs", "ratio", "ratio_q1",
              "ratio_q3", "cpu_ratio", "peak_MiB"]]
    for c in rows:
        wall = quartiles(c.walls)
        line = [c.name, c.to or "", *(f"{v:.4f}" for v in wall), f"{quartiles(c.cpus)[0]:.4f}",
                f"{size / 1e6 / wall[0]:.0f}", "", "", "", "", f"{c.peak:.1f}"]
        if c.to in by_name:
            to = by_name[c.to]
            walls = quartiles([a / b for a, b in zip(c.walls, to.walls)])
            line[7:10] = [f"{v:.3f}" for v in walls]
            line[10] = f"{quartiles([a / b for a, b in zip(c.cpus, to.cpus)])[0]:.3f}"
        lines.append(line)
    if path:
        with open(path, "w", newline="") as f:
            csv.writer(f).writerows(lines)
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    for row in lines:
        print("  ".join(v.ljust(w) if i < 2 else v.rjust(w)
                        for i, (v, w) in enumerate(zip(row, widths))).rstrip())


if __name__ == "__main__":
    main()
