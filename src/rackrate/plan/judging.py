"""Judging: a measured speed beside what is expected of the machine and what it cannot exceed."""

from __future__ import annotations

import math
from enum import StrEnum

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.engine_speed import EXPECTED, Calibration, Times
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.speed import serving as serving_times
from rackrate.speed.calibration import elsewhere
from rackrate.speed.estimate import estimate as estimate_speed
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.speed.replica import replica
from rackrate.speed.roofs import Part, roofs
from rackrate.speed.training import micro_batches, tokens_per_step
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.measured import Counted, Measured
from rackrate.workload.workload import Workload

_NARROWING = 50  # halvings of the logarithm of a factor
_MOST_TIMES = 1e4
_SAME = 1e-9


class Standing(StrEnum):
    """What a measured speed is, beside what is expected."""

    NORMAL = "normal"
    SLOW = "slow"
    FAST = "fast"
    IMPOSSIBLE = "impossible"


class Case(Value, frozen=True, kw_only=True):
    """A workload on one machine, in one layout."""

    workload: Workload
    card: Accelerator
    layout: Layout
    engine: Engine
    memory: MemoryEstimate

    def speed(self) -> SpeedEstimate | Unknown:
        """The estimate."""
        return estimate_speed(self.workload, self.card, self.layout, self.engine, self.memory)


class Pace(Value, frozen=True, kw_only=True):
    """What is expected a second, and the most that no software can exceed."""

    expected: Range
    ceiling: float


class Judged(Value, frozen=True, kw_only=True):
    """A measured speed with its verdict; ``calibration`` is what it says of other estimates (None: impossible)."""

    measured: Measured
    counted: Counted
    case: Case
    per_s: float
    pace: Pace
    standing: Standing
    calibration: Calibration | None

    @property
    def share_of_expected(self) -> float:
        """The speed over the likely one."""
        return self.per_s / self.pace.expected.likely

    @property
    def share_of_ceiling(self) -> float:
        """The speed over the most."""
        return self.per_s / self.pace.ceiling


def judged(measured: Measured, case: Case) -> Judged | Unknown:
    """``measured`` on the machine of ``case``, or why nothing is expected of it."""
    counted = meant(measured, case.workload)
    pace = pace_of(counted, case)
    if isinstance(pace, Unknown):
        return pace
    per_s = measured.per_s * (case.layout.gpus if measured.per_gpu else 1)
    standing = standing_of(per_s, pace)
    found = None if standing is Standing.IMPOSSIBLE else _calibration(counted, per_s, pace, case)
    return Judged(
        measured=measured, counted=counted, case=case, per_s=per_s, pace=pace, standing=standing, calibration=found
    )


def standing_of(per_s: float, pace: Pace) -> Standing:
    """Within the 80 % range, below it, above it, or above what is possible."""
    if per_s > pace.ceiling * (1 + _SAME):
        return Standing.IMPOSSIBLE
    if per_s > pace.expected.high * (1 + _SAME):
        return Standing.FAST
    return Standing.SLOW if per_s < pace.expected.low * (1 - _SAME) else Standing.NORMAL


def meant(measured: Measured, workload: Workload) -> Counted:
    """What was counted: tokens a second of one request in flight are those of its writing, as engines print them."""
    if measured.counted is not Counted.TOKENS:
        return measured.counted
    alone = workload.serving is not None and workload.serving.concurrency == 1
    return Counted.EACH if alone else Counted.OUTPUT


def pace_of(counted: Counted, case: Case) -> Pace | Unknown:
    """What is expected of ``case`` in what is ``counted``."""
    speed = case.speed()
    if isinstance(speed, Unknown):
        return speed
    if speed.images is not None:
        return _of_images(counted, speed)
    if speed.training is not None:
        return _of_training(counted, speed, case)
    return _of_serving(counted, speed, case)


