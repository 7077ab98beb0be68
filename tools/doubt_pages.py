"""Pages on what is not sure: values in doubt, and what providers ask of a renter as far as anybody found it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from rackrate.app.context import facts
from rackrate.facts import bundled
from rackrate.facts.access import KEYS
from rackrate.offers import catalog

LOOKED_FOR = Path(__file__).with_name("access_looked_for.csv")
DOUBTS = Path(__file__).parents[1] / "tests" / "facts" / "doubtful.csv"
DONE = {
    "resolved": "settled: the right value is used, the other is not in the files",
    "kept": "both stay: the written rule picks the one that is used, `rackrate facts show` prints both",
    "marked": "no value is sure: what is used says so",
    "absent": "nothing was written: what nobody states is unknown",
}


def doubts_page() -> str:
    """Every value that was in doubt, with what was done; a test holds each line against the files."""
    with DOUBTS.open(encoding="utf-8", newline="") as lines:
        doubts = list(csv.DictReader(lines))
    counts = Counter(doubt["done"] for doubt in doubts)
    done = "\n".join(f"- **{name}** ({counts[name]}): {words}." for name, words in DONE.items())
    rows = "\n".join(map(_doubt, doubts))
    return (
        "# Values in doubt\n\n"
        "Sources disagree, print the rate of another variant, or slip by a unit. Each such value that was met is\n"
        "listed here with what was done about it; the tests hold every line against the files.\n\n"
        f"{done}\n\n"
        "The rule, for numbers of cards: one that holds without a condition goes before one under a condition, a\n"
        "driver's reading before print, print before arithmetic, arithmetic before an assumption, then the newest.\n"
        "`rackrate facts show ID QUANTITY` says which step decided.\n\n"
        f"{_whole_columns()}\n\n"
        "| doubt | of | quantity | used | also met | done | the row says |\n|---|---|---|--:|--:|---|---|\n"
        f"{rows}\n"
    )


def _doubt(doubt: Mapping[str, str]) -> str:
    cells = (doubt[name] for name in ("doubt", "subject", "column", "right", "wrong", "done", "says"))
    first, subject, column, right, wrong, done, says = (cell.replace("|", "\\|") for cell in cells)
    return f"| {first} | `{subject}` | {column} | {right or 'nothing'} | {wrong} | {done} | {says} |"


def _whole_columns() -> str:
    """What is in doubt for many rows at once, counted."""
    book = facts()
    cards = list(book.accelerators.values())
    recalled = {name: sum(name in card.recalled for card in cards) for name in ("ecc", "cooling")}
    engines = sum("video_encoders" not in card.facts for card in cards)
    total = sum(card.facts["memory_total_bytes"].kind != "measured" for card in cards)
    models = sum("recalled" in book.model(name).source for name in book.model_ids)
    uncounted = [row["id"] for row in bundled.table("models.csv") if not row["params_check"]]
    return (
        "For many rows at once:\n\n"
        f"- ECC of {recalled['ecc']} cards and cooling of {recalled['cooling']} are recalled: no page was seen that "
        "says so. `rackrate gpu` and\n  `facts show` say it beside the value.\n"
        f"- {total} of {len(cards)} cards have no driver's reading of their memory: the total follows from a rule made "
        "from their siblings,\n  on the low side, and is marked derived.\n"
        f"- Video engines of {engines} cards are unknown: no page was seen that lists them.\n"
        f"- The sizes of {models} models are recalled in whole or in part, and say so in their source; the count that "
        "they come to\n  agrees with the published one.\n"
        f"- Counts that no closed formula checks: {', '.join(uncounted)}. All others are worked out from the sizes\n"
        "  and agree (`docs/models.md`).\n"
        "- The vendors' own datasheets were seen through what others cite of them."
    )


# ---------------------------------------------------------------- access

TITLES = {
    "real_name_verification": "real name",
    "company_verification": "company",
    "payment_methods": "payment",
    "minimum_balance": "minimum balance",
    "quota": "quota",
    "stock_signal": "stock",
}


def access_page() -> str:
    """What each provider with prices asks of a renter, and where nothing was found."""
    sellers = sorted({row["provider"].partition(":")[0] for rows in catalog.listed().values() for row in rows})
    known = facts().provider_ids
    names = sorted({known.get(name, name) for name in sellers} | {fact.provider for fact in bundled.access()})
    with LOOKED_FOR.open(encoding="utf-8", newline="") as lines:
        looked = {row["provider"]: row["where"] for row in csv.DictReader(lines)}
    rows = "\n".join(
        f"| {name} | {' | '.join(_access_cells(name, looked))} | {looked.get(name, '')} |" for name in names
    )
    heads = " | ".join(TITLES.values())
    return (
        "# What providers ask of a renter\n\n"
        "A dash: it was looked for where the last column says, and not found, which says nothing of what the\n"
        "provider asks. An empty line: nobody has looked yet. Regions are those of the prices; waiting lists were\n"
        "found nowhere. `rackrate facts show PROVIDER` has conditions, sources and days.\n\n"
        f"| provider | {heads} | looked for in |\n|---|{'---|' * len(TITLES)}---|\n{rows}\n"
    )


def _access_cells(provider: str, looked: Mapping[str, str]) -> Iterator[str]:
    assert set(TITLES) <= set(KEYS)
    for key in TITLES:
        found = [fact for fact in bundled.access() if (fact.provider, fact.key) == (provider, key)]
        said = (f"{fact.value} {fact.unit}".strip().replace("|", ", ").replace("_", " ") for fact in found)
        yield "; ".join(dict.fromkeys(said)) or ("-" if provider in looked else "")
