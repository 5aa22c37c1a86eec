# The types of the C extension; docstrings stand in the C sources, too.
# SPDX-License-Identifier: Apache-2.0
from collections.abc import Buffer, Callable, Iterable, Iterator
from typing import Any, Literal, Protocol, Self, SupportsIndex, final, overload, type_check_only

from typing_extensions import disjoint_base

from ._codec import CompressConfig, DecompressConfig
from ._dtype import DType
from ._enums import ArrayBufferKind
from ._errors import Error

__version__: str

@type_check_only
class _HostArray(Protocol):
    @property
    def __array_interface__(self) -> Any: ...

@type_check_only
class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

@type_check_only
class _DLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...

type _Memory = Buffer | _HostArray | _CudaArray | _DLPack

@final
class Array:
    """Typed memory on the host or on a device, shared with 'src_object'."""

    def __new__(cls, src_object: _Memory, cuda_stream: Any = 0) -> Self: ...
    @property
    def buffer_kind(self) -> ArrayBufferKind:
        """ArrayBufferKind: on the host or on a device."""
    @property
    def buffer_size(self) -> int:
        """Bytes of all elements."""
    @property
    def capacity(self) -> int:
        """Bytes of the memory behind it."""
    @property
    def item_size(self) -> int:
        """Bytes of an element."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def precision(self) -> int:
        """Significant bits of an element; 0: all of them."""
    @property
    def ptr(self) -> int:
        """Address of the first element."""
    @property
    def readonly(self) -> bool:
        """True if the memory must not be written."""
    @property
    def device_id(self) -> int:
        """Number of the device; -1 on the host."""
    @property
    def place(self) -> str:
        """'host', 'pinned', 'managed' or 'device'."""
    @property
    def dtype(self) -> DType:
        """DType: the element type; a str, '<f4', that prints as float32."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements in each dimension."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Version 3; AttributeError for memory on a device."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3; AttributeError for memory on the host."""
    def cpu(self) -> Array:
        """The array on the host: itself, or a copy."""
    def cuda(
        self, synchronize: bool = True, cuda_stream: Any = 0, device_id: int | None = None
    ) -> Array:
        """The array on a device: itself, or a copy; None: on any.  DeviceError without a GPU."""
    def synchronize(self) -> None:
        """Waits for the work that writes the array; raises what it failed with, each time."""
    def tobytes(self) -> bytes:
        """A copy of the elements' bytes, in C order."""
    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: Any, /) -> Array: ...
    def to_dlpack(self, cuda_stream: Any = None) -> Any:
        """A DLPack capsule of the old kind."""
    def __dlpack__(
        self,
        stream: Any = None,
        *,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule; BufferError where that is not possible."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's device type and number."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __getitem__(self, key: Any, /) -> Array:
        """A part by integers, slices and ...; nothing is copied.  IndexError outside."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class BatchArray:
    """Many arrays in one object, as encode(), decode() and as_arrays() give them."""

    @property
    def buffer_sizes(self) -> list[int]:
        """Bytes of each array."""
    def synchronize(self) -> None:
        """Waits for the work that writes the arrays; raises the first failure, each time."""
    def cpu(self) -> BatchArray:
        """The arrays on the host: itself, or copies."""
    def cuda(
        self, synchronize: bool = True, cuda_stream: Any = 0, device_id: int | None = None
    ) -> BatchArray:
        """The arrays on a device: itself, or copies; None: any.  DeviceError without a GPU."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Array: ...
    @overload
    def __getitem__(self, key: slice, /) -> BatchArray: ...
    def __setitem__(self, key: SupportsIndex, value: _Memory, /) -> None:
        """Puts another array in the place of one, as in a list."""

type _Many = list[Any] | tuple[Any, ...] | BatchArray
type _Range = tuple[SupportsIndex, SupportsIndex | None]

@disjoint_base
class CodecBase:
    """What liblade.Codec is made from; its constructor takes a pipeline's text."""

    def __init__(
        self,
        pipeline: str | None,
        kind: int = 0,
        chunk_size: int = 65536,
        checksums: bool = True,
        verify: int = 0,
        threads: int = 0,
        flags: int = 0,
        where: int = 0,
        device_id: int = 0,
        cuda_stream: Any = None,
    ) -> None: ...
    @property
    def pipeline(self) -> str | None:
        """The canonical text of the pipeline; None without."""
    @property
    def threads(self) -> int:
        """Threads that a call uses at most."""
    @property
    def lossy(self) -> bool:
        """True if decoding may give other values than were encoded."""
    @overload
    def encode(
        self,
        array: _Many,
        out: _Many | _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        errors: Literal["raise"] | None = None,
        srcs: None = None,
    ) -> BatchArray:
        """Encodes one array, a list of them, or a BatchArray; see help(Codec.encode)."""
    @overload
    def encode(
        self,
        array: _Many,
        out: _Many | _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        errors: Literal["return"],
        srcs: None = None,
    ) -> list[Array | Error]: ...
    @overload
    def encode(
        self,
        array: None = None,
        out: _Many | _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        srcs: _Many,
        errors: Literal["raise"] | None = None,
    ) -> BatchArray: ...
    @overload
    def encode(
        self,
        array: None = None,
        out: _Many | _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        srcs: _Many,
        errors: Literal["return"],
    ) -> list[Array | Error]: ...
    @overload
    def encode(
        self,
        array: _Memory,
        out: _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        errors: Literal["raise"] | None = None,
        srcs: None = None,
    ) -> Array: ...
    @overload
    def encode(
        self,
        array: _Memory,
        out: _Memory | None = None,
        compression_config: CompressConfig | None = None,
        *,
        errors: Literal["return"],
        srcs: None = None,
    ) -> Array | Error: ...
    @overload
    def decode(
        self,
        src: _Many,
        data_type: Any = "",
        out: _Many | _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        errors: Literal["raise"] | None = None,
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
        srcs: None = None,
    ) -> BatchArray:
        """Decodes one array, a list of them, or a BatchArray; see help(Codec.decode)."""
    @overload
    def decode(
        self,
        src: _Many,
        data_type: Any = "",
        out: _Many | _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        errors: Literal["return"],
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
        srcs: None = None,
    ) -> list[Array | Error]: ...
    @overload
    def decode(
        self,
        src: None = None,
        data_type: Any = "",
        out: _Many | _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        srcs: _Many,
        errors: Literal["raise"] | None = None,
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
    ) -> BatchArray: ...
    @overload
    def decode(
        self,
        src: None = None,
        data_type: Any = "",
        out: _Many | _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        srcs: _Many,
        errors: Literal["return"],
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
    ) -> list[Array | Error]: ...
    @overload
    def decode(
        self,
        src: _Memory,
        data_type: Any = "",
        out: _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        errors: Literal["raise"] | None = None,
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
        srcs: None = None,
    ) -> Array: ...
    @overload
    def decode(
        self,
        src: _Memory,
        data_type: Any = "",
        out: _Memory | None = None,
        decompression_config: DecompressConfig | None = None,
        *,
        errors: Literal["return"],
        byte_range: _Range | None = None,
        element_range: _Range | None = None,
        srcs: None = None,
    ) -> Array | Error: ...
    @overload
    def encode_into(self, src: _Many, out: _Many | _Memory) -> list[int]:
        """Encodes into memory that is there, and gives the count of bytes."""
    @overload
    def encode_into(self, src: _Memory, out: _Memory) -> int: ...
    @overload
    def decode_into(
        self, src: _Many, out: _Many | _Memory, *, byte_range: _Range | None = None
    ) -> list[int]:
        """Decodes into memory that is there, and gives the count of bytes."""
    @overload
    def decode_into(
        self, src: _Memory, out: _Memory, *, byte_range: _Range | None = None
    ) -> int: ...
    @overload
    def get_max_comp_buffer_size(self, source: _Many) -> list[int]:
        """The most bytes that encoding an array, or a number of bytes, can give; ValueError."""
    @overload
    def get_max_comp_buffer_size(self, source: SupportsIndex | _Memory) -> int: ...
    @overload
    def get_uncomp_buffer_size(self, source: _Many) -> list[int]:
        """The bytes that an encoded array decodes to; a list of them for a list."""
    @overload
    def get_uncomp_buffer_size(self, source: _Memory) -> int: ...
    def _decoded_chunks(self, source: Any, /) -> Any: ...
    def _explain(
        self,
        size: int,
        count: int,
        encode: bool,
        source_place: int,
        destination_place: int,
        device: int,
        /,
    ) -> list[tuple[int, str, str, str, int, float, bool, str]]: ...

@final
class Reader:
    """The reader of a file; liblade.open() makes one."""

    def __new__(
        cls,
        fd: int,
        object: Any,
        name: str,
        format: str,
        threads: int,
        checksum: bool,
        strict: bool,
        max_window: int,
        /,
    ) -> Self: ...
    def readinto(self, buffer: Any, /) -> int: ...
    def readall(self) -> bytes | None: ...
    def seek(self, offset: int, /) -> int: ...
    def tell(self) -> int: ...
    def size(self) -> int | None: ...
    def seekable(self) -> bool: ...
    def info(
        self,
    ) -> tuple[
        str,
        int | None,
        str | None,
        int | None,
        str | None,
        tuple[int, ...] | None,
        bool,
        str | None,
    ]: ...
    def close(self) -> None: ...

@final
class Writer:
    """The writer of a file; liblade.open() makes one."""

    def __new__(
        cls,
        fd: int,
        object: Any,
        name: str,
        format: str,
        threads: int,
        checksum: bool,
        level: int,
        spec: str,
        chunk_size: int,
        dtype: str | None,
        shape: tuple[int, ...] | None,
        fortran_order: bool,
        /,
    ) -> Self: ...
    def write(self, data: Any, /) -> int: ...
    def close(self, finish: bool, /) -> None: ...

def as_array(source: _Memory, cuda_stream: Any = 0) -> Array:
    """The memory of any object as an Array; nothing is copied."""

@overload
def as_arrays(sources: Iterable[Any], cuda_stream: Any = 0) -> BatchArray: ...
@overload
def as_arrays(sources: Any, offsets: Any, sizes: Any, cuda_stream: Any = 0) -> BatchArray: ...
@overload
def as_arrays(
    *, buffer: Any, offsets: Any, sizes: Any, cuda_stream: Any = 0
) -> BatchArray: ...
def from_dlpack(source: Any, cuda_stream: Any = 0, *, copy: bool | None = None) -> Array:
    """An Array from a DLPack capsule or an object that gives one."""

def _set_allocator(which: int, function: Callable[..., Any] | None, /) -> None: ...
def _rebuild(data: bytes, dtype: str, shape: tuple[int, ...], /) -> Array: ...
def _empty(size: int, kind: int = 0, device: int = 0, stream: Any = 0, /) -> Array: ...
def _memory_stats() -> tuple[int, int, int]: ...
def _device_count() -> int: ...
def _cuda_version() -> int | None: ...
def _stream_new(device: int, /) -> tuple[int, object]: ...
def _stream_wait(device: int, stream: Any, /) -> None: ...
def _stream_handle(stream: Any, /) -> int: ...
def _linked() -> dict[str, str]: ...
def _dtype_text(object: Any, /) -> str: ...
def _algorithms() -> list[tuple[str, str, str, tuple[str, ...]]]: ...
def _lookup3(source: Any, init: int, /) -> int: ...
def _checksums(name: str, sources: Iterable[Any], /) -> list[int]: ...
def _suggest(
    source: Any,
    dtype: str | None,
    chunk_size: int,
    sample_size: int,
    threads: int,
    seconds: float,
    bandwidth: float,
    /,
) -> tuple[int, str | None, bool, list[tuple[str, float, float, float, int]]]: ...

type _Shape = tuple[int, ...]
type _Options = dict[str, Any] | None

@final
class ZarrStore:
    """A store of the library."""

    @classmethod
    def directory(cls, path: str, flags: int, /) -> ZarrStore: ...
    @classmethod
    def memory(cls, kind: int = 0, device: int = 0, /) -> ZarrStore: ...
    @classmethod
    def zip(cls, path: str, level: int = -1, /) -> ZarrStore: ...
    @classmethod
    def http(
        cls, url: str, headers: tuple[str, ...], parallel: int, ca_file: str | None, /
    ) -> ZarrStore: ...
    @classmethod
    def own(
        cls,
        get: Callable[[str], Any] | None,
        fetch: Callable[[list[tuple[str, int, int, int]]], list[Any]] | None,
        put: Callable[[str, bytes | None, bool], bool] | None,
        list: Callable[[str, bool], list[str]] | None,
        flags: int,
        parallel: int,
        name: str,
        /,
    ) -> ZarrStore: ...
    def read(self, key: str, /) -> bytes | None: ...
    def size(self, key: str, /) -> int | None: ...
    def write(self, key: str, data: Any, if_absent: bool = False, /) -> bool: ...
    @overload
    def list(self, prefix: str, level: bool = False, /) -> list[str]: ...
    @overload
    def list(
        self, prefix: str, level: bool, sizes: Literal[True], /
    ) -> list[tuple[str, int | None]]: ...
    def finish(self) -> None: ...

@final
class ZarrPlan:
    """A read that is ready to run."""

    @property
    def shape(self) -> _Shape: ...
    def info(self) -> dict[str, Any]: ...
    def run(self) -> tuple[Any, dict[str, int]]: ...

@final
class ZarrNode:
    """An open array or group."""

    @classmethod
    def open(
        cls,
        store: ZarrStore,
        path: str,
        kind: int = 0,
        format: int = 0,
        chunk_store: ZarrStore | None = None,
        consolidated: bool = True,
        find: Callable[[str, str, str, int], Any] | None = None,
        implementations: tuple[tuple[str, int, Any], ...] = (),
        /,
    ) -> ZarrNode: ...
    @classmethod
    def create(
        cls,
        store: ZarrStore,
        path: str,
        kind: int,
        format: int,
        attributes: str | None,
        shape: _Shape | None,
        chunks: _Shape | None,
        edges: tuple[_Shape | None, ...] | None,
        type: str | None,
        fill: str | None,
        codecs: str | None,
        spec: str | None,
        inner: _Shape | None,
        index_first: bool,
        index_codecs: str | None,
        names: tuple[str | None, ...] | None,
        fortran: bool,
        v2_keys: bool,
        separator: int,
        replace: bool,
        find: Callable[[str, str, str, int], Any] | None = None,
        implementations: tuple[tuple[str, int, Any], ...] = (),
        /,
    ) -> ZarrNode: ...
    @classmethod
    def delete(cls, store: ZarrStore, path: str, /) -> None: ...
    @classmethod
    def empty(cls, shape: _Shape, dtype: str, kind: int, device: int, stream: Any, /) -> Array: ...
    def member(self, path: str, /) -> ZarrNode: ...
    def members(self) -> list[str] | None: ...
    def describe(self) -> dict[str, Any]: ...
    def key(self, coords: _Shape, /) -> str: ...
    def set_attributes(self, text: str, /) -> ZarrNode: ...
    def resize(self, shape: _Shape, /) -> ZarrNode: ...
    def consolidate(self) -> ZarrNode: ...
    def result(self, key: Any, mode: int, field: str | None, /) -> _Shape: ...
    def read(
        self, key: Any, mode: int, field: str | None, out: Any, makes: bool, options: _Options, /
    ) -> Any: ...
    def plan(
        self,
        key: Any,
        mode: int,
        field: str | None,
        out: Any,
        makes: bool | None,
        options: _Options,
        /,
    ) -> ZarrPlan: ...
    @overload
    def write(
        self, key: Any, mode: int, field: str | None, source: Any, none: None, options: _Options, /
    ) -> None: ...
    @overload
    def write(
        self,
        key: Any,
        mode: int,
        field: str | None,
        source: Any,
        none: None,
        options: _Options,
        report: bool,
        /,
    ) -> dict[str, int]: ...
    def append(
        self, axis: int, source: Any, shape: _Shape, options: _Options, /
    ) -> tuple[ZarrNode, int]: ...
@final
class NTuple:
    """An open RNTuple; liblade.rntuple.open() makes one."""

    def __new__(
        cls, origin: int, object: Any, headers: tuple[str, ...], name: str | None,
        metadata_max: int, /,
    ) -> Self: ...
    @classmethod
    def names(cls, origin: int, object: Any, headers: tuple[str, ...], /) -> list[str]: ...
    def about(self) -> tuple[Any, ...]: ...
    def fields(self) -> list[tuple[Any, ...]]: ...
    def columns(self) -> list[tuple[Any, ...]]: ...
    def field(self, path: str, /) -> int: ...
    def clusters(self) -> list[tuple[int, int]]: ...
    def cluster_elements(self, column: int, /) -> list[tuple[int, int]]: ...
    def pages(self, column: int, cluster: int, /) -> list[tuple[Any, ...]]: ...
    def elements(self, column: int, first: int, count: int, /) -> tuple[int, int]: ...
    def read(
        self,
        targets: list[Any],
        threads: int,
        flags: int,
        stream: Any,
        memory: int,
        where: int,
        device: int,
        explain: bool,
        /,
    ) -> tuple[Any, ...]: ...

@final
class NTupleWriter:
    """The writer of an RNTuple; liblade.rntuple.create() makes one."""

    def __new__(
        cls,
        path: bytes,
        name: str | None,
        description: str,
        mode: int,
        flags: int,
        codec: str | None,
        page_size: int,
        cluster_size: int,
        memory: int,
        threads: int,
        /,
    ) -> Self: ...
    @classmethod
    def repair(cls, path: bytes, name: str | None, dry: bool, /) -> bool: ...
    def add(self, fields: list[tuple[Any, ...]], /) -> None: ...
    def schema(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]: ...
    def fill(self, entry_count: int, columns: list[tuple[Any, ...]], /) -> tuple[int, ...]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...

@final
class ShareConnection:
    """A connection to a broker; liblade.share.connect() makes one."""

    def __new__(cls, path: str | None, timeout_ms: int, /) -> Self: ...
    def publish(
        self, name: str, schema: Any, arrays: tuple[Any, ...], copy: int, wait_ms: int, /
    ) -> tuple[int, int, int, str, int, int]: ...
    def publish_tensor(
        self, name: str, array: Array, copy: int, wait_ms: int, /
    ) -> tuple[int, int, int, str, int, int]: ...
    @staticmethod
    def read_stream(capsule: Any, /) -> tuple[Any, tuple[Any, ...]]: ...
    def alloc(self, size: int, device: int, /) -> Array: ...
    def list(self, prefix: str | None, /) -> list[tuple[Any, ...]]: ...
    def remove(self, name: str, version: int, /) -> None: ...
    def wait(self, name: str, after: int, timeout_ms: int, /) -> int | None: ...
    def statistics(self) -> dict[str, int]: ...

@final
class ShareVersion:
    """An opened version; liblade.share.Connection.get() makes one."""

    def __new__(
        cls, connection: ShareConnection, name: str, version: int, check: int, writable: bool,
        host: bool, /,
    ) -> Self: ...
    def info(self) -> tuple[Any, ...]: ...
    def schema(self) -> Any: ...
    def array(self, index: int, /) -> Any: ...
    def device_array(self, index: int, /) -> Any: ...
    def stream(self) -> Any: ...
    def numbers(self, batch: int, child: int, /) -> Array: ...

@final
class ArrowData:
    """Columns for Arrow; pyarrow.record_batch() and others take it."""

    def __new__(cls, tree: tuple[Any, ...], device: int, /) -> Self: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> Any:
        """A capsule of an ArrowSchema."""
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Capsules of an ArrowSchema and an ArrowArray, of columns on the host."""
    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Capsules of an ArrowSchema and an ArrowDeviceArray."""
