# test_rntuple_write.py: RNTuples that liblade writes are read by liblade, uproot and JSROOT.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import rntuple_ctypes as lade

uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
ak = pytest.importorskip("awkward", reason="no wheel of awkward")


def test_flat(tmp_path):
    path = tmp_path / "t.root"
    n = 10000
    x = np.arange(n, dtype="<i4") // 3
    y = np.linspace(0, 1, n).astype("<f4")
    b = np.arange(n) % 3 == 0
    with lade.Writer(path) as w:
        w.add(("x", "std::int32_t"), ("y", "float"), ("b", "bool"))
        w.fill(n, {"x": x, "y": y, "b": b})
        w.fill(n, {"x": x + 1, "y": y, "b": ~b})
        assert not path.exists()
        w.commit()
    with lade.Tuple(path) as t:
        assert t.entries == 2 * n
        assert np.array_equal(t.read("x"), np.concatenate([x, x + 1]))
        assert np.array_equal(t.read("y"), np.concatenate([y, y]))
        assert np.array_equal(t.read("b"), np.concatenate([b, ~b]))
    with uproot.open(path) as f:
        a = f["t"].arrays()
        assert np.array_equal(a["x"], np.concatenate([x, x + 1]))
        assert np.array_equal(a["y"], np.concatenate([y, y]))
        assert np.array_equal(a["b"], np.concatenate([b, ~b]))
