"""Needs: what renting must not ask for, or must allow, as texts such as ``no_quota`` or ``payment=card``.

Held against the access facts of a seller. A fact under a condition never makes
a need met: whether the condition holds for the renter is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackrate.evidence import Unknown
from rackrate.facts.access import KEYS, AccessFact
from rackrate.units import parse_count

_FREE = frozenset({"not_required", "false"})
_WITHOUT = {
    f"no_{key}": key
    for key in ("company_verification", "real_name_verification", "minimum_balance", "quota", "waitlist")
}
_PAYMENT, _STOCK = "payment", "stock_signal"
_METHODS = sorted(KEYS["payment_methods"] or ())

NEEDS = (*_WITHOUT, _STOCK, *(f"{_PAYMENT}={method}" for method in _METHODS))
"""All needs as they are written."""


def parse_need(text: str) -> str:
    """A need in the one way in which it is written inside.

    Raises:
        ValueError: there is no such need; the text says what to write.
    """
    name, equals, method = (part.strip().lower().replace("-", "_") for part in text.partition("="))
    found = f"{name}={method}" if equals else name
    if found in NEEDS:
        return found
    if name == _PAYMENT:
        raise ValueError(f"write {_PAYMENT}= and one of {', '.join(_METHODS)}")
    from rackrate.problems import nearest

    close = nearest(found, NEEDS)
    raise ValueError(f"did you mean {' or '.join(close)}?" if close else f"choose from {', '.join(NEEDS)}")


def needs(texts: Iterable[str]) -> tuple[str, ...]:
    """Needs in the one way in which they are written inside, without those that mean nothing."""
    found = []
    for text in texts:
        try:
            found.append(parse_need(text))
        except ValueError:
            continue
    return tuple(dict.fromkeys(found))


def meets_need(known: Sequence[AccessFact], need: str) -> bool | Unknown:
    """Whether a seller of whom ``known`` is known surely meets ``need``, surely does not, or why that is open."""
    if need == _STOCK:
        return _shows_stock(known)
    if need.startswith(f"{_PAYMENT}="):
        return _takes(known, need.partition("=")[2])
    return _is_without(known, _WITHOUT[need])


def _of(known: Iterable[AccessFact], key: str) -> list[AccessFact]:
    return [fact for fact in known if fact.key == key]


def _is_without(known: Iterable[AccessFact], key: str) -> bool | Unknown:
    """Nothing of the kind is asked for; of a quota the condition says what it counts, not for whom it holds."""
    said = _of(known, key)
    asking = [fact for fact in said if not _is_free(fact)]
    if any(not fact.condition or key == "quota" for fact in asking):
        return False
    if any(not fact.condition for fact in said):
        return True if not asking else Unknown(written(asking[0]))
    return Unknown(written(said[0]) if said else f"{key}: no source seen")


def _is_free(fact: AccessFact) -> bool:
    try:
        return fact.value in _FREE or parse_count(fact.value) == 0
    except ValueError:
        return False


def _takes(known: Iterable[AccessFact], method: str) -> bool | Unknown:
    said = _of(known, "payment_methods")
    taking = [fact for fact in said if method in fact.value.split("|")]
    if any(not fact.condition for fact in taking):
        return True
    if taking:
        return Unknown(written(taking[0]))
    return False if any(not fact.condition for fact in said) else Unknown("payment_methods: no source seen")


def _shows_stock(known: Iterable[AccessFact]) -> bool | Unknown:
    said = _of(known, _STOCK)
    return any(fact.value != "none" for fact in said) if said else Unknown(f"{_STOCK}: no source seen")


def about(known: Iterable[AccessFact], need: str) -> tuple[AccessFact, ...]:
    """The facts that decide about a need."""
    key = "payment_methods" if need.startswith(f"{_PAYMENT}=") else _WITHOUT.get(need, need)
    return tuple(_of(known, key))


def written(fact: AccessFact) -> str:
    """A fact in a few words."""
    unit = f" {fact.unit}" if fact.unit else ""
    condition = f" ({fact.condition})" if fact.condition else ""
    return f"{fact.key.replace('_', ' ')} {fact.value.replace('_', ' ').replace('|', ', ')}{unit}{condition}"
