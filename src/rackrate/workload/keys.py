"""The one table of workload keys: files, flags, defaults, bounds, help and reference are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rackrate.workload.key import SECTIONS, Key
from rackrate.workload.keys_of_images import IMAGES, SEEN
from rackrate.workload.keys_of_parallel import PARALLEL
from rackrate.workload.keys_of_serving import SERVING
from rackrate.workload.keys_of_training import HOW_TRAINED, TRAINING
from rackrate.workload.keys_of_use import LIMITS, USE
from rackrate.workload.keys_of_work import WHAT

__all__ = ["KEYS", "SECTIONS", "Key", "flag_keys", "shorthand_of"]

_ALL = (*WHAT, *TRAINING, *HOW_TRAINED, *SERVING, *SEEN, *IMAGES, *PARALLEL, *USE, *LIMITS)

KEYS: Mapping[str, Key] = MappingProxyType({key.path: key for key in _ALL})
"""All keys by path, in the order in which they are shown."""


def shorthand_of(path: str) -> str:
    """The shorthand key that sets ``path``, such as ``context`` for ``training.sequence_tokens``; empty for none."""
    return next((key.path for key in KEYS.values() if key.stands_for is not None and path in key.stands_for), "")


def flag_keys() -> tuple[Key, ...]:
    """The keys that have a flag on the command line, in the order of the table."""
    return tuple(key for key in KEYS.values() if key.flag)
