"""The door to a very long price list: a file of columns, mapped into memory and not read.

A price list of text lines is parsed, coded and put into lots once. The file
that is written holds the result as arrays: a plan touches what it looks at, and
opening only sums the bytes up, so that a damaged file is refused and answers
nothing. Why, and what it costs: docs/decisions/0013-column-files.md.
"""

from __future__ import annotations

import hashlib
import mmap
import zlib
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rackrate.facts.book import FactBook
from rackrate.offers.arrays import Place
from rackrate.offers.columns import Coded, table_of
from rackrate.offers.lots import Lots
from rackrate.offers.meter import BillingClass, meters_of
from rackrate.offers.offer import MachineShape, Offer
from rackrate.offers.price_list import Reader, Record
from rackrate.offers.table import OfferTable
from rackrate.offers.texts import PackedWords, Records, Texts, nth_of_base, pack, read_texts
from rackrate.problems import Code, Finding, Refused
from rackrate.values import Value

SCHEMA = "rackrate-offers/3"
_ALIGNED = 64
_LENGTH_BYTES = 8
_SUM_BYTES = 8
_BEGIN = _LENGTH_BYTES + _SUM_BYTES
"""Before the header stand its length and the CRC-32 of all that comes after these two numbers."""

_CHUNK_BYTES = 2**20
_HELD = 1024  # records that were made and may be asked for again

Places = Mapping[tuple[str, str], Place]
Arrays = dict[str, NDArray[np.generic]]


class _At(Value, frozen=True, kw_only=True):
    """Where an array begins in the file, its type and its length."""

    offset: int
    dtype: str
    count: int


class _Header(Value, frozen=True, kw_only=True):
    """Everything of the table that is not an array.

    ``facts`` is the digest of the facts that cards and rules were taken from,
    ``newest`` the last day on which a price was seen; ``regions`` are places by
    provider, as ``regions.csv`` has them.
    """

    schema: str
    digest: str
    facts: str
    newest: date
    shape_sets: tuple[tuple[MachineShape, ...], ...]
    providers: tuple[str, ...]
    places: tuple[Place, ...]
    markets: tuple[str, ...]
    currencies: tuple[str, ...]
    billing_classes: tuple[BillingClass, ...]
    regions: tuple[tuple[str, Place], ...]
    arrays: dict[str, _At]
    size: int


# ---------------------------------------------------------------- write


def write(path: Path, texts: Texts, places: Places, book: FactBook) -> tuple[Finding, ...]:
    """Write the price list ``texts`` to ``path``, whole or not at all; what could not be read of it.

    ``places`` say where regions lie, as ``regions.csv`` does.
    """
    read = read_texts(texts, Reader(book.accelerators, places))
    table, order = table_of(read.columns, _no_record, book.rules_of)
    arrays = _table_arrays(table) | {"nth": nth_of_base(read.texts)[order]}
    for field, column in read.texts.items():
        arrays[f"{field}.codes"] = column.codes[order].astype(np.min_scalar_type(max(len(column.words) - 1, 0)))
        arrays[f"{field}.letters"], arrays[f"{field}.ends"] = pack(column.words)
    at = _layout(arrays)
    header = _Header(
        schema=SCHEMA,
        digest=_digest(arrays),
        facts=book.digest,
        newest=date.fromordinal(int(read.columns.day.max(initial=1))),
        shape_sets=table.shape_sets,
        providers=table.providers,
        places=table.places,
        markets=table.markets,
        currencies=table.currencies,
        billing_classes=table.billing_classes,
        regions=tuple((provider, place) for (provider, _), place in places.items()),
        arrays=at,
        size=sum(_room(array) for array in arrays.values()),
    )
    beside = path.with_name(f"{path.name}.part")
    with beside.open("wb") as file:
        _save(file, header, arrays)
    beside.replace(path)
    return read.findings


_ENTRY = (
    *("shape_set", "provider", "product", "place", "market", "currency", "billing", "gpus", "share", "price_per_hour"),
    *("priced", "interruptible", "commitment_unknown", "price_is_from", "excludes_host", "observed_day", "thing"),
    "superseded",
)
_LOTS = ("first", "price_per_hour", "thing", "by_thing", "observed_day")


def _no_record(place: int) -> Offer:
    raise LookupError(place)


def _table_arrays(table: OfferTable) -> Arrays:
    arrays: Arrays = {name: getattr(table, name) for name in _ENTRY}
    arrays |= {f"lots.{name}": getattr(table.lots, name) for name in _LOTS}
    arrays["products.letters"], arrays["products.ends"] = pack(table.products)
    return arrays


def _layout(arrays: Arrays) -> dict[str, _At]:
    """Each array after the one before, aligned."""
    found, offset = {}, 0
    for name, array in arrays.items():
        found[name] = _At(offset=offset, dtype=array.dtype.str, count=len(array))
        offset += _room(array)
    return found


