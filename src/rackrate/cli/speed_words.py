"""Sentences about speeds: the ceiling, the bar beside it, targets, and what more cards change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.gpu_parts import per_cent
from rackrate.cli.numbers import rate_span

if TYPE_CHECKING:
    from rackrate.app.wire.parts import FactDoc, RangeDoc
    from rackrate.app.wire.speed import CardSpeedDoc, EnergyDoc, MachineSpeedDoc, MissedDoc, PartSpeedDoc

_CELLS = 20
_SMALL = 10
_UNITS = {"bytes/s": (1e9, "GB/s"), "flop/s": (1e12, "TFLOPS")}


def bar(part: PartSpeedDoc) -> str:
    """The share of the ceiling as a bar, and the rates that it stands for."""
    full = min(_CELLS, round(part.share_of_ceiling * _CELLS))
    drawn = f"{'█' * full}{'░' * (_CELLS - full)} {per_cent(part.share_of_ceiling)} of the ceiling".replace(" ", "\xa0")
    speed = f"{rate_span(part.tokens_per_s)} tokens/s of at most {part.ceiling_tokens_per_s:,.0f}"
    moved = ""
    if part.bandwidth_share is not None and part.bytes_per_s_per_card is not None:
        moved = f"{part.bytes_per_s_per_card / 1e9:,.0f} GB/s ({per_cent(part.bandwidth_share)}) and "
    done = f"{part.flop_per_s_per_card / 1e12:,.4g} TFLOPS ({per_cent(part.arithmetic_share)})"
    busy = ", ".join(
        f"{words.word(words.BOUNDS, each.resource)} {per_cent(each.share)}"
        for each in sorted(part.busy, key=lambda each: -each.share)
    )
    return f"{drawn}: {speed}; {moved}{done} a card; busy: {busy}"


def peak(card: CardSpeedDoc) -> str:
    """The published rates of one card, each with its source."""
    parts = [_rate(fact) for fact in card.roofs]
    flop = next((fact.value for fact in card.roofs if fact.unit == "flop/s"), None)
    powered = card.powered_flop_per_s
    if powered is not None and flop is not None and powered < flop:
        parts.append(f"the power limit pays for {powered / 1e12:,.4g} TFLOPS of it")
    return "; ".join(parts)


def _rate(fact: FactDoc) -> str:
    scale, unit = _UNITS[fact.unit]
    name = fact.quantity.removesuffix("_bytes_per_s").removesuffix("_flop_per_s").removeprefix("peak_")
    return f"{name.replace('_', ' ')} {fact.value / scale:,.4g} {unit}, {fact.kind} ({fact.source})"


def energy(found: EnergyDoc) -> str:
    """What the cards draw, and watt-hours of a million tokens or of an image."""
    made, what = found.wh_per_million_tokens, "per million tokens"
    if found.wh_per_image is not None:
        made, what = found.wh_per_image, "an image"
    if found.watts_per_gpu is None or made is None:
        return f"unknown: {found.reason}"
    drawn = found.watts_per_gpu
    each = f"{drawn.likely:,.0f} W a card ({drawn.low:,.0f} to {drawn.high:,.0f})"
    return f"{result(made)} Wh {what} at {each}; the cards alone"


def result(span: RangeDoc) -> str:
    """A rate that can be small: ``2.8 (2.3 to 3.4)``."""
    if span.low >= _SMALL:
        return rate_span(span)
    return f"{span.likely:.3g} ({span.low:.3g} to {span.high:.3g})"


def why_not(machine: MachineSpeedDoc) -> str:
    """Why a machine does not do the work."""
    said = words.word(words.REASONS, machine.reason or "")
    return f"{said}: {machine.detail}" if machine.detail else said


def targets(card: CardSpeedDoc) -> Iterator[str]:
    """Which numbers of cards meet the targets, where some machine misses one."""
    missing = [machine for machine in card.machines if machine.missed]
    if not missing:
        return
    seen = "; ".join(f"{machine.gpus} x: {', '.join(map(_missed, machine.missed))}" for machine in missing)
    if card.fewest_gpus is None:
        yield f"no number of cards shown meets them: {seen}"
    else:
        yield f"{card.fewest_gpus} x is the fewest that meets them all; missed by {seen}"


def _missed(missed: MissedDoc) -> str:
    return f"{missed.target} {missed.observed:.3g} {missed.unit}, limit {missed.limit:.3g}"


def more_cards(card: CardSpeedDoc) -> Iterator[str]:
    """Whether more cards are faster, and what share of itself each adds."""
    able = [machine for machine in card.machines if machine.speedup is not None]
    if len(able) < 2:  # noqa: PLR2004 - one machine has none to be compared with
        return
    first, fewest = able[0], f"{able[0].gpus} x"
    for machine in able[1:]:
        if machine.gpus == card.fastest_gpus and machine.speedup and machine.efficiency:
            share = per_cent(machine.efficiency)
            yield f"fastest is {machine.gpus} x: {machine.speedup:.2f} times {fewest}, {share} of its share a card"
    if first.gpus == card.fastest_gpus:
        yield f"none is faster than {fewest}"
        return
    slower = [f"{m.gpus} x" for m in able if m.gpus > (card.fastest_gpus or 0)]
    if slower:
        yield f"{', '.join(slower)}: no faster than {card.fastest_gpus} x"


def more_nodes(machine: MachineSpeedDoc) -> Iterator[str]:
    """What machines joined by a network add, which of them slow the work down, and the fewest that meet the targets."""
    able = [one for one in machine.by_nodes if one.speedup is not None]
    if not machine.by_nodes:
        return
    if len(able) > 1:
        base = f"{able[0].nodes} x {machine.gpus}"
        each = "; ".join(f"{one.nodes} machines {one.speedup:.2f} times" for one in able[1:])
        yield f"over {base} alone, by a network of {machine.network}: {each}"
    unable = [str(one.nodes) for one in machine.by_nodes if one.speedup is None]
    if unable:
        yield f"{', '.join(unable)} cannot do it"
    best = max(able, key=lambda one: one.speedup or 0.0, default=None)
    slower = [str(one.nodes) for one in able if best is not None and one.nodes > best.nodes]
    if best is not None and slower:
        yield f"{', '.join(slower)}: slower than {best.nodes}, for the network"
    meeting = [one.nodes for one in machine.by_nodes if one.meets_targets]
    if meeting and any(not one.meets_targets for one in able):
        yield f"{meeting[0]} is the fewest of these that meets every target"
