"""The book of facts: everything known, with one digest, handed to rooms as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.access import AccessFact
from rackrate.facts.billing import BillingRules
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.facts.sight import Sight
from rackrate.money import ExchangeRates
from rackrate.values import Value, field, replace


class FactBook(Value, frozen=True, kw_only=True):
    """What is known at one date.

    ``model`` and ``engine`` are looked up on demand (there are hundreds of
    models and a question needs one); they raise ``KeyError`` for unknown ids.
    ``digest`` is the SHA-256 of all bundled fact files, in hex.
    ``provider_ids`` maps other names of a provider to the one that ``billing`` and ``access`` use.
    """

    accelerators: Mapping[str, Accelerator]
    formats: Mapping[str, WeightFormat]
    billing: Mapping[str, BillingRules]
    model_ids: tuple[str, ...]
    model: Callable[[str], Model]
    engine_ids: tuple[str, ...]
    engine: Callable[[str], Engine]
    rates: ExchangeRates
    digest: str
    seen_at: date
    provider_ids: Mapping[str, str] = field(default_factory=dict)
    access: Mapping[str, tuple[AccessFact, ...]] = field(default_factory=dict)
    pipelines: Mapping[str, Pipeline] = field(default_factory=dict)
    sights: Callable[[], tuple[Sight, ...]] = tuple

    def sight_of(self, model: Model) -> Sight | None:
        """How ``model`` turns images into tokens; None where that is not known, or it sees none."""
        if not model.modality.startswith("image+text"):
            return None
        found = next((each for each in self.sights() if model.family in each.names), None)
        return found.fitted(model.tower) if found is not None else None

    def pipeline_of(self, model: Model) -> Pipeline | None:
        """The networks with which ``model`` makes images; None where they are not known, or it makes none."""
        return self.pipelines.get(model.id) or model.pipeline

    def rules_of(self, provider: str) -> BillingRules:
        """The rules of ``provider`` (resold offers: of the upstream name if known); empty when none were seen."""
        for name in (provider, provider.partition(":")[2]):
            known = self.provider_ids.get(name, name)
            if known in self.billing:
                return self.billing[known]
        return BillingRules(provider=provider, rules=())

    def access_of(self, provider: str) -> tuple[AccessFact, ...]:
        """What is known to stand between a renter and ``provider`` (of resold offers: the reseller)."""
        seller = provider.partition(":")[0]
        return self.access.get(self.provider_ids.get(seller, seller), ())


def with_model(book: FactBook, model: Model) -> FactBook:
    """The book with one model more, unless it has that."""
    if model.id in book.model_ids:
        return book
    known = book.model

    def look_up(name: str) -> Model:
        return model if name == model.id else known(name)

    return replace(book, model_ids=(*book.model_ids, model.id), model=look_up)


def with_engine(book: FactBook, engine: Engine) -> FactBook:
    """The book with ``engine`` in the place of the one of its id."""
    known = book.engine

    def look_up(name: str) -> Engine:
        return engine if name == engine.id else known(name)

    return replace(book, engine=look_up)
