#!/usr/bin/env bash
# Zarr on the command line, on an array file of "make demo"; docs/zarr.md shows this program.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

lade zarr create --from=temperature.npy --chunks=1,360,360 t.zarr  # makes an array of a .npy file
lade zarr info t.zarr                                  # shape, type, codecs, ratio, a map of chunks
lade zarr cat t.zarr "[0, 300:310, ::2]" >part.npy     # reads a part
lade zarr verify t.zarr                                # reads every chunk and names the bad ones
