"""The pages of bundled facts: cards, models, engines, providers, each number with the source that it was taken from."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from claims.asking import AS_OF, printed

from rackrate.app.context import facts
from rackrate.facts import bundled
from rackrate.facts.accelerator import Accelerator
from rackrate.units import MIB, format_count

_WHOLE_FROM = 1000

# ---------------------------------------------------------------- sources as footnotes


class Sources:
    """The sources of one page: each is a footnote, numbered as it is first cited."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def cite(self, sources: Iterable[str]) -> str:
        """The marks of sources, in the order given, each once."""
        found = dict.fromkeys(source for source in sources if source)
        return " ".join(f"[^{self._numbers.setdefault(source, len(self._numbers) + 1)}]" for source in found)

    def notes(self) -> str:
        """The footnotes."""
        return "\n".join(f"[^{number}]: {linked(source)}" for source, number in self._numbers.items()) + "\n"


_ADDRESS = re.compile(
    r"(?P<page>(?:https://)?(?:[a-z0-9-]+\.)+(?:com|org|ai|cn|io|dev|net)\b(?:/[\w./-]*\w)?)"
    r"|arXiv (?P<paper>\d{4}\.\d{5})"
    r"|(?:^|(?<=; ))(?P<repository>[A-Za-z][\w-]*/[A-Za-z][\w.-]*)(?: (?:issue|pull request|PR) (?P<thread>\d+))?"
    r"(?=$|[ ;,])"
)


