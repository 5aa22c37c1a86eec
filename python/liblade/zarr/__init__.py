"""Zarr arrays and groups: read and written straight into memory of your choice.

CodecPipeline makes zarr-python, xarray and dask use the library.

SPDX-License-Identifier: Apache-2.0
"""

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

__all__ = [
    "Array",
    "Attributes",
    "Box",
    "Group",
    "Node",
    "NodeExistsError",
    "NodeNotFoundError",
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
    "save",
    "settings",
]
