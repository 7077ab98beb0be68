"""Write the generated pages; ``--check`` writes nothing and fails when a page differs from what rackrate says now.

``python tools/build_docs.py [--check] [PAGE...]`` with pages named as in ``docs/claims.md``; without
names all of them. Everything is computed as of the day of the bundled facts, so that only a change
of code or facts changes a page.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from build_picture import picture
from claims import known
from claims.asking import AS_OF, printed
from claims.page import claims_page

from rackrate.app.context import facts
from rackrate.app.wire_all import DOCUMENTS
from rackrate.cli.main import VERBS
from rackrate.cli.main import main as command_line
from rackrate.facts import bundled
from rackrate.facts.accelerator import Accelerator
from rackrate.units import MIB
from rackrate.workload.reference import workload_reference

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "src" / "rackrate" / "app" / "schemas"
COMMAND = "python tools/build_docs.py"
MADE = f"<!-- Made by `{COMMAND}`; changes here are lost. -->\n\n"

# ---------------------------------------------------------------- pages


def cli_page() -> str:
    """Every verb with its help."""
    intro = (
        "# Commands\n\n"
        "`rackrate VERB --help` prints what follows. Results go to stdout and talk to stderr; in a pipe the\n"
        "width is 80 columns, and `NO_COLOR` is honoured. Exit codes: 0, it is answered; 3, the answer is no\n"
        "(no plan, or it does not fit); 2, the request could not be understood.\n\n"
    )
    parts = [_help("rackrate"), *(_help(f"rackrate {verb}") for verb in _verbs())]
    return MADE + intro + "\n".join(parts)


def _verbs() -> Iterator[str]:
    """Every verb, and the actions of those that have some."""
    context = click.Context(command_line)
    for verb in VERBS:
        yield verb
        command = command_line.get_command(context, verb)
        if isinstance(command, click.Group):
            yield from (f"{verb} {action}" for action in command.commands)


def _help(command: str) -> str:
    return f"## `{command}`\n\n```text\n{stripped(printed(f'{command} --help'))}\n```\n"


def workload_page() -> str:
    """The keys of a workload."""
    return MADE + workload_reference()


def schemas_page() -> str:
    """The JSON documents: what the header means, and every part with its keys."""
    intro = (
        "# JSON documents\n\n"
        "`--json` prints one document; the functions of `rackrate.api` return the same document as a value.\n"
        "JSON Schemas are in `src/rackrate/app/schemas/`, made from the types in `app/wire.py`; the tests\n"
        "hold every answer against them. Every document begins with:\n\n"
        "| key | meaning |\n|---|---|\n"
        "| `schema` | kind and version of the document, such as `rackrate.plan/1`; a change that breaks a "
        "reader raises the number |\n"
        "| `rackrate_version` | the program that made it |\n"
        "| `facts_digest` | SHA-256 over all bundled facts and offers, in hex: the same digest, request and day "
        "give the same answer |\n"
        "| `as_of` | the day that the answer holds for: ages of prices count to it, and billing rules are those "
        "in force on it |\n\n"
        "Sizes are in bytes, times in hours or seconds as named, rates per second. Money is a decimal text with "
        "its\ncurrency beside it. A range is the 10th, 50th and 90th percentile. `null` is unknown or does not "
        "apply;\nit never means 0. Keys, ids and codes are never translated.\n\n"
    )
    return MADE + intro + "\n".join(_schema(name) for name in DOCUMENTS)


def _schema(name: str) -> str:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    parts: dict[str, Any] = schema["$defs"]
    first = schema["$ref"].rpartition("/")[2]
    order = [first, *sorted(part for part in parts if part != first)]
    return f"## `{schema['title']}`\n\n" + "\n".join(_part(part, parts[part], parts) for part in order)


def _part(name: str, part: dict[str, Any], parts: dict[str, Any]) -> str:
    text = part.get("description", "").replace("``", "`")
    order = part.get("required", [])
    keys = sorted(part["properties"], key=lambda key: order.index(key) if key in order else len(order))
    rows = (f"| `{key}` | {_type(part['properties'][key], parts)} |" for key in keys)
    return "\n".join([f"**{name}**: {text}", "", "| key | type |", "|---|---|", *rows, ""])


def _type(key: dict[str, Any], parts: dict[str, Any]) -> str:
    if "$ref" in key:
        return str(key["$ref"]).rpartition("/")[2]
    if "anyOf" in key:
        return " or ".join(_type(option, parts) for option in key["anyOf"])
    if key.get("type") == "array":
        return f"list of {_type(key['items'], parts)}"
    name = str(key["type"])
    return {"string": "text", "boolean": "true or false", "integer": "whole number"}.get(name, name)


def facts_page() -> str:
    """What is bundled: cards with the kinds of their sources, and models by family."""
    book = facts()
    cards = sorted(book.accelerators.values(), key=lambda card: (card.vendor, card.launch_year or 0, card.id))
    families: dict[str, list[str]] = {}
    for name in book.model_ids:
        families.setdefault(book.model(name).family, []).append(name)
    models = "\n".join(f"| {family} | {_codes(ids)} |" for family, ids in sorted(families.items()))
    return (
        f"{MADE}# Bundled facts\n\nAs of {AS_OF}. `rackrate gpu ID` shows every number of a card with its "
        "condition, kind and source.\nEmpty cells: no source was seen. Kinds: m measured, p published, d derived "
        "by a stated rule, a assumed.\n\n"
        "| id | product | GB as sold | driver reports, MiB | GB/s | kinds of its facts |\n|---|---|--:|--:|--:|---|\n"
        + "\n".join(map(_card_row, cards))
        + f"\n\n## Measurements\n\n{_measurements()}"
        + f"\n\n## Models\n\n{len(book.model_ids)} models; the last part of an id is enough where it is clear.\n\n"
        f"| family | ids |\n|---|---|\n{models}\n\n"
        f"## Hosted APIs\n\n{_hosted()}\n\n"
        f"## Engines and weight formats\n\nEngines: {_codes(book.engine_ids)}. "
        f"Weight formats: {_codes(book.formats)}.\n"
    )


def _hosted() -> str:
    """How many prices of hosted APIs there are, and from where."""
    prices = bundled.hosted(frozenset({""}))
    sold = {(price.provider, price.model) for price in prices}
    providers = sorted({price.provider for price in prices})
    return (
        f"{len(prices)} prices of {len(sold)} models at {len(providers)} providers, from the library genai-prices "
        f"({prices[0].source.rpartition(' ')[2]},\nMIT licence; its sources are the price pages, which each row "
        f"names), read on {prices[0].seen_at}: {_codes(providers)}.\n`rackrate model ID` lists those of a model."
    )


def _measurements() -> str:
    """What was collected of what cards reach, and how much of it is used."""
    figures, used = bundled.table("baselines.csv"), bundled.baselines()
    kinds = Counter(figure.kind.value for figure in used)
    cards = {figure.accelerators[0] for figure in used if len(figure.accelerators) == 1}
    sure = sum(len(figure.accelerators) == 1 for figure in used)
    unclear = sum(len(figure.accelerators) > 1 for figure in used)
    others = len(used) - sure - unclear
    return (
        f"{len(figures)} figures under {len({row['label'] for row in figures})} names of cards were collected from "
        "public benchmarks, health checks and\ndriver outputs: matrix products, memory, PCIe, links between cards, "
        f"power. {sure} are surely of one of {len(cards)} cards,\n{unclear} can be of several and count for none, "
        f"{others} are of cards that are not listed here. {len(figures) - len(used)} more are suspect: "
        "they\nstay in `baselines.csv` with the reason and are never used. Kinds are not mixed:\n"
        + ", ".join(f"{kinds[kind]} {kind}" for kind in sorted(kinds))
        + ".\n`rackrate gpu ID` shows those of a card beside what is published of it."
    )


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _card_row(card: Accelerator) -> str:
    kinds = Counter(fact.kind.value[0] for fact in card.facts.values())
    total, rate = card.facts.get("memory_total_bytes"), card.facts.get("bandwidth_bytes_per_s")
    cells = (
        f"`{card.id}`",
        f"{card.vendor} {card.product}",
        f"{card.memory_sold_gb:g}",
        f"{total.value / MIB:,.0f}" if total else "",
        _short(rate.value / 1e9) if rate else "",
        " ".join(f"{kinds[kind]}{kind}" for kind in "mpda" if kinds[kind]),
    )
    return f"| {' | '.join(cells)} |"


def _short(value: float) -> str:
    """A number with four digits where it is small and none behind the point where it is large."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - as printed


