"""The door to the bundled facts: files in, a ``FactBook`` out.

Everything is read at once, which the digest needs, but records are made when
they are asked for: a model is found by its line, an engine parsed by its file.
The text is never trusted to be valid here: ``tools/check_facts.py`` refuses a
bad row before it is released.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rackrate.facts import rows
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.access import AccessFact, access_fact
from rackrate.facts.billing import BillingRules
from rackrate.facts.book import FactBook
from rackrate.facts.denoiser import Denoiser, denoiser
from rackrate.facts.engine import Engine, versioned
from rackrate.facts.lazy import LazyMapping
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline, pipeline
from rackrate.facts.sight import Sight, sight
from rackrate.units import parse_day

if TYPE_CHECKING:
    from rackrate.facts.baselines import Baseline
    from rackrate.facts.hosted import HostedPrice
    from rackrate.facts.records import Claim, MigProfile, Provider
    from rackrate.facts.render import RenderScore

DATA = Path(__file__).parent / "data"
_ENGINES = "engines/"

Files = Mapping[str, str]
T = TypeVar("T")


def load(data: Path = DATA) -> FactBook:
    """The facts in ``data`` (the bundled ones unless told otherwise)."""
    files, digest = _read(data)
    billing: dict[str, list[rows.Row]] = {}
    for row in _table(files["billing_rules.csv"]):
        billing.setdefault(row["provider"], []).append(row)
    asked: dict[str, list[rows.Row]] = {}
    for row in _table(files["access.csv"]):
        asked.setdefault(row["provider"], []).append(row)
    models = _lines_by_id(files["models.csv"])
    engines = _engine_files(files)
    formats = LazyMapping({row["id"]: row for row in _table(files["formats.csv"])}, rows.weight_format)
    accelerators, seen_at = _accelerators(files)
    return FactBook(
        accelerators=accelerators,
        formats=formats,
        billing=LazyMapping(billing, _rules),
        provider_ids=_provider_ids(files["providers.csv"]),
        access=LazyMapping(asked, _access),
        model_ids=tuple(models),
        model=LazyMapping(models, _model_maker(files["models.csv"])).__getitem__,
        engine_ids=tuple(engines),
        engine=versioned(LazyMapping(engines, _engine).__getitem__),
        rates=rows.exchange_rates(_table(files["exchange_rates.csv"])),
        digest=digest,
        seen_at=seen_at,
        sights=lambda: _sights(files["image_tokens.csv"]),
        pipelines=LazyMapping(_lines_by_id(files["pipelines.csv"]), _pipeline_maker(files)),
    )


def claims(data: Path = DATA) -> tuple[Claim, ...]:
    """The claims of the three articles behind rackrate, each with its verdict and the right answer."""
    from rackrate.facts.records import claim

    return _records(data / "claims.csv", claim)


def baselines(data: Path = DATA) -> tuple[Baseline, ...]:
    """What cards reached in public measurements; suspect figures stay in the file."""
    from rackrate.facts.baselines import Mark, baseline

    return tuple(one for one in _records(data / "baselines.csv", baseline) if one.mark is not Mark.SUSPECT)


def denoisers(data: Path = DATA) -> tuple[Denoiser, ...]:
    """The networks of diffusion models that speed is known for."""
    return _records(data / "denoisers.csv", denoiser)


def render_scores(data: Path = DATA) -> tuple[RenderScore, ...]:
    """What cards reached in public rendering benchmarks."""
    from rackrate.facts.render import render_score

    return _records(data / "render_scores.csv", render_score)


def mig_profiles(data: Path = DATA) -> tuple[MigProfile, ...]:
    """The slices that cards with MIG can be cut into."""
    from rackrate.facts.records import mig_profile

    return _records(data / "mig_profiles.csv", mig_profile)


def providers(data: Path = DATA) -> tuple[Provider, ...]:
    """The providers by id with their other names."""
    from rackrate.facts.records import provider

    return _records(data / "providers.csv", provider)


def access(data: Path = DATA) -> tuple[AccessFact, ...]:
    """What the providers ask of a renter, and how their stock can be seen."""
    return _records(data / "access.csv", access_fact)


def hosted(words: frozenset[str], data: Path = DATA) -> tuple[HostedPrice, ...]:
    """The prices of hosted APIs in whose rows one of ``words`` stands (in lower case): few of thousands are read."""
    from rackrate.facts.hosted import hosted_price

    header, _, rest = (data / "hosted_prices.csv").read_text("utf-8").partition("\n")
    lines = [line for line in rest.splitlines() if any(word in line.lower() for word in words)]
    return tuple(map(hosted_price, _table("\n".join([header, *lines]))))


def table(name: str, data: Path = DATA) -> tuple[rows.Row, ...]:
    """All rows of one file as text: those that win, and those that lose to them."""
    return tuple(_table((data / name).read_text("utf-8")))


def columns(data: Path = DATA) -> dict[str, tuple[str, ...]]:
    """The columns of every file."""
    return {path.name: tuple(next(_cells(path.read_text("utf-8")))) for path in sorted(data.glob("*.csv"))}


def engine_documents(data: Path = DATA) -> dict[str, dict[str, object]]:
    """Every engine's file as it reads, by its name below ``data``."""
    import tomllib

    paths = sorted(data.glob("engines/*.toml"))
    return {path.relative_to(data).as_posix(): tomllib.loads(path.read_text("utf-8")) for path in paths}


