"""liblade: decodes and encodes compressed arrays in batches, into the caller's memory.

The names and keywords are those of nvCOMP's Python package; arrays on the host and on GPUs are
the same here.

SPDX-License-Identifier: Apache-2.0
"""

from typing import Any

from ._codec import Candidate, Codec, CompressConfig, DecompressConfig, Explanation
from ._dtype import DType
from ._enums import (
    ArrayBufferKind,
    BitcompMode,
    BitshuffleMode,
    BitstreamKind,
    CascadedCoarseGrainedEncoding,
    CascadedFineGrainedEncoding,
    CascadedMode,
    CascadedTerminalCodec,
    ChecksumPolicy,
    DecompressBackend,
    ExecutionPolicy,
)
from ._errors import (
    ChecksumError,
    CorruptError,
    DeviceError,
    Error,
    FileError,
    InputError,
    OutOfMemoryError,
    UnsupportedError,
)
from ._file import FileInfo, FileReader, FileWriter, open
from ._lade import Array, BatchArray, __version__, as_array, as_arrays, from_dlpack
from ._memory import (
    CudaStream,
    ExternalMemory,
    set_device_allocator,
    set_host_allocator,
    set_pinned_allocator,
)
from ._tools import (
    Algorithm,
    Suggestion,
    Suggestions,
    algorithms,
    checksum,
    checksums,
    suggest,
    versions,
)

# Members stand at the module's level too, as in nvCOMP; those of BitstreamKind and ExecutionPolicy
# do not, and NONE is the one of coarse-grained encodings.
STRIDED_DEVICE = ArrayBufferKind.STRIDED_DEVICE
STRIDED_HOST = ArrayBufferKind.STRIDED_HOST
NO_COMPUTE_NO_VERIFY = ChecksumPolicy.NO_COMPUTE_NO_VERIFY
COMPUTE_AND_NO_VERIFY = ChecksumPolicy.COMPUTE_AND_NO_VERIFY
NO_COMPUTE_AND_VERIFY_IF_PRESENT = ChecksumPolicy.NO_COMPUTE_AND_VERIFY_IF_PRESENT
COMPUTE_AND_VERIFY_IF_PRESENT = ChecksumPolicy.COMPUTE_AND_VERIFY_IF_PRESENT
COMPUTE_AND_VERIFY = ChecksumPolicy.COMPUTE_AND_VERIFY
NVCOMP_DECOMPRESS_BACKEND_DEFAULT = DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_DEFAULT
NVCOMP_DECOMPRESS_BACKEND_HARDWARE = DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_HARDWARE
NVCOMP_DECOMPRESS_BACKEND_CUDA = DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_CUDA
NVCOMP_BITSHUFFLE_NONE = BitshuffleMode.NVCOMP_BITSHUFFLE_NONE
NVCOMP_BITSHUFFLE_MSB_FIRST = BitshuffleMode.NVCOMP_BITSHUFFLE_MSB_FIRST
NVCOMP_BITSHUFFLE_LSB_FIRST = BitshuffleMode.NVCOMP_BITSHUFFLE_LSB_FIRST
BITCOMP_LOSSLESS = BitcompMode.BITCOMP_LOSSLESS
BITCOMP_LOSSY_FP_TO_SIGNED = BitcompMode.BITCOMP_LOSSY_FP_TO_SIGNED
BITCOMP_LOSSY_FP_TO_UNSIGNED = BitcompMode.BITCOMP_LOSSY_FP_TO_UNSIGNED
ASYMMETRIC = CascadedMode.ASYMMETRIC
SYMMETRIC = CascadedMode.SYMMETRIC
UNSPECIFIED = CascadedTerminalCodec.UNSPECIFIED
CASCADED_BITPACK = CascadedTerminalCodec.CASCADED_BITPACK
DELTA = CascadedFineGrainedEncoding.DELTA
RLE = CascadedFineGrainedEncoding.RLE
FOR = CascadedFineGrainedEncoding.FOR
NONE = CascadedCoarseGrainedEncoding.NONE

__cuda_version__: int | None


def __getattr__(name: str) -> Any:
    # The driver is opened when somebody asks, not at import: forked children may use it then.
    if name == "__cuda_version__":
        from ._lade import _cuda_version

        return _cuda_version()
    raise AttributeError(f"module 'liblade' has no attribute {name!r}")


__all__ = [
    "Algorithm",
    "Array",
    "ArrayBufferKind",
    "BatchArray",
    "BitcompMode",
    "BitshuffleMode",
    "BitstreamKind",
    "Candidate",
    "CascadedCoarseGrainedEncoding",
    "CascadedFineGrainedEncoding",
    "CascadedMode",
    "CascadedTerminalCodec",
    "ChecksumError",
    "ChecksumPolicy",
    "Codec",
    "CompressConfig",
    "CorruptError",
    "CudaStream",
    "DType",
    "DecompressBackend",
    "DecompressConfig",
    "DeviceError",
    "Error",
    "ExecutionPolicy",
    "Explanation",
    "ExternalMemory",
    "FileError",
    "FileInfo",
    "FileReader",
    "FileWriter",
    "InputError",
    "OutOfMemoryError",
    "Suggestion",
    "Suggestions",
    "UnsupportedError",
    "__cuda_version__",
    "__version__",
    "algorithms",
    "as_array",
    "as_arrays",
    "checksum",
    "checksums",
    "from_dlpack",
    "open",
    "set_device_allocator",
    "set_host_allocator",
    "set_pinned_allocator",
    "suggest",
    "versions",
]