def _room(array: NDArray[np.generic]) -> int:
    return -(-array.nbytes // _ALIGNED) * _ALIGNED


def _digest(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name}\0{array.nbytes}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _save(file: IO[bytes], header: _Header, arrays: Arrays) -> None:
    """The length of the header and the sum, the header, and from the next multiple of ``_ALIGNED`` the arrays."""
    text = msgspec.msgpack.encode(header)
    padded = text.ljust(_arrays_from(len(text)) - _BEGIN)
    total = 0
    file.write(bytes(_BEGIN))
    for part in (padded, *(array.tobytes().ljust(_room(array), b"\0") for array in arrays.values())):
        file.write(part)
        total = zlib.crc32(part, total)
    file.seek(0)
    file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + total.to_bytes(_SUM_BYTES, "little"))


def _is_sound(file: IO[bytes]) -> bool:
    """Whether everything is as it was written; read in pieces, so that it takes no memory."""
    file.seek(_LENGTH_BYTES)
    stated, total, piece = int.from_bytes(file.read(_SUM_BYTES), "little"), 0, bytearray(_CHUNK_BYTES)
    while count := file.readinto(piece):  # type: ignore[attr-defined]
        total = zlib.crc32(memoryview(piece)[:count], total)
    return stated == total


def _arrays_from(header_bytes: int) -> int:
    return -(-(_BEGIN + header_bytes) // _ALIGNED) * _ALIGNED


# ---------------------------------------------------------------- read


class _File:
    """An open file of columns; arrays are views of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                sound = _is_sound(file)
            if not sound:
                raise _refused(path, Code.FILE_UNREADABLE, "changed since it was written, or of another version")
            length = int.from_bytes(self._mapped[:_LENGTH_BYTES], "little")
            self.header = msgspec.msgpack.decode(self._mapped[_BEGIN : _BEGIN + length], type=_Header)
        except (OSError, ValueError, msgspec.DecodeError) as problem:
            raise _refused(path, Code.FILE_UNREADABLE, str(problem)) from problem
        self._from = _arrays_from(length)
        if self.header.schema != SCHEMA or self._from + self.header.size > len(self._mapped):
            raise _refused(path, Code.FILE_UNREADABLE, "cut off, or of another version")

    def array(self, name: str) -> NDArray[Any]:
        """An array, of the type that it was written with."""
        try:
            at = self.header.arrays[name]
            return np.frombuffer(self._mapped, np.dtype(at.dtype), at.count, self._from + at.offset)
        except (KeyError, TypeError, ValueError) as problem:
            raise _refused(self._path, Code.FILE_UNREADABLE, f"{name} is not there") from problem

    def words(self, name: str) -> PackedWords:
        """A vocabulary."""
        return PackedWords(self.array(f"{name}.letters"), self.array(f"{name}.ends"))


def is_one(path: Path) -> bool:
    """Whether a file is one of columns, of this version or another."""
    with path.open("rb") as file:
        begin = file.read(_BEGIN + 64)
    return b"rackrate-offers/" in begin


def read(path: Path, book: FactBook, *, at: date | None = None) -> tuple[OfferTable, str]:
    """The offers in a file of columns, and its digest; ``at`` is the day whose billing rules count.

    Raises:
        Refused: the file was made with other facts, or knows prices that nobody had seen at ``at``.
    """
    file = _File(path)
    header = file.header
    _check(path, header, book, at)
    texts = {field: Coded(file.words(field), file.array(f"{field}.codes")) for field in Record._fields}
    reader = Reader(book.accelerators, {(provider, place[0]): place for provider, place in header.regions})
    table = OfferTable(
        shape_sets=header.shape_sets,
        providers=header.providers,
        products=file.words("products"),
        places=header.places,
        markets=header.markets,
        currencies=header.currencies,
        billing_classes=header.billing_classes,
        meters=meters_of(header.billing_classes, book.rules_of, at),
        shape_set=file.array("shape_set"),
        provider=file.array("provider"),
        product=file.array("product"),
        place=file.array("place"),
        market=file.array("market"),
        currency=file.array("currency"),
        billing=file.array("billing"),
        gpus=file.array("gpus"),
        share=file.array("share"),
        price_per_hour=file.array("price_per_hour"),
        priced=file.array("priced"),
        interruptible=file.array("interruptible"),
        commitment_unknown=file.array("commitment_unknown"),
        price_is_from=file.array("price_is_from"),
        excludes_host=file.array("excludes_host"),
        observed_day=file.array("observed_day"),
        thing=file.array("thing"),
        superseded=file.array("superseded"),
        record=lru_cache(maxsize=_HELD)(Records(texts, file.array("nth"), reader, book.accelerators)),
        lots=Lots(
            first=file.array("lots.first"),
            price_per_hour=file.array("lots.price_per_hour"),
            thing=file.array("lots.thing"),
            by_thing=file.array("lots.by_thing"),
            observed_day=file.array("lots.observed_day"),
        ),
    )
    return table, header.digest


def _check(path: Path, header: _Header, book: FactBook, at: date | None) -> None:
    if header.facts != book.digest:
        raise _refused(path, Code.CONFLICT, "cards and rules of other facts than those in use")
    if at is not None and header.newest > at:
        raise _refused(path, Code.CONFLICT, f"prices seen on {header.newest}, which nobody knew on {at}")


def _refused(path: Path, code: Code, observed: str) -> Refused:
    finding = Finding(
        code=code,
        subject=path.name,
        observed=observed,
        expected="a file of columns written with the facts in use",
        action="write it anew from its price lists: `rackrate offers pack LISTS FILE`",
    )
    return Refused([finding])
