"""The screen of ``speed``: cards and numbers of cards side by side, then each card beside its ceiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.advice_screen import advice
from rackrate.cli.gpu_parts import measured_table, per_cent
from rackrate.cli.judged_screen import JUDGED_KEYS, JUDGED_TEXTS, judged, judged_cells
from rackrate.cli.layout import Part, Table, drawn, pairs
from rackrate.cli.load_words import highest, latencies, met, shared
from rackrate.cli.numbers import hours_span, image_speed, rate_span, seconds_of, seconds_span
from rackrate.cli.sections import assumptions, warnings, workload_line
from rackrate.cli.speed_words import bar, energy, more_cards, more_nodes, peak, result, targets, why_not
from rackrate.units import format_hours

if TYPE_CHECKING:
    from rackrate.app.wire.parts import RangeDoc
    from rackrate.app.wire.speed import CardSpeedDoc, MachineSpeedDoc, PartSpeedDoc, SpeedDocument

_RANGES = (
    "tokens_per_s",
    "first_token_s",
    "per_user_tokens_per_s",
    "requests_per_s",
    "capacity_requests_per_s",
    "audio_s_per_s",
    "step_s",
    "model_flop_utilisation",
    "images_per_s",
    "s_per_image",
    "steps_per_s",
    "hours",
)
_DRAWN = ("watts", "wh_per_million_tokens")
_PARTS = ("prefill", "decode", "step")
_TIMES, _SHARES = ("first_token_s", "s_per_output_token", "request_s"), ("p50", "p90", "p99")
_KEYS = (
    *("accelerator", "nodes", "gpus", "layout", "interconnect", "verdict"),
    *(f"{name}_{end}" for name in _RANGES for end in ("low", "likely", "high")),
    *(f"{name}_{end}" for name in _DRAWN for end in ("low", "likely", "high")),
    *("limited_by", "ceiling_tokens_per_s", "ceiling_images_per_s", "share_of_ceiling", "speedup", "efficiency"),
    *("network", "speedup_over_fewest_nodes"),
    *(f"{part}_{name}" for part in _PARTS for name in ("tokens_per_s", "bandwidth_share", "arithmetic_share")),
    *(f"simulated_{name}_{share}" for name in _TIMES for share in _SHARES),
    *("simulated_requests_per_s", "simulated_capacity_requests_per_s", "highest_requests_per_s"),
    *("meets_targets", "reason", "detail"),
    *JUDGED_KEYS,
)
_TEXTS = frozenset(
    {"accelerator", "layout", "interconnect", "verdict", "limited_by", "meets_targets", "reason", "detail", "network"}
    | JUDGED_TEXTS
)


def table(document: SpeedDocument) -> Table:
    """A row for each machine, with every number in base units (for CSV and Markdown)."""
    return Table(
        keys=_KEYS,
        titles=_KEYS,
        rows=tuple(
            (*_row(card, machine), *judged_cells(document.judged, card.accelerator, machine.gpus))
            for card in document.cards
            for machine in card.machines
        ),
        right=frozenset(place for place, key in enumerate(_KEYS) if key not in _TEXTS),
    )


def _row(card: CardSpeedDoc, machine: MachineSpeedDoc) -> tuple[str, ...]:
    parts = {part.part: part for part in machine.parts}
    return (
        *(card.accelerator, str(machine.nodes), str(machine.gpus), machine.layout or ""),
        *(machine.interconnect, machine.verdict or ""),
        *(text for name in _RANGES for text in _ends(getattr(machine, name))),
        *(text for name in _DRAWN for text in _ends(getattr(machine.energy, name, None))),
        machine.limited_by or "",
        *map(_number, _of_most(machine)),
        machine.network or "",
        _number(machine.by_nodes[-1].speedup if machine.by_nodes else None),
        *(text for name in _PARTS for text in _part_cells(parts.get(name))),
        *_simulated_cells(machine),
        "" if _rate(machine) is None else str(not machine.missed).lower(),
        machine.reason or "",
        machine.detail,
    )


def _of_most(machine: MachineSpeedDoc) -> tuple[float | None, ...]:
    ceilings = (machine.ceiling_tokens_per_s, machine.ceiling_images_per_s)
    return (*ceilings, machine.share_of_ceiling, machine.speedup, machine.efficiency)


def _rate(machine: MachineSpeedDoc) -> RangeDoc | None:
    """What the machine makes a second: tokens, or images; None where it does not do the work."""
    return machine.tokens_per_s or machine.images_per_s


def _ends(span: RangeDoc | None) -> tuple[str, str, str]:
    return ("", "", "") if span is None else (_number(span.low), _number(span.likely), _number(span.high))


def _part_cells(part: PartSpeedDoc | None) -> tuple[str, str, str]:
    if part is None:
        return ("", "", "")
    return (_number(part.tokens_per_s.likely), _number(part.bandwidth_share), _number(part.arithmetic_share))


def _simulated_cells(machine: MachineSpeedDoc) -> Iterator[str]:
    for name in _TIMES:
        found = getattr(machine.load, name, None)
        yield from (_number(getattr(found, share).likely if found else None) for share in _SHARES)
    most = machine.highest_load
    yield _number(machine.load.requests_per_s.likely if machine.load else None)
    yield _number(most.capacity_requests_per_s.likely if most else None)
    yield _number(most.requests_per_s.likely if most and most.requests_per_s else None)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


# ---------------------------------------------------------------- screen


def screen(document: SpeedDocument) -> Iterator[Part]:
    """What a person sees, top to bottom."""
    yield workload_line(document.workload)
    yield ""
    yield from judged(document.judged)
    yield drawn(_overview(document))
    yield _legend(document)
    yield ""
    told = _foremost(document.cards)
    for card in told:
        yield from _card(card, in_full=len(document.cards) == 1)
    if len(told) < len(document.cards):
        rest = ", ".join(card.accelerator for card in document.cards if card not in told)
        yield f"Not in full here: {rest}; name one with --gpu, or take --json."
        yield ""
    yield from assumptions(document.assumptions)
    yield from warnings(document.warnings)


_IN_FULL = 2
"""Cards that are told in full where a load was simulated, which is long; the others are in the table alone."""


def _foremost(cards: Sequence[CardSpeedDoc]) -> list[CardSpeedDoc]:
    """The cards to tell in full, in their order: those that meet the targets first, then the fastest."""
    simulated = any(machine.load is not None for card in cards for machine in card.machines)
    if len(cards) <= _IN_FULL or not simulated:
        return list(cards)
    best = sorted(cards, key=_standing, reverse=True)[:_IN_FULL]
    return [card for card in cards if card in best]


def _standing(card: CardSpeedDoc) -> tuple[bool, float]:
    told = _leading(card)
    pace = _rate(told) if told is not None else None
    return told is not None and not told.missed, pace.likely if pace is not None else -1.0


def _overview(document: SpeedDocument) -> Table:
    """A row for each machine; what is served and what is trained have columns of their own."""
    trains = document.workload.tokens is not None
    pictures = document.workload.images is not None
    pair = ("step s", "hours") if trains else ("s each", "hours") if pictures else ("each", "first s")
    titles = ("card", "n", "layout", "images/s" if pictures else "tok/s", *pair, "of most", "times", "limited by")
    rows = tuple(
        _seen(card, machine, trains=trains) if _rate(machine) else _unseen(card, machine)
        for card in document.cards
        for machine in card.machines
    )
    return Table(keys=titles, titles=titles, rows=rows, right=frozenset({1, 3, 4, 5, 6, 7}))


def _seen(card: CardSpeedDoc, machine: MachineSpeedDoc, *, trains: bool) -> tuple[str, ...]:
    pair = (machine.step_s, machine.hours) if trains else (machine.per_user_tokens_per_s, machine.first_token_s)
    if machine.images_per_s is not None:
        pair = (machine.s_per_image, machine.hours)
    limit = machine.limited_by or ""
    short = words.BOUNDS_IN_A_COLUMN.get(limit, words.word(words.BOUNDS, limit))
    return (
        card.accelerator,
        _of_machines(machine),
        machine.layout or "",
        _short(_rate(machine)),
        *map(_short, pair),
        per_cent(machine.share_of_ceiling or 0.0),
        f"{machine.speedup:.2f}" if machine.speedup is not None else "",
        f"{short}{'; misses a target' if machine.missed else ''}",
    )


def _unseen(card: CardSpeedDoc, machine: MachineSpeedDoc) -> tuple[str, ...]:
    return (
        card.accelerator,
        _of_machines(machine),
        machine.layout or "-",
        *("-",) * 5,
        words.word(words.REASONS, machine.reason or ""),
    )


def _of_machines(machine: MachineSpeedDoc) -> str:
    """The cards of a machine, with the machines before them where they are several."""
    return f"{machine.nodes} x {machine.gpus}" if machine.nodes > 1 else str(machine.gpus)


_WHOLE_FROM = 100


def _short(span: RangeDoc | None) -> str:
    if span is None:
        return "-"
    return f"{span.likely:,.0f}" if span.likely >= _WHOLE_FROM else f"{span.likely:.3g}"


def _legend(document: SpeedDocument) -> str:
    most = "of most: of what no software can exceed in that layout; times: the speed over the fewest cards'"
    if document.workload.tokens is not None:
        return f"Likely values. {most}."
    if document.workload.images is not None:
        return f"Likely values. s each: of one image on one card; {most}."
    return f"Likely values. tok/s: output of all requests; each: of one while it is written; {most}."


def _card(card: CardSpeedDoc, *, in_full: bool) -> Iterator[Part]:
    """One card: the machine that matters, its parts beside the ceiling, and what more cards change."""
    told = _leading(card)
    name = f"{card.accelerator} ({card.product})"
    if told is None:
        yield f"{name}: {why_not(card.machines[-1])}."
        yield from _changes(card)
        yield ""
        return
    machines = f"{told.nodes} machines of " if told.nodes > 1 else ""
    yield f"{machines}{told.gpus} x {name}, {told.layout}"
    rows = [*_speed_rows(told), *(("Ceiling", text) for text in (peak(card),) if text)]
    rows += [(part.part.capitalize(), bar(part)) for part in told.parts]
    rows += [("Targets", text) for text in targets(card)]
    rows += [("More cards", text) for text in more_cards(card)]
    rows += [("Machines", text) for text in more_nodes(told)]
    rows += _load_rows(told)
    yield pairs([(f"  {label}", text) for label, text in rows])
    if told.load is not None:
        yield ""
        yield drawn(latencies(told.load))
    if len(told.shared) > 1:
        yield ""
        yield drawn(shared(told.shared))
        yield "All programs together, likely values, not calibrated: bandwidth and arithmetic shared, weights repeated."
    yield from _changes(card)
    yield ""
    yield from advice(card)
    found = measured_table(card.measured) if in_full else None
    if found is not None:
        yield drawn(found)
        yield ""


def _leading(card: CardSpeedDoc) -> MachineSpeedDoc | None:
    """The fewest cards that meet every target, else the fewest that do the work."""
    able = [machine for machine in card.machines if _rate(machine) is not None]
    return next((machine for machine in able if machine.gpus == card.fewest_gpus), able[0] if able else None)


def _speed_rows(machine: MachineSpeedDoc) -> Iterator[tuple[str, str]]:
    bounds = words.BOUNDS if machine.images_per_s is None else words.BOUNDS_OF_IMAGES
    limit = words.word(bounds, machine.limited_by or "")
    if machine.tokens_per_s is not None:
        yield "Speed", f"{rate_span(machine.tokens_per_s)} tokens/s, limited by {limit}"
    if machine.images_per_s is not None:
        made = image_speed(machine.images_per_s, machine.s_per_image, machine.steps_per_s)
        yield "Speed", f"{made}, limited by {limit}"
        parts = (("prompt", machine.encode_s), ("denoising", machine.denoise_s), ("decoding", machine.decode_s))
        yield "Phases", ", ".join(f"{name} {seconds_of(part.likely)}" for name, part in parts if part is not None)
    if machine.first_token_s is not None and machine.s_per_output_token is not None:
        each = f"{seconds_span(machine.s_per_output_token)} a token after it"
        yield "Latency", f"first token after {seconds_span(machine.first_token_s)}, {each}"
    if machine.capacity_requests_per_s is not None:
        yield "Capacity", f"{result(machine.capacity_requests_per_s)} requests/s with full caches"
    if machine.audio_s_per_s is not None:
        yield "Sound", f"{result(machine.audio_s_per_s)} hours transcribed in an hour"
    if machine.step_s is not None:
        yield "Step", f"{seconds_span(machine.step_s)} an optimizer step"
    if machine.energy is not None:
        yield "Energy", energy(machine.energy)
    startup = f"start-up {format_hours(machine.startup_hours.likely)}" if machine.startup_hours else ""
    if machine.pauses_hours is not None and machine.checkpoint_s is not None:
        startup += f", {format_hours(machine.pauses_hours.likely)} checkpoints and evaluations"
        startup += f" ({seconds_span(machine.checkpoint_s)} a checkpoint)"
    yield "Time", f"done in {hours_span(machine.hours)}, of which {startup}" if machine.hours else f"{startup} first"


def _load_rows(machine: MachineSpeedDoc) -> Iterator[tuple[str, str]]:
    """The load that was simulated, and the highest one."""
    if machine.load is None:
        return
    yield "Load", met(machine.load)
    if machine.highest_load is not None:
        yield "Highest", highest(machine.highest_load)


def _changes(card: CardSpeedDoc) -> Iterator[Part]:
    """What would make the work fit on the machines on which it does not."""
    rows = [
        (
            f"  {machine.gpus} x would fit with",
            "; or ".join(f"{change.knob} {change.before} -> {change.after}" for change in machine.changes),
        )
        for machine in card.machines
        if machine.changes
    ]
    if rows:
        yield pairs(rows)
