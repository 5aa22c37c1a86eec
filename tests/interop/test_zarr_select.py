# test_zarr_select.py: random selections of arrays that zarr-python wrote, read by liblade and by
# NumPy; and strings.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import random

import lade_ctypes as lade
import numpy as np
import pytest
import zarr
import zarr_ctypes as ours

lade._declare("lade_zarr_plan_new", ours._status, *[ours._pointer] * 4, ours._out, ours._err)
lade._declare("lade_zarr_plan_run", ours._status, ours._pointer, ours._pointer, ours._err)
lade._declare("lade_zarr_plan_free", None, ours._pointer)
lade._declare("lade_zarr_plan_texts", ours._status, ours._pointer,
              *[ctypes.POINTER(ctypes.c_uint64)] * 2, ours._err)
lade._declare("lade_zarr_plan_fill", ours._status, ours._pointer, lade.Span, lade.Span, ours._err)


def number(rng, size):
    return str(rng.randint(-size - 3, size + 3)) if rng.random() < 0.7 else ""


def axis(rng, size, lists):
    """The text of a random index of an axis, and the same for NumPy."""
    kind = rng.random()
    if kind < 0.15 and size:
        return str(rng.randint(-size, size - 1)), "at"
    if kind < 0.4 and lists and size:
        entries = [rng.randint(-size, size - 1) for _ in range(rng.randint(1, 9))]
        return str(entries), "list"
    step = rng.choice(["", ":", ":-1", ":2", ":-3", ":7"])
    return f"{number(rng, size)}:{number(rng, size)}{step}", "slice"


def of_numpy(data, texts):
    """Each axis by itself, the last one first, so that numbers drop axes that are done."""
    for i in reversed(range(len(texts))):
        data = eval(f"data[{':, ' * i}{texts[i][0]}]")
    return data


@pytest.mark.parametrize("seed", range(40))
def test_random_selections(tmp_path, seed):
    rng = random.Random(seed)
    ndim = rng.randint(1, 4)
    shape = tuple(rng.randint(1, 60 if ndim < 3 else 14) for _ in range(ndim))
    inner = tuple(rng.randint(1, n) for n in shape)
    shards = tuple(n * rng.randint(1, 3) for n in inner) if rng.random() < 0.5 else None
    dtype = rng.choice(["uint8", ">i2", "<f4", "float64", "complex64"])
    zarr_format = 3 if shards or dtype[0] == "<" else rng.choice([2, 3])
    data = (np.random.default_rng(seed).random(shape) * 200).astype(dtype)
    data[: shape[0] // 3] = 0
    array = zarr.create_array(tmp_path / "a", shape=shape, chunks=inner, shards=shards, dtype=dtype,
                              zarr_format=zarr_format, fill_value=0)
    array[...] = data
    little = data.astype(data.dtype.newbyteorder("<"))
    for k in range(25):
        texts = [axis(rng, n, k % 2) for n in shape[: rng.randint(1, ndim)]]
        text = "[" + ", ".join(t for t, _ in texts) + "]"
        if text.startswith("[[") and len(texts) == 1:
            text = f"[{text[1:-1]},]"
        want = of_numpy(little, texts)
        have = ours.read(tmp_path / "a", little.dtype, text)
        assert have.shape == want.shape, text
        assert have.tobytes() == np.ascontiguousarray(want).tobytes(), text


def texts_of(folder):
    """The elements of an array of strings or bytes, in C order."""
    store, node, plan = ours._pointer(), ours._pointer(), ours._pointer()
    count, size = ctypes.c_uint64(), ctypes.c_uint64()
    ours._call("lade_store_directory_open", str(folder).encode(), None, store)
    ours._call("lade_zarr_open", store, b"", None, node)
    ours._call("lade_zarr_plan_new", node, None, None, None, plan)
    ours._call("lade_zarr_plan_run", plan, None)
    ours._call("lade_zarr_plan_texts", plan, count, size)
    offsets, data = np.zeros(count.value + 1, "<i8"), np.zeros(size.value + 1, "u1")
    ours._call("lade_zarr_plan_fill", plan, lade.Span(offsets.ctypes.data, offsets.nbytes),
               lade.Span(data.ctypes.data, size.value))
    lade.lib.lade_zarr_plan_free(plan)
    lade.lib.lade_zarr_unref(node)
    lade.lib.lade_store_unref(store)
    whole = data.tobytes()
    return [whole[a:b] for a, b in zip(offsets, offsets[1:])]


@pytest.mark.parametrize("shards", [None, (4, 8)])
def test_strings(tmp_path, shards):
    words = np.array([f"{'word' * (i % 5)}{i}\u20ac" for i in range(70)], object).reshape(7, 10)
    array = zarr.create_array(tmp_path / "a", shape=(7, 10), chunks=(2, 4), shards=shards,
                              dtype="string", fill_value="none")
    array[:5] = words[:5]
    words[5:] = "none"
    assert texts_of(tmp_path / "a") == [w.encode() for w in words.reshape(-1)]
