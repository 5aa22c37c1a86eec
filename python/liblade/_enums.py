"""nvCOMP's enums, with its integers.

SPDX-License-Identifier: Apache-2.0
"""

from enum import Enum
from enum import IntEnum as PlainIntEnum


class IntEnum(PlainIntEnum):
    """Prints as BitstreamKind.RAW, not as 1."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__


class ArrayBufferKind(IntEnum):
    """Where an array is."""

    STRIDED_DEVICE = 1
    STRIDED_HOST = 2


class BitstreamKind(IntEnum):
    """What is around the encoded bytes."""

    NVCOMP_NATIVE = 0
    """A .lade frame: chunked, seekable, states its algorithm."""
    RAW = 1
    """The algorithm's bytes alone."""
    WITH_UNCOMPRESSED_SIZE = 2
    """The decoded size (4 bytes for LZ4, else 8), then RAW; as nvCOMP 5 and numcodecs have it."""
    WITH_UNCOMPRESSED_SIZE_16 = 3
    """The same with RAW at byte 16, as nvCOMP 6 has it."""


class ChecksumPolicy(IntEnum):
    """When checksums of NVCOMP_NATIVE are made and verified."""

    NO_COMPUTE_NO_VERIFY = 0
    COMPUTE_AND_NO_VERIFY = 1
    NO_COMPUTE_AND_VERIFY_IF_PRESENT = 2
    COMPUTE_AND_VERIFY_IF_PRESENT = 3
    COMPUTE_AND_VERIFY = 4

    @property
    def computes(self) -> bool:
        """Whether encoding stores checksums."""
        return self.value not in (0, 2)

    @property
    def verify(self) -> int:
        """What decoding verifies: lade.h's enum lade_verify."""
        return (2, 2, 0, 0, 1)[self.value]


class DecompressBackend(IntEnum):
    """What decodes on a device."""

    NVCOMP_DECOMPRESS_BACKEND_DEFAULT = 0
    NVCOMP_DECOMPRESS_BACKEND_HARDWARE = 1
    NVCOMP_DECOMPRESS_BACKEND_CUDA = 2


class BitshuffleMode(IntEnum):
    """How bits are shuffled before the codec."""

    NVCOMP_BITSHUFFLE_NONE = 0
    NVCOMP_BITSHUFFLE_MSB_FIRST = 1
    NVCOMP_BITSHUFFLE_LSB_FIRST = 2


class ExecutionPolicy(IntEnum):
    """What a device's work is arranged for."""

    CONCURRENCY = 0
    LATENCY = 1


class BitcompMode(IntEnum):
    """Bitcomp: lossless, or with a bounded error."""

    BITCOMP_LOSSLESS = 0
    BITCOMP_LOSSY_FP_TO_SIGNED = 1
    BITCOMP_LOSSY_FP_TO_UNSIGNED = 2


class CascadedMode(IntEnum):
    """Cascaded: stages chosen for each internal chunk, or the same speed both ways."""

    ASYMMETRIC = 1
    SYMMETRIC = 2


class CascadedTerminalCodec(IntEnum):
    """Cascaded: the last stage."""

    UNSPECIFIED = 0
    CASCADED_BITPACK = 1


class CascadedFineGrainedEncoding(IntEnum):
    """Cascaded: encodings of elements; they can be joined by |."""

    NONE = 0
    DELTA = 1
    RLE = 2
    FOR = 4


class CascadedCoarseGrainedEncoding(IntEnum):
    """Cascaded: encodings of whole chunks."""

    NONE = 0