# ---------------------------------------------------------------- hand-written pages with output in them

BLOCK = re.compile(
    r"(<!-- output of `(?P<command>[^`]+)`(?:, (?P<lines>\d+) lines)?: begin -->\n)(?P<text>.*?)(<!-- output of)",
    re.DOTALL,
)


def filled(name: str) -> str:
    """A hand-written page with the outputs in it made again."""

    def made(match: re.Match[str]) -> str:
        shown = stripped(printed(match["command"])).split("\n")
        if match["lines"] and len(shown) > int(match["lines"]):
            shown = [*shown[: int(match["lines"])], "..."]
        text = "\n".join(shown)
        return f"{match[1]}\n```console\n$ {match['command']}\n{text}\n```\n\n{match[5]}"

    return BLOCK.sub(made, (ROOT / name).read_text("utf-8"))


def stripped(text: str) -> str:
    """Output without blanks at the ends of lines and empty lines at its end."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


PAGES: dict[str, Callable[[], str]] = {
    "docs/claims.md": lambda: MADE + claims_page(),
    "docs/cli.md": cli_page,
    "docs/facts.md": facts_page,
    "docs/images/plan.svg": picture,
    "docs/schemas.md": schemas_page,
    "docs/workload.md": workload_page,
    "README.md": lambda: filled("README.md"),
    "docs/how-it-decides.md": lambda: filled("docs/how-it-decides.md"),
    "docs/models.md": lambda: filled("docs/models.md"),
    "docs/own-facts.md": lambda: filled("docs/own-facts.md"),
}


def stale(names: list[str], *, write: bool) -> Iterator[str]:
    """The pages among ``names`` that differ from what rackrate says now; written anew if ``write``."""
    for name in names:
        path, text = ROOT / name, PAGES[name]()
        if path.exists() and path.read_text("utf-8") == text:
            continue
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        yield name


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page would change")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"one of {', '.join(PAGES)}")
    given = parser.parse_args()
    wrong = [name for name in given.pages if name not in PAGES]
    if wrong:
        parser.error(f"no such page: {', '.join(wrong)}; choose from {', '.join(PAGES)}")
    changed = list(stale(given.pages or list(PAGES), write=not given.check))
    for name in changed:
        if given.check:
            print(f"{name}: stale; run `{COMMAND} {name}`", file=sys.stderr)
        else:
            print(f"{name}: written")
    if not changed:
        print(f"{len(given.pages or PAGES)} pages are as they should be; {len(known())} claims shown")
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
