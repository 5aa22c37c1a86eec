"""HDF5's Fletcher-32.

SPDX-License-Identifier: Apache-2.0
"""

from .checksum32 import Fletcher32

__all__ = ["Fletcher32"]
