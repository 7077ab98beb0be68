"""From what was asked (a file, flags, a table of keys) to a workload, or a refusal that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from rackrate.app.reading import read_request
from rackrate.facts.book import FactBook, with_model
from rackrate.facts.model import Model
from rackrate.problems import Code, Finding, Refused, Severity
from rackrate.values import replace
from rackrate.workload.keys import KEYS
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
    parsed = _parsed(request, book) if isinstance(request, Request) else request
    if not isinstance(parsed, Parsed):
        raise Refused(parsed)
    return parsed


def model_asked(asked: Asked, flags: Mapping[str, object]) -> str:
    """The model as the request spells it: a name, a path, or an id on the Hub; empty where it names none."""
    request = _request(asked, flags)
    text = request.values.get("model") if isinstance(request, Request) else ""
    return text.strip() if isinstance(text, str) else ""


def not_used(flags: Mapping[str, object], verb: str, unused: Iterable[str]) -> list[Finding]:
    """A warning where flags were given whose keys ``verb`` has no use for; in a file, which all verbs share, none."""
    said = [KEYS[path].flag for path in unused if flags.get(path) not in (None, (), [], False)]
    if not said:
        return []
    action = "leave it out here; `rackrate plan` keeps to it" if len(said) == 1 else _FOR_PLANS
    return [
        Finding(
            code=Code.NOT_USED,
            severity=Severity.WARNING,
            subject=", ".join(said),
            observed=f"{verb} does not depend on {' or '.join(said)}",
            action=action,
        )
    ]


_FOR_PLANS = "leave them out here; `rackrate plan` keeps to them"

BESIDE_THE_WORK = (
    *("use.disk", "use.data_out", "use.keep_disk_days", "use.hours_per_day", "use.horizon_days"),
    *("limits.budget", "limits.regions", "limits.providers", "limits.exclude_providers", "limits.markets"),
    *("limits.interruptible", "limits.access", "serving.hosted"),
)
"""Keys about what renting costs and from whom, on which neither memory nor speed depends."""


def _parsed(request: Request, book: FactBook) -> Parsed | tuple[Finding, ...]:
    """The workload of a request whose model may be in files or on the Hub instead of in the book."""
    text = request.values.get("model")
    if not isinstance(text, str) or not text.strip() or text.strip() in book.model_ids:
        return parse(request, book)
    from rackrate.app.checkpoint.find import own_model  # imported here: most models are bundled

    own = own_model(text, book)
    if own is None:
        return parse(request, book)
    if isinstance(own, Model):
        named = replace(request, values={**request.values, "model": own.id})
        return parse(named, with_model(book, own))
    return (*own, *_beside_the_model(parse(request, book), request))


def _beside_the_model(parsed: Parsed | tuple[Finding, ...], request: Request) -> tuple[Finding, ...]:
    """What else is wrong with a request whose model could not be read."""
    if isinstance(parsed, Parsed):
        return ()
    origin = request.origin("model")
    about = origin if origin.startswith("--") else f"{origin} model".strip()
    return tuple(f for f in parsed if f.subject != about or f.code is not Code.UNKNOWN_NAME)


def _request(asked: Asked, flags: Mapping[str, object]) -> Request | tuple[Finding, ...]:
    if isinstance(asked, Mapping):
        return request_from_flags(flags).over(request_from_table(asked))
    return read_request(None if asked is None else str(asked), flags)
