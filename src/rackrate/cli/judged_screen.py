"""Is this normal? The part of a screen that judges a measured speed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli.gpu_parts import per_cent
from rackrate.cli.layout import Part, pairs

if TYPE_CHECKING:
    from rackrate.app.wire.measured import CorrectionDoc, GapDoc, JudgedDoc

JUDGED_KEYS = (
    *("measured_value", "measured_unit", "measured_expected", "measured_ceiling", "standing"),
    *("share_of_expected", "share_of_most", "likely_reasons"),
)
JUDGED_TEXTS = frozenset({"measured_unit", "standing", "likely_reasons"})
_STANDINGS = {
    "normal": "yes: within what is expected",
    "slow": "no: slower than expected",
    "fast": "faster than expected, and possible",
    "impossible": "faster than possible: wrong unit, wrong count, or not this machine",
}
_PARTS = {"prefill": "reading prompts", "decode": "writing", "training": "training", "images": "making images"}


def judged_cells(found: JudgedDoc | None, accelerator: str, gpus: int) -> tuple[str, ...]:
    """The verdict on the machine that was measured, for its row; empty cells for all others."""
    if found is None or (found.accelerator, found.gpus) != (accelerator, gpus):
        return ("",) * len(JUDGED_KEYS)
    return (
        f"{found.value:.6g}",
        found.unit,
        f"{found.expected.likely:.6g}",
        f"{found.ceiling:.6g}",
        found.standing,
        f"{found.share_of_expected:.6g}",
        f"{found.share_of_ceiling:.6g}",
        "; ".join(f"{gap.cause}{f' ({gap.setting})' if gap.setting else ''}" for gap in found.gaps),
    )


def judged(found: JudgedDoc | None) -> Iterator[Part]:
    """The verdict, what was expected, and what may be wrong."""
    if found is None:
        return
    yield f"Is {found.text} on {found.gpus} x {found.accelerator} ({found.layout}) normal?"
    rows = [
        ("  Answer", _STANDINGS.get(found.standing, found.standing)),
        ("  Measured", f"{_number(found.value)} {found.unit}"),
        ("  Expected", f"{_span(found)}: {per_cent(found.share_of_expected)} of the likely speed is reached"),
        ("  Ceiling", f"{_number(found.ceiling)}: {per_cent(found.share_of_ceiling)} of it is reached"),
    ]
    rows += [("  Or is it", f"{each.what}? Then it is normal.") for each in found.readings]
    if found.corrections:
        rows.append(("  Corrected", f"{'; '.join(map(_corrected, found.corrections))}. All that follows says so."))
    yield pairs(rows)
    yield ""
    if found.gaps:
        yield "What may be wrong, likeliest first, and the speed that it alone would leave:"
        yield pairs([(f"  {place}", _reason(gap)) for place, gap in enumerate(found.gaps, 1)])
        yield ""


def _span(found: JudgedDoc) -> str:
    expected = found.expected
    return f"{_number(expected.likely)} ({_number(expected.low)} to {_number(expected.high)})"


def _corrected(each: CorrectionDoc) -> str:
    other = "" if each.times == each.elsewhere else f" (other models and numbers of this card {each.elsewhere:.2f})"
    return f"{_PARTS.get(each.part, each.part)} takes {each.times:.2f} times what was expected{other}"


def _reason(gap: GapDoc) -> str:
    leaves = f"{_number(gap.value)}, {per_cent(gap.explains)} of the gap"
    return f"{gap.what}: {leaves}; to find out: {gap.test}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.3g}"


_WHOLE_FROM = 1000
