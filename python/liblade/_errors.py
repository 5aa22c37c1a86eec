"""The exceptions: each is a liblade.Error, and what a Python programmer expects besides.

SPDX-License-Identifier: Apache-2.0
"""


class Error(Exception):
    """What the library reports.

    status: the name of the C status, "LADE_E_CORRUPT".
    offset: the first bad byte of the input, or None.
    index: the item of a batch that failed, or None.
    """

    def __init__(
        self,
        message: str,
        status: str = "LADE_E_INTERNAL",
        offset: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.offset = offset
        self.index = index

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type, tuple[str, str, int | None, int | None]]:
        return type(self), (self.message, self.status, self.offset, self.index)


class InputError(Error, ValueError):
    """An argument, option, type, range or destination does not fit."""


class CorruptError(Error, RuntimeError):
    """The data is corrupt, ends too early, or is of an unknown version."""


class ChecksumError(CorruptError):
    """A checksum does not match, or there is none where one was asked for."""


class UnsupportedError(Error, NotImplementedError):
    """This build cannot do it."""


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be allocated."""


class DeviceError(Error, RuntimeError):
    """There is no such device, or its driver reported a failure."""


class FileError(Error, OSError):
    """Reading or writing failed."""
