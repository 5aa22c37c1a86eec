"""liblade.share: tables of pyarrow, pandas, polars and numpy from process to process.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import liblade
import liblade.share

pa = pytest.importorskip("pyarrow", reason="no wheel of pyarrow")


def command():
    """The lade command of the build, beside the virtual environment's folder."""
    if "LADE_COMMAND" in os.environ:
        return os.environ["LADE_COMMAND"]
    for folder in pathlib.Path(sys.prefix).parents:
        if (folder / "lade").is_file() and (folder / "liblade.so").exists():
            return folder / "lade"
    return shutil.which("lade")


@pytest.fixture
def path(tmp_path):
    lade = command()
    if not lade:
        pytest.skip("there is no lade command that serves")
    socket = str(tmp_path / "s")
    broker = subprocess.Popen([lade, "share", "serve", "--socket", socket])
    for _ in range(500):
        try:
            liblade.share.connect(socket).close()
            break
        except liblade.InputError:
            time.sleep(0.01)
    yield socket
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(10) == 0


def apart(path, script):
    """Runs a script in another process, with 'share' connected; what it prints."""
    start = "import sys, liblade.share\nshare = liblade.share.connect(sys.argv[1])\n"
    done = subprocess.run(
        [sys.executable, "-c", start + script, path], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_reason_that_cuts_a_name(path):
    with liblade.share.connect(path) as share:
        name = "a" + 30 * "é"
        done = share.publish("x", pa.table({name: pa.array(range(50000))}))
        assert done.version == 1 and "shared memory" in done.why


def test_names_that_are_no_utf8(path):
    with liblade.share.connect(path) as share:
        share.publish("x", pa.table({"a": [1]}))
        # A client in C may give any bytes.
        head = struct.pack("<IHHQ", 0, 1, 1, 7)
        record = struct.pack("<4Q5IHHII", *[0] * 9, 2, 0, 4, 0) + b"\xffa" + b"head"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
            raw.connect(path)
            raw.send(struct.pack("<I", 16 + len(record)) + head[4:] + record)
            assert struct.unpack("<H", raw.recv(4096)[4:6]) == (32,)
        assert list(share) == ["x", "\\xffa"]


def table(rows=5000):
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "fare": pa.array([None if i % 7 == 3 else i / 4 for i in range(rows)]),
            "name": pa.array([None if i % 5 == 1 else f"é{i}" for i in range(rows)]),
            "when": pa.array(range(rows), pa.timestamp("us", "UTC")),
            "tags": pa.array([[i, None] if i % 3 else None for i in range(rows)]),
        }
    )


@pytest.mark.parametrize("rows", [5, 5000])
@pytest.mark.parametrize("cut", [slice(None), slice(3, 4), slice(2, 3000)])
def test_a_table_goes_to_another_process_and_back(path, rows, cut):
    with liblade.share.connect(path) as share:
        sent = table(rows)[cut]
        done = share.publish("trips", sent)
        assert done.version > 0 and done.copied > 0
        assert share.get("trips").to_pyarrow() == sent
        # The other process takes a slice, computes, and writes a new version.
        apart(
            path,
            "import pyarrow.compute as pc\n"
            "t = share.get('trips').to_pyarrow()[1:]\n"
            "share.publish('trips', t.append_column('twice', pc.multiply(t['fare'], 2)))",
        )
        assert share.wait("trips", after=done.version, timeout=5) > done.version
        back = share.get("trips").to_pyarrow()
        assert back.drop_columns(["twice"]) == sent[1:]
        assert back["twice"].to_pylist() == [
            None if v is None else 2 * v for v in sent["fare"].to_pylist()[1:]
        ]


def test_what_outlives_its_process(path):
    apart(path, "import numpy as np\nshare.publish('x', np.arange(100000.0))")
    with liblade.share.connect(path) as share:
        data = share.get("x")
        (info,) = share.datasets("x")
        assert list(share) == ["x"] and info == data.info
        assert (info.rows, info.columns, info.bytes) == (100000, 1, 800000)
        values = np.asarray(data.numbers())
        assert (values == np.arange(100000.0)).all() and not values.flags.writeable
        share.remove("x")
        with pytest.raises(liblade.InputError, match="there is no 'x'"):
            share.get("x")
    data.close()
    gc.collect()
    assert values[-1] == 99999.0
    with pytest.raises(ValueError, match="is closed"):
        data.numbers()


