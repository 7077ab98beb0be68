"""Mechanisms: the fitted numbers of inference that belong to no engine, each with what it stands for.

Their evidence (rows, sources, bounds, the value without evidence) stands in
tools/speed_numbers.csv beside that of the engines' own numbers;
tools/fit_speed.py refits all of them together.
"""

from __future__ import annotations

from rackrate.values import Value


class Mechanisms(Value, frozen=True, kw_only=True):
    """Shares are of a published peak or of what the engine reaches elsewhere, times in seconds.

    Hosts: ``eager_launch_s`` of one layer launched kernel by kernel from Python on
    a desktop host, ``server_host`` times that on a server's slower cores;
    ``launches_*`` relative to 16-bit weights by bitsandbytes.
    llama.cpp: ``vector_flop_per_byte`` FP32 operations' time to unpack
    and use a byte of weights, ``split_hop_s`` between cards of a layer split and
    ``split_overlap`` of the ideal gain when a prompt passes through it.
    Arithmetic:
    ``old_instructions``: what kernels written for Ampere's instructions reach on
    Hopper; ``scalar_flop``: cards without matrix units, relative to those with;
    ``block_fp8``: FP8 with scales for blocks. ``elementwise_bytes`` are moved by
    norms, rotations, activations and residuals for each token, layer and hidden
    unit. Makers: ``amd_memory`` (weights and cache) and ``amd_flop`` relative to
    NVIDIA's shares, with the kernels of 2024.
    Communication: seconds of a small all-reduce by link.
    """

    eager_launch_s: float = 0.0003316
    server_host: float = 3.508
    launches_nf4: float = 1.458
    launches_int8: float = 2.129
    launches_int8_outliers: float = 4.389
    vector_flop_per_byte: float = 19.04
    split_hop_s: float = 0.0001678
    split_overlap: float = 0.5489
    old_instructions: float = 0.4181
    scalar_flop: float = 1.639
    block_fp8: float = 0.4532
    elementwise_bytes: float = 37.89
    amd_memory: float = 0.6723
    amd_flop: float = 0.1202
    nvswitch_s: float = 1.478e-05
    mesh_s: float = 7.831e-05


GROUPED_SHARE = 0.45
"""What grouped products of experts reach, over plain products: fitted in training (tools/rate_numbers.csv).

Experts get few and uneven tokens, and the busiest decides.
"""

FITTED = Mechanisms()
"""The values in use."""
