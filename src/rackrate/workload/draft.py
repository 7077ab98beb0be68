"""Draft: a request on its way to a workload, with the defaults made and the problems found so far."""

from __future__ import annotations

from typing import TypeVar

from rackrate.problems import Code, Finding, Severity, nearest
from rackrate.units import format_count, parse_count
from rackrate.workload.keys import KEYS, SECTIONS, Key
from rackrate.workload.request import Request
from rackrate.workload.values import Value, read_value, shown
from rackrate.workload.workload import Assumption

T = TypeVar("T", int, float, str, bool, tuple[str, ...])
_UNKNOWN_AT_MOST = 20
_WORD_AT_MOST = 60


class Draft:
    """What was said, read key by key; deciding the rest adds assumptions, checking it adds findings."""

    def __init__(self, request: Request) -> None:
        self.values: dict[str, Value] = {}
        self.origins = dict(request.origins)
        self.assumptions: list[Assumption] = []
        self.findings: list[Finding] = []
        for path, raw in request.values.items():
            if path in KEYS:
                self._read(KEYS[path], raw)
        self._refuse_unknown(request)

    def _read(self, key: Key, raw: object) -> None:
        value = read_value(key, raw, self.subject(key.path))
        if isinstance(value, Finding):
            self.findings.append(value)
        else:
            self.values[key.path] = value

    def _refuse_unknown(self, request: Request) -> None:
        unknown = [path for path in request.values if path not in KEYS]
        for path in unknown[:_UNKNOWN_AT_MOST]:
            self.findings.append(_unknown(path, self.subject(path), request.values[path]))
        if len(unknown) > _UNKNOWN_AT_MOST:
            self.problem(
                unknown[_UNKNOWN_AT_MOST],
                Code.UNKNOWN_KEY,
                f"{len(unknown) - _UNKNOWN_AT_MOST} more unknown keys",
                "keys of a workload",
                "see docs/workload.md for all keys",
            )

    # ------------------------------------------------------------ what was said

    def __contains__(self, path: str) -> bool:
        return path in self.values

    def said(self, path: str) -> Value | None:
        """The value given for ``path``, or None."""
        return self.values.get(path)

    def text(self, path: str) -> str | None:
        """The text given for ``path``, or None."""
        value = self.values.get(path)
        return value if isinstance(value, str) else None

    def number(self, path: str) -> float | None:
        """The number given for ``path``, or None."""
        value = self.values.get(path)
        return value if isinstance(value, (int, float)) else None

    def texts(self, path: str) -> tuple[str, ...]:
        """The texts given for ``path``; empty when none were."""
        value = self.values.get(path)
        return tuple(v for v in value if isinstance(v, str)) if isinstance(value, tuple) else ()

    def by_flag(self, path: str) -> bool:
        """Whether ``path`` was given by a flag."""
        return self.origins.get(path, "").startswith("--")

    def drop(self, path: str) -> None:
        """Forget what was given for ``path``."""
        self.values.pop(path, None)

    def subject(self, path: str) -> str:
        """What a finding about ``path`` is about: the flag, or the key with its file and line."""
        origin, name = self.origins.get(path, ""), shown(path)
        if origin.startswith("--"):
            return origin
        return f"{origin} {name}" if origin else name

    # ------------------------------------------------------------ what is decided

    def choose(self, path: str, default: T, why: str) -> T:
        """The value given for ``path``, or ``default``, which is then listed as an assumption."""
        value = self.values.get(path)
        if isinstance(value, type(default)):
            return value
        self.assume(path, default, why)
        return default

    def constant(self, path: str, kind: type[T]) -> T:
        """The value given for ``path``, or the constant default of the key table."""
        default = KEYS[path].default
        if not isinstance(default, kind):
            raise TypeError(f"{path} has no default of type {kind.__name__}")
        return self.choose(path, default, KEYS[path].why)

    def assume(self, path: str, value: Value, why: str) -> None:
        """List a default that was made."""
        written = _counted(value) if KEYS[path].kind == "count" else _written(value)
        self.assumptions.append(Assumption(key=path, value=written, why=why))

    # ------------------------------------------------------------ what is wrong

    def problem(self, path: str, code: Code, observed: str, expected: str, action: str) -> None:
        """Add an error about ``path``."""
        self.findings.append(
            Finding(code=code, subject=self.subject(path), observed=observed, expected=expected, action=action)
        )

    def warning(self, path: str, code: Code, observed: str, expected: str, action: str) -> None:
        """Add a warning about ``path``."""
        self.findings.append(
            Finding(
                code=code,
                subject=self.subject(path),
                severity=Severity.WARNING,
                observed=observed,
                expected=expected,
                action=action,
            )
        )

    @property
    def refused(self) -> bool:
        """Whether any finding is an error."""
        return any(f.severity is Severity.ERROR for f in self.findings)


def _counted(value: Value) -> str:
    """A count as people write it, such as ``10M``, where that is no other number."""
    short = format_count(value) if isinstance(value, int | float) else ""
    return short if short and parse_count(short) == value else _written(value)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _unknown(path: str, subject: str, value: object) -> Finding:
    if path in SECTIONS:
        return Finding(
            code=Code.BAD_VALUE,
            subject=subject,
            observed=shown(value),
            expected=f"a table of keys, such as {next(k for k in KEYS if k.startswith(path))}",
            action=f"write the keys under [{path}]",
        )
    close = similar_keys(path)
    return Finding(
        code=Code.UNKNOWN_KEY,
        subject=subject,
        observed=shown(path),
        expected="a key of a workload",
        action=f"did you mean {' or '.join(close)}?" if close else "see docs/workload.md for all keys",
    )


def similar_keys(path: str) -> list[str]:
    """The keys closest to an unknown one: by its name in other tools, by spelling, or by its last part."""
    word = path.strip('"')[:_WORD_AT_MOST].replace("-", "_")
    section, _, last = word.rpartition(".")
    known = [key.path for key in KEYS.values() if {word.lower(), last.lower()} & set(key.known_as)]
    by_last: dict[str, list[str]] = {}
    for key in KEYS:
        by_last.setdefault(key.rpartition(".")[2], []).append(key)
    close = [key for name in nearest(last, by_last) for key in by_last[name]]
    close.sort(key=lambda key: key.rpartition(".")[0] != section)  # those of the same section first
    return list(dict.fromkeys([*known, *close, *nearest(word, KEYS)]))[:2]