def _of_images(counted: Counted, speed: SpeedEstimate) -> Pace | Unknown:
    images = speed.images
    assert images is not None
    if counted is Counted.IMAGES:
        return Pace(expected=images.images_per_s, ceiling=images.ceiling_images_per_s)
    steps = images.steps_per_s.likely / images.images_per_s.likely
    return Pace(expected=images.steps_per_s, ceiling=images.ceiling_images_per_s * steps)


def _of_training(counted: Counted, speed: SpeedEstimate, case: Case) -> Pace | Unknown:
    run, most = case.workload.training, speed.ceiling_tokens_per_s
    one = replica(case.workload, case.card, case.layout, case.engine)
    assert run is not None
    assert speed.training is not None
    assert most is not None
    if isinstance(one, Unknown):
        return one
    tokens = tokens_per_step(one, run)
    rows = micro_batches(one, run) * run.micro_batch * case.layout.data
    each = {Counted.TRAINED: 1.0, Counted.STEPS: 1 / tokens, Counted.SAMPLES: rows / tokens}[counted]
    return Pace(expected=speed.training.tokens_per_s.scaled(each), ceiling=most * each)


def _of_serving(counted: Counted, speed: SpeedEstimate, case: Case) -> Pace | Unknown:
    asked, found, most = case.workload.serving, speed.serving, speed.ceiling_tokens_per_s
    assert asked is not None
    assert found is not None
    assert most is not None
    output = asked.output_tokens
    if counted is Counted.OUTPUT:
        return Pace(expected=found.output_tokens_per_s, ceiling=most)
    if counted is Counted.ALL_TOKENS:
        whole = (asked.prompt_tokens + output) / output
        return Pace(expected=found.output_tokens_per_s.scaled(whole), ceiling=most * whole)
    if counted is Counted.REQUESTS:
        return Pace(expected=found.requests_per_s, ceiling=most / output)
    one = replica(case.workload, case.card, case.layout, case.engine)
    if isinstance(one, Unknown):
        return one
    if counted is Counted.EACH:
        _, batch = serving_times.spread_over(one, found.concurrency)
        return Pace(expected=found.per_user_tokens_per_s, ceiling=1 / serving_times.shortest_step_s(one, batch, asked))
    return _of_prompts(counted, speed, case)


def _of_prompts(counted: Counted, speed: SpeedEstimate, case: Case) -> Pace | Unknown:
    """Prompts: those in flight read together, or the time until the first token of one."""
    asked = case.workload.serving
    assert asked is not None
    assert speed.serving is not None
    beside = roofs(case.workload, case.card, case.layout, case.engine, speed)
    if isinstance(beside, Unknown):
        return beside
    part = next((part for part in beside.parts if part.part is Part.PREFILL), None)
    if part is None:
        return Unknown("no prompt is read")
    if counted is Counted.PROMPT:
        return Pace(expected=part.tokens_per_s, ceiling=part.ceiling_tokens_per_s)
    return Pace(expected=speed.serving.first_token_s.inverse(), ceiling=part.ceiling_tokens_per_s / asked.prompt_tokens)


# ---------------------------------------------------------------- other meanings


class Meaning(StrEnum):
    """Another way to read the same number."""

    OF_ALL_CARDS = "of_all_cards"
    OF_ONE_CARD = "of_one_card"
    MICRO_STEPS = "micro_steps"
    UPSIDE_DOWN = "upside_down"


class Reading(Value, frozen=True, kw_only=True):
    """A way to read the number in which it is as expected: what was counted, or what was meant."""

    meaning: Counted | Meaning
    expected: Range


_TOKENS = (Counted.EACH, Counted.OUTPUT, Counted.PROMPT, Counted.ALL_TOKENS)


