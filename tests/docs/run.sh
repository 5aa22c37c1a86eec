#!/usr/bin/env bash
# run.sh BUILD: the documents say what is there.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/check_docs.sh "${1:?usage: run.sh BUILD}"
scripts/check_readme.sh
python3 scripts/check_words.py
