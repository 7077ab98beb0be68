"""Bytes of a file, read piece by piece: a file here, or one behind a server that answers ranges."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Protocol

CHUNK = 2**16
"""Bytes read at once; no reader of headers holds more than this and what it keeps."""


class Source(Protocol):
    """Something with a size that gives the bytes of a range."""

    @property
    def size(self) -> int:
        """All bytes of the file."""

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start`` on."""


class CorruptError(Exception):
    """The bytes are not what the format says; the message says what was seen."""


class FileSource:
    """A file on this machine."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    @property
    def size(self) -> int:
        """All bytes of the file."""
        return self._size

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start`` on."""
        self._file.seek(start)
        return self._file.read(length)


class BytesSource:
    """Bytes that are at hand already."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        """All bytes."""
        return len(self._content)

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start`` on."""
        return self._content[start : start + length]


def opened(path: Path) -> tuple[BinaryIO, FileSource]:
    """The file at ``path`` as a source; the caller closes it.

    Raises:
        OSError: it cannot be opened.
    """
    file = path.open("rb", buffering=0)
    return file, FileSource(file, path.stat().st_size)


class Cursor:
    """A place in a source that moves forward; never reads a byte twice, never holds more than a chunk."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._start = 0
        self._buffer = b""
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return self._source.size - self._start - self._at

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes.

        Raises:
            CorruptError: the file ends before.
        """
        if length > self.left:
            raise CorruptError(f"{length} bytes more, and the file ends after {max(self.left, 0)}")
        if self._at + length > len(self._buffer):
            self._start += self._at
            self._buffer = self._source.read(self._start, max(length, min(CHUNK, self._source.size - self._start)))
            self._at = 0
            if len(self._buffer) < length:
                raise CorruptError("a file that is shorter than it says")
        found = self._buffer[self._at : self._at + length]
        self._at += length
        return found

    def skip(self, length: int) -> None:
        """Move on by ``length`` bytes.

        Raises:
            CorruptError: the file ends before.
        """
        if length > self.left:
            raise CorruptError(f"{length} bytes more, and the file ends after {max(self.left, 0)}")
        self._at += length
        if self._at > len(self._buffer):
            self._start += self._at
            self._buffer, self._at = b"", 0

    def skip_texts(self, count: int) -> None:
        """Move on past ``count`` texts, each behind its length: a vocabulary of a few hundred thousand in one go."""
        for _ in range(count):
            if self._at + 8 > len(self._buffer):
                self.skip(self.whole("<Q"))
                continue
            (length,) = _LENGTH.unpack_from(self._buffer, self._at)
            self.skip(8 + length)

    def whole(self, form: str) -> int:
        """The next number in the layout of ``struct``."""
        (number,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(number)


_LENGTH = struct.Struct("<Q")