def readings(found: Judged) -> tuple[Reading, ...]:
    """Other meanings of the number under which it is within what is expected; none where it is so already."""
    if found.standing is Standing.NORMAL:
        return ()
    case, run, told = found.case, found.case.workload.training, list[tuple[Counted | Meaning, Pace | Unknown, float]]()
    if found.counted in _TOKENS:
        told += [(other, pace_of(other, case), found.per_s) for other in _TOKENS if other is not found.counted]
    if found.counted is Counted.TRAINED and case.layout.gpus > 1:
        of_all = found.measured.per_gpu
        meaning = Meaning.OF_ALL_CARDS if of_all else Meaning.OF_ONE_CARD
        told.append((meaning, found.pace, found.per_s * case.layout.gpus ** (-1 if of_all else 1)))
    if found.counted in {Counted.STEPS, Counted.IMAGE_STEPS, Counted.IMAGES}:
        told.append((Meaning.UPSIDE_DOWN, found.pace, 1 / found.per_s))
    one = replica(case.workload, case.card, case.layout, case.engine)
    if found.counted is Counted.STEPS and run is not None and not isinstance(one, Unknown):
        told.append((Meaning.MICRO_STEPS, found.pace, found.per_s / micro_batches(one, run)))
    return tuple(
        Reading(meaning=meaning, expected=pace.expected)
        for meaning, pace, per_s in told
        if not isinstance(pace, Unknown) and standing_of(per_s, pace) is Standing.NORMAL
    )


# ---------------------------------------------------------------- calibration


_SHARES: dict[Counted, tuple[str, ...]] = {
    Counted.EACH: ("decode",),
    Counted.OUTPUT: ("prefill", "decode"),
    Counted.ALL_TOKENS: ("prefill", "decode"),
    Counted.REQUESTS: ("prefill", "decode"),
    Counted.PROMPT: ("prefill",),
    Counted.FIRST_TOKEN: ("prefill",),
    Counted.TRAINED: ("training",),
    Counted.STEPS: ("training",),
    Counted.SAMPLES: ("training",),
    Counted.IMAGES: ("images",),
    Counted.IMAGE_STEPS: ("images",),
}
"""The phases that each speed is made of."""


def _calibration(counted: Counted, per_s: float, pace: Pace, case: Case) -> Calibration | None:
    """The factor on the times of the phases after which the estimate is what was measured; None where none is."""
    phases = _SHARES[counted]
    times = _times(counted, per_s, pace, case)
    if times is None and len(phases) == 1 and case.workload.serving is not None:
        phases = ("prefill", "decode")  # one phase alone cannot be that slow or fast: both share it
        times = _times(Counted.OUTPUT, per_s, pace, case, counted)
    if times is None:
        return None
    near = Times(**dict.fromkeys(phases, times))
    return Calibration(
        accelerator=case.card.id,
        gpus=case.layout.gpus,
        model=case.workload.model.id,
        weights=case.workload.weights.id,
        phases=frozenset(phases if len(phases) == 1 else ("serving",)),
        near=near,
        elsewhere=elsewhere(near, case.engine),
    )


def _times(shares: Counted, per_s: float, pace: Pace, case: Case, counted: Counted | None = None) -> float | None:
    """The factor, by halving: in most cases the ratio of the speeds, where other phases or waits have no part."""

    def reached(times: float) -> float:
        found = pace_of(counted or shares, calibrated(case, dict.fromkeys(_SHARES[shares], times)))
        return math.nan if isinstance(found, Unknown) else found.expected.likely

    plain = pace.expected.likely / per_s
    if abs(reached(plain) / per_s - 1) <= _SAME:
        return plain
    low, high = -math.log(_MOST_TIMES), math.log(_MOST_TIMES)
    if not reached(math.exp(high)) < per_s < reached(math.exp(low)) * (1 + _SAME):
        return None
    for _ in range(_NARROWING):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(math.exp(middle)) > per_s else (low, middle)
    return math.exp((low + high) / 2)


def calibrated(case: Case, times: dict[str, float]) -> Case:
    """The case with the times of some phases as given."""
    near = Times(**times)
    found = Calibration(
        accelerator=case.card.id,
        gpus=case.layout.gpus,
        model=case.workload.model.id,
        weights=case.workload.weights.id,
        phases=frozenset(),
        near=near,
        elsewhere=EXPECTED,
    )
    return replace(case, engine=replace(case.engine, calibration=found))
