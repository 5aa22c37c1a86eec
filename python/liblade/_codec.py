"""Codec: its constructor, its configs and its properties; keywords are read in _options.py.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _lade
from ._arguments import integer, member, only
from ._enums import (
    BitcompMode,
    BitshuffleMode,
    BitstreamKind,
    CascadedMode,
    ChecksumPolicy,
    DecompressBackend,
    ExecutionPolicy,
)
from ._options import pipeline_text


def _first(sizes: tuple[int, ...]) -> int:
    if not sizes:
        raise ValueError("the config is for 0 arrays, there is no first one")
    return sizes[0]


@dataclass(frozen=True)
class CompressConfig:
    """What compression_config() found out about arrays of these sizes."""

    uncompressed_buffer_sizes: tuple[int, ...]
    max_compressed_buffer_sizes: tuple[int, ...]
    uncomp_chunk_size: int

    @property
    def uncompressed_buffer_size(self) -> int:
        """Bytes of the first array."""
        return _first(self.uncompressed_buffer_sizes)

    @property
    def max_compressed_buffer_size(self) -> int:
        """The most bytes that encoding the first array can give."""
        return _first(self.max_compressed_buffer_sizes)

    @property
    def num_chunks(self) -> int:
        """Chunks of the first array."""
        return -(-self.uncompressed_buffer_size // self.uncomp_chunk_size)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.uncompressed_buffer_sizes


@dataclass(frozen=True)
class DecompressConfig:
    """What decompression_config() found out about encoded arrays."""

    decomp_data_sizes: tuple[int, ...]
    uncomp_chunk_size: int
    """Decoded bytes of a chunk of the first array: its frame's, else the codec's."""

    @property
    def decomp_data_size(self) -> int:
        """Bytes that the first array decodes to."""
        return _first(self.decomp_data_sizes)

    @property
    def num_chunks(self) -> int:
        """Chunks of the first array."""
        return -(-self.decomp_data_size // self.uncomp_chunk_size)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.decomp_data_sizes


@dataclass(frozen=True)
class Candidate:
    """An implementation that could run a stage of a pipeline, and what the router thinks of it."""

    stage: int
    algorithm: str
    implementation: str
    place: str
    priority: int
    cost: float
    """Nanoseconds for the whole call; negative: it refuses."""
    chosen: bool
    reason: str


class Explanation(list[Candidate]):
    """The candidates for each stage; str() is a table."""

    def __str__(self) -> str:
        rows = []
        for c in self:
            cost = f"{c.cost / 1e3:12.1f} us" if c.cost >= 0 else "     refuses   "
            mark = "*" if c.chosen else " "
            rows.append(f"{mark} {c.stage} {c.implementation:24} {c.place:7} {cost}  {c.reason}")
        return "\n".join(rows)


class Codec(_lade.CodecBase):
    """Encodes and decodes arrays on the host and on devices.

    A codec does not change once it is made: any number of threads may use one.

    algorithm: a name in any case ("LZ4", "Snappy", "Deflate", "Gzip", "Zstd", "ANS", "Bitcomp",
        "Cascaded", "zlib", "Blosc"), or a pipeline as text ("shuffle(4)|zstd(9)"); "":
        NVCOMP_NATIVE bytes state it when decoding.
    level: the algorithm's own scale.  filters: stages before it, ["delta(<i4)", "shuffle(4)"].
    uncomp_chunk_size: decoded bytes of a chunk of NVCOMP_NATIVE, 16 to 2 GiB - 1.
    bitstream_kind: what is around the bytes.  checksum_policy: of NVCOMP_NATIVE.
    data_type: the elements' type: of ANS, Bitcomp and Cascaded; a hint to LZ4 and Snappy, and the
        size that bitshuffle_mode works with.
    algorithm_type: 0 (fast) to 5 (small) for Deflate and Gzip, in place of a level; of Bitcomp 0,
        or 1 for sparse data.
    mode: of Bitcomp lossless or lossy, where no value is further from its own than half of delta;
        of Cascaded ASYMMETRIC (small) or SYMMETRIC (fast).
    compression_level (0 to 7), fine_grained_encodings: of Cascaded; or nvCOMP 5's num_rles,
        num_deltas, use_bitpack.  terminal_codecs, coarse_grained_encodings have one value each.
    cuda_stream: orders the work on a device with other work there.  device_id: the device that
        works when where="device".
    threads: that a call uses at most; 0: as many as the process may run.
    strict: LZ4, Snappy and Deflate are taken only as their formats have them (docs/verdicts.md).
    where: "host" or "device" does the work; "auto": whichever is done first.  Of NVCOMP_NATIVE
        "device" leaves to the host what the device has no kernels for, and "auto" encodes on a
        device only from its memory to its memory.
    decompress_backend, use_de_sort, execution_policy, states_per_lane, histogram_reduction_log2,
        max_sub_chunk_count, skip_validate: nvCOMP's; looked at, and without effect here.

    Raises ValueError for an option that cannot be, TypeError for an unknown keyword,
    NotImplementedError for what the library lacks.
    """

    # No __dict__, which could be changed: a subclass has one, for its own attributes.
    __slots__ = (
        "_bitstream_kind",
        "_checksum_policy",
        "_name",
        "_state",
        "_stream",
        "_uncomp_chunk_size",
        "__weakref__",
    )

    def __init__(
        self,
        *,
        algorithm: str = "",
        device_id: int | None = None,
        cuda_stream: Any = None,
        uncomp_chunk_size: int = 65536,
        bitstream_kind: BitstreamKind | int = BitstreamKind.NVCOMP_NATIVE,
        checksum_policy: ChecksumPolicy | int = ChecksumPolicy.NO_COMPUTE_NO_VERIFY,
        decompress_backend: DecompressBackend | int = (
            DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_DEFAULT
        ),
        use_de_sort: bool | None = None,
        data_type: Any = None,
        bitshuffle_mode: BitshuffleMode | int = BitshuffleMode.NVCOMP_BITSHUFFLE_NONE,
        algorithm_type: int | None = None,
        execution_policy: ExecutionPolicy | int = ExecutionPolicy.CONCURRENCY,
        num_rles: int | None = None,
        num_deltas: int | None = None,
        use_bitpack: bool | None = None,
        mode: BitcompMode | CascadedMode | int | None = None,
        delta: float | None = None,
        states_per_lane: int | None = None,
        histogram_reduction_log2: int | None = None,
        max_sub_chunk_count: int | None = None,
        skip_validate: bool | None = None,
        compression_level: int | None = None,
        terminal_codecs: Any = None,
        fine_grained_encodings: Any = None,
        coarse_grained_encodings: Any = None,
        level: int | None = None,
        filters: Sequence[str] | None = None,
        threads: int = 0,
        strict: bool = False,
        where: str = "auto",
    ) -> None:
        text = pipeline_text(
            algorithm,
            level,
            data_type,
            bitshuffle_mode,
            filters,
            {
                "algorithm_type": algorithm_type,
                "num_rles": num_rles,
                "num_deltas": num_deltas,
                "use_bitpack": use_bitpack,
                "mode": mode,
                "delta": delta,
                "states_per_lane": states_per_lane,
                "histogram_reduction_log2": histogram_reduction_log2,
                "max_sub_chunk_count": max_sub_chunk_count,
                "skip_validate": skip_validate,
                "compression_level": compression_level,
                "terminal_codecs": terminal_codecs,
                "fine_grained_encodings": fine_grained_encodings,
                "coarse_grained_encodings": coarse_grained_encodings,
            },
        )
        backend = member("decompress_backend", DecompressBackend, decompress_backend)
        if backend == DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_HARDWARE:
            raise NotImplementedError("decompress_backend: there is no hardware backend")
        if use_de_sort:
            raise NotImplementedError("use_de_sort: there is no hardware backend")
        places = {"auto": 0, "host": 1, "device": 2}
        if not isinstance(where, str) or where not in places:
            raise ValueError(f"where is {where!r}, it can be 'auto', 'host' or 'device'")
        if not 0 <= integer("threads", threads) <= 4096:
            raise ValueError(f"threads is {threads}, it can be from 0 to 4096")
        if device_id is not None and not 0 <= integer("device_id", device_id) < 1 << 31:
            raise ValueError(f"device_id is {device_id}, it can be from 0 to {(1 << 31) - 1}")
        chunk_size = integer("uncomp_chunk_size", uncomp_chunk_size)
        if not 16 <= chunk_size < 1 << 31:
            raise ValueError(f"uncomp_chunk_size is {chunk_size}, it can be from 16 to 2147483647")
        self._bitstream_kind = member("bitstream_kind", BitstreamKind, bitstream_kind)
        self._checksum_policy = member("checksum_policy", ChecksumPolicy, checksum_policy)
        self._uncomp_chunk_size = chunk_size
        self._state = {
            "device_id": device_id,
            "execution_policy": member("execution_policy", ExecutionPolicy, execution_policy),
            "threads": threads,
            "strict": strict,
            "where": where,
            "uncomp_chunk_size": self._uncomp_chunk_size,
            "bitstream_kind": self._bitstream_kind,
            "checksum_policy": self._checksum_policy,
        }
        super().__init__(
            text,
            int(self._bitstream_kind),
            self._uncomp_chunk_size,
            self._checksum_policy.computes,
            self._checksum_policy.verify,
            threads,
            2 if strict else 0,
            places[where],
            device_id or 0,
            cuda_stream,
        )
        self._name = algorithm.strip()
        self._stream = cuda_stream  # an object's stream lives as long as the codec

    # ---- configurations ------------------------------------------------------------------

    def compression_config(
        self,
        uncompressed_size: SupportsIndex | Iterable[SupportsIndex] | None = None,
        *,
        uncompressed_sizes: Iterable[SupportsIndex] | None = None,
    ) -> CompressConfig:
        """A config for an array of this size in bytes, or for arrays of these sizes: none, too."""
        sizes = only(
            "compression_config",
            uncompressed_size=uncompressed_size,
            uncompressed_sizes=uncompressed_sizes,
        )
        if isinstance(uncompressed_sizes, int):
            raise TypeError(
                f"compression_config: uncompressed_sizes is {sizes!r}, not a list of sizes"
            )
        if isinstance(sizes, (str, bytes, bytearray)):
            raise TypeError(f"compression_config: {sizes!r} is no size, nor a list of sizes")
        try:
            many: tuple[int, ...] = (operator.index(sizes),)
        except TypeError:
            if not isinstance(sizes, Iterable):
                raise TypeError(
                    f"compression_config: {sizes!r} is no size, nor a list of sizes"
                ) from None
            many = tuple(integer("compression_config: a size", s) for s in sizes)
        bounds = tuple(self.get_max_comp_buffer_size(s) for s in many)
        return CompressConfig(many, bounds, self._uncomp_chunk_size)

    def decompression_config(
        self,
        src: Any = None,
        *,
        srcs: Any = None,
        compression_config: CompressConfig | None = None,
    ) -> DecompressConfig:
        """A config from encoded arrays, or from the config that they were encoded with."""
        source = only(
            "decompression_config", src=src, srcs=srcs, compression_config=compression_config
        )
        if srcs is not None and not isinstance(srcs, (list, tuple, _lade.BatchArray)):
            raise TypeError(
                "decompression_config: srcs is a list of arrays or a BatchArray; "
                "one array is given as src"
            )
        if isinstance(source, CompressConfig):
            return DecompressConfig(source.uncompressed_buffer_sizes, source.uncomp_chunk_size)
        found = self._decoded_chunks(source)
        many = [found] if isinstance(found, tuple) else found
        chunk_size = many[0][1] if many else self._uncomp_chunk_size
        return DecompressConfig(tuple(size for size, _ in many), chunk_size)

    def get_required_compression_alignment(self) -> int:
        """Bytes to which sources must be aligned: 1, any address will do."""
        return 1

    def get_required_decompression_alignment(self) -> int:
        """Bytes to which encoded arrays must be aligned: 1, any address will do."""
        return 1

    def explain(
        self,
        source: Any,
        count: int | None = None,
        *,
        direction: str = "decode",
        source_place: str | None = None,
        destination_place: str | None = None,
        device_id: int = 0,
    ) -> Explanation:
        """Which implementations could do a call, and which one will.

        source: decoded bytes of an item, or the array (or list) itself.
        count: items of the call.
        """
        kinds = ("host", "pinned", "managed", "device")
        if direction not in ("encode", "decode"):
            raise ValueError(f"direction is {direction!r}, it can be 'encode' or 'decode'")
        place = "host"
        if hasattr(source, "__index__") and not hasattr(source, "__len__"):
            size = integer("source", source)
        else:
            many = isinstance(source, (list, tuple, _lade.BatchArray))
            if many and not len(source):
                raise ValueError("source is an empty list: there is nothing to explain")
            first = _lade.as_array(source[0] if many else source)
            place = first.place
            count = (len(source) if many else 1) if count is None else count
            size = first.buffer_size
            if direction == "decode":
                size = self.get_uncomp_buffer_size(first)
        count = 1 if count is None else integer("count", count)
        for name, value, least, most in (
            ("source", size, 0, (1 << 63) - 1),
            ("count", count, 1, 1 << 24),
            ("device_id", integer("device_id", device_id), 0, (1 << 31) - 1),
        ):
            if not least <= value <= most:
                raise ValueError(f"{name} is {value}, it can be from {least} to {most}")
        src, dst = source_place or place, destination_place or place
        for name in (src, dst):
            if name not in kinds:
                raise ValueError(f"place {name!r}, it can be {', '.join(kinds)}")
        rows = self._explain(
            size,
            count,
            direction == "encode",
            kinds.index(src),
            kinds.index(dst),
            device_id,
        )
        return Explanation(Candidate(*row) for row in rows)

    # ---- what it is --------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        """The name it was made with."""
        return self._name

    @property
    def bitstream_kind(self) -> BitstreamKind:
        """What is around the encoded bytes."""
        return self._bitstream_kind

    @property
    def checksum_policy(self) -> ChecksumPolicy:
        """When checksums are made and verified."""
        return self._checksum_policy

    @property
    def uncomp_chunk_size(self) -> int:
        """Decoded bytes of a chunk of NVCOMP_NATIVE."""
        return self._uncomp_chunk_size

    def __enter__(self) -> Codec:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        pass

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if type(self) is Codec and name[0] != "_":
                raise AttributeError(
                    f"{name}: a Codec does not change once it is made; make another"
                )
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            if type(self) is Codec:
                raise AttributeError(f"{name}: a Codec does not change once it is made")
            super().__delattr__(name)

        def __getattr__(self, name: str) -> Any:
            if name in Codec.__slots__:
                raise RuntimeError("Codec.__init__() was not called, or failed")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _codec_of, (self.pipeline, self._name, self._state)

    def __repr__(self) -> str:
        return f"<liblade.Codec {self.pipeline or 'of any frame'}, {self._bitstream_kind.name}>"


def _codec_of(pipeline: str | None, name: str, state: dict[str, Any]) -> Codec:
    """A codec from a pickle; its stream was the other process's."""
    codec = Codec(algorithm=pipeline or "", **state)
    codec._name = name
    return codec
