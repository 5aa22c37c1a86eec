#!/usr/bin/env bash
# The rules of the tree that a machine can check: who may include whom, lengths, the license line,
# the documentation of exported functions, and words that have no place in a commit.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/gates.py
