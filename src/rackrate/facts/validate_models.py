"""Faults of models.csv: sizes within reason, heads, layers and parameters that fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackrate.facts import rows
from rackrate.facts.cells import is_number, is_whole
from rackrate.facts.validate_cells import Check, Known, day, number, parsed, whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code

PARAMS_TOLERANCE = 0.002
HEADS_OVER_HIDDEN = (0.2, 20)
WHOLE: Mapping[str, tuple[int, int]] = {
    "params_check": (10**6, 10**14),
    "hidden_size": (1, 10**6),
    "layers": (1, 2_000),
    "attention_heads": (1, 4_096),
    "kv_heads": (1, 4_096),
    "head_dim": (1, 16_384),
    "intermediate_size": (1, 10**7),
    "vocab_size": (1, 10**7),
    "max_context": (1, 10**9),
    "attn_layers_full": (0, 2_000),
    "attn_layers_windowed": (0, 2_000),
    "layers_linear_or_ssm": (0, 2_000),
    "window": (1, 10**9),
    "mla_kv_lora_rank": (1, 10**5),
    "mla_qk_rope_head_dim": (1, 10**4),
    "mla_q_lora_rank": (1, 10**5),
    "mla_v_head_dim": (1, 10**4),
    "experts": (1, 10**5),
    "experts_per_token": (1, 10**5),
    "moe_intermediate_size": (1, 10**7),
    "shared_experts": (0, 1_000),
    "dense_layers_first": (0, 2_000),
    "tower_params": (10**6, 10**11),
    "rotary_positions": (1, 10**10),
    "encoder_layers": (1, 2_000),
    "decoder_layers": (1, 2_000),
    "encoder_positions": (1, 10**7),
    "mel_bins": (1, 10**4),
}
"""From the least that means something to ten times the largest model known."""

AT_MOST = (
    ("params_active", ("params_total",)),
    ("kv_heads", ("attention_heads",)),
    ("experts_per_token", ("experts",)),
    ("dense_layers_first", ("layers",)),
)
KINDS_OF_LAYER = ("attn_layers_full", "attn_layers_windowed", "layers_linear_or_ssm")
TOTAL_OVER_ROUGH = (0.4, 3.0)
TOTAL_OVER_ROUGH_HYBRID = (0.1, 3.0)
"""Of mixtures with layers of other kinds: their experts may work in a smaller space, and not in every layer."""


def models_check(known: Known) -> Check:
    """What is wrong with a model of models.csv."""

    def check(row: Row) -> Iterator[Fault]:
        if set(row["id"]) & set(',"') or not row["id"].strip():
            yield Fault(Code.BAD_VALUE, "id", row["id"], "a name without comma and quote", "ids are looked up by line")
        faults = [*_counts(row), *(fault for column, bounds in WHOLE.items() for fault in whole(row, column, *bounds))]
        for column in ("tie_embeddings", "mlp_gated"):
            faults += parsed(row, column, rows.flag, "true or false")
        yield from faults or _together(row)
        yield from day(row, "seen_at", known.today)

    return check


def _counts(row: Row) -> Iterator[Fault]:
    """Both counts of parameters are there, in whole digits."""
    for column in ("params_total", "params_active"):
        if is_number(row[column]) and not is_whole(row[column]):
            faults = list(number(row, column, 1e6, 1e14))
            yield from faults or [Fault(Code.BAD_VALUE, column, row[column], "a whole number", "write all its digits")]
        elif row[column]:
            yield from number(row, column, 1e6, 1e14)
        else:
            yield Fault(Code.MISSING_VALUE, column, "", "a count of parameters", "read it off the tensors")


def _together(row: Row) -> Iterator[Fault]:
    for column, others in AT_MOST:
        for other in others:
            if row[column] and row[other] and int(row[column]) > int(row[other]):
                yield Fault(Code.CONFLICT, column, row[column], f"at most {row[other]} ({other})", "read it again")
    for column, other in (("encoder_layers", "decoder_layers"), ("decoder_layers", "encoder_layers")):
        if row[column] and not row[other]:
            yield Fault(Code.MISSING_VALUE, other, "", f"a number of layers beside {column}", "give both, or neither")
    yield from _checked(row)
    yield from _heads(row)
    yield from _layers(row)
    yield from _rough(row)


def _checked(row: Row) -> Iterator[Fault]:
    checked, total = row["params_check"], int(row["params_total"])
    if checked and abs(int(checked) / total - 1) > PARAMS_TOLERANCE and "params_check" not in row["notes"]:
        expected = f"within {PARAMS_TOLERANCE:.1%} of params_total"
        yield Fault(Code.CONFLICT, "params_check", checked, expected, "mend it, or say why in notes: params_check ...")


def _heads(row: Row) -> Iterator[Fault]:
    """Heads x head dimension stays near the hidden size."""
    if not all(row[column] for column in ("attention_heads", "head_dim", "hidden_size")):
        return
    low, high = HEADS_OVER_HIDDEN
    if not low <= int(row["attention_heads"]) * int(row["head_dim"]) / int(row["hidden_size"]) <= high:
        expected = f"{low} to {high} x hidden / heads"
        yield Fault(Code.OUT_OF_BOUNDS, "head_dim", row["head_dim"], expected, "read it again")


def _layers(row: Row) -> Iterator[Fault]:
    """Layers of all kinds together are no more than there are; one that counts a window has one."""
    kinds = [column for column in KINDS_OF_LAYER if row[column]]
    together = sum(int(row[column]) for column in kinds)
    if row["layers"] and together > int(row["layers"]):
        expected = f"with the other kinds at most {row['layers']} layers"
        column = max(kinds, key=lambda kind: int(row[kind]))
        yield Fault(Code.CONFLICT, column, row[column], expected, "count them again")
    if int(row["attn_layers_windowed"] or 0) and not row["window"]:
        yield Fault(Code.MISSING_VALUE, "window", "", "tokens of the window", "read it off the configuration")


def _rough(row: Row) -> Iterator[Fault]:
    """The count is of the order that the sizes come to, or a digit slipped in one of them.

    ``L (h d (2 n + 2 k) + g h f) + (1 or 2) v h`` (arXiv 1706.03762, 2002.05202), with the experts of a
    mixture in place of the feed-forward block: no towers, no cross-attention, no convolutions.
    """
    needed = ("hidden_size", "layers", "attention_heads", "kv_heads", "head_dim", "intermediate_size", "vocab_size")
    if not all(row[column] for column in needed):
        return
    hidden, layers, heads, kv_heads, head_dim, width, vocabulary = (int(row[column]) for column in needed)
    matrices = 2 if row["mlp_gated"] == "false" else 3
    dense = layers if not row["experts"] else int(row["dense_layers_first"] or 0)
    experts = int(row["experts"] or 0) + int(row["shared_experts"] or 0)
    blocks = dense * width + (layers - dense) * experts * int(row["moe_intermediate_size"] or width)
    embeddings = (1 if row["tie_embeddings"] == "true" else 2) * vocabulary * hidden
    rough = layers * hidden * head_dim * 2 * (heads + kv_heads) + matrices * hidden * blocks + embeddings
    hybrid = row["experts"] and int(row["layers_linear_or_ssm"] or 0)
    low, high = TOTAL_OVER_ROUGH_HYBRID if hybrid else TOTAL_OVER_ROUGH
    if not low <= int(row["params_total"]) / rough <= high:
        expected = f"{low:g} to {high:g} times the {rough:.3g} that the sizes come to"
        yield Fault(Code.CONFLICT, "params_total", row["params_total"], expected, "read it and the sizes again")
