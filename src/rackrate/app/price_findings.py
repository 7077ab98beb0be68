"""What of the price lists did not count in an answer: told in each, in a line for each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from rackrate.facts.own_rows import OwnRow
from rackrate.problems import Code, Finding, Severity
from rackrate.units import parse_day

_WHOLE_FILE = frozenset({Code.BAD_SYNTAX, Code.FILE_UNREADABLE})


def unread(
    found: Iterable[Finding], action: str = "`rackrate facts check` says what is wrong with each"
) -> list[Finding]:
    """Lines of price lists that could not be read, as a warning for each file; ``action`` is the next step."""
    counts = Counter((finding.subject.partition(":")[0], finding.code in _WHOLE_FILE) for finding in found)
    return [
        Finding(
            code=Code.PRICES_UNREAD,
            severity=Severity.WARNING,
            subject=name,
            observed=f"{name}: {_left_out(count, whole=whole)}",
            action=action,
        )
        for (name, whole), count in counts.items()
    ]


def _left_out(count: int, *, whole: bool) -> str:
    if whole:
        return "none of its lines could be read"
    return f"{count} line{'s' if count > 1 else ''} left out that could not be read"


def unseen(rows: Sequence[OwnRow], at: date) -> list[Finding]:
    """Own prices that nobody had seen on the day of the answer, in one finding."""
    later = [row for row in rows if parse_day(row.cells["observed_on"]) > at]
    if not later:
        return []
    first = later[0]
    more = f" and {len(later) - 1} more" if len(later) > 1 else ""
    return [
        Finding(
            code=Code.PRICE_UNSEEN,
            severity=Severity.WARNING,
            subject=f"{first.place}:{first.line}",
            observed=f"your price in {first.place}:{first.line}{more}: of {first.cells['observed_on']}, after {at}",
            action="mend observed_on if it is not that day; answer for a later day with --as-of to count it",
        )
    ]
