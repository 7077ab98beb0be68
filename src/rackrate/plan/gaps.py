"""Gaps: what could make a machine slower than expected, each as the speed that it alone would leave.

Every cause is the estimate made again with that one thing changed. Causes of a
size of their own come before those that can be as large as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import StrEnum

from rackrate.evidence import Fact, Kind, Unknown
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.book import FactBook
from rackrate.facts.engine_speed import Host
from rackrate.plan.judging import Case, Judged, pace_of
from rackrate.plan.slices import slice_of
from rackrate.speed.host_link import host_link_bytes_per_s
from rackrate.speed.replica import Replica, is_packed, replica
from rackrate.speed.startup import stored_bytes
from rackrate.speed.training import micro_batches
from rackrate.speed.training_terms import passes, stores_scores
from rackrate.values import Value, replace
from rackrate.workload.measured import Counted
from rackrate.workload.workload import Checkpointing, Training

MOST = 8
"""Causes that are told."""

WORTH = 0.03
"""A cause that takes less of the speed is not told."""

LEAST_POWER = 0.3
"""Of the power limit: drivers let it be set no lower (nvidia-smi -q -d POWER: minimum power limits of data-centre
cards are 25 to 50 % of their default)."""

_HALVINGS = 40
_ALIKE = 0.12  # another card's speed explains one that is as near as this
_SAME_MEMORY = 0.10
_SIXTEEN_BITS = frozenset({Precision.BF16, Precision.FP16})


class Cause(StrEnum):
    """What may be wrong."""

    EAGER_LAUNCH = "eager_launch"
    SLOW_HOST = "slow_host"
    COMPUTED_IN_FP32 = "computed_in_fp32"
    NOT_QUANTISED = "not_quantised"
    UNPACKED_FIRST = "unpacked_first"
    NO_FLASH_ATTENTION = "no_flash_attention"
    CHECKPOINTING = "checkpointing"
    PADDING = "padding"
    NOT_COMPILED = "not_compiled"
    SMALL_MICRO_BATCH = "small_micro_batch"
    SLOW_LINK = "slow_link"
    IDLE_CARDS = "idle_cards"
    SLICE = "slice"
    SHARED = "shared"
    OTHER_CARD = "other_card"
    FEW_IN_FLIGHT = "few_in_flight"
    POWER_CAP = "power_cap"
    HOST_MEMORY = "host_memory"


class Gap(Value, frozen=True, kw_only=True):
    """One cause: the setting it stands for, and the speed it would leave.

    ``tuned``: the setting was chosen to come as near to the measured speed as
    it can. ``explains``: of the logarithm of the gap, the share that it makes up.
    """

    cause: Cause
    setting: str
    per_s: float
    explains: float
    tuned: bool = False


def gaps(found: Judged, book: FactBook) -> tuple[Gap, ...]:
    """What could make the machine so slow, likeliest first.

    Those that alone leave a speed within the usual range of the measured one
    come first, the nearest at the head; then those that can be of any size,
    then those that explain a part, the largest first. Those that would leave
    much less than was measured are not the reason.
    """
    likely, low, high = found.pace.expected.likely, found.pace.expected.low, found.pace.expected.high
    spread = max(high / likely, likely / low)
    told = [gap for gap in _all(found, book) if gap.per_s < likely * (1 - WORTH) and gap.per_s * spread > found.per_s]

    def order(gap: Gap) -> tuple[int, float]:
        off = abs(math.log(gap.per_s / found.per_s))
        if gap.per_s > found.per_s * spread:
            return 2, -gap.explains
        return (1 if gap.tuned else 0), off

    best = sorted(told, key=order)
    return tuple(best[:MOST])


def _all(found: Judged, book: FactBook) -> Iterator[Gap]:
    for cause, setting, case in _changed(found.case, book):
        per_s = _per_s(found, case)
        if per_s is not None:
            yield _gap(found, cause, setting, per_s)
    yield from _shared(found)
    yield from _sliced(found)
    yield from _other_card(found, book)
    yield from _few_in_flight(found)
    yield from _power_cap(found)
    yield from _host_memory(found)


def _gap(found: Judged, cause: Cause, setting: str, per_s: float, *, tuned: bool = False) -> Gap:
    likely = found.pace.expected.likely
    explains = math.log(likely / per_s) / math.log(likely / found.per_s)
    return Gap(cause=cause, setting=setting, per_s=per_s, explains=explains, tuned=tuned)


def _per_s(found: Judged, case: Case) -> float | None:
    pace = pace_of(found.counted, case)
    return None if isinstance(pace, Unknown) else pace.expected.likely


# ---------------------------------------------------------------- one thing changed


def _changed(case: Case, book: FactBook) -> Iterator[tuple[Cause, str, Case]]:
    """The case with one thing changed, as it goes wrong by itself."""
    work, speed = case.workload, case.engine.speed
    if work.serving is not None and speed.host is Host.GRAPHS and not speed.vector_kernels:
        yield Cause.EAGER_LAUNCH, "", replace(case, engine=replace(case.engine, speed=replace(speed, host=Host.EAGER)))
    if speed.host is Host.EAGER and case.card.cooling == "active":
        yield Cause.SLOW_HOST, "", replace(case, card=replace(case.card, cooling="passive"))
    yield from _wider(case, book)
    if work.training is not None:
        for cause, setting, run in _trained_otherwise(case, work.training):
            yield cause, setting, replace(case, workload=replace(work, training=run))
    if case.layout.gpus > 1:
        yield Cause.SLOW_LINK, "pcie", replace(case, card=over_pcie(case.card))
    if case.layout.data > 1:
        yield Cause.IDLE_CARDS, str(case.layout.gpus // case.layout.data), _on_fewer(case)


def _wider(case: Case, book: FactBook) -> Iterator[tuple[Cause, str, Case]]:
    """Wider arithmetic or weights than were asked for, and packed weights that are unpacked for every pass."""
    work = case.workload
    if work.precision in _SIXTEEN_BITS:
        plain = book.formats["fp32"] if work.weights.id in {"bf16", "fp16"} else work.weights
        wide = replace(work, precision=Precision.FP32, weights=plain)
        yield Cause.COMPUTED_IN_FP32, "fp32", replace(case, workload=wide)
    narrow = is_packed(work.weights) or work.weights.computes_in is not None
    if work.serving is not None and narrow and not case.engine.speed.vector_kernels:
        sixteen = "fp16" if work.precision is Precision.FP16 else "bf16"
        precision = work.precision if work.precision in _SIXTEEN_BITS else Precision.BF16
        wide = replace(work, weights=book.formats[sixteen], precision=precision)
        yield Cause.NOT_QUANTISED, sixteen, replace(case, workload=wide)
        if is_packed(work.weights) and not work.weights.id.startswith("nf4"):
            unpacked = replace(work, weights=replace(work.weights, id="nf4"))
            yield Cause.UNPACKED_FIRST, "", replace(case, workload=unpacked)


def _trained_otherwise(case: Case, run: Training) -> Iterator[tuple[Cause, str, Training]]:
    one = replica(case.workload, case.card, case.layout, case.engine)
    if run.checkpointing is not Checkpointing.FULL:
        yield Cause.CHECKPOINTING, "full", replace(run, checkpointing=Checkpointing.FULL)
    if isinstance(one, Replica) and not stores_scores(one, run):
        yield Cause.NO_FLASH_ATTENTION, "eager", replace(run, attention="eager")
    if run.packed:
        yield Cause.PADDING, "", replace(run, packed=False)
    if run.compiled:
        yield Cause.NOT_COMPILED, "", replace(run, compiled=False)
    if run.micro_batch > 1:
        yield Cause.SMALL_MICRO_BATCH, "1", replace(run, micro_batch=1)


def over_pcie(card: Accelerator) -> Accelerator:
    """The card without links of its own to others."""
    return replace(card, nvswitch=False, nvlink_bridge_max_gpus=0, form_factor="PCIe")


def _on_fewer(case: Case) -> Case:
    """One replica at work, the others idle."""
    return replace(case, layout=replace(case.layout, data=1, zero_stage=0))


# ---------------------------------------------------------------- the card


def _shared(found: Judged) -> Iterator[Gap]:
    """Another busy program on the card: time is shared evenly (NVIDIA CUDA MPS guide, time-sliced sharing)."""
    yield _gap(found, Cause.SHARED, "2", found.pace.expected.likely / 2)


def _sliced(found: Judged) -> Iterator[Gap]:
    """The slice of the card whose speed is nearest, of those that hold the weights."""
    case, count = found.case, found.case.card.mig_instances
    total = case.card.memory_total_bytes
    if isinstance(total, Unknown) or count <= 1 or case.layout.gpus > 1:
        return
    held = stored_bytes(case.workload)
    parts = [n for n in range(1, count) if held < total * n / count]
    tried = [(n, _per_s(found, replace(case, card=slice_of(case.card, n / count)))) for n in parts]
    known = [(n, per_s) for n, per_s in tried if per_s is not None]
    if known:
        part, per_s = min(known, key=lambda each: abs(math.log(each[1] / found.per_s)))
        yield _gap(found, Cause.SLICE, f"{part}/{count}", per_s)


def _other_card(found: Judged, book: FactBook) -> Iterator[Gap]:
    """A card with as much memory, by the same maker, whose speed is the measured one."""
    mine, near = found.case.card, list[tuple[float, str, float]]()
    for card in book.accelerators.values():
        alike = card.vendor == mine.vendor and abs(card.memory_sold_gb / mine.memory_sold_gb - 1) <= _SAME_MEMORY
        if not alike or card.id == mine.id:
            continue
        per_s = _per_s(found, replace(found.case, card=card))
        if per_s is not None and abs(math.log(per_s / found.per_s)) <= _ALIKE:
            near.append((abs(math.log(per_s / found.per_s)), card.id, per_s))
    if near:
        _, card_id, per_s = min(near)
        yield _gap(found, Cause.OTHER_CARD, card_id, per_s)


# ---------------------------------------------------------------- of any size


def _few_in_flight(found: Judged) -> Iterator[Gap]:
    """Fewer requests in flight than asked for: the client, or room in the cache, holds them back."""
    work = found.case.workload
    serving = work.serving
    if serving is None or serving.concurrency <= 1:
        return
    if found.counted not in {Counted.OUTPUT, Counted.ALL_TOKENS, Counted.REQUESTS}:
        return

    def per_s(count: int) -> float:
        fewer = replace(serving, concurrency=count, requests_per_s=None)
        return _per_s(found, replace(found.case, workload=replace(work, serving=fewer))) or math.inf

    low, high = 1, serving.concurrency
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if per_s(middle) >= found.per_s else (middle + 1, high)
    yield _gap(found, Cause.FEW_IN_FLIGHT, str(low), per_s(low), tuned=True)


def _power_cap(found: Judged) -> Iterator[Gap]:
    """The power limit, or the heat, that would leave the measured speed."""
    watts = found.case.card.number("power_limit_w")
    if isinstance(watts, Unknown):
        return

    def at(share: float) -> float:
        return _per_s(found, replace(found.case, card=with_power(found.case.card, watts * share))) or math.inf

    share = _largest(at, found.per_s, LEAST_POWER)
    yield _gap(found, Cause.POWER_CAP, f"{watts * share:.0f} W", at(share), tuned=True)


def _largest(at: Callable[[float], float], wanted: float, least: float) -> float:
    """The largest share in [``least``, 1] at which the speed is no more than ``wanted``, else ``least``."""
    if at(least) > wanted:
        return least
    low, high = least, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle) > wanted else (middle, high)
    return low


def with_power(card: Accelerator, watts: float) -> Accelerator:
    """The card at another power limit."""
    limit = Fact(value=watts, unit="W", kind=Kind.ASSUMED, source="what would explain a measured speed")
    return replace(card, facts={**card.facts, "power_limit_w": limit})


def _host_memory(found: Judged) -> Iterator[Gap]:
    """Weights that come over PCIe in every pass: the share that would leave the measured speed, at most all."""
    case = found.case
    one = replica(case.workload, case.card, case.layout, case.engine)
    if isinstance(one, Unknown) or found.counted in {Counted.IMAGES, Counted.IMAGE_STEPS}:
        return
    seconds, times = _pass_seconds(found, one)
    moved = times * one.read_bytes / (case.layout.tensor * case.layout.pipeline) / host_link_bytes_per_s(case.card)
    longer = seconds * (1 / found.share_of_expected - 1)
    share = min(1.0, longer / moved)
    per_s = found.pace.expected.likely * seconds / (seconds + share * moved)
    yield _gap(found, Cause.HOST_MEMORY, f"{share * 100:.1f} %", per_s, tuned=True)


def _pass_seconds(found: Judged, one: Replica) -> tuple[float, float]:
    """Seconds in which the weights are read so many times: one step of decoding, one prompt, or an optimizer step."""
    case, likely = found.case, found.pace.expected.likely
    run, serving = case.workload.training, case.workload.serving
    if run is not None:
        steps = pace_of(Counted.STEPS, case)
        assert not isinstance(steps, Unknown)
        return 1 / steps.expected.likely, float(micro_batches(one, run) * passes(run))
    assert serving is not None
    if found.counted is Counted.PROMPT:
        return serving.prompt_tokens * max(1.0, serving.concurrency / case.layout.data) / likely, 1.0
    if found.counted is Counted.FIRST_TOKEN:
        return 1 / likely, 1.0
    each = pace_of(Counted.EACH, case)
    assert not isinstance(each, Unknown)
    return 1 / each.expected.likely, 1.0
