"""From what was asked (a file, flags, a table of keys) to a workload, or a refusal that says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rackrate.app.reading import read_request
from rackrate.facts.book import FactBook
from rackrate.problems import Finding, Refused
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import Request, request_from_flags, request_from_table

NOTHING: Mapping[str, object] = MappingProxyType({})

Asked = str | Path | Mapping[str, object] | None
"""A workload file (``-`` is standard input), the table that such a file holds, or nothing beside flags."""


def read_workload(asked: Asked, flags: Mapping[str, object], book: FactBook) -> Parsed:
    """The workload that ``asked`` and ``flags`` (by key path; flags win) describe together.

    Raises:
        Refused: with everything that is wrong with it.
    """
    request = _request(asked, flags)
    parsed = parse(request, book) if isinstance(request, Request) else request
    if not isinstance(parsed, Parsed):
        raise Refused(parsed)
    return parsed


def _request(asked: Asked, flags: Mapping[str, object]) -> Request | tuple[Finding, ...]:
    if isinstance(asked, Mapping):
        return request_from_flags(flags).over(request_from_table(asked))
    return read_request(None if asked is None else str(asked), flags)
