#!/usr/bin/env python3
"""check_docs.py LIST: the documents against the tree and against LIST, the library's own account
of its algorithms and status codes (made by check_docs.sh).  One line for each breach.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import subprocess
import sys

# Folders whose paths may be named in text: such a path must exist.
FOLDERS = ("bench", "cmake", "docs", "examples", "include", "scripts", "src", "tests")
# What a run makes: these need not be there.
MADE = ("bench/results/", "tests/long/log")
breaches = []


def breach(path, text):
    breaches.append(f"{path}: {text}")


def prose(text):
    """A document without its code blocks, fenced or indented."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"^(    |\t).*$", "", text, flags=re.M)


def anchors(text):
    """The anchors that the headings of a document make."""
    heads = re.findall(r"^#+ +(.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def check_links(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"https?://[^/]+\.[a-z]+(/|$)", target):
            continue
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        if not there.exists():
            breach(path, f"the link to {target} leads nowhere")
        elif anchor and anchor not in anchors(there.read_text()):
            breach(path, f"{target}: there is no such heading")
    for name in re.findall(r"`((?:%s)/[\w./-]+)`" % "|".join(FOLDERS), text):
        # NAME stands for the reader's own.
        made = name.startswith(MADE) or "NAME" in name
        if not made and not pathlib.Path(name).exists():
            breach(path, f"{name} does not exist")


def check_glossary(path):
    """Each word has one entry, and the entries are in order."""
    words = [word.lower() for word in re.findall(r"(?m)^\*\*(.+?)\*\*", path.read_text())]
    for before, word in zip(words, words[1:]):
        if before >= word:
            breach(path, f"'{word}' comes after '{before}'")


def check_statuses(statuses):
    path = pathlib.Path("docs/errors.md")
    heads = set(re.findall(r"^## (.*)$", path.read_text(), flags=re.M))
    want = {f"{name} ({number}): {text}" for name, number, text in statuses}
    for head in sorted(want - heads):
        breach(path, f"has no section '{head}'")
    for head in sorted(h for h in heads - want if h.startswith("LADE_")):
        breach(path, f"'{head}' is no status of status.h")


def check_table(path, kind, names, lossy):
    """The table of codecs, or of filters: each by name, and whether it is lossy."""
    table = re.search(r"<!-- table: %ss -->\n((?:\|.*\n)+)" % kind, path.read_text())
    if not table:
        breach(path, f"has no table of {kind}s")
        return
    rows = [row.split("|")[1:3] for row in table[1].splitlines()[2:]]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    for name in sorted(set(names) - set(listed)):
        breach(path, f"the table of {kind}s lacks {name}")
    for name in sorted(set(listed) - set(names)):
        breach(path, f"{name}: the library has no such {kind}")
    for name, what in [(n, row[1]) for row in rows for n in re.findall(r"`([^`]+)`", row[0])]:
        if name in names and what.strip().startswith("lossy") != (name in lossy):
            breach(path, f"{name} is{'' if name in lossy else ' not'} lossy")


def check_numbers(path, pattern, numbers):
    """Tables of numbers and names, whose cells the pattern finds."""
    listed = {name: int(number) for number, name in re.findall(pattern, path.read_text())}
    for name in sorted(set(numbers) | set(listed)):
        if numbers.get(name) != listed.get(name):
            breach(path, f"{name} has number {listed.get(name)} here, "
                         f"{numbers.get(name)} in the library")


def main():
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    statuses = [line.split(" ", 3)[1:] for line in lines if line.startswith("status ")]
    algorithms = [line.split() for line in lines if not line.startswith("status ")]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    documents = [pathlib.Path(f) for f in files if f and pathlib.Path(f).exists()]
    for path in documents:
        check_links(path)
    check_statuses(statuses)
    check_glossary(pathlib.Path("docs/glossary.md"))
    lossy = {name for _, name, _, flag in algorithms if flag == "1"}
    for kind, page in [("codec", "README.md"), ("filter", "docs/format/filters.md")]:
        check_table(pathlib.Path(page), kind, [name for k, name, _, _ in algorithms if k == kind],
                    lossy)
    numbers = {name: int(number) for kind, name, number, _ in algorithms if int(number) < 64}
    check_numbers(pathlib.Path("docs/format/spec.md"),
                  r"\| *(\d+) *\| *([a-z0-9]+) *(?=\|)", numbers)
    # A checksum's number as a stage is 64 more than as a checksum.
    numbers = {name: int(number) - 64 for kind, name, number, _ in algorithms if int(number) >= 64}
    check_numbers(pathlib.Path("docs/format/checksums.md"),
                  r"(?m)^\| (\d+) \| ([a-z0-9-]+) \|", numbers)
    index = pathlib.Path("docs/README.md").read_text()
    for path in documents:
        if path.parts[0] == "docs" and path.name != "README.md" and path.parent.name != "log":
            name = path.relative_to("docs").as_posix()
            if f"({name})" not in index:
                breach("docs/README.md", f"does not list {name}")
    print("\n".join(breaches) or f"{len(documents)} documents, {len(statuses)} statuses, "
                                 f"{len(algorithms)} algorithms: all in order")
    sys.exit(1 if breaches else 0)


main()
