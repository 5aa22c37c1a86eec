#!/usr/bin/env python3
"""check_words.py [--report]: the words of the documentation, the headers and the source.  Fails if
a page of docs/performance is too long, or if a word is used that readers do not know in our sense.
With --report it also prints, for each page and header, how many sentences are too long.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import subprocess
import sys

PERFORMANCE_WORDS = 900  # a page of results; diaries are in docs/performance/log
SENTENCE_WORDS = 25

# Private words for what has a name in the field: use "shared memory", "worker", "report", "bucket",
# "staging buffer", "through pinned memory".
PRIVATE = r"offices?|desks?|halls?|crews?|finders?|seats?|sheets?|taper(?:s|ed)?|mood|bridges?"
# Neither: say "returns", "says", "is in", "is at", "this many".
STILTED = r"told|tells?|lies|lie|so many|is looked at|are looked at|heeded|and its kin"
# Also not in what users read.
RARE = r"of which"


def tracked(*patterns):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return [pathlib.Path(n) for n in names if n and pathlib.Path(n).is_file()]


def uses(path, words):
    for i, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
        for m in re.finditer(r"\b(?:%s)\b" % words, line, re.I):
            yield f"{path}:{i}: '{m.group(0)}': use the common word (scripts/check_words.py)"


def sentences(path):
    """The sentences of a page without code and tables, or of a header's comments."""
    text = path.read_text()
    if path.suffix == ".h":
        text = "\n\n".join(re.findall(r"/\*(.*?)\*/", text, re.S))
        text = re.sub(r"^[ \t]*\* ?", "", text, flags=re.M)
        text = re.sub(r"^\t.*$", "", text, flags=re.M)
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(    |\||#|\t|!).*$", "", text, flags=re.M)
    for block in re.split(r"\n\s*\n|^[ ]*[-*\d]+\.? ", text, flags=re.M):
        text = re.sub(r" (?=(?:Fails|Threads|Owns|Returns|Memory|Source): )", "\n\n", block)
        for sentence in re.split(r"(?<=[.?!])\)?\s+|(?<=[:;])\s+(?=[A-Z`*])|\n\n", text):
            if sentence.strip():
                yield " ".join(sentence.split())


def main():
    breaches = []
    pages = [p for p in tracked("*.md", "docs/man/*") if "log" not in p.parts]
    ours = [p for p in pages if p.parts[0] == "docs" or len(p.parts) == 1]
    headers = tracked("include/*.h")
    for path in ours + headers:
        breaches += uses(path, "|".join((PRIVATE, STILTED, RARE)))
    for path in tracked("src/*", "testing/*"):
        breaches += uses(path, PRIVATE + "|" + STILTED)
    for path in pages:
        if path.parent == pathlib.Path("docs/performance"):
            count = len(re.findall(r"\S*[A-Za-z0-9]\S*", path.read_text()))
            if count > PERFORMANCE_WORDS:
                breaches.append(f"{path}: {count} words, at most {PERFORMANCE_WORDS}: results and "
                                "limits; diaries are in docs/performance/log")
    if "--report" in sys.argv:
        for path in ours + headers:
            if path.suffix in (".md", ".h"):
                lengths = [len(s.split()) for s in sentences(path)]
                long = sum(n > SENTENCE_WORDS for n in lengths)
                print(f"{long:3} of {len(lengths):3} sentences of {path} have more than "
                      f"{SENTENCE_WORDS} words, the longest {max(lengths, default=0)}")
    print("\n".join(breaches) or f"{len(ours)} pages, {len(headers)} headers: no private words")
    sys.exit(1 if breaches else 0)


main()