def test_memory_that_is_published_without_a_copy(path):
    with liblade.share.connect(path) as share:
        memory = np.asarray(share.empty(400000)).view("<f4")
        memory[:] = np.arange(100000)
        done = share.publish("x", memory, copy="never")
        assert (done.shared, done.copied, done.why) == (400000, 0, "")
        done = share.publish("y", pa.array(memory)[500:90000], copy="never")
        assert done.copied == 0
        compact = share.publish("z", pa.array(memory)[500:90000], compact=True)
        assert (compact.shared, compact.copied) == (0, 4 * 89500)
        assert apart(path, "print(share.get('y').to_pyarrow()[0])") == "500.0"
        assert memory[7] == 7
        before = np.asarray(share.get("x").numbers()).ctypes.data
        assert before == np.asarray(share.get("x").numbers()).ctypes.data
        with pytest.raises(liblade.UnsupportedError, match="the column: buffer 1 is not in shared"):
            share.publish("x", np.arange(100000.0), copy="never")
        odd = pa.py_buffer(np.asarray(share.empty(400000)))[1:399997]
        odd = pa.Array.from_buffers(pa.float32(), 99999, [None, odd])
        with pytest.raises(liblade.UnsupportedError, match="buffer 1 is not aligned to 4 bytes"):
            share.publish("x", odd, copy="never")
        odd = pa.RecordBatch.from_arrays([pa.array([1] * 99999), odd], ["", ""])
        with pytest.raises(liblade.UnsupportedError, match="column 0: buffer 1 is not in shared"):
            share.publish("x", odd, copy="never")


def test_a_table_of_shared_and_copied_columns(path):
    with liblade.share.connect(path) as share:
        memory = np.asarray(share.empty(800000)).view("<i8")
        memory[:] = 5
        mixed = pa.table({"shared": pa.array(memory), "copied": np.arange(100000)})
        done = share.publish("x", mixed)
        assert (done.shared, done.copied) == (800000, 800000)
        assert "'copied': buffer 1" in done.why
        assert share.get("x").to_pyarrow() == mixed


def test_pandas_and_polars(path):
    pd = pytest.importorskip("pandas", reason="no wheel of pandas")
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    with liblade.share.connect(path) as share:
        share.publish("frame", frame)
        assert share.get("frame").to_pandas()["a"].tolist() == [1, 2, 3]
        pl = pytest.importorskip("polars", reason="no wheel of polars")
        frame = pl.DataFrame({"a": [1, None, 3], "b": ["x", None, "a long string of bytes"]})
        share.publish("frame", frame)
        assert share.get("frame").to_polars().equals(frame)


def test_what_makes_room(tmp_path):
    lade = command()
    if not lade:
        pytest.skip("there is no lade command that serves")
    socket = str(tmp_path / "s")
    broker = subprocess.Popen(
        [lade, "share", "serve", "--socket", socket, "-M", "2M", "--spill", str(tmp_path / "f")]
    )
    for _ in range(500):
        try:
            share = liblade.share.connect(socket)
            break
        except liblade.InputError:
            time.sleep(0.01)
    noise = np.random.default_rng(1).random((4, 100000))
    for i in range(4):
        share.publish(f"noise {i}", noise[i])
    share.publish("steps", np.arange(200000))
    held = share.get("steps").numbers()
    places = {info.name: info.place for info in share.datasets()}
    assert places["steps"] == "memory" and "disk" in places.values()
    n = share.statistics()
    assert n["bytes"] <= 2 << 20 and n["stored"] >= 2 and n["disk"] > 0
    for i in range(4):
        if i == 3:  # without what is open
            del held
            gc.collect()
        try:
            assert (np.asarray(share.get(f"noise {i}").numbers()) == noise[i]).all()
        except liblade.InputError:
            assert i < 3
    with pytest.raises(liblade.InputError, match="of 2097152 are taken"):
        share.publish("x", np.zeros(300000), wait=0.1)
    for wait in (-1, -0.001, float("nan")):
        with pytest.raises(ValueError, match="want seconds from 0 on"):
            share.publish("x", np.zeros(3), wait=wait)
    assert share.publish("x", np.zeros(3), wait=float("inf")).version
    share.close()
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(10) == 0
    assert not list((tmp_path / "f").iterdir())


