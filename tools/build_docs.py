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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from build_charts import CHARTS
from build_load_page import load_page
from build_memory_page import memory_page
from build_picture import PICTURES, picture
from build_speed_page import speed_page
from claims import known
from claims.asking import printed
from claims.page import claims_page
from doubt_pages import access_page, doubts_page
from fact_pages import FACT_PAGES

from rackrate.app.wire.every import DOCUMENTS
from rackrate.cli.main import VERBS
from rackrate.cli.main import main as command_line
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
        "JSON Schemas are in `src/rackrate/app/schemas/`, made from the types in `app/wire/`; the tests\n"
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


def _fact_page(name: str) -> str:
    """One page of bundled facts."""
    return MADE + FACT_PAGES[name]()


# ---------------------------------------------------------------- hand-written pages with output in them

BLOCK = re.compile(
    r"(?P<begin><!-- output of `(?P<command>[^`]+)`(?:, from `(?P<first>[^`]+)`)?(?:, to `(?P<after>[^`]+)`)?"
    r"(?:, (?P<count>\d+) (?P<unit>line|paragraph)s?)?: begin -->\n)(?P<text>.*?)(?P<end><!-- output of)",
    re.DOTALL,
)
FILE = re.compile(r"(<!-- text of `(?P<path>[^`]+)`: begin -->\n)(?P<text>.*?)(<!-- text of)", re.DOTALL)
MORE = "..."
"""A line that stands for what is left out of an output."""


def filled(name: str) -> str:
    """A hand-written page with the outputs and files in it made again."""
    return FILE.sub(_copied, BLOCK.sub(_made, (ROOT / name).read_text("utf-8")))


def _copied(match: re.Match[str]) -> str:
    """A file of the repository, whole."""
    path = ROOT / match["path"]
    kind = path.suffix[1:] if path.suffix in {".toml", ".json"} else "text"
    return f"{match[1]}\n```{kind}\n{stripped(path.read_text('utf-8'))}\n```\n\n{match[4]}"


def _made(match: re.Match[str]) -> str:
    """One output: all of it, or a part."""
    said = stripped(printed(match["command"])).split("\n")
    first, last = shown_part(said, match)
    shown = [*([MORE] if first else []), *said[first:last], *([MORE] if last < len(said) else [])]
    text = "\n".join(shown)
    return f"{match['begin']}\n```console\n$ {match['command']}\n{text}\n```\n\n{match['end']}"


def shown_part(said: list[str], match: re.Match[str]) -> tuple[int, int]:
    """Where the part to show begins and ends.

    It runs from the first line that begins with one text to before the next
    that begins with another, and is so many lines or paragraphs long at most.
    """
    first = _beginning(said, match["first"], 0) if match["first"] else 0
    last = _beginning(said, match["after"], first + 1) if match["after"] else len(said)
    if match["unit"] == "line":
        last = min(last, first + int(match["count"]))
    elif match["unit"]:
        ends = [place for place in range(first, last) if not said[place]]
        last = ends[int(match["count"]) - 1] if len(ends) >= int(match["count"]) else last
    return first, last


def _beginning(said: list[str], text: str, start: int) -> int:
    """The first line from ``start`` on that begins with a text."""
    for place in range(start, len(said)):
        if said[place].lstrip().startswith(text):
            return place
    raise ValueError(f"no line begins with {text!r}")


def with_outputs() -> Iterator[str]:
    """The hand-written pages that show what commands print, or files."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if BLOCK.search(text := path.read_text("utf-8")) or FILE.search(text):
            yield path.relative_to(ROOT).as_posix()


def stripped(text: str) -> str:
    """Output without blanks at the ends of lines and empty lines at its end."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


TABLES: dict[str, Callable[[str], str]] = {
    "docs/memory.md": memory_page,
    "docs/memory-measured.md": memory_page,
    "docs/speed.md": speed_page,
    "docs/speed-measured.md": speed_page,
}
"""Hand-written pages with tables of scores in them, and what makes those."""


def _with_tables(name: str) -> str:
    """A hand-written page with its outputs and its tables made again."""
    return TABLES[name](filled(name))


PAGES: dict[str, Callable[[], str]] = {
    "docs/access.md": lambda: MADE + access_page(),
    "docs/claims.md": lambda: MADE + claims_page(),
    "docs/cli.md": cli_page,
    "docs/doubts.md": lambda: MADE + doubts_page(),
    "docs/serving-load.md": load_page,
    "docs/schemas.md": schemas_page,
    "docs/workload.md": workload_page,
    **{name: partial(_fact_page, name) for name in FACT_PAGES},
    **{name: partial(picture, name) for name in PICTURES},
    **CHARTS,
    **{name: partial(filled, name) for name in with_outputs()},
    **{name: partial(_with_tables, name) for name in TABLES},
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
