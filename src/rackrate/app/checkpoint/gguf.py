"""The header of a GGUF file: keys and values, then a list of tensors (ggml-org/ggml docs/gguf.md)."""

from __future__ import annotations

from typing import NamedTuple

from rackrate.app.checkpoint.source import CorruptError, Cursor, Source
from rackrate.facts.architecture.gguf import BLOCKS
from rackrate.facts.architecture.reader import MOST_LAYERS
from rackrate.facts.architecture.tensors import Tensor

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_LEAST_PAIR = 13
"""Bytes of the shortest key with its value: a length, no text, a type, one byte."""
_LEAST_TENSOR = 24
_MOST_SIDES = 4
_MOST_TEXT = 2**8
"""Keys, architectures and tensors have short names; longer texts are chat templates and licences."""
_MOST_PAIRS = 2**10
_MOST_KEPT = 2**13
"""Numbers kept out of all arrays together."""
_MANY_TENSORS, _LEAST_BYTES = 2**10, 2**8
"""A file with more tensors than this has at least so many bytes for each."""
_MOST_DEPTH = 4
_TEXT, _ARRAY = 8, 9
# type: layout of struct and bytes
_NUMBERS = {0: ("<B", 1), 1: ("<b", 1), 2: ("<H", 2), 3: ("<h", 2), 4: ("<I", 4), 5: ("<i", 4), 7: ("<B", 1)}
_NUMBERS |= {10: ("<Q", 8), 11: ("<q", 8)}
_FLOATS = {6: 4, 12: 8}
_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K"}
_TYPES |= {11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS"}
_TYPES |= {19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32"}
_TYPES |= {27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4"}
_TYPES |= {41: "Q1_0"}
_KEPT = MOST_LAYERS
"""Arrays up to this long are kept (one value for each layer); of longer ones, such as vocabularies, the length."""


class Header(NamedTuple):
    """What the header of one file says."""

    metadata: dict[str, object]
    tensors: list[Tensor]


def header_of(source: Source) -> Header:
    """The metadata and tensors of a GGUF file; no tensor is read.

    Raises:
        CorruptError: the file is no GGUF file, or its header makes no sense.
    """
    cursor = Cursor(source)
    if cursor.left < 24 or cursor.take(4) != _MAGIC:  # noqa: PLR2004 - magic, version and two counts
        raise CorruptError("a file that does not begin with GGUF")
    version = cursor.whole("<I")
    if version not in _VERSIONS:
        raise CorruptError(f"version {version}; versions 2 and 3 can be read")
    tensors, pairs = cursor.whole("<Q"), cursor.whole("<Q")
    least = pairs * _LEAST_PAIR + tensors * _LEAST_TENSOR
    if least > cursor.left or pairs > _MOST_PAIRS or tensors > max(_MANY_TENSORS, source.size // _LEAST_BYTES):
        raise CorruptError(f"{tensors} tensors and {pairs} keys in {cursor.left} bytes")
    metadata: dict[str, object] = {}
    kept = 0
    for _ in range(pairs):
        key = _text(cursor)
        value = _value(cursor, cursor.whole("<I"), 0)
        kept += len(value) if isinstance(value, list) else 0
        metadata[key] = len(value) if isinstance(value, list) and kept > _MOST_KEPT else value
    found = [_tensor(cursor) for _ in range(tensors)]
    return Header(metadata=metadata, tensors=_within(found, source.size))


def _text(cursor: Cursor) -> str:
    length = cursor.whole("<Q")
    if length > _MOST_TEXT:
        cursor.skip(length)
        return ""
    return cursor.take(length).decode("utf-8", "replace")


def _value(cursor: Cursor, kind: int, depth: int) -> object:
    if kind in _NUMBERS:
        return cursor.whole(_NUMBERS[kind][0])
    if kind in _FLOATS:
        cursor.skip(_FLOATS[kind])
        return None  # no size of a model is a fraction
    if kind == _TEXT:
        return _text(cursor)
    if kind == _ARRAY and depth < _MOST_DEPTH:
        return _array(cursor, depth)
    raise CorruptError(f"a value of type {kind}")


def _array(cursor: Cursor, depth: int) -> object:
    """A short array of numbers, or the length of any other."""
    kind, count = cursor.whole("<I"), cursor.whole("<Q")
    if count > cursor.left:
        raise CorruptError(f"an array of {count} in {cursor.left} bytes")
    if kind in _NUMBERS:
        form, size = _NUMBERS[kind]
        if count <= _KEPT:
            return [cursor.whole(form) for _ in range(count)]
        cursor.skip(size * count)
    elif kind in _FLOATS:
        cursor.skip(_FLOATS[kind] * count)
    elif kind == _TEXT:
        cursor.skip_texts(count)
    else:
        for _ in range(count):
            _value(cursor, kind, depth + 1)
    return count


def _tensor(cursor: Cursor) -> Tensor:
    """One tensor: its bytes follow from its shape and type."""
    name, sides = _text(cursor), cursor.whole("<I")
    if sides > _MOST_SIDES:
        raise CorruptError(f"tensor {name[:80]!r} with {sides} dimensions")
    shape = tuple(cursor.whole("<Q") for _ in range(sides))
    kind = _TYPES.get(number := cursor.whole("<I"), "")
    cursor.skip(8)  # where its data begin
    if not kind:
        raise CorruptError(f"tensor {name[:80]!r} of type {number}")
    found = Tensor(name=name, type=kind, shape=shape, size=0)
    block, size = BLOCKS[kind]
    if found.values % block:
        raise CorruptError(f"tensor {name[:80]!r} of {found.values} values in blocks of {block}")
    return found._replace(size=found.values // block * size)


def _within(tensors: list[Tensor], size: int) -> list[Tensor]:
    """The tensors, if together they fit into the file."""
    total = sum(tensor.size for tensor in tensors)
    if total > size:
        raise CorruptError(f"tensors of {total} bytes in a file of {size}")
    return tensors