def test_tensors_of_the_command(path, tmp_path):
    lade = command()
    cube = np.arange(2400, dtype="<f4").reshape(100, 4, 6)
    np.save(tmp_path / "cube.npy", cube)

    def run(*words):
        subprocess.run([lade, "share", *words, "--socket", path], check=True)

    run("put", "cube", str(tmp_path / "cube.npy"))
    with liblade.share.connect(path) as share:
        seen = share.get("cube").to_pyarrow()
        assert seen.type == pa.fixed_shape_tensor(pa.float32(), [4, 6])
        assert (seen.chunk(0).to_numpy_ndarray() == cube).all()
        assert (np.asarray(share.get("cube").numbers()) == cube).all()
        with pytest.raises(TypeError, match=r"'cube' is one column of format '\+w:24', no table"):
            share.get("cube").numbers(0)
        # What pyarrow makes, a slice of it in two batches.
        tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(cube)
        share.publish("theirs", pa.chunked_array([tensor[10:40], tensor[40:41]]))
        share.publish("lists", pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)))
        part = share.get("theirs")
        assert (np.asarray(part.numbers()) == cube[10:40]).all()
        assert (np.asarray(part.numbers(batch=1)) == cube[40:41]).all()
        memory = np.asarray(share.empty(cube.nbytes * 10)).view("<f4").reshape(1000, 4, 6)
        memory[:] = np.tile(cube, (10, 1, 1))
        assert share.publish("ours", memory, copy="never").shared == memory.nbytes
        many = np.arange(512, dtype="<i2").reshape((2,) * 9)
        for array in (cube, many, np.array(5.5), np.zeros((0, 3)), np.zeros((2, 0))):
            share.publish("any", array)
            seen = np.asarray(share.get("any").numbers())
            assert seen.dtype == array.dtype and seen.shape == (array.shape or (1,))
            assert (seen == array).all()
        share.publish("table", table(5))
    refused = subprocess.run(
        [lade, "share", "get", "table", str(tmp_path / "t.npy"), "--socket", path],
        capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 1 and "table: it is a table of 5 columns, no" in refused.stderr
    run("get", "ours", str(tmp_path / "ours.npy"))
    assert (np.load(tmp_path / "ours.npy") == memory).all()
    run("get", "theirs", str(tmp_path / "theirs.npy"))
    assert (np.load(tmp_path / "theirs.npy") == cube[10:41]).all()
    run("get", "theirs", str(tmp_path / "theirs.lade"))
    with liblade.open(tmp_path / "theirs.lade") as file:
        assert file.read() == cube[10:41].tobytes()
    run("get", "lists", str(tmp_path / "lists.npy"))
    assert np.load(tmp_path / "lists.npy").tolist() == [[1, 2], [3, 4]]


def test_tickets(path):
    with liblade.share.connect(path) as share:
        share.publish("a#b", pa.array([1, None, 3]))
        ticket = share.get("a#b").ticket
    with pytest.raises(ValueError, match="is no ticket"):
        liblade.share.open_ticket("lade-share:x")
    assert liblade.share.open_ticket(ticket).to_pyarrow().to_pylist() == [1, None, 3]


def test_ctrl_c_ends_a_wait(path):
    with liblade.share.connect(path) as share:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                share.wait("never", timeout=20)
        finally:
            signal.signal(signal.SIGINT, before)


def test_errors(path):
    with pytest.raises(liblade.InputError, match="no broker answers"):
        liblade.share.connect(path + "x")
    with liblade.share.connect(path) as share:
        with pytest.raises(TimeoutError, match="no version above 0 after 0.05 s"):
            share.wait("never", timeout=0.05)
        with pytest.raises(liblade.InputError, match="without '@'"):
            share.publish("a@b", pa.array([1]))
        with pytest.raises(TypeError, match="no array of numbers, on a device .*: 1 dimensions of"):
            share.publish("x", np.zeros(2, "<c8"))
        with pytest.raises(ValueError, match="2 dimensions is published from host memory in C's"):
            share.publish("x", np.zeros((2, 3)).T)
        with pytest.raises(ValueError, match="8 bytes apart, want 4"):
            share.publish("x", np.zeros(8, "<f4")[::2])
        with pytest.raises(ValueError, match="copy is 'maybe'"):
            share.publish("x", pa.array([1]), copy="maybe")
        share.publish("x", table(5))
        with pytest.raises(TypeError, match="'name' has the format 'u'"):
            share.get("x").numbers(2)
        with pytest.raises(ValueError, match="'fare' has nulls"):
            share.get("x").numbers(1)
        rows = pa.StructArray.from_arrays([[1, 2]], ["a"], mask=pa.array([False, True]))
        share.publish("rows", rows)
        with pytest.raises(ValueError, match="rows of the table are null"):
            share.get("rows").numbers(0)
        assert share.get("rows").to_pyarrow().to_pylist() == rows.to_pylist()
        share.publish("rows", rows[:1])
        assert np.asarray(share.get("rows").numbers(0)).tolist() == [1]
        with pytest.raises(IndexError, match="column 9 of 5"):
            share.get("x").numbers(9)
        assert np.asarray(share.get("x").numbers(0)).tolist() == [0, 1, 2, 3, 4]
        for column in ([1, 2], [[1, 2, 3], [4, 5]]):
            share.publish("p", pa.array(column))
            with pytest.raises(TypeError, match="'p' is one column of format .*, no table"):
                share.get("p").numbers(0)
    with pytest.raises(ValueError, match="closed"):
        share.datasets()


def test_a_thousand_rounds_leave_nothing(path):
    def maps():
        return pathlib.Path("/proc/self/maps").read_text().count("lade-share")

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    with liblade.share.connect(path) as share:
        sent = table(5000)
        share.publish("x", sent)
        gc.collect()
        before = (maps(), descriptors())
        for i in range(300):
            share.publish("x", sent)
            data = share.get("x")
            if i % 2:
                data.to_pyarrow()
        del data
        gc.collect()
        assert (maps(), descriptors()) == before
        assert share.statistics()["held"] == 0
        assert share.statistics()["versions"] == 1
