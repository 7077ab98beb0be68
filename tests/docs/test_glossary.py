"""Every word that a screen says, and every key of a document, is in the glossary, in both languages."""

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from tests.cli.ask import (
    CARDS,
    FACTS,
    FITS,
    MODELS,
    NO_FITS,
    NO_OFFERS,
    NO_PLANS,
    NO_SPEEDS,
    OFFERS,
    PLANS,
    SPEEDS,
    answer,
)

import rackrate.cli
from rackrate.app.context import facts
from rackrate.cli import gpu_words, words
from rackrate.problems import Code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SAME_IN_CHINESE = {"NVSwitch"}
ASKED = (*PLANS, *NO_PLANS, *FITS, *NO_FITS, *CARDS, *MODELS, *FACTS, *OFFERS, *NO_OFFERS, *SPEEDS, *NO_SPEEDS)


def rows(page):
    """The cells of each row of the tables of a page, titles left out."""
    text = (DOCS / page).read_text("utf-8")
    found = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    titles = {"English", "on screen", "key"}
    return [[cell.strip() for cell in cells] for cells in found if cells[0].strip() not in titles]


def named(page):
    """What the first cells name as code."""
    return [name for cells in rows(page) for name in re.findall(r"`([^`]+)`", cells[0])]


@pytest.mark.parametrize("page", ["glossary.md", "glossary-screens.md", "glossary-keys.md"])
def test_every_row_has_chinese(page):
    found = rows(page)
    assert len(found) > 100
    assert not [cells for cells in found if len(cells) != 3]
    lacking = [cells[0] for cells in found if not CHINESE.search(cells[1]) and cells[1] not in SAME_IN_CHINESE]
    assert not lacking


def test_no_term_is_there_twice():
    terms = [cells[0] for cells in rows("glossary.md")]
    assert len(terms) == len(set(terms))
    keys = named("glossary-keys.md")
    assert keys == sorted(set(keys))


# ---------------------------------------------------------------- keys


def test_the_keys_are_those_of_the_documents():
    schemas = (json.loads(path.read_text("utf-8")) for path in (ROOT / "src/rackrate/app/schemas").glob("*.json"))
    keys = {key for schema in schemas for part in schema["$defs"].values() for key in part["properties"]}
    listed = set(named("glossary-keys.md"))
    assert sorted(keys - listed) == [], "give them a row in docs/glossary-keys.md"
    assert sorted(listed - keys) == [], "no longer keys"


# ---------------------------------------------------------------- screens

TABLES = {
    **{
        name: getattr(words, name)
        for name in (
            "REASONS",
            "VERDICTS",
            "BOUNDS",
            "MARKETS",
            "INTERCONNECTS",
            "TASKS",
            "PHASES",
            "BILL",
            "STOPS",
            "BOUNDS_IN_A_COLUMN",
        )
    },
    **{f"gpu {name}": getattr(gpu_words, name) for name in ("WORKS", "VERDICTS", "HOW", "QUANTITIES", "RESULTS")},
    "gpu SIZES": dict.fromkeys(gpu_words.SIZES, ""),
    "gpu MEANINGS": dict(gpu_words.MEANINGS),
}
TABLES["findings"] = {code: code.replace("_", " ") for code in Code}
NAMES_ARE_WORDS = {"gpu SIZES", "gpu MEANINGS"}


@pytest.mark.parametrize("table", TABLES)
def test_the_words_for_codes_are_in_the_glossary(table):
    said = set(TABLES[table]) if table in NAMES_ARE_WORDS else set(TABLES[table].values())
    assert sorted(said - set(named("glossary-screens.md"))) == [], "give them a row in docs/glossary-screens.md"


@pytest.fixture(scope="module")
def labels():
    """The labels of pairs and the titles of tables that the screens of all verbs draw."""
    said = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        for module in pkgutil.iter_modules(rackrate.cli.__path__):
            if module.name != "layout":
                spy_on(importlib.import_module(f"rackrate.cli.{module.name}"), patched, said)
        for args in ASKED:
            answer.__wrapped__(*args)
    return {word for label in said if (word := as_word(label))}


def spy_on(module, patched, said):
    if hasattr(module, "pairs"):
        draw_pairs = module.pairs
        patched.setattr(
            module, "pairs", lambda rows, **style: (said.update(row[0] for row in rows), draw_pairs(rows, **style))[1]
        )
    if hasattr(module, "drawn"):
        draw_table = module.drawn
        patched.setattr(module, "drawn", lambda table: (said.update(labels_of(table)), draw_table(table))[1])


def labels_of(table):
    """The titles; where cards or models stand side by side, the names of the rows instead."""
    return [row[0] for row in table.rows] if not table.titles[0] else table.titles


def as_word(label):
    """A label as a word of the glossary; nothing for what is data: numbers, ids, keys of workloads, currencies."""
    word = re.sub(r" [A-Z]{3}$|^[A-Z]{3}(/| per )| [A-Z]{3}/h$|(?<=^Drop) --.*|^\d+ x (?=would)", "", label.strip())
    data = {*facts().accelerators, *facts().model_ids, *(f"weights {form}" for form in facts().formats)}
    if word in data or re.fullmatch(r"\W*|\[?\d+k?\]?|offers\.csv:\d+", word):
        return ""
    is_key = re.fullmatch(r"(training|serving|use|limits)\.\w+|task|engine|precision|quantization|currency", word)
    is_place = word in {"startup", "interconnect"} or word.startswith("tests/")
    return "" if is_key or is_place else word


def test_every_label_of_a_screen_is_in_the_glossary(labels):
    assert len(labels) > 100
    assert sorted(labels - set(named("glossary-screens.md"))) == [], "give them a row in docs/glossary-screens.md"


def test_every_part_of_memory_is_in_the_glossary():
    parts = {part["name"] for args in (*FITS, *NO_FITS) for part in answer(*args, "--json").document["components"]}
    assert {name.replace("_", " ") for name in parts} - set(named("glossary-screens.md")) == set()
