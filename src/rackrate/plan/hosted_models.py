"""Which hosted models stand for a model, by name, and which of their prices are in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from rackrate.facts.hosted import DEPRECATED, HostedPrice, Timed, by_model, in_force
from rackrate.facts.hosted_names import SIZE_TOLERANCE, billions, family, is_named, matched, parted
from rackrate.facts.model import Model
from rackrate.values import Value

CHOSEN = "chosen"
OTHERS_AT_MOST = 3
_BILLION = 1e9


class HostedModel(Value, frozen=True, kw_only=True):
    """One model at one provider: how surely it is the one in question, and the prices of the day in force."""

    match: str
    schedule: tuple[Timed, ...]

    @property
    def price(self) -> HostedPrice:
        """The first of the prices in force; all share provider, model and source."""
        return self.schedule[0].price


def hosted_models(
    prices: Iterable[HostedPrice], model: Model, at: date, processing: str = "", *, named: str = ""
) -> list[HostedModel]:
    """The hosted models that are ``model`` (or that the user ``named``) and have a price at ``at``.

    A batch price counts where it is asked for and there is one, else the usual price.
    """
    found = []
    for (provider, name), listed in by_model(prices).items():
        names = (name, *listed[0].names)
        match = _named(named, provider, names) if named else matched(model.id, model.params_total, names)
        schedule = match and _schedule(listed, at, processing)
        if match and schedule:
            found.append(HostedModel(match=str(match), schedule=schedule))
    return found


def _named(wanted: str, provider: str, names: Sequence[str]) -> str:
    return CHOSEN if is_named(wanted, provider, names) else ""


def _schedule(listed: Sequence[HostedPrice], at: date, processing: str) -> tuple[Timed, ...]:
    for wanted in dict.fromkeys((processing, "")):
        held = in_force([price for price in listed if price.processing == wanted], at)
        if held:
            return held
    return ()


def others(prices: Iterable[HostedPrice], model: Model, at: date) -> list[HostedModel]:
    """Other models of the family and of about the size, the cheapest of each name: what to name where none matches."""
    wanted = family(model.id)
    near: dict[tuple[str, ...], HostedModel] = {}
    for (_, name), listed in by_model(prices).items():
        parts = parted(name)
        size = billions(parts)
        near_in_size = size is not None and abs(size * _BILLION / model.params_total - 1) <= SIZE_TOLERANCE
        if wanted not in parts.plain[:1] or not near_in_size:
            continue
        schedule = _schedule(listed, at, "")
        if schedule and schedule[0].price.state != DEPRECATED:
            one = HostedModel(match="other", schedule=schedule)
            key = (*parts.plain, *parts.sizes)
            if key not in near or _cheapness(one) < _cheapness(near[key]):
                near[key] = one
    return sorted(near.values(), key=_cheapness)[:OTHERS_AT_MOST]


def _cheapness(one: HostedModel) -> tuple[float, str, str]:
    price = one.price
    return float(price.input_per_million.base + price.output_per_million.base), price.provider, price.model
