"""What is wrong with rows of the fact files, as findings.

Run before every release by ``tools/check_facts.py``; at run time rows are
trusted. A finding's subject is ``file:line column``, so that an editor opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date

from rackrate.facts import (
    rows,
    validate_billing,
    validate_cards,
    validate_files,
    validate_models,
    validate_pipelines,
    validate_sights,
    validate_terms,
    validate_works,
)
from rackrate.facts.accelerator import Precision
from rackrate.facts.validate_cells import Check, Known, Tables, day, member, number, parsed
from rackrate.facts.validate_engines import engine_faults
from rackrate.facts.validate_hosted import hosted_check
from rackrate.facts.validate_rows import Fault, Row, findings
from rackrate.problems import Code, Finding

VERDICTS = frozenset({"right", "wrong", "conditional", "unsupported"})


def validate(
    tables: Tables, engines: Mapping[str, Mapping[str, object]], *, today: date | None = None
) -> list[Finding]:
    """All faults of the fact files: ``tables`` by file name, engine documents by file name.

    Nothing can have been seen after ``today``; None leaves that open.
    """
    known = Known(tables, today)
    found = [finding for name, check in CHECKS.items() for finding in findings(name, tables.get(name), check(known))]
    for name, document in engines.items():
        found += engine_faults(name, document, formats=known.formats, vendors=known.vendors)
    return [*found, *validate_files.faults(tables, engines)]


def _formats(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        for column in ("bits_per_weight", "embedding_bits", "head_bits"):
            if row.get(column) or column == "bits_per_weight":
                yield from number(row, column, 1, 32)
        yield from parsed(row, "computes_in", Precision, "a precision")
        yield from parsed(row, "min_compute_capability", rows.capability, "a compute capability such as 8.9")
        for column in ("embeddings_16bit", "head_16bit", "experts_alone"):
            yield from parsed(row, column, rows.flag, "true or false")
        yield from day(row, "seen_at", known.today)

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
    "models.csv": validate_models.models_check,
    "denoisers.csv": validate_works.denoisers_check,
    "render_scores.csv": validate_works.render_check,
    "pipelines.csv": validate_pipelines.pipelines_check,
    "image_tokens.csv": validate_sights.sights_check,
    "formats.csv": _formats,
    "billing_rules.csv": validate_billing.billing_check,
    "providers.csv": validate_terms.providers_check,
    "exchange_rates.csv": validate_terms.rates_check,
    "access.csv": validate_terms.access_check,
    "hosted_prices.csv": hosted_check,
    "claims.csv": _claims,
}
