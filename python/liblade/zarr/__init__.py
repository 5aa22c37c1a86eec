"""Zarr arrays and groups: read and written straight into memory of your choice.

CodecPipeline makes zarr-python, xarray and dask use the library.

SPDX-License-Identifier: Apache-2.0
"""

from typing import TYPE_CHECKING, Any

from ._array import Array, Attributes, Box, Node, Placed, Plan
from ._codecs import Codec, Implementation, register_codec, register_implementation
from ._group import (
    Group,
    NodeExistsError,
    NodeNotFoundError,
    consolidate_metadata,
    create,
    create_group,
    delete,
    exists,
    load,
    open,
    open_array,
    open_group,
    save,
)
from ._settings import configure, settings
from ._store import Store

if TYPE_CHECKING:
    from ._buffers import NDBuffer, buffer_prototype, enable_gpu
    from ._pipeline import CodecPipeline, PipelineCounts, pipeline_counts, pipeline_reasons

__all__ = [
    "Array",
    "Attributes",
    "Box",
    "Codec",
    "CodecPipeline",
    "Group",
    "Implementation",
    "NDBuffer",
    "Node",
    "NodeExistsError",
    "NodeNotFoundError",
    "PipelineCounts",
    "Placed",
    "Plan",
    "Store",
    "buffer_prototype",
    "configure",
    "consolidate_metadata",
    "create",
    "create_group",
    "delete",
    "enable_gpu",
    "exists",
    "load",
    "open",
    "open_array",
    "open_group",
    "pipeline_counts",
    "pipeline_reasons",
    "register_codec",
    "register_implementation",
    "save",
    "settings",
]

# What needs zarr-python.
_PIPELINE = ("CodecPipeline", "PipelineCounts", "pipeline_counts", "pipeline_reasons")
_BUFFERS = ("NDBuffer", "buffer_prototype", "enable_gpu")


def __getattr__(name: str) -> Any:
    if name in _PIPELINE:
        from . import _pipeline

        return getattr(_pipeline, name)
    if name in _BUFFERS:
        from . import _buffers

        return getattr(_buffers, name)
    raise AttributeError(f"module 'liblade.zarr' has no attribute {name!r}")
