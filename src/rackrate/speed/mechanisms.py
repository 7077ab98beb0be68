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
    Arithmetic: ``attention_flop`` relative to matrix products;
    ``hopper_flop``, ``ada_flop``: relative to Ampere's share of peak (what
    the tensor cores' new instructions leave unused); ``old_instructions``: what
    kernels written for Ampere's instructions reach on Hopper; ``scalar_flop``: cards
    without matrix units, relative to those with; ``narrow_flop``: 8-bit and
    4-bit products relative to 16-bit ones' share; ``block_fp8``: FP8 with scales for
    blocks. ``expert_bandwidth``: reading experts in grouped products relative to
    dense ones. Makers: ``amd_*`` relative to NVIDIA's shares.
    Communication: seconds of a small all-reduce by link, and ``between_products`` as
    in ``rackrate.speed.communication``.
    """

    eager_launch_s: float = 0.0003331
    server_host: float = 3.467
    launches_nf4: float = 1.374
    launches_nf4_dq: float = 1.527
    launches_int8: float = 2.129
    launches_int8_outliers: float = 4.388
    vector_flop_per_byte: float = 19.06
    split_hop_s: float = 0.0001661
    split_overlap: float = 0.5456
    attention_flop: float = 1.0
    hopper_flop: float = 0.8867
    ada_flop: float = 0.8835
    old_instructions: float = 0.4107
    scalar_flop: float = 1.597
    narrow_flop: float = 1.309
    block_fp8: float = 0.4195
    expert_bandwidth: float = 1.0
    amd_bandwidth: float = 0.5232
    amd_cache: float = 0.2668
    amd_flop: float = 0.1048
    nvswitch_s: float = 1.328e-05
    mesh_s: float = 6.302e-05
    between_products: float = 0.8375


FITTED = Mechanisms()
"""The values in use."""
