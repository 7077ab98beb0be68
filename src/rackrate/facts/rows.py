"""Rows of the fact files as records: pure functions from text to values.

Precedence among rows of one card and quantity, first difference decides:

1. a row without a ``condition`` before one with (a reading "with ECC off", or a
   figure printed for another variant, never describes the card as it comes);
2. ``kind``: measured (a driver reading) before published before derived before assumed;
3. the newest ``seen_at``;
4. the order in the file.

Rows that lose stay in the file: they say what else is printed and why it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from rackrate.evidence import Fact, Kind
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.billing import BillingRule
from rackrate.facts.card_names import name_keys
from rackrate.facts.formats import WeightFormat
from rackrate.facts.lazy import LazyMapping
from rackrate.facts.model import Model
from rackrate.money import ExchangeRates
from rackrate.units import GB, GIB, MIB, TERA, parse_day

FACT_COLUMNS = ("accelerator", "quantity", "value", "unit", "condition", "kind", "source", "seen_at", "note")

# quantity in the file: (its unit there, its name once loaded, base unit, factor)
QUANTITIES: Mapping[str, tuple[str, str, str, float]] = {
    "memory_total": ("MiB", "memory_total_bytes", "bytes", MIB),
    "memory_reserved": ("MiB", "memory_reserved_bytes", "bytes", MIB),
    "bandwidth": ("GB/s", "bandwidth_bytes_per_s", "bytes/s", GB),
    **{f"peak_{p}": ("TFLOPS", f"peak_{p}_flop_per_s", "flop/s", TERA) for p in Precision},
    "power_limit": ("W", "power_limit_w", "W", 1),
    "power_min": ("W", "power_min_w", "W", 1),
    "power_max": ("W", "power_max_w", "W", 1),
    "pcie_gen": ("generation", "pcie_gen", "generation", 1),
    "pcie_lanes": ("lanes", "pcie_lanes", "lanes", 1),
    # Vendors add up both directions; a collective is bound by one.
    "nvlink_total_bidir": ("GB/s", "nvlink_bytes_per_s_one_way", "bytes/s", GB / 2),
    "devices_per_card": ("devices", "devices_per_card", "devices", 1),
    "nvenc": ("engines", "video_encoders", "engines", 1),
    "nvdec": ("engines", "video_decoders", "engines", 1),
}
KIND_RANK = {"measured": 0, "published": 1, "derived": 2, "assumed": 3}

Row = Mapping[str, str]
T = TypeVar("T")


def maybe(text: str, make: Callable[[str], T]) -> T | None:
    """``make(text)``, or None for an empty cell."""
    return make(text) if text else None


def flag(text: str) -> bool:
    """A cell that is ``true`` or ``false``.

    Raises:
        ValueError: it is neither.
    """
    if text not in {"true", "false"}:
        raise ValueError(f"neither true nor false: {text!r}")
    return text == "true"


def capability(text: str) -> tuple[int, int]:
    """A CUDA compute capability such as ``8.6``."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


# ---------------------------------------------------------------- accelerators


def rank(cells: Sequence[str]) -> tuple[bool, int, int]:
    """The precedence of a fact row: the lowest wins (see the module's docstring)."""
    return (cells[4] != "", KIND_RANK[cells[5]], -int(cells[7].replace("-", "")))


def fact(cells: Sequence[str]) -> Fact:
    """One fact row as a fact in base units."""
    _, _, base, factor = QUANTITIES[cells[1]]
    return Fact(
        value=float(cells[2]) * factor,
        unit=base,
        kind=Kind(cells[5]),
        source=cells[6],
        condition=cells[4],
        seen_at=parse_day(cells[7]),
        note=cells[8],
    )


def winners(rows: Iterable[Sequence[str]]) -> dict[str, dict[str, Sequence[str]]]:
    """The row that wins for each accelerator and loaded quantity."""
    won: dict[str, dict[str, Sequence[str]]] = {}
    for cells in rows:
        of_card = won.setdefault(cells[0], {})
        name = QUANTITIES[cells[1]][1]
        if name not in of_card or rank(cells) < rank(of_card[name]):
            of_card[name] = cells
    return won


def memory_rule(card: Row, rules: Sequence[Row]) -> Row:
    """The first rule of memory_rules.csv that fits the card; the last one fits all."""
    return next(
        rule
        for rule in rules
        if rule["vendor"] in {"", card["vendor"]}
        and card["memory_type"].startswith(rule["memory_type"])
        and rule["ecc_default"] in {"", card["ecc_default"]}
        and (not rule["architectures"] or card["architecture"] in rule["architectures"].split("|"))
    )


def ruled_memory(card: Row, rules: Sequence[Row], seen_at: str) -> tuple[str, ...]:
    """A fact row for the driver's total that nobody has reported.

    ``total = fraction x GB as sold x 2^30``, the fraction being the lowest that
    a driver shows on cards of the same family (``siblings``): never more than
    the card has, up to 7 % less.
    """
    rule = memory_rule(card, rules)
    mib = math.floor(float(rule["fraction"]) * float(card["memory_sold_gb"]) * GIB / MIB)
    source = f"rule {rule['id']} of memory_rules.csv, from {rule['siblings'].replace('|', ', ') or 'no sibling'}"
    return (card["id"], "memory_total", str(mib), "MiB", "", rule["kind"], source, seen_at, rule["note"])


