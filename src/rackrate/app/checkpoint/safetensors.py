"""The header of a safetensors file: eight bytes of length, then JSON (huggingface/safetensors, README)."""

from __future__ import annotations

import struct

import msgspec

from rackrate.app.checkpoint.source import CorruptError, Source
from rackrate.facts.architecture.tensors import Tensor

MOST_BYTES = 100_000_000
"""The format's own limit for a header."""

_MOST_SIDES = 8
_MANY_TENSORS, _LEAST_BYTES = 2**8, 2**10
"""A file with more tensors than this has at least so many bytes for each."""
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U8": 8, "BOOL": 8}
_BITS |= {"U16": 16, "U32": 32, "U64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "C64": 64}
_METADATA = "__metadata__"


class _Entry(msgspec.Struct, gc=False):
    """One tensor as the header has it."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_TABLE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def tensors_of(source: Source) -> list[Tensor]:
    """The tensors that a header lists, with the bytes that each takes; no tensor is read.

    Raises:
        CorruptError: the file is no safetensors file, or its header makes no sense.
    """
    length = _header_length(source)
    data = source.size - 8 - length
    raw = source.read(8, length)
    if raw.count(b"{") > max(_MANY_TENSORS, source.size // _LEAST_BYTES):
        raise CorruptError(f"more tensors than a file of {source.size} bytes can hold")
    try:
        table = _TABLE.decode(raw)
        found = [_tensor(name, _ENTRY.decode(raw), data) for name, raw in table.items() if name != _METADATA]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise CorruptError(f"a header that is not valid: {wrong}") from None
    if not found:
        raise CorruptError("a header without tensors")
    return found


def _header_length(source: Source) -> int:
    start = source.read(0, 8)
    if len(start) < 8:  # noqa: PLR2004 - the length itself
        raise CorruptError(f"{len(start)} bytes, too few for a header")
    (length,) = struct.unpack("<Q", start)
    if not 2 <= length <= min(source.size - 8, MOST_BYTES):  # noqa: PLR2004 - `{}`
        raise CorruptError(f"a header of {length} bytes in a file of {source.size}")
    return int(length)


def _tensor(name: str, entry: _Entry, data: int) -> Tensor:
    """One entry whose range lies in the file and has the size that its shape and type make."""
    begin, end = entry.data_offsets
    shown = name[:80]
    if not 0 <= begin <= end <= data:
        raise CorruptError(f"tensor {shown!r} in bytes {begin} to {end} of {data}")
    if len(entry.shape) > _MOST_SIDES or any(not 0 <= side <= data * 8 + 1 for side in entry.shape):
        raise CorruptError(f"tensor {shown!r} of an impossible shape")
    found = Tensor(name=name, type=entry.dtype, shape=tuple(entry.shape), size=end - begin)
    bits = _BITS.get(entry.dtype)
    if bits is not None and -(-found.values * bits // 8) != found.size:
        raise CorruptError(f"tensor {shown!r} of {found.values} values of {entry.dtype} in {found.size} bytes")
    return found
