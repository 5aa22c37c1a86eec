"""Zarr arrays and groups: read and written straight into memory of your choice.

CodecPipeline makes zarr-python, xarray and dask use the library.

SPDX-License-Identifier: Apache-2.0
"""

from typing import TYPE_CHECKING, Any

from ._array import Array, Attributes, Box, Node, Placed, Plan
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
    from ._pipeline import CodecPipeline, PipelineCounts, pipeline_counts, pipeline_reasons

__all__ = [
    "Array",
    "Attributes",
    "Box",
    "CodecPipeline",
    "Group",
    "Node",
    "NodeExistsError",
    "NodeNotFoundError",
    "PipelineCounts",
    "Placed",
    "Plan",
    "Store",
    "configure",
    "consolidate_metadata",
    "create",
    "create_group",
    "delete",
    "exists",
    "load",
    "open",
    "open_array",
    "open_group",
    "pipeline_counts",
    "pipeline_reasons",
    "save",
    "settings",
]

# What needs zarr-python.
_LAZY = ("CodecPipeline", "PipelineCounts", "pipeline_counts", "pipeline_reasons")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from . import _pipeline

        return getattr(_pipeline, name)
    raise AttributeError(f"module 'liblade.zarr' has no attribute {name!r}")
