"""Values: raw text, numbers and lists turned into what a key holds, or into a finding that says what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from rackrate.money import Money, currency_code
from rackrate.problems import Code, Finding
from rackrate.units import parse_bytes, parse_count, parse_hours
from rackrate.workload.keys import Key
from rackrate.workload.workload import Budget

Value = int | float | str | bool | tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | Budget

# Patterns are compiled where they are first used: a start that needs none should not pay for them.
_WHOLE = r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)"
_THOUSANDS = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])"
_MONEY = (
    r"(?i)(?:(?P<before>[a-z]{3}|人民币)\s*)?(?P<amount>[0-9][0-9,_]*(?:\.[0-9]+)?)\s*(?P<after>[a-z]{3}|元|人民币)?"
    r"(?:\s*(?:/|\bper\b)\s*(?P<period>[a-z]+|小时|天|月))?"
)
_PERIODS = {"hour": "hour", "h": "hour", "hr": "hour", "day": "day", "d": "day", "month": "month", "mo": "month"}
_PERIODS |= {"total": "total", "job": "total", "小时": "hour", "天": "day", "月": "month"}
_YUAN_OR_YEN = "¥￥"
_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_SHOWN_AT_MOST = 60
_LISTED_AT_MOST = 8
_TEXT_AT_MOST = 200


def read_value(key: Key, raw: object, subject: str) -> Value | Finding:
    """The value of ``key`` that ``raw`` means, or what is wrong with it."""
    try:
        if isinstance(raw, str) and len(raw) > _TEXT_AT_MOST and not key.multiple:
            raise ValueError("write a shorter text")  # noqa: TRY301 - as the readers do
        value = _READERS[key.kind](key, raw)
    except (ValueError, OverflowError) as wrong:
        return Finding(
            code=Code.BAD_VALUE,
            subject=subject,
            observed=shown(raw),
            expected=expected(key),
            action=_step(key, wrong),
        )
    if _outside(key, value):
        return Finding(
            code=Code.OUT_OF_BOUNDS,
            subject=subject,
            observed=shown(raw),
            expected=expected(key),
            action=_within(key),
        )
    return value


def _within(key: Key) -> str:
    """The range to choose from; a key with no range of its own takes anything above 0."""
    if key.low >= key.high:
        return "choose a value above 0"
    return f"choose{_span(key)}{f' {key.unit}' if key.unit else ''}"


def _step(key: Key, wrong: Exception) -> str:
    """What to write instead; a reader's own words where they say it."""
    if isinstance(wrong, OverflowError):
        return "write a smaller number"
    text = str(wrong)
    return f"write it as in {key.example}" if text.startswith("not a number") and key.example else text


def expected(key: Key) -> str:
    """What ``key`` takes, in a few words."""
    many = "a list, each " if key.multiple else ""
    if key.choices:
        return f"{many}one of {', '.join(key.choices)}"
    if key.kind in {"text", "list", "money", "shares", "network"}:
        return f"{_NOUNS[key.kind]} such as {key.example!r}"
    if key.kind == "switch":
        return "true or false"
    unit = f" of {key.unit}" if key.unit else ""
    example = f", such as {key.example!r}" if key.kind in {"bytes", "hours", "count"} else ""
    return f"{many}{_NOUNS[key.kind]}{unit}{_bounds(key)}{example}"


def shown(raw: object) -> str:
    """A value as it may be printed: short, on one line, without control characters."""
    if isinstance(raw, Mapping):
        return "a table"
    if isinstance(raw, (list, tuple)):
        return ", ".join(map(shown, raw)) if _short_texts(raw) else f"a list of {len(raw)}"
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, int) and abs(raw) >= 10**_SHOWN_AT_MOST:
        return "a very large number"
    text = str(raw)
    text = "".join(c if c.isprintable() else "?" for c in text[: _SHOWN_AT_MOST + 1])
    return (text[:_SHOWN_AT_MOST] + "..." if len(text) > _SHOWN_AT_MOST else text) or "an empty text"


def _short_texts(items: Sequence[object]) -> bool:
    return 0 < len(items) <= _LISTED_AT_MOST and all(isinstance(item, str) for item in items)


# ---------------------------------------------------------------- readers, one for each kind of key


def _whole(_key: Key, raw: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)
    if isinstance(raw, str) and len(raw) <= _SHOWN_AT_MOST and re.fullmatch(_WHOLE, raw.strip()):
        return int(raw.replace(",", "").replace("_", ""))
    if isinstance(raw, str) and re.fullmatch(r"\s*[0-9.]+\s*[kKmM]i?\s*", raw):
        raise ValueError("write the number out: 4k is 4000 to some and 4096 to others")
    raise ValueError("write a whole number")


def _number(_key: Key, raw: object) -> float:
    if isinstance(raw, str):
        return _finite(parse_count(_decimal_point(raw)))
    return _finite(_as_float(raw))


def _count(_key: Key, raw: object) -> float:
    return _finite(parse_count(_decimal_point(raw)) if isinstance(raw, str) else _as_float(raw))


def _bytes(key: Key, raw: object) -> float:
    if isinstance(raw, str) and re.search(r"[a-z]", raw, re.IGNORECASE):
        return _finite(parse_bytes(_decimal_point(raw)))
    number = _number(key, raw)
    if number:
        raise ValueError(f"say the unit, such as {number:g} GB")
    return number