# ---------------------------------------------------------------- inside


def _read(data: Path) -> tuple[dict[str, str], str]:
    """The text of each file by its name below ``data``, and the SHA-256 of all of them in the order of their names."""
    digest = hashlib.sha256()
    files: dict[str, str] = {}
    paths = {path.relative_to(data).as_posix(): path for path in (*data.glob("*.csv"), *data.glob("engines/*.toml"))}
    for name in sorted(paths):
        content = paths[name].read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
        files[name] = content.decode("utf-8")
    return files, digest.hexdigest()


def _table(text: str) -> list[rows.Row]:
    header, *body = _cells(text)
    return [dict(zip(header, cells, strict=True)) for cells in body]


def _cells(text: str) -> Iterator[list[str]]:
    """The lines of a table as cells; blank lines are no rows."""
    return filter(None, csv.reader(text.splitlines()))


def _records(path: Path, make: Callable[[rows.Row], T]) -> tuple[T, ...]:
    return tuple(make(row) for row in _table(path.read_text("utf-8")))


def _accelerators(files: Files) -> tuple[dict[str, Accelerator], date]:
    """The cards with the facts that win, and the day of the newest of them."""
    header, *body = _cells(files["accelerator_facts.csv"])
    if tuple(header) != rows.FACT_COLUMNS:
        raise ValueError(f"accelerator_facts.csv: columns {header}, expected {list(rows.FACT_COLUMNS)}")
    won = rows.winners(body)
    newest = max(map(parse_day, {cells[7] for cells in body}))
    rules = _table(files["memory_rules.csv"])
    cards = {}
    for card in _table(files["accelerators.csv"]):
        facts = won.get(card["id"], {})
        if "memory_total_bytes" not in facts:
            facts["memory_total_bytes"] = rows.ruled_memory(card, rules, newest.isoformat())
        cards[card["id"]] = rows.accelerator(card, facts)
    return cards, newest


def _rules(found: Iterable[rows.Row]) -> BillingRules:
    rules = tuple(map(rows.billing_rule, found))
    return BillingRules(provider=rules[0].provider, rules=rules)


def _access(found: Iterable[rows.Row]) -> tuple[AccessFact, ...]:
    return tuple(map(access_fact, found))


def _provider_ids(text: str) -> dict[str, str]:
    """The id of a provider by each of its other names."""
    return {name: row["id"] for row in _table(text) for name in row["aliases"].split("|") if name}


def _lines_by_id(text: str) -> dict[str, str]:
    """The lines of a table by their first cell; ids hold no comma and no quote."""
    return {line.partition(",")[0]: line for line in text.splitlines()[1:] if line}


def _model_maker(text: str) -> Callable[[str], Model]:
    header = text.partition("\n")[0]
    return lambda line: rows.model(_table(f"{header}\n{line}")[0])


def _pipeline_maker(files: Files) -> Callable[[str], Pipeline]:
    """A pipeline from its line, with the denoiser of the same id."""
    header, denoises = files["pipelines.csv"].partition("\n")[0], files["denoisers.csv"].partition("\n")[0]

    def make(line: str) -> Pipeline:
        row = _table(f"{header}\n{line}")[0]
        shape = _lines_by_id(files["denoisers.csv"])[row["id"]]
        return pipeline(row, denoiser(_table(f"{denoises}\n{shape}")[0]))

    return make


def _sights(text: str) -> tuple[Sight, ...]:
    return tuple(map(sight, _table(text)))


def _engine_files(files: Files) -> dict[str, str]:
    """The text of each engine's file by the engine's id."""
    texts = (text for name, text in files.items() if name.startswith(_ENGINES))
    return {text.partition('\nid = "')[2].partition('"')[0]: text for text in texts}


def _engine(text: str) -> Engine:
    import tomllib  # imported here: a question that names no engine does not need it

    from rackrate.facts.engine_file import engine

    return engine(tomllib.loads(text))
