"""The use case ``facts show``: every number of one thing with every source, and why one of them counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from rackrate.app.context import Context, context, laid, own_files
from rackrate.app.documents import finding_docs, header
from rackrate.app.hosting import hosted_said
from rackrate.app.wire.facts import FactsShowDocument, SaidDoc
from rackrate.facts import bundled, explain, rows
from rackrate.facts.explain import BUNDLED, LayeredRow, Said, Step
from rackrate.facts.names import resolve_card, resolve_engine, resolve_model
from rackrate.offers.offer import Offer
from rackrate.offers.own_standing import Standing
from rackrate.problems import Code, Finding, Refused, nearest


class Thing(NamedTuple):
    """What an id means: kind, id, and what people call it."""

    kind: str
    id: str
    title: str


def show_facts(name: str, quantity: str | None = None, *, at: date | None = None) -> FactsShowDocument:
    """Every number of the card, model, engine, format or provider ``name``, or only those of ``quantity``.

    Raises:
        Refused: nothing is called that, a name can mean several things, or there is no such quantity.

    >>> from rackrate import api
    >>> told = api.show_facts("a40", "bandwidth").facts
    >>> [fact.value for fact in told if fact.used]
    ['695.8']
    """
    here = context(at)
    thing = _thing(name, here)
    said = list(_SAID[thing.kind](thing.id, here))
    chosen = _of_quantity(said, quantity, thing) if quantity else said
    return FactsShowDocument(
        **header("facts_show", here),
        kind=thing.kind,
        id=thing.id,
        title=thing.title,
        facts=[_doc(one) for one in chosen],
        warnings=finding_docs(here.findings),
    )


def _doc(said: Said) -> SaidDoc:
    return SaidDoc(
        quantity=said.quantity,
        value=said.value,
        unit=said.unit,
        condition=said.condition,
        kind=said.kind,
        used=said.used,
        step=str(said.step),
        own=said.own,
        source=said.source,
        seen_at=said.seen_at,
        note=said.note,
    )


# ---------------------------------------------------------------- what is meant


def _thing(name: str, here: Context) -> Thing:
    """What ``name`` is: an id of any kind first, then what people call cards, models and engines."""
    for look_up in (_by_id, _by_name):
        found = look_up(name.strip(), here)
        if found is not None:
            return found
    raise Refused([_unknown(name, here)])


def _by_id(name: str, here: Context) -> Thing | None:
    book, folded = here.book, name.casefold()
    if folded in book.accelerators:
        return Thing("card", folded, book.accelerators[folded].product)
    for kind, ids in (("engine", book.engine_ids), ("format", book.formats), ("model", book.model_ids)):
        same = next((i for i in ids if i.casefold() == folded), None)
        if same is not None:
            return Thing(kind, same, _title(kind, same, here))
    providers = _provider_names(here)
    return Thing("provider", providers[folded], providers[folded]) if folded in providers else None


def _title(kind: str, name: str, here: Context) -> str:
    if kind == "engine":
        return here.book.engine(name).title
    return here.book.formats[name].title if kind == "format" else here.book.model(name).family


def _by_name(name: str, here: Context) -> Thing | None:
    book = here.book
    cards = resolve_card(name, book.accelerators)
    if len(cards) > 1:
        action = f"say which: {', '.join(cards)}"
        raise Refused([Finding(code=Code.AMBIGUOUS_CARD, subject="id", observed=repr(name), action=action)])
    if cards:
        return Thing("card", cards[0], book.accelerators[cards[0]].product)
    engine, model = resolve_engine(name, book.engine_ids), resolve_model(name, book.model_ids)
    if isinstance(engine, str):
        return Thing("engine", engine, _title("engine", engine, here))
    return Thing("model", model, _title("model", model, here)) if isinstance(model, str) else None


def _provider_names(here: Context) -> dict[str, str]:
    """The id of every provider by each of its names, in lower case: described, with rules, or selling something."""
    book = here.book
    ids = {**dict.fromkeys(here.catalog.table.providers), **dict.fromkeys(book.billing)}
    names = {name: book.provider_ids.get(name, name) for name in ids} | dict(book.provider_ids)
    names |= {one.id: one.id for one in bundled.providers()}
    names |= {row.cells["id"]: row.cells["id"] for row in _layered("providers.csv", bundled_too=False)}
    return {name.casefold(): one for name, one in names.items()}


def _unknown(name: str, here: Context) -> Finding:
    book = here.book
    known = (*book.accelerators, *book.model_ids, *book.engine_ids, *book.formats, *_provider_names(here).values())
    close = nearest(name, known)
    guess = f"did you mean {' or '.join(close)}? " if close else ""
    return Finding(
        code=Code.UNKNOWN_NAME,
        subject="id",
        observed=repr(name),
        expected="a card, model, engine, format or provider",
        action=f"{guess}`rackrate facts list` has all",
    )


def _of_quantity(said: Sequence[Said], quantity: str, thing: Thing) -> list[Said]:
    """The rows on one quantity, called as in the file or as rackrate does once it is loaded."""
    wanted = quantity.strip().casefold()
    called = {name: loaded for name, (_, loaded, _, _) in rows.QUANTITIES.items()}
    found = [one for one in said if wanted in {one.quantity.casefold(), called.get(one.quantity, "")}]
    if found:
        return found
    known = list(dict.fromkeys(one.quantity for one in said))
    close = nearest(quantity, known)
    raise Refused(
        [
            Finding(
                code=Code.UNKNOWN_NAME,
                subject="quantity",
                observed=quantity,
                expected=f"a quantity of {thing.id}",
                action=f"did you mean {' or '.join(close)}?" if close else f"leave it out: {', '.join(known[:8])} ...",
            )
        ]
    )


# ---------------------------------------------------------------- rows, bundled and own


def _layered(file: str, *, bundled_too: bool = True) -> list[LayeredRow]:
    own = own_files()
    mine = [LayeredRow(row.layer, row.cells) for row in laid(own).facts.rows[file]] if own else []
    return [*mine, *(LayeredRow(BUNDLED, cells) for cells in (bundled.table(file) if bundled_too else ()))]


def _with(file: str, column: str, value: str) -> list[LayeredRow]:
    return [row for row in _layered(file) if row.cells[column] == value]


def _card(name: str, here: Context) -> Iterable[Said]:
    yield from explain.records(_with("accelerators.csv", "id", name))
    facts = _with("accelerator_facts.csv", "accelerator", name)
    total = here.book.accelerators[name].facts["memory_total_bytes"]
    ruled = None
    if not any(row.cells["quantity"] == "memory_total" for row in facts):
        card = min(_with("accelerators.csv", "id", name), key=lambda row: row.layer).cells
        ruled = rows.ruled_memory(card, bundled.table("memory_rules.csv"), f"{total.seen_at}")
    yield from explain.numbers(facts, ruled)


def _model(name: str, here: Context) -> Iterable[Said]:
    yield from explain.records(_with("models.csv", "id", name))
    yield from hosted_said(here.book.model(name), here)


def _engine(name: str, _here: Context) -> Iterable[Said]:
    own = own_files()
    mine = [(True, one.document) for one in laid(own).facts.engines if one.engine.id == name] if own else []
    documents = (content for content in bundled.engine_documents().values() if content["id"] == name)
    yield from explain.document([*mine, *((False, content) for content in documents)])


def _provider(name: str, here: Context) -> Iterable[Said]:
    yield from explain.records(_with("providers.csv", "id", name))
    yield from explain.rules(here.book.rules_of(name).rules, here.at)
    yield from explain.access(fact for fact in bundled.access() if fact.provider == name)
    for one in here.catalog.own:
        if here.book.provider_ids.get(one.line.cells[0], one.line.cells[0]) == name:
            yield from _prices(one, here)


def _prices(one: Standing, here: Context) -> Iterator[Said]:
    """An own price, and the bundled ones that it replaces or that replace it."""
    table = here.catalog.table
    others = one.replaces or ((one.replaced_by,) if one.replaced_by >= 0 else ())
    step = Step.ONLY if not others else Step.OWN if one.replaces else Step.NEWEST
    for row in (one.row, *others):
        yield _price(table.offer(row), step)


def _price(offer: Offer, step: Step) -> Said:
    where = ", ".join(filter(None, (f"{offer.gpus} x {offer.card_label}", offer.market, offer.region)))
    return Said(
        quantity=f"price of {offer.name}",
        value=f"{offer.price.amount.normalize():f}",
        unit=f"{offer.price.currency}/{offer.term.unit}",
        condition=where,
        kind=offer.observed_how,
        source=offer.source,
        seen_at=offer.observed_on.isoformat(),
        used=not offer.superseded,
        step=step,
        note=offer.note,
    )


_SAID: Mapping[str, Callable[[str, Context], Iterable[Said]]] = {
    "card": _card,
    "model": _model,
    "engine": _engine,
    "format": lambda name, _here: explain.records(_with("formats.csv", "id", name)),
    "provider": _provider,
}