def accelerator(card: Row, facts: Mapping[str, Sequence[str]]) -> Accelerator:
    """One row of accelerators.csv with its facts, which are made when asked for."""
    return Accelerator(
        id=card["id"],
        vendor=card["vendor"],
        product=card["product"],
        architecture=card["architecture"],
        chip=card["chip"],
        compute_capability=maybe(card["compute_capability"], capability),
        isa=card["isa"],
        launch_year=maybe(card["launch_year"], int),
        form_factor=card["form_factor"],
        memory_type=card["memory_type"],
        memory_sold_gb=float(card["memory_sold_gb"]),
        ecc=maybe(card["ecc"], flag),
        ecc_default=card["ecc_default"],
        cooling=card["cooling"],
        nvlink_version=card["nvlink_version"],
        nvlink_bridge_max_gpus=int(card["nvlink_bridge_max_gpus"] or 0),
        nvswitch=flag(card["nvswitch"]),
        mig_instances=int(card["mig_instances"] or 0),
        rt_cores=maybe(card["rt_cores"], int),
        sparsity_2_4=maybe(card["sparsity_2_4"], flag),
        modified=flag(card["modified"]),
        notes=card["notes"],
        recalled=frozenset(filter(None, card["recalled"].split("|"))),
        source=card["source"],
        names=name_keys(card["product"], filter(None, card["aliases"].split("|"))),
        facts=LazyMapping(facts, fact),
    )


# ---------------------------------------------------------------- models, formats, rules, rates


def model(row: Row) -> Model:
    """One row of models.csv."""

    def number(key: str) -> int | None:
        return maybe(row[key], int)

    decoder = number("decoder_layers") if row["encoder_layers"] else None
    return Model(
        id=row["id"],
        family=row["family"],
        params_total=int(row["params_total"]),
        params_active=int(row["params_active"]),
        hidden_size=number("hidden_size"),
        layers=number("layers"),
        attention_heads=number("attention_heads"),
        kv_heads=number("kv_heads"),
        head_dim=number("head_dim"),
        intermediate_size=number("intermediate_size"),
        vocab_size=number("vocab_size"),
        tie_embeddings=maybe(row["tie_embeddings"], flag),
        max_context=number("max_context"),
        attention=row["attention"],
        layers_full=decoder if decoder and not row["attn_layers_full"] else number("attn_layers_full"),
        layers_windowed=0 if decoder and not row["attn_layers_windowed"] else number("attn_layers_windowed"),
        window=number("window"),
        layers_linear=number("layers_linear_or_ssm"),
        mla_kv_lora_rank=number("mla_kv_lora_rank"),
        mla_qk_rope_head_dim=number("mla_qk_rope_head_dim"),
        mla_q_lora_rank=number("mla_q_lora_rank"),
        mla_v_head_dim=number("mla_v_head_dim"),
        experts=number("experts"),
        experts_per_token=number("experts_per_token"),
        moe_intermediate_size=number("moe_intermediate_size"),
        shared_experts=number("shared_experts"),
        dense_layers_first=number("dense_layers_first"),
        encoder_layers=number("encoder_layers"),
        decoder_layers=decoder,
        encoder_positions=number("encoder_positions"),
        mel_bins=number("mel_bins"),
        mlp_gated=maybe(row["mlp_gated"], flag),
        modality=row["modality"],
        native_dtype=row["native_dtype"],
        tower_params=maybe(row.get("tower_params", ""), int) or 0,
        rotary_positions=maybe(row.get("rotary_positions", ""), int),
        source=row["source"],
        notes=row["notes"],
    )


def weight_format(row: Row) -> WeightFormat:
    """One row of formats.csv."""
    return WeightFormat(
        id=row["id"],
        title=row["title"],
        bits_per_weight=float(row["bits_per_weight"]),
        embeddings_16bit=flag(row["embeddings_16bit"]),
        head_16bit=flag(row["head_16bit"]),
        experts_alone=flag(row["experts_alone"]),
        embedding_bits=maybe(row.get("embedding_bits", ""), float),
        head_bits=maybe(row.get("head_bits", ""), float),
        computes_in=maybe(row["computes_in"], Precision),
        min_compute_capability=maybe(row["min_compute_capability"], capability),
        source=row["source"],
    )


def billing_rule(row: Row) -> BillingRule:
    """One row of billing_rules.csv."""
    return BillingRule(
        provider=row["provider"],
        key=row["rule_key"],
        value=row["value"],
        unit=row["unit"],
        state=row["state"],
        effective_from=maybe(row["effective_from"], parse_day),
        seen_at=parse_day(row["seen_at"]),
        source=row["source"],
        confidence=row["confidence"],
    )


def exchange_rates(rows: Sequence[Row]) -> ExchangeRates:
    """The rows of exchange_rates.csv: one day, one base."""
    first = rows[0]
    return ExchangeRates(
        base=first["base"],
        per_base={row["currency"]: Decimal(row["per_base"]) for row in rows},
        on=parse_day(first["on"]),
        source=first["source"],
    )
