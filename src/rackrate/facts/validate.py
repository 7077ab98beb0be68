"""What is wrong with rows of the fact files, as findings.

Run before every release by ``tools/check_facts.py``; at run time rows are
trusted. A finding's subject is ``file:line column``, so that an editor opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rackrate.facts import rows, validate_cards, validate_terms
from rackrate.facts.accelerator import Precision
from rackrate.facts.validate_cells import Check, Known, Tables, day, member, number, parsed
from rackrate.facts.validate_engines import engine_faults
from rackrate.facts.validate_hosted import hosted_check
from rackrate.facts.validate_rows import Fault, Row, findings
from rackrate.problems import Code, Finding

PARAMS_TOLERANCE = 0.002
HEADS_OVER_HIDDEN = (0.2, 20)
VERDICTS = frozenset({"right", "wrong", "conditional", "unsupported"})


def validate(tables: Tables, engines: Mapping[str, Mapping[str, object]]) -> list[Finding]:
    """All faults of the fact files: ``tables`` by file name, engine documents by file name."""
    known = Known(tables)
    found = [finding for name, check in CHECKS.items() for finding in findings(name, tables.get(name), check(known))]
    for name, document in engines.items():
        found += engine_faults(name, document, formats=known.formats, vendors=known.vendors)
    return found


def _models(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        if set(row["id"]) & set(',"'):
            yield Fault(Code.BAD_VALUE, "id", row["id"], "no comma and no quote", "ids are looked up by line")
        faults = [f for c in ("params_total", "params_active") for f in number(row, c, 1e6, 1e14)]
        yield from faults
        if not faults:
            yield from _params(row)
        for column in ("layers", "attention_heads", "kv_heads", "head_dim", "vocab_size", "experts", "max_context"):
            yield from parsed(row, column, int, "a whole number")
        yield from _heads(row)
        yield from day(row, "seen_at")

    return check


def _params(row: Row) -> Iterator[Fault]:
    total, active = int(row["params_total"]), int(row["params_active"])
    if active > total:
        yield Fault(Code.CONFLICT, "params_active", row["params_active"], f"at most {total}", "count again")
    checked = row["params_check"]
    if checked and abs(int(checked) / total - 1) > PARAMS_TOLERANCE and "params_check" not in row["notes"]:
        expected = f"within {PARAMS_TOLERANCE:.1%} of params_total"
        yield Fault(Code.CONFLICT, "params_check", checked, expected, "mend it, or say why in notes: params_check ...")


def _heads(row: Row) -> Iterator[Fault]:
    """Heads x head dimension stays near the hidden size; there are no more KV heads than heads."""
    cells = [row[c] for c in ("attention_heads", "head_dim", "hidden_size")]
    if not all(c.isdigit() for c in cells):
        return
    heads, head_dim, hidden = map(int, cells)
    low, high = HEADS_OVER_HIDDEN
    if not low <= heads * head_dim / hidden <= high:
        yield Fault(
            Code.OUT_OF_BOUNDS, "head_dim", row["head_dim"], f"{low} to {high} x hidden / heads", "read it again"
        )
    if row["kv_heads"].isdigit() and int(row["kv_heads"]) > heads:
        yield Fault(Code.CONFLICT, "kv_heads", row["kv_heads"], f"at most {heads}", "read it again")


def _formats(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "bits_per_weight", 1, 32)
        yield from parsed(row, "computes_in", Precision, "a precision")
        yield from parsed(row, "min_compute_capability", rows.capability, "a compute capability such as 8.9")
        for column in ("embeddings_16bit", "head_16bit"):
            yield from parsed(row, column, rows.flag, "true or false")
        yield from day(row, "seen_at")

    return check


def _claims(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "verdict", VERDICTS, "right, wrong, conditional, unsupported")
        if not row["right_answer"]:
            yield Fault(Code.MISSING_VALUE, "right_answer", "", "the right answer", "write what is right")

    return check


CHECKS: Mapping[str, Callable[[Known], Check]] = {
    "accelerators.csv": validate_cards.accelerators_check,
    "accelerator_facts.csv": validate_cards.facts_check,
    "memory_rules.csv": validate_cards.memory_rules_check,
    "baselines.csv": validate_cards.baselines_check,
    "mig_profiles.csv": validate_cards.mig_check,
    "models.csv": _models,
    "formats.csv": _formats,
    "billing_rules.csv": validate_terms.billing_check,
    "providers.csv": validate_terms.providers_check,
    "exchange_rates.csv": validate_terms.rates_check,
    "access.csv": validate_terms.access_check,
    "hosted_prices.csv": hosted_check,
    "claims.csv": _claims,
}
