"""Sphinx's configuration for the reference of the Python package (scripts/docs.sh).

SPDX-License-Identifier: Apache-2.0
"""

import re

import liblade

project = "liblade"
author = "the liblade authors"
version = release = liblade.__version__
extensions = ["sphinx.ext.autodoc", "myst_parser"]
html_theme = "alabaster"
html_theme_options = {"description": "compressed arrays in batches, into the caller's memory"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
myst_heading_anchors = 3
# Pages link to files of the repository that are no pages here; tests/docs follows those links.
suppress_warnings = ["myst.xref_missing"]

ITEM = re.compile(r"[a-z_][\w, ]*: ")
SPECIAL = re.compile(r"([\\*`|]|_(?!\w))")


def plain_to_rest(app, what, name, obj, options, lines):
    """Makes lists of the paragraphs 'name: what it is', and text of everything else.

    A continued line is indented by four.
    """
    out = []
    items = False
    for i, line in enumerate(lines):
        text = SPECIAL.sub(r"\\\1", line.strip())
        begins = ITEM.match(line) and (items or i == 0 or not lines[i - 1].strip())
        if begins:
            head, rest = text.split(": ", 1)
            out.append(f"- **{head}**: {rest}")
            items = True
        elif items and line.startswith("    "):
            out.append(f"  {text}")
        else:
            if items and text:
                out.append("")
            items = False
            out.append(text)
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", plain_to_rest)
