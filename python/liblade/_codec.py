"""Codec: nvCOMP's keywords become the text of a pipeline.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _lade
from ._enums import (
    BitcompMode,
    BitshuffleMode,
    BitstreamKind,
    CascadedMode,
    ChecksumPolicy,
    DecompressBackend,
    ExecutionPolicy,
)

# nvCOMP's names (and ours) to the library's.
_ALGORITHMS = {
    "lz4": "lz4",
    "snappy": "snappy",
    "deflate": "deflate",
    "gzip": "gzip",
    "zstd": "zstd",
    "zlib": "zlib",
    "blosc": "blosc",
    "lz4f": "lz4f",
    "copy": "copy",
}
_NOT_YET = {"gdeflate": "GDeflate", "ans": "ANS", "bitcomp": "Bitcomp", "cascaded": "Cascaded"}

# nvCOMP's algorithm_type of the Deflate family to libdeflate's levels: entropy coding alone has no
# level of its own; 2 beats zlib's level 1, 4 its 6, and 5 is the smallest.
_TYPE_LEVELS = {0: 1, 1: 1, 2: 3, 3: 5, 4: 8, 5: 12}

_LEVELLED = {"lz4", "lz4f", "zstd", "deflate", "zlib", "gzip", "blosc"}

_ELEMENTS = {
    "|b1": 1, "|i1": 1, "|u1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8,
    "|f1": 1, "<f2": 2, "<f4": 4, "<f8": 8,
}  # fmt: skip


@dataclass(frozen=True)
class CompressConfig:
    """What compression_config() found out about arrays of these sizes."""

    uncompressed_buffer_sizes: tuple[int, ...]
    max_compressed_buffer_sizes: tuple[int, ...]
    uncomp_chunk_size: int

    @property
    def uncompressed_buffer_size(self) -> int:
        """Bytes of the first array."""
        return self.uncompressed_buffer_sizes[0]

    @property
    def max_compressed_buffer_size(self) -> int:
        """The most bytes that encoding the first array can give."""
        return self.max_compressed_buffer_sizes[0]

    @property
    def num_chunks(self) -> int:
        """Chunks of the first array."""
        return -(-self.uncompressed_buffer_sizes[0] // self.uncomp_chunk_size)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.uncompressed_buffer_sizes


@dataclass(frozen=True)
class DecompressConfig:
    """What decompression_config() found out about encoded arrays."""

    decomp_data_sizes: tuple[int, ...]
    uncomp_chunk_size: int

    @property
    def decomp_data_size(self) -> int:
        """Bytes that the first array decodes to."""
        return self.decomp_data_sizes[0]

    @property
    def num_chunks(self) -> int:
        """Chunks of the first array."""
        return -(-self.decomp_data_sizes[0] // self.uncomp_chunk_size)

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


def _type_text(data_type: Any) -> str:
    """A type string of an nvCOMP type string, a numpy dtype, or a numpy type."""
    text = data_type
    if not isinstance(text, str):
        text = getattr(data_type, "str", None)
        if not isinstance(text, str):
            raise TypeError(f"data_type: {data_type!r} is no data type")
    if text not in _ELEMENTS:
        raise ValueError(f"data_type: {text!r} is not known; it can be {', '.join(_ELEMENTS)}")
    return text


def _bitshuffle(mode: BitshuffleMode, size: int) -> list[str]:
    if mode == BitshuffleMode.NVCOMP_BITSHUFFLE_NONE:
        return []
    order = "msb" if mode == BitshuffleMode.NVCOMP_BITSHUFFLE_MSB_FIRST else "lsb"
    # nvCOMP shuffles sub-chunks of 8 KiB on their own.
    return [f"bitshuffle({size},order={order},block=8192)"]


class Codec(_lade.CodecBase):
    """Encodes and decodes arrays on the host and on devices.

    A codec does not change once it is made: any number of threads may use one.

    algorithm: a name in any case ("LZ4", "Snappy", "Deflate", "Gzip", "Zstd", "zlib", "Blosc"), or
        a pipeline as text ("shuffle(4)|zstd(9)"); "": NVCOMP_NATIVE tells it when decoding.
    level: the algorithm's own scale.  filters: stages before it, ["delta(<i4)", "shuffle(4)"].
    uncomp_chunk_size: decoded bytes of a chunk of NVCOMP_NATIVE, 16 to 1 GiB.
    bitstream_kind: what is around the bytes.  checksum_policy: of NVCOMP_NATIVE.
    data_type: the elements' type, a hint to LZ4 and the size that bitshuffle_mode works with.
    algorithm_type: 0 (fast) to 5 (small) for Deflate and Gzip, in place of a level.
    cuda_stream: orders the work on a device with other work there.  device_id: the device that
        works when where="device".
    threads: that a call uses at most; 0: as many as the process may run.
    strict: LZ4 and Snappy are taken only as their formats' texts have them (docs/verdicts.md).
    where: "host" or "device" does the work; "auto": whichever is done first.
    use_de_sort, execution_policy, decompress_backend: nvCOMP's, without effect.
    The others are options of ANS, Bitcomp and Cascaded, which are not in the library yet.

    Raises ValueError for an option that cannot be, TypeError for an unknown keyword,
    NotImplementedError for what the library lacks.
    """

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
        only = {
            "num_rles": ("Cascaded", num_rles),
            "num_deltas": ("Cascaded", num_deltas),
            "use_bitpack": ("Cascaded", use_bitpack),
            "mode": ("Bitcomp or Cascaded", mode),
            "delta": ("Bitcomp", delta),
            "states_per_lane": ("ANS", states_per_lane),
            "histogram_reduction_log2": ("ANS", histogram_reduction_log2),
            "max_sub_chunk_count": ("ANS", max_sub_chunk_count),
            "skip_validate": ("ANS", skip_validate),
            "compression_level": ("Cascaded", compression_level),
            "terminal_codecs": ("Cascaded", terminal_codecs),
            "fine_grained_encodings": ("Cascaded", fine_grained_encodings),
            "coarse_grained_encodings": ("Cascaded", coarse_grained_encodings),
        }
        if not isinstance(algorithm, str):
            raise TypeError(f"algorithm: {algorithm!r} is no str")
        if algorithm.strip().lower() in _NOT_YET:
            name = _NOT_YET[algorithm.strip().lower()]
            raise NotImplementedError(f"liblade {_lade.__version__} has no {name} yet")
        for keyword, (owner, value) in only.items():
            if value is not None:
                raise ValueError(f"{keyword} is an option of {owner}, not of {algorithm or 'this'}")
        if DecompressBackend(decompress_backend) == (
            DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_HARDWARE
        ):
            raise NotImplementedError("decompress_backend: there is no hardware backend")
        if use_de_sort:
            raise NotImplementedError("use_de_sort: there is no hardware backend")
        places = {"auto": 0, "host": 1, "device": 2}
        if where not in places:
            raise ValueError(f"where is {where!r}, it can be 'auto', 'host' or 'device'")
        if not 0 <= threads <= 4096:
            raise ValueError(f"threads is {threads}, it can be from 0 to 4096")
        self._bitstream_kind = BitstreamKind(bitstream_kind)
        self._checksum_policy = ChecksumPolicy(checksum_policy)
        self._uncomp_chunk_size = int(uncomp_chunk_size)
        text = self._pipeline_text(
            algorithm,
            level,
            algorithm_type,
            None if data_type is None else _type_text(data_type),
            BitshuffleMode(bitshuffle_mode),
            filters,
        )
        self._state = {
            "device_id": device_id,
            "execution_policy": ExecutionPolicy(execution_policy),
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
            int(self._checksum_policy),
            threads,
            2 if strict else 0,
            places[where],
            device_id or 0,
            cuda_stream,
        )
        self._name = algorithm.strip()
        self._stream = cuda_stream  # an object's stream lives as long as the codec

    @staticmethod
    def _pipeline_text(
        algorithm: str,
        level: int | None,
        algorithm_type: int | None,
        data_type: str | None,
        bitshuffle_mode: BitshuffleMode,
        filters: Sequence[str] | None,
    ) -> str | None:
        """The pipeline: filters, the bit shuffle, the codec."""
        if isinstance(filters, str):
            raise TypeError("filters: a list of texts is wanted, this is one text")
        stages = list(filters or ())
        size = _ELEMENTS[data_type] if data_type else 1
        stages += _bitshuffle(bitshuffle_mode, size)
        name = algorithm.strip()
        if not name:
            if stages or level is not None or algorithm_type is not None:
                raise ValueError("filters, level and algorithm_type want an algorithm")
            return None
        known = _ALGORITHMS.get(name.lower())
        if known is None and ("|" in name or "(" in name):
            # A whole pipeline as text.
            if level is not None or algorithm_type is not None:
                raise ValueError(f"level and algorithm_type stand in the pipeline {name!r} itself")
            return "|".join([*stages, name])
        if known is None:
            if level is None and algorithm_type is None:
                # One stage of the library; it says so if there is none of the name.
                return "|".join([*stages, name])
            raise ValueError(f"level: {name!r} has none")
        options = []
        if algorithm_type is not None:
            if known not in ("deflate", "gzip"):
                raise ValueError(f"algorithm_type is an option of Deflate and Gzip, not of {name}")
            if algorithm_type not in _TYPE_LEVELS:
                raise ValueError(f"algorithm_type is {algorithm_type}, it can be from 0 to 5")
            if level is not None:
                raise ValueError("algorithm_type and level cannot both be given")
            level = _TYPE_LEVELS[algorithm_type]
        if level is not None:
            if known not in _LEVELLED:
                raise ValueError(f"level: {name} has none")
            options.append(f"level={int(level)}")
        if known in ("lz4", "snappy") and size > 1:
            options.append(f"elem={size}")
        stages.append(f"{known}({','.join(options)})" if options else known)
        return "|".join(stages)

    # ---- configurations ------------------------------------------------------------------

    def compression_config(self, sizes: int | Sequence[int]) -> CompressConfig:
        """A config for arrays of these sizes in bytes."""
        many = (sizes,) if isinstance(sizes, int) else tuple(int(s) for s in sizes)
        if not many:
            raise ValueError("compression_config: no sizes are given")
        bounds = tuple(self.get_max_comp_buffer_size(s) for s in many)
        return CompressConfig(many, bounds, self._uncomp_chunk_size)

    def decompression_config(self, source: Any) -> DecompressConfig:
        """A config from encoded arrays, or from the config that they were encoded with."""
        if isinstance(source, CompressConfig):
            return DecompressConfig(source.uncompressed_buffer_sizes, self._uncomp_chunk_size)
        sizes = self.get_uncomp_buffer_size(source)
        many = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        return DecompressConfig(many, self._uncomp_chunk_size)

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
        if isinstance(source, int):
            size = source
        else:
            many = isinstance(source, (list, tuple, _lade.BatchArray))
            first = _lade.as_array(source[0] if many else source)
            place = first.place
            count = (len(source) if many else 1) if count is None else count
            size = first.buffer_size
            if direction == "decode":
                size = self.get_uncomp_buffer_size(first)
        src, dst = source_place or place, destination_place or place
        for name in (src, dst):
            if name not in kinds:
                raise ValueError(f"place {name!r}, it can be {', '.join(kinds)}")
        rows = self._explain(
            size,
            count or 1,
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
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return _codec_of, (self.pipeline, self._name, self._state)

    def __repr__(self) -> str:
        return f"<liblade.Codec {self.pipeline or 'of any frame'}, {self._bitstream_kind.name}>"


def _codec_of(pipeline: str | None, name: str, state: dict[str, Any]) -> Codec:
    """A codec from a pickle; its stream was the other process's."""
    codec = Codec(algorithm=pipeline or "", **state)
    codec._name = name
    return codec
