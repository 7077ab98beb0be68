"""Problems in data and in what users ask, as values.

A problem has a stable code, a subject (file, row, key or flag), what was seen,
what was expected and what to do next. Rooms return findings; faces turn codes
and parameters into words. Exceptions are left for bugs and dead I/O, and for
``Refused``, which carries findings to the face when there is nothing to return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from rackrate.values import Value


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """The registry of problem codes; a code is never renamed or reused."""

    UNKNOWN_KEY = "unknown_key"
    UNKNOWN_NAME = "unknown_name"
    MISSING_VALUE = "missing_value"
    BAD_VALUE = "bad_value"
    OUT_OF_BOUNDS = "out_of_bounds"
    CONFLICT = "conflict"
    DUPLICATE = "duplicate"
    NO_SOURCE = "no_source"
    NOT_YET = "not_yet"
    NOT_USED = "not_used"
    FILE_UNREADABLE = "file_unreadable"
    BAD_SYNTAX = "bad_syntax"
    OFFERS_DISAGREE = "offers_disagree"
    PRICE_STALE = "price_stale"
    PRICE_SUSPECT = "price_suspect"
    AMBIGUOUS_CARD = "ambiguous_card"
    UNKNOWN_CARD = "unknown_card"
    UNKNOWN_RULE = "unknown_rule"
    ENGINE_DEFAULT_LARGER = "engine_default_larger"
    CONTEXT_BEYOND_MODEL = "context_beyond_model"
    PRECISION_UNSUPPORTED = "precision_unsupported"
    PRECISION_EMULATED = "precision_emulated"
    OVERSIZED = "oversized"
    SHORT_OF_CONCURRENCY = "short_of_concurrency"
    SLOW_ANSWER = "slow_answer"
    RATES_STALE = "rates_stale"
    INTERRUPTIBLE = "interruptible"
    DEADLINE_AT_RISK = "deadline_at_risk"
    BUDGET_AT_RISK = "budget_at_risk"
    OVERLAY_ROW_IGNORED = "overlay_row_ignored"
    HOST_SMALL = "host_small"
    PRICE_UNDATED = "price_undated"
    MODEL_INEXACT = "model_inexact"
    HUB_UNREACHABLE = "hub_unreachable"
    PRICES_UNREAD = "prices_unread"
    PRICE_UNSEEN = "price_unseen"
    ACCESS = "access"
    PACKAGE_MISSING = "package_missing"
    NOT_SIMULATED = "not_simulated"
    PROGRAM_FAILED = "program_failed"
    SIMULATION_DIFFERS = "simulation_differs"
    VALUES_READ = "values_read"
    NOT_CALIBRATED = "not_calibrated"
    OFFLOAD_NOT_TIMED = "offload_not_timed"


class Finding(Value, frozen=True, kw_only=True):
    """One problem: what (code), where (subject), seen, expected, and the next step (action).

    ``observed``, ``expected`` and ``action`` are short English texts for the
    default face; ``code`` is what programs test.
    """

    code: Code
    subject: str
    severity: Severity = Severity.ERROR
    observed: str = ""
    expected: str = ""
    action: str = ""
    source: str = ""


class Refused(Exception):
    """The request cannot be answered; ``findings`` say what, where and the next step."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(_said, findings)))
        self.findings = tuple(findings)


def _said(finding: Finding) -> str:
    """One problem on one line, for logs and tracebacks."""
    parts = {"got": finding.observed, "expected": finding.expected, "next": finding.action}
    told = (f"{name} {text}" for name, text in parts.items() if text)
    return "; ".join((f"{finding.subject}: {finding.code.replace('_', ' ')}", *told))


_SHORTEST_PART = 3
_ALIKE = 0.61
"""Of difflib's ratio: ``4090ti`` is 0.62 like ``rtx4090``, which is meant, and ``acme`` 0.6 like ``oracle``."""


def nearest(word: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """The known words closest to ``word``, best first; empty when nothing is close."""
    import difflib  # imported here: only the unhappy path needs it

    table = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(word.casefold(), list(table), n=limit, cutoff=_ALIKE)
    inside = sorted((k for k in table if word.casefold() in k), key=len) if len(word) >= _SHORTEST_PART else []
    return [table[k] for k in dict.fromkeys([*close, *inside])][:limit]
