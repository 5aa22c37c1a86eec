# make.py: writes numcodecs.txt, the filters' golden bytes, with numcodecs.
# SPDX-License-Identifier: Apache-2.0
"""python3 make.py >numcodecs.txt, with numcodecs and NumPy installed (their versions are noted)."""
import numcodecs
import numpy as np

rng = np.random.default_rng(7)
i2 = np.sort(rng.integers(-300, 300, 40)).astype("<i2")
i8 = rng.integers(-(2**62), 2**62, 20).astype("<i8")
f2 = (rng.standard_normal(24) * 30).astype("<f2")
f4 = (rng.standard_normal(24) * 30).astype("<f4")
f8 = (rng.standard_normal(24) * 30).astype("<f8")
flags = rng.random(37) < 0.4
CASES = [
    ("shuffle(2)", numcodecs.Shuffle(2), i2),
    ("shuffle(8)", numcodecs.Shuffle(8), i8),
    ("delta(<i2)", numcodecs.Delta("<i2"), i2),
    ("delta(<i2,astype=<i4)", numcodecs.Delta("<i2", "<i4"), i2),
    ("delta(<i8)", numcodecs.Delta("<i8"), i8),
    ("delta(<f4)", numcodecs.Delta("<f4"), f4),
    ("delta(<f2,astype=<f4)", numcodecs.Delta("<f2", "<f4"), f2),
    ("bitround(<f2,keepbits=4)", numcodecs.BitRound(4), f2),
    ("bitround(<f4,keepbits=7)", numcodecs.BitRound(7), f4),
    ("bitround(<f8,keepbits=20)", numcodecs.BitRound(20), f8),
    ("packbits", numcodecs.PackBits(), flags),
    ("quantize(<f4,digits=1)", numcodecs.Quantize(1, "<f4"), f4),
    ("quantize(<f8,digits=3,astype=<f4)", numcodecs.Quantize(3, "<f8", "<f4"), f8),
    ("fixedscaleoffset(<f8,astype=<i2,scale=10,offset=5)",
     numcodecs.FixedScaleOffset(5.0, 10.0, "<f8", "<i2"), f8),
    ("fixedscaleoffset(<f2,astype=<i2,scale=2)",
     numcodecs.FixedScaleOffset(0.0, 2.0, "<f2", "<i2"), f2),
    ("astype(<i2,astype=<f4)", numcodecs.AsType("<f4", "<i2"), i2),
    ("astype(<f8,astype=<f2)", numcodecs.AsType("<f2", "<f8"), f8),
]
print(f"# numcodecs {numcodecs.__version__}, NumPy {np.__version__}; written by make.py.")
print("# spec, plain bytes, encoded bytes, decoded bytes")
for spec, codec, array in CASES:
    encoded = codec.encode(array)
    decoded = np.asarray(codec.decode(encoded))
    print(spec, *(np.asarray(a).tobytes().hex() for a in (array, encoded, decoded)))
