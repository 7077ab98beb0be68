"""The names in a request looked up in the facts: model, engine, format, cards, vendors, currencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.names import base_of_tuned, resolve_card, resolve_engine, resolve_model
from rackrate.problems import Code, Finding, Severity, nearest
from rackrate.values import replace
from rackrate.workload.draft import Draft


def named_model(draft: Draft, book: FactBook, path: str = "model") -> Model | None:
    """The model asked for with this key; None, with a finding, when it is not known or not given."""
    text = draft.text(path)
    if text is None:
        if not any(f.subject == draft.subject(path) for f in draft.findings):
            draft.problem(path, Code.MISSING_VALUE, "no model", f"one of {len(book.model_ids)} ids", _MODEL_NEXT)
        return None
    found = resolve_model(text, book.model_ids)
    if isinstance(found, Finding):
        base = base_of_tuned(text, book.model_ids)
        other = _as_base(text, base) if base else found
        draft.findings.append(replace(other, subject=draft.subject(path)))
        found = base or ""
    if not found:
        return None
    model = book.model(found)
    draft.findings.extend(model.remarks)
    return model


def _as_base(text: str, base: str) -> Finding:
    return Finding(
        code=Code.MODEL_INEXACT,
        subject="model",
        severity=Severity.WARNING,
        observed=text,
        expected=f"a bundled model; the shape of {base} is used, from which this name differs by tuning alone",
        action="give its config.json or hub:owner/name to read its own shape",
    )


_MODEL_NEXT = 'give model = "meta-llama/Llama-2-7b-hf", or --model'


def named_engine(draft: Draft, book: FactBook) -> Engine | None:
    """The engine asked for; None when none was, or, with a finding, when it is not known."""
    text = draft.text("engine")
    if text is None:
        return None
    name, mark, version = text.partition("==")
    if mark and not any(map(str.isdigit, version)):
        action = f"write {name}==4.46, or {name} alone for its newest version"
        draft.problem("engine", Code.BAD_VALUE, text, "a version in numbers behind ==", action)
        return None
    found = resolve_engine(name, book.engine_ids)
    if isinstance(found, Finding):
        draft.findings.append(replace(found, subject=draft.subject("engine")))
        return None
    return book.engine(f"{found}{mark}{version.strip()}")


def named_format(draft: Draft, book: FactBook, path: str = "quantization") -> WeightFormat | None:
    """The weight format asked for with this key; None when none was, or, with a finding, when it is not known."""
    text = draft.text(path)
    if text is None:
        return None
    known = {_plain(format_id): format_id for format_id in book.formats}
    if _plain(text) in known:
        return book.formats[known[_plain(text)]]
    draft.findings.append(_unknown_name(draft.subject(path), text, "a weight format", book.formats))
    return None


def named_cards(draft: Draft, book: FactBook) -> tuple[str, ...]:
    """The ids of the cards allowed; a name that means several cards allows them all."""
    found: dict[str, None] = {}
    for text in draft.texts("limits.gpus"):
        ids, profile = resolve_card(text, book.accelerators), _MIG_PROFILE.search(text.casefold())
        whole = ids or resolve_card(text[: profile.start()], book.accelerators) if profile else ()
        if profile and whole:
            draft.findings.append(_slice_named(draft.subject("limits.gpus"), text, profile[0], whole))
            continue
        found |= dict.fromkeys(ids)
        if not ids:
            wrong = _unknown_name(draft.subject("limits.gpus"), text, "a card, by its id", book.accelerators)
            draft.findings.append(replace(wrong, action=_card_meant(text, book) or wrong.action))
    return tuple(found)


def _card_meant(text: str, book: FactBook) -> str:
    """What to write instead of a name that no card has: a card of a name like it; a size is no name."""
    import re  # imported here: only the unhappy path needs it

    size = re.fullmatch(r"(?i)(\d{1,4})\s*gi?b?", text.strip())
    if size:
        return f"name a card, such as rtx4090; --require min_memory_gb={size[1]} takes all with as much memory or more"
    from rackrate.facts.loose_names import suggest_cards

    close = suggest_cards(text, book.accelerators)
    return f"did you mean {' or '.join(close)}?" if close else ""


_MIG_PROFILE = re.compile(r"(?<![0-9a-z])\d+g\.\d+gb(?:\+[a-z.]+)?")


def _slice_named(subject: str, text: str, profile: str, cards: Sequence[str]) -> Finding:
    """The refusal of a slice of a card, where whole cards are asked for: what holds on one does not on the other."""
    others = f" (or {', '.join(cards[1:])})" if cards[1:] else ""
    return Finding(
        code=Code.BAD_VALUE,
        subject=subject,
        observed=text,
        expected=f"a whole card; {profile} is a slice of one",
        action=f"name the card, {cards[0]}{others}; `rackrate fit` with it tells which of its slices hold the work",
    )


def named_vendors(draft: Draft, book: FactBook) -> tuple[str, ...]:
    """The vendors allowed, as the facts spell them."""
    known = {card.vendor.casefold(): card.vendor for card in book.accelerators.values()}
    found = []
    for text in draft.texts("limits.vendors"):
        if text.casefold() in known:
            found.append(known[text.casefold()])
        else:
            subject = draft.subject("limits.vendors")
            draft.findings.append(_unknown_name(subject, text, "a vendor of cards", known.values()))
    return tuple(found)


def check_currency(draft: Draft, path: str, currency: str, book: FactBook) -> None:
    """Refuse a currency that has no exchange rate."""
    if not book.rates.knows(currency):
        known = sorted({book.rates.base, *book.rates.per_base})
        found = _unknown_name(draft.subject(path), currency, "a currency with an exchange rate", known)
        draft.findings.append(replace(found, action=f"use one of {', '.join(known)}"))


def _unknown_name(subject: str, text: str, expected: str, known: Iterable[str]) -> Finding:
    ids = list(known)
    close = nearest(text, ids)
    examples = ", ".join(ids[:6])
    action = f"did you mean {' or '.join(close)}?" if close else f"there are {len(ids)}, such as {examples}"
    return Finding(code=Code.UNKNOWN_NAME, subject=subject, observed=text, expected=expected, action=action)


def _plain(text: str) -> str:
    return text.casefold().replace("_", "-")
