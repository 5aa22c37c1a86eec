#!/usr/bin/env bash
# The command, on two array files that "make demo" makes; README.md shows this program.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

lade temperature.npy                        # writes temperature.npy.lade
lade -9 --filter=shuffle times.npy          # smaller; suits arrays
lade -d -o back.npy temperature.npy.lade    # restores the file, byte for byte
lade inspect times.npy.lade                 # shows pipeline, shape, chunks, ratios
lade suggest temperature.npy                # tries pipelines on your data
tar c ./*.npy | lade >arrays.tar.lade       # works in pipes
gzip -c times.npy | lade -dc >same.npy      # reads .gz, .zst, .lz4, .zz, .sz
lade zarr create --from=times.npy t.zarr    # makes a Zarr array
lade zarr info t.zarr                       # draws its chunks
