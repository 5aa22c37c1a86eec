"""Checksums of 32 bits before or behind the bytes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from .. import _lade
from .._errors import ChecksumError, InputError
from ._buffers import Bytes, flat, pipeline, store, target
from ._numcodecs import NumCodec

_U1 = np.dtype("u1")
_POLY = 0x82F63B78  # CRC-32C, reflected


def _times(a: int, b: int) -> int:
    """The product of two polynomials modulo CRC-32C's; the highest bit is the lowest power."""
    product = 0
    for i in range(31, -1, -1):
        if a >> i & 1:
            product ^= b
        b = b >> 1 ^ (_POLY if b & 1 else 0)
    return product


def _append(before: int, crc: int, size: int) -> int:
    """The CRC-32C of two pieces, from each one's and the size of the second."""
    power, square = 1 << 31, 1 << 23  # 1, and a byte's 8 bits: x^8
    while size:
        if size & 1:
            power = _times(power, square)
        square = _times(square, square)
        size >>= 1
    return _times(power, before) ^ crc


class _Checksum(NumCodec):  # type: ignore[misc, unused-ignore]
    """Payload and checksum (4 bytes, little-endian) next to each other."""

    location: str

    def encode(self, buf: Any) -> Any:
        """The bytes with their checksum."""
        arr = _bytes(buf)
        enc = np.empty(arr.size + 4, _U1)
        pipeline(f"{self.codec_id}({self.location})").encode_into(arr, enc)
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The bytes without their checksum, a view; or 'out'.

        Raises liblade.ChecksumError (a RuntimeError) if it is not theirs.
        """
        arr = _bytes(buf)
        if out is None or arr.size < 4:
            return self._payload(arr)
        try:
            pipeline(f"{self.codec_id}({self.location})").decode_into(arr, target(out))
        except ChecksumError:
            self._payload(arr)  # raises it with both numbers, as numcodecs does
            raise
        return out

    def _payload(self, arr: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The bytes without their checksum, which is looked at."""
        if arr.size < 4:
            raise InputError(
                f"{self.codec_id}: {arr.size} bytes are too few for a checksum of 4",
                "LADE_E_TRUNCATED",
            )
        start = self.location == "start"
        payload, stored = (arr[4:], arr[:4]) if start else (arr[:-4], arr[-4:])
        want = int.from_bytes(stored.tobytes(), "little")
        have = self._sum(payload)
        if want != have:
            raise ChecksumError(
                f"Stored and computed {self.codec_id} checksum do not match. "
                f"Stored: {want}. Computed: {have}.",
                "LADE_E_CHECKSUM",
                0 if start else payload.size,
            )
        return payload

    def _sum(self, payload: np.ndarray[Any, Any]) -> int:
        return _lade._checksums(self.codec_id, (payload,))[0]


def _bytes(buf: Any) -> np.ndarray[Any, Any]:
    """A contiguous source as bytes."""
    if type(buf) is bytes:
        return np.frombuffer(buf, _U1) if buf else np.empty(0, _U1)
    if isinstance(buf, np.ndarray) and not (buf.flags.c_contiguous or buf.flags.f_contiguous):
        raise ValueError("an array with contiguous memory is required")
    return flat(buf, _U1)


class Checksum32(_Checksum):
    """A checksum at one end.

    location: 'start' or 'end'.
    """

    location = "start"

    def __init__(self, location: str | None = None) -> None:
        # What is not given is not part of the configuration, as in numcodecs.
        if location is not None:
            self.location = location
        if self.location not in ("start", "end"):
            raise ValueError(f"Invalid checksum location: {self.location}")


class CRC32(Checksum32):
    """CRC-32 as in zlib and gzip; at the start unless location says otherwise."""

    codec_id = "crc32"

    @staticmethod
    def checksum(data: Any, value: int = 0) -> int:
        """The CRC of bytes that follow others with the CRC 'value'."""
        return zlib.crc32(data, value) if value else _lade._checksums("crc32", (data,))[0]


class Adler32(Checksum32):
    """Adler-32; at the start unless location says otherwise."""

    codec_id = "adler32"

    @staticmethod
    def checksum(data: Any, value: int = 1) -> int:
        """The checksum of bytes that follow others with the checksum 'value'."""
        return zlib.adler32(data, value) if value != 1 else _lade._checksums("adler32", (data,))[0]


class CRC32C(Checksum32):
    """CRC-32C (Castagnoli's); at the end unless location says otherwise."""

    codec_id = "crc32c"
    location = "end"

    @staticmethod
    def checksum(data: Any, value: int = 0) -> int:
        """The CRC of bytes that follow others with the CRC 'value'."""
        crc = _lade._checksums("crc32c", (data,))[0]
        return _append(value, crc, memoryview(data).nbytes) if value else crc


class Fletcher32(_Checksum):
    """HDF5's Fletcher-32, behind the bytes."""

    codec_id = "fletcher32"

    location = "end"

    def encode(self, buf: Any) -> Any:
        """The bytes with their checksum."""
        return Bytes(super().encode(buf))

    def decode(self, buf: Any, out: Any = None) -> Any:
        dec = super().decode(buf, out)
        return Bytes(dec) if out is None else dec


class JenkinsLookup3(_Checksum):
    """Bob Jenkins' lookup3, behind the bytes.

    initval: the first value of the sum.  prefix: bytes that are summed before the others.
    """

    codec_id = "jenkins_lookup3"

    location = "end"

    def __init__(self, initval: int = 0, prefix: Any = None) -> None:
        self.initval = initval
        self.prefix = None if prefix is None else np.frombuffer(prefix, _U1)

    @staticmethod
    def checksum(data: Any, initval: int = 0) -> int:
        """The sum of bytes."""
        return _lade._lookup3(data, initval)

    def _sum(self, payload: np.ndarray[Any, Any]) -> int:
        if self.prefix is not None:
            payload = np.concatenate((self.prefix, payload))
        return self.checksum(payload, self.initval)

    def encode(self, buf: Any) -> Any:
        """The bytes with their checksum."""
        arr = _bytes(buf)
        return Bytes(np.concatenate((arr, np.array([self._sum(arr)], "<u4").view(_U1))))

    def decode(self, buf: Any, out: Any = None) -> Any:
        dec = self._payload(_bytes(buf))
        return Bytes(dec) if out is None else store(dec, out)