def _hours(_key: Key, raw: object) -> float:
    return _finite(parse_hours(_decimal_point(raw)) if isinstance(raw, str) else _as_float(raw))


def _text(_key: Key, raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError("write a text")
    if not raw.isprintable() or len(raw) > _TEXT_AT_MOST:
        raise ValueError("write a short text on one line")
    return raw.strip()


def _choice(key: Key, raw: object) -> str:
    return _chosen(key, _text(key, raw))


def _list(key: Key, raw: object) -> tuple[str, ...]:
    texts = [_text(key, part) for item in _items(raw) for part in _parts(item)]
    return tuple(dict.fromkeys(_chosen(key, text) if key.choices else text for text in texts))


def _whole_list(key: Key, raw: object) -> tuple[int, ...]:
    numbers = (_whole(key, part) for item in _items(raw) for part in _parts(item))
    return tuple(sorted(set(numbers)))


def _shares(key: Key, raw: object) -> tuple[float, ...]:
    """Shares in their order, of which some are more than nothing."""
    shares = tuple(_number(key, part) for item in _items(raw) for part in _parts(item))
    if min(shares, default=-1.0) < 0 or not sum(shares):
        raise ValueError("write a share for each card, none below 0 and not all of them 0")
    return shares


def _money(_key: Key, raw: object) -> Budget:
    match = re.fullmatch(_MONEY, raw.strip()) if isinstance(raw, str) and len(raw) <= _SHOWN_AT_MOST else None
    if isinstance(raw, str) and any(mark in raw for mark in _YUAN_OR_YEN):
        raise ValueError("write CNY or JPY after the amount: the sign is that of yuan and of yen")
    if match is None or bool(match["before"]) == bool(match["after"]):
        raise ValueError("write an amount with its ISO 4217 currency, such as 500 USD or 3000 CNY/month")
    period = _PERIODS.get((match["period"] or "total").lower())
    if period is None:
        raise ValueError("write the period as hour, day, month or total")
    amount = Decimal(_decimal_point(match["amount"]).replace(",", "").replace("_", ""))
    return Budget(money=Money(amount, currency_code(match["before"] or match["after"])), period=period)


def _network(key: Key, raw: object) -> str:
    from rackrate.workload.network import network_of

    return network_of(_text(key, raw)).text


def _switch(_key: Key, raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in _SWITCH:
        return _SWITCH[raw.strip().lower()]
    raise ValueError("write true or false")


_READERS: dict[str, Callable[[Key, object], Value]] = {
    "whole": _whole,
    "number": _number,
    "count": _count,
    "bytes": _bytes,
    "hours": _hours,
    "text": _text,
    "choice": _choice,
    "list": _list,
    "whole_list": _whole_list,
    "shares": _shares,
    "money": _money,
    "switch": _switch,
    "network": _network,
}
_NOUNS = {
    "whole": "a whole number",
    "number": "a number",
    "count": "a number",
    "bytes": "a size with its unit",
    "hours": "a span of time",
    "text": "a text",
    "list": "a list of texts",
    "whole_list": "a whole number",
    "shares": "numbers",
    "money": "an amount with its currency",
    "network": "the rate of a network adapter",
}


def _as_float(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise ValueError("write a number")
    return float(raw)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("write a finite number")
    return number


def _decimal_point(text: str) -> str:
    """``text`` as it is, if its commas separate thousands; "1,5" would otherwise be read as 15."""
    if "," in text and not re.match(_THOUSANDS, text.strip()):
        raise ValueError("write a point before decimals, and commas only between thousands")
    return text


def _chosen(key: Key, text: str) -> str:
    """The choice that ``text`` means; case, hyphens, underscores and blanks make no difference."""
    words = {_plain(choice): choice for choice in key.choices}
    words |= {_plain(word): choice for word, choice in key.spellings.items()}
    if _plain(text) in words:
        return words[_plain(text)]
    from rackrate.problems import nearest

    close = nearest(text, key.choices, limit=1)
    raise ValueError(f"did you mean {close[0]}?" if close else f"choose one of {', '.join(key.choices)}")


def _plain(word: str) -> str:
    return re.sub(r"[-_\s]+", "_", word.strip().casefold())


def _items(raw: object) -> Sequence[object]:
    return raw if isinstance(raw, (list, tuple)) else [raw]


def _parts(item: object) -> Sequence[object]:
    return item.split(",") if isinstance(item, str) else [item]


def _outside(key: Key, value: Value) -> bool:
    if isinstance(value, Budget):
        return not value.money.amount
    if isinstance(value, tuple):
        return key.kind == "whole_list" and not all(key.low <= n <= key.high for n in value if isinstance(n, int))
    if isinstance(value, (str, bool)):
        return False
    low = 0 if key.kind == "bytes" else key.low
    return not low <= value <= key.high


def _bounds(key: Key) -> str:
    if key.kind in {"bytes", "count", "hours"}:
        return ""
    return _span(key)


def _span(key: Key) -> str:
    return f" from {key.low:,g} to {key.high:,.0f}"
