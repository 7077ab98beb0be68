"""The words for orders and groups of a list; apart, so that --help needs no numbers."""

from __future__ import annotations

SORT_KEYS = ("price", "per_gpu", "per_gb", "gpus", "memory", "seen", "card", "provider", "region", "market")
"""What a list can be sorted by."""

SORT_WORDS = (*SORT_KEYS, *(f"-{key}" for key in SORT_KEYS))
"""The same, and with a hyphen before it: from the largest."""

GROUP_KEYS = ("card", "provider", "market", "region")
"""What offers can be put together by."""
