"""Draws: gaps between requests and their lengths, the same each time for one seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rackrate.speed.simulation.records import Load
from rackrate.values import Value

_MASK = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Drawn(Value, frozen=True, kw_only=True):
    """One request: when it comes (seconds; closed loop: 0) and its tokens."""

    at_s: float
    prompt_tokens: int
    output_tokens: int


def uniforms(seed: int) -> Iterator[float]:
    """Numbers in (0, 1), of which none tells the next (SplitMix64; Steele, Lea and Flood, OOPSLA 2014)."""
    state = (seed * _FIRST) & _MASK
    while True:
        state = (state + _STEP) & _MASK
        mixed = ((state ^ (state >> 30)) * _FIRST) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _MASK
        yield ((mixed ^ (mixed >> 31)) + 0.5) / (_MASK + 1)


def requests(load: Load, replicas: int, counted: range, count: int, seed: int) -> list[Drawn]:
    """The ``count`` requests that one of ``replicas`` gets.

    Of those ``counted``, rate and mean lengths are exactly what was asked for: a draw that is a
    little fast or long as a whole is stretched, as vllm-project/vllm
    benchmarks/serve.py does it with arrivals.
    """
    gaps, prompts, outputs = (uniforms(4 * seed + part) for part in range(3))
    spread, least = load.length_spread, load.shared_prefix_tokens
    return [
        Drawn(at_s=at, prompt_tokens=prompt, output_tokens=output)
        for at, prompt, output in zip(
            _arrivals(load, replicas, counted, count, gaps),
            _lengths(load.prompt_tokens, spread, least, counted, _normals(prompts, count)),
            _lengths(load.output_tokens, spread, 0, counted, _normals(outputs, count)),
            strict=True,
        )
    ]


def _arrivals(load: Load, replicas: int, counted: range, count: int, draws: Iterator[float]) -> list[float]:
    """Poisson arrivals, of which this replica gets each ``replicas``-th."""
    if load.requests_per_s is None:
        return [0.0] * count
    at, times = 0.0, [0.0]
    for _ in range(count):
        at += sum(-math.log(next(draws)) for _ in range(replicas))
        times.append(at)
    drawn = times[counted.stop] - times[counted.start]
    stretch = len(counted) * replicas / load.requests_per_s / drawn
    return [time * stretch for time in times[1:]]


def _lengths(mean: int, spread: float, least: int, counted: range, normals: Sequence[float]) -> list[int]:
    """Log-normal whole numbers of that mean and coefficient of variation, at least ``least`` and 1."""
    least = max(1, least)
    if not spread:
        return [max(least, mean)] * len(normals)
    sigma = math.sqrt(math.log1p(spread * spread))
    drawn = [math.exp(sigma * normal) for normal in normals]
    stretch = mean * len(counted) / sum(drawn[number] for number in counted)
    return [max(least, round(stretch * one)) for one in drawn]


def _normals(draws: Iterator[float], count: int) -> list[float]:
    """Standard normal numbers (Box and Muller 1958, doi 10.1214/aoms/1177706645)."""
    return [math.sqrt(-2 * math.log(next(draws))) * math.cos(2 * math.pi * next(draws)) for _ in range(count)]
