#!/usr/bin/env python3
"""Make the benchmark data sets: make_data.py OUT_DIR [MIB=64] [NAME ...].

Each file is raw little-endian bytes of MIB mebibytes; its name ends in the element type
(array-protocol letter and size).  With names, only those sets are made; a file that is there
in the right size is kept.  --npy writes .npy files beside them.

Everything is seeded, one seed a set, except 'source', which is the concatenation of header and
Python files of the machine.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys
import zlib
from pathlib import Path

import numpy as np


def orderkey(n, rng):
    """Like l_orderkey of TPC-H: sorted, 1 to 7 lines an order, 8 keys used of each 32."""
    runs = rng.integers(1, 8, n)
    index = np.repeat(np.arange(n, dtype=np.int64), runs)[:n]
    return (index // 8) * 32 + index % 8


def json_log(size, rng):
    """A web server's log, one JSON object a line, with hosts and paths by Zipf's law."""
    hosts = [f"web-{i:03d}.eu-west-{i % 3}.example.org" for i in range(200)]
    words = ["users", "orders", "items", "search", "cart", "login", "health", "reports"]
    paths = [f"/api/v{1 + i % 3}/{w}/{i}" for i, w in enumerate(words * 60)]
    agents = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.4.0", "python-requests/2.31",
              "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"]
    lines, have, now = [], 0, 1_700_000_000_000
    while have < size:
        m = 20000
        host = np.minimum(rng.zipf(1.5, m), 200) - 1
        path = np.minimum(rng.zipf(1.3, m), len(paths)) - 1
        step = rng.integers(0, 50, m)
        code = rng.choice([200, 200, 200, 200, 204, 301, 404, 500], m)
        sent = rng.integers(50, 90000, m)
        took = rng.gamma(2.0, 15.0, m)
        agent = rng.integers(0, 4, m)
        for i in range(m):
            now += int(step[i])
            line = (f'{{"ts":{now},"host":"{hosts[host[i]]}","path":"{paths[path[i]]}",'
                    f'"status":{code[i]},"bytes":{sent[i]},"ms":{took[i]:.3f},'
                    f'"agent":"{agents[agent[i]]}"}}\n')
            lines.append(line)
            have += len(line)
    return np.frombuffer("".join(lines).encode()[:size], np.uint8)


def source_text(size):
    """Program text: the machine's C headers, then Python's library, repeated if too short."""
    parts, have = [], 0
    for root in ("/usr/include", os.path.dirname(os.__file__)):
        for path in sorted(Path(root).rglob("*")):
            if have >= size:
                break
            if path.suffix in (".h", ".hpp", ".py") and path.is_file():
                parts.append(path.read_bytes())
                have += len(parts[-1])
    text = b"".join(parts)
    return np.frombuffer((text * (size // len(text) + 1))[:size], np.uint8)


def smooth_field(n, rng):
    """Two-dimensional fields with a power-law spectrum, such as a temperature map, float32."""
    side = 2048
    k = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    k[0, 0] = 1
    fields, have = [], 0
    while have < n:
        noise = rng.normal(size=k.shape) + 1j * rng.normal(size=k.shape)
        field = np.fft.irfft2(noise / k ** 2.2, (side, side))
        fields.append((280 + 15 * field / field.std()).astype(np.float32).ravel())
        have += side * side
    return np.concatenate(fields)[:n]


def bfloat16(n, rng):
    """Weights of a network: the upper halves of float32 normal numbers."""
    return (rng.normal(size=n) * 0.02).astype("<f4").view("<u4") >> 16


def sparse(n, rng):
    return np.where(rng.random(n) < 0.95, 0, rng.integers(0, 1000, n))


def sets(size):
    n2, n4, n8 = size // 2, size // 4, size // 8
    return {
        "tpch_orderkey.i8": lambda r: orderkey(n8, r),
        "tpch_price.i8": lambda r: r.integers(90_000, 10_500_000, n8),
        "tpch_shipdate.i4": lambda r: 8036 + r.integers(0, 2526, n4),
        "tpch_quantity.i8": lambda r: r.integers(1, 51, n8),
        "timestamps.i8": lambda r: 1_700_000_000_000_000 + np.cumsum(
            1000 + r.integers(-40, 41, n8)),
        "json.u1": lambda r: json_log(size, r),
        "source.u1": lambda r: source_text(size),
        "float_smooth.f4": lambda r: smooth_field(n4, r),
        "float_noisy.f4": lambda r: r.normal(size=n4),
        "bf16_weights.u2": lambda r: bfloat16(n2, r),
        "sparse.i4": lambda r: sparse(n4, r),
        "random.u1": lambda r: r.integers(0, 256, size, dtype=np.uint8),
    }


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    npy = "--npy" in sys.argv
    if not args:
        sys.exit(__doc__)
    out = Path(args[0])
    size = (int(args[1]) if len(args) > 1 else 64) << 20
    makers = sets(size)
    unknown = set(args[2:]) - set(makers)
    if unknown:
        sys.exit(f"make_data: no set is called {', '.join(sorted(unknown))}; "
                 f"there are {', '.join(makers)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in args[2:] or makers:
        path, dtype = out / name, np.dtype("<" + name.rsplit(".", 1)[1])
        if not path.exists() or path.stat().st_size != size:
            data = makers[name](np.random.default_rng(zlib.crc32(name.encode())))
            temporary = path.with_name(name + ".part")
            data.astype(dtype).tofile(temporary)
            temporary.rename(path)
        if npy:
            np.save(out / (name.rsplit(".", 1)[0] + ".npy"), np.fromfile(path, dtype))


main()
