"""Reading a configuration: numbers out of a table that anybody may have written.

What is missing or wrong becomes a finding and counts as nothing from there on,
so that formulas run through and all findings are reported together. Numbers
are bounded, lists are cut: a hostile file costs no more than an honest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackrate.problems import Code, Finding, Severity

LARGEST = 2**33
"""No size of a model comes near; products of a few such numbers stay small integers."""

MOST_LAYERS = 1024
_SHOWN_AT_MOST = 60
_NEXT = "correct config.json, or give the folder or GGUF file that it belongs to: headers hold the sizes too"
_SWITCH = {"true": True, "false": False, "1": True, "0": False}
_NO_DEFAULT: Mapping[str, int] = {}

# What a key means, for people who must supply it.
_MEANING = {
    "hidden_size": "the width of the model",
    "num_hidden_layers": "the number of layers",
    "num_attention_heads": "the number of query heads",
    "intermediate_size": "the width of the feed-forward block",
    "vocab_size": "the number of tokens in the vocabulary",
    "kv_lora_rank": "the width of the latent that is cached",
    "moe_intermediate_size": "the width of one expert",
}


class Reader:
    """One table of a configuration; ``findings`` and ``remarks`` are shared with the tables inside it."""

    def __init__(self, table: Mapping[str, object], where: str, parent: Reader | None = None) -> None:
        self.table = table
        self.where = where
        self.defaults: Mapping[str, int] = _NO_DEFAULT
        self.findings: list[Finding] = [] if parent is None else parent.findings
        self.remarks: list[Finding] = [] if parent is None else parent.remarks
        self.defaulted: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return self.table.get(key) is not None

    def whole(self, *keys: str, default: int | None = None, low: int = 1, high: int = LARGEST) -> int:
        """The whole number under the first of ``keys`` that is there; 0, with a finding, when none is."""
        key = next((k for k in keys if k in self), None)
        if key is None:
            return self._absent(keys, default)
        number = as_whole(self.table[key])
        if number is None or not low <= number <= high:
            self.wrong(key, self.table[key], f"a whole number from {low} to {high}")
            return 0
        return number

    def maybe(self, *keys: str, low: int = 1, high: int = LARGEST) -> int | None:
        """Like ``whole``, but None when the key is not there and nothing is lost by that."""
        if not any(key in self for key in keys):
            return next((self.defaults[key] for key in keys if key in self.defaults), None)
        return self.whole(*keys, low=low, high=high)

    def count(self, *keys: str, default: int = 0, high: int = LARGEST) -> int:
        """A number that may be zero, ``default`` when it is not there."""
        return self.whole(*keys, default=default, low=0, high=high)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """A switch, ``default`` when it is not there."""
        key = next((k for k in keys if k in self), None)
        if key is None:
            return default
        value = self.table[key]
        said = value if isinstance(value, bool) else _SWITCH.get(str(value).casefold())
        if said is None:
            self.wrong(key, value, "true or false")
        return default if said is None else said

    def text(self, *keys: str, default: str = "") -> str:
        """A short text, ``default`` when it is not there or no text."""
        found = next((self.table[k] for k in keys if isinstance(self.table.get(k), str)), default)
        return clean(str(found))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of short texts, as far as it is one."""
        value = self.table.get(key)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return ()
        return tuple(clean(item) if isinstance(item, str) else "" for item in value[:MOST_LAYERS])

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers, as far as it is one; what is no number counts as 0."""
        value = self.table.get(key)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return ()
        return tuple(as_whole(item) or 0 for item in value[:MOST_LAYERS])

    def tables(self, key: str) -> tuple[Reader, ...]:
        """A list of tables, as far as it is one."""
        value = self.table.get(key)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return ()
        return tuple(self._inner(item, f"{key}[{n}]") for n, item in enumerate(value[:MOST_LAYERS]))

    def inner(self, *keys: str) -> Reader | None:
        """The table under the first of ``keys`` that holds one."""
        for key in keys:
            value = self.table.get(key)
            if isinstance(value, Mapping):
                return self._inner(value, key)
        return None

    def section(self, key: str) -> Reader:
        """The table under ``key``, empty when there is none."""
        return self.inner(key) or self._inner({}, key)

    def _inner(self, value: object, key: str) -> Reader:
        table = value if isinstance(value, Mapping) else {}
        return Reader(table, f"{self.where} {key}", self)

    # ------------------------------------------------------------ what is wrong

    def _absent(self, keys: Sequence[str], default: int | None) -> int:
        if default is not None:
            return default
        for key in keys:
            if key in self.defaults:
                self.defaulted[key] = self.defaults[key]
                return self.defaults[key]
        self.missing(keys[0], "a whole number" + (f": {_MEANING[keys[0]]}" if keys[0] in _MEANING else ""))
        return 0

    def missing(self, key: str, expected: str) -> None:
        """Note a key that must be there."""
        self._problem(Code.MISSING_VALUE, key, "no such key", expected)

    def wrong(self, key: str, value: object, expected: str) -> None:
        """Note a value that makes no sense."""
        self._problem(Code.BAD_VALUE, key, shown(value), expected)

    def remark(self, key: str, observed: str, expected: str, action: str) -> None:
        """Note something that does not stop the reading, but that its reader should know."""
        if all(found.subject != f"{self.where} {key}" for found in self.remarks):
            self.remarks.append(
                Finding(
                    code=Code.MODEL_INEXACT,
                    severity=Severity.WARNING,
                    subject=f"{self.where} {key}",
                    observed=observed,
                    expected=expected,
                    action=action,
                )
            )

    def _problem(self, code: Code, key: str, observed: str, expected: str) -> None:
        subject = f"{self.where} {key}"
        if all(found.subject != subject for found in self.findings):
            self.findings.append(
                Finding(code=code, subject=subject, observed=observed, expected=expected, action=_NEXT)
            )


def as_whole(value: object) -> int | None:
    """A whole number as JSON may write it (``4096`` or ``4096.0``), or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST else None


def clean(text: str) -> str:
    """A text as it may be kept and printed: short, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[: 2 * _SHOWN_AT_MOST])


def shown(value: object) -> str:
    """A value as it may be printed in a finding."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"a list of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**_SHOWN_AT_MOST:
        return "a very large number"
    text = clean(value if isinstance(value, str) else repr(value))
    return text[:_SHOWN_AT_MOST] or "an empty text"