def linked(source: str) -> str:
    """A source in Markdown, with what is surely an address as a link: a host, a paper, a repository."""

    def link(match: re.Match[str]) -> str:
        text = escaped(match[0])
        if page := match["page"]:
            return f"[{text}](https://{page.removeprefix('https://')})"
        if paper := match["paper"]:
            return f"[{text}](https://arxiv.org/abs/{paper})"
        thread = f"/issues/{match['thread']}" if match["thread"] else ""
        return f"[{text}](https://github.com/{match['repository']}{thread})"

    parts, end = list[str](), 0
    for match in _ADDRESS.finditer(source):
        parts += [escaped(source[end : match.start()]), link(match)]
        end = match.end()
    return "".join([*parts, escaped(source[end:])])


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    return re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", text)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    rule = ("--:" if place in right else "---" for place in range(len(heads)))
    lines = (heads, tuple(rule), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def codes(names: Iterable[str]) -> str:
    """Ids as code."""
    return ", ".join(f"`{name}`" for name in names)


# ---------------------------------------------------------------- overview


def overview() -> str:
    """What is bundled, how much of it, and where its tables are."""
    book = facts()
    counts = (
        ("[Cards](facts-cards.md)", len(book.accelerators), "memory, bandwidth, rates, power; MIG slices"),
        ("[Models](facts-models.md)", len(book.model_ids), "parameters, layers, heads, KV cache, weights"),
        ("[Engines and weight formats](facts-engines.md)", len(book.engine_ids), "what runs where, in which formats"),
        ("[Providers](facts-providers.md)", len(bundled.providers()), "billing rules, and what renting there asks for"),
    )
    rows = ((name, str(count), text) for name, count, text in counts)
    return (
        f"# Bundled facts\n\nAs of {AS_OF}. Every number has a unit, a kind, a source and a date; numbers that "
        "disagree both stay, and a\nrule decides which counts (`rackrate facts show ID` shows all of them). What is "
        "not listed is not known: it is never\ntaken as 0, and never as a pass.\n\n"
        + _table(("table", "entries", "what it says"), rows, frozenset({1}))
        + "\nThe rows themselves are files in `src/rackrate/facts/data/`; prices are in `src/rackrate/offers/data/`. "
        "Facts and\nprices of your own go over them: [own facts](own-facts.md).\n\n"
        f"## Measurements\n\n{_measurements()}\n\n"
        f"## Hosted APIs\n\n{_hosted()}\n\n"
        "```{toctree}\n:hidden:\n\nfacts-cards\nfacts-models\nfacts-engines\nfacts-providers\n```\n"
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


def _hosted() -> str:
    """How many prices of hosted APIs there are, and from where."""
    prices = bundled.hosted(frozenset({""}))
    sold = {(price.provider, price.model) for price in prices}
    providers = sorted({price.provider for price in prices})
    return (
        f"{len(prices)} prices of {len(sold)} models at {len(providers)} providers, from the library genai-prices "
        f"({prices[0].source.rpartition(' ')[2]},\nMIT licence; its sources are the price pages, which each row "
        f"names), read on {prices[0].seen_at}: {codes(providers)}.\n`rackrate model ID` lists those of a model."
    )


# ---------------------------------------------------------------- cards

_RATES = (
    ("bandwidth_bytes_per_s", 1e9),
    ("peak_fp32_flop_per_s", 1e12),
    ("peak_bf16_flop_per_s", 1e12),
    ("peak_fp8_flop_per_s", 1e12),
    ("power_limit_w", 1.0),
)
_CARD_HEADS = ("id", "product", "GB as sold", "driver, MiB", "GB/s", "FP32", "BF16", "FP8", "W", "kinds", "sources")


def cards() -> str:
    """Every card, a table for each vendor, and how cards can be cut."""
    sources, vendors = Sources(), dict[str, list[Accelerator]]()
    for card in sorted(facts().accelerators.values(), key=lambda card: (card.vendor, card.launch_year or 0, card.id)):
        vendors.setdefault(card.vendor, []).append(card)
    tables = (
        f"## {vendor}\n\n" + _table(_CARD_HEADS, (_card_row(card, sources) for card in found), frozenset(range(2, 9)))
        for vendor, found in vendors.items()
    )
    return (
        f"# Cards\n\nAs of {AS_OF}. GB/s is the published bandwidth of the memory; FP32, BF16 and FP8 are TFLOPS, "
        "dense (without 2:4\nsparsity) and accumulated in FP32; W is the default power limit. Empty: no source was "
        "seen, or the card has no\nsuch units (`rackrate gpu ID` says which). Kinds of the card's numbers: m "
        "measured, p published, d derived by a\nstated rule, a assumed. `rackrate facts show ID` shows every number "
        "with its own source, and those that lost.\n\n" + "\n".join(tables) + f"\n{_slices(sources)}\n{sources.notes()}"
    )


def _card_row(card: Accelerator, sources: Sources) -> tuple[str, ...]:
    kinds = Counter(fact.kind.value[0] for fact in card.facts.values())
    total = card.facts.get("memory_total_bytes")
    shown = [total, *(card.facts.get(quantity) for quantity, _ in _RATES)]
    rates = (
        _short(fact.value / scale) if fact is not None else ""
        for fact, (_, scale) in zip(shown[1:], _RATES, strict=True)
    )
    return (
        f"`{card.id}`",
        escaped(card.product),
        f"{card.memory_sold_gb:g}",
        f"{total.value / MIB:,.0f}" if total else "",
        *rates,
        " ".join(f"{kinds[kind]}{kind}" for kind in "mpda" if kinds[kind]),
        sources.cite(fact.source for fact in shown if fact is not None),
    )


def _short(value: float) -> str:
    """A number with four digits where it is small and none behind the point where it is large."""
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.4g}"


def _slices(sources: Sources) -> str:
    rows = (
        (
            codes(profile.accelerators),
            f"`{profile.profile}`",
            f"{profile.sm_fraction}",
            f"{profile.memory_label_gb:g}",
            str(profile.max_instances),
            sources.cite([profile.source]),
        )
        for profile in bundled.mig_profiles()
    )
    heads = ("cards", "slice", "share of the cores", "GB label", "at most", "sources")
    return (
        "## MIG slices\n\nA slice has somewhat less memory than its label; `nvidia-smi mig -lgip` on the machine "
        f"prints how much.\n\n{_table(heads, rows, frozenset({3, 4}))}"
    )


# ---------------------------------------------------------------- models

_MODEL_HEADS = ("id", "parameters", "of them for a token", "layers", "heads", "KV heads", "context", "KV B/token")
_MODEL_HEADS += ("BF16, GB", "sources")


def models() -> str:
    """Every bundled model, a table for each family."""
    sources, families = Sources(), dict[str, list[dict[str, str]]]()
    for row in csv.DictReader(io.StringIO(printed("rackrate model --csv"))):
        families.setdefault(row["family"], []).append(row)
    tables = (
        f"## {family}\n\n"
        + _table(_MODEL_HEADS, (_model_row(row, sources) for row in rows), frozenset(range(1, len(_MODEL_HEADS) - 1)))
        for family, rows in sorted(families.items(), key=lambda pair: pair[0].lower())
    )
    return (
        f"# Models\n\nAs of {AS_OF}: {len(facts().model_ids)} models. The last part of an id is enough where it is "
        "clear; any other model is\nread [from its files or the Hub](models.md). KV B/token: bytes of the KV cache "
        "that one token takes with 16-bit\nvalues, in the engine that keeps least. BF16: the weights in 10^9 bytes. "
        "Empty: it does not apply, or no source was seen.\n\n" + "\n".join(tables) + f"\n{sources.notes()}"
    )


def _model_row(row: dict[str, str], sources: Sources) -> tuple[str, ...]:
    active = "" if row["params_active"] == row["params_total"] else format_count(float(row["params_active"]))
    cache, weights = row["cache_bytes_per_token_16bit"], row["bf16_bytes"]
    return (
        f"`{row['id']}`",
        format_count(float(row["params_total"])),
        active,
        *(row[key] for key in ("layers", "attention_heads", "kv_heads")),
        f"{int(row['max_context']):,}" if row["max_context"] else "",
        f"{float(cache):,.0f}" if cache else "",
        f"{float(weights) / 1e9:,.2f}" if weights else "",
        sources.cite([facts().model(row["id"]).source]),
    )


# ---------------------------------------------------------------- engines and formats


USUAL_HEAD = 128
"""Values of a head in most models."""


def engines() -> str:
    """Engines, and the formats that weights come in."""
    sources, book = Sources(), facts()
    found = [book.engine(name) for name in book.engine_ids]
    rows = (
        (
            f"`{engine.id}`",
            escaped(engine.title),
            escaped(engine.versions),
            ", ".join(sorted(engine.tasks)).replace("_", " "),
            ", ".join(sorted(engine.parallel)).replace("_", " "),
            ", ".join(sorted(engine.vendors)),
            _capability(engine.min_compute_capability),
            sources.cite([engine.source]),
        )
        for engine in found
    )
    heads = ("id", "engine", "versions", "tasks", "parallel", "vendors", "NVIDIA from", "sources")
    formats = (
        (
            f"`{form.id}`",
            escaped(form.title),
            f"{form.bits_per_weight:g}",
            form.computes_in.value if form.computes_in else "",
            _capability(form.min_compute_capability),
            ", ".join(engine.id for engine in found if form.id in engine.weight_formats),
            sources.cite([form.source]),
        )
        for form in book.formats.values()
    )
    caches = (
        (
            f"`{engine.id}`",
            ", ".join(f"{kind.id} ({kind.bits_at(USUAL_HEAD):g})" for kind in engine.serving.cache_types),
            sources.cite([engine.serving.source]),
        )
        for engine in found
        if engine.serving is not None and engine.serving.cache_types
    )
    form_heads = ("id", "format", "bits a weight", "computes in", "NVIDIA from", "loaded by", "sources")
    return (
        f"# Engines and weight formats\n\nAs of {AS_OF}. An engine's behaviour (shares of memory, defaults, "
        "efficiencies) is a file in\n`src/rackrate/facts/data/engines/`, with the reasons beside the numbers; "
        "`rackrate facts show vllm` prints it.\n\n## Engines\n\n"
        f"{_table(heads, rows)}\n## Weight formats\n\nBits include scales and zero points. Where `computes in` "
        "is empty, the arithmetic is the workload's\nown precision (weight-only).\n\n"
        f"{_table(form_heads, formats, frozenset({2}))}\n## Types of KV cache\n\nBeside the plain types (`fp32`, "
        f"`bf16`, `fp16`), which every engine has, with bits a value in heads of {USUAL_HEAD},\nscales included. "
        "llama.cpp alone keeps keys and values in different ones.\n\n"
        f"{_table(('engine', 'types (bits)', 'sources'), caches)}\n{sources.notes()}"
    )


def _capability(version: tuple[int, int] | None) -> str:
    return "" if version is None else f"{version[0]}.{version[1]}"


# ---------------------------------------------------------------- providers


def providers() -> str:
    """Who rents out, how they bill, and what they ask of a renter."""
    sources = Sources()
    named = (
        (
            f"`{each.id}`",
            escaped(each.title),
            each.country,
            each.currency,
            escaped(", ".join(each.aliases)),
            sources.cite([each.source]),
        )
        for each in bundled.providers()
    )
    billed = (
        (
            f"`{provider}`",
            f"`{rule.key}`",
            escaped(rule.state),
            escaped(f"{rule.value} {rule.unit.removeprefix('bool')}".strip()),
            rule.effective_from.isoformat() if rule.effective_from else "",
            rule.confidence,
            sources.cite([rule.source]),
        )
        for provider, rules in sorted(facts().billing.items(), key=lambda pair: pair[0].lower())
        for rule in rules.rules
    )
    asked = (
        (
            f"`{each.provider}`",
            f"`{each.key}`",
            escaped(f"{each.value} {each.unit}".strip().replace("|", ", ")),
            escaped(each.condition),
            each.confidence,
            sources.cite([each.source]),
        )
        for each in bundled.access()
    )
    return (
        f"# Providers\n\nAs of {AS_OF}. A rule or a condition that is not listed was not seen: the bill names the "
        "part that it would decide,\nand does not take it as 0.\n\n"
        f"{_table(('id', 'title', 'country', 'currency', 'other names', 'sources'), named)}\n"
        "## Billing rules\n\nOf one key and state the rule in force counts, the latest, then the surest, then the "
        "dearest.\n\n"
        f"{_table(('provider', 'key', 'state', 'value', 'from', 'confidence', 'sources'), billed)}\n"
        "## Access\n\nWhat stands between a renter and a machine.\n\n"
        f"{_table(('provider', 'key', 'value', 'condition', 'confidence', 'sources'), asked)}\n{sources.notes()}"
    )


FACT_PAGES: dict[str, Callable[[], str]] = {
    "docs/facts.md": overview,
    "docs/facts-cards.md": cards,
    "docs/facts-models.md": models,
    "docs/facts-engines.md": engines,
    "docs/facts-providers.md": providers,
}
