"""rackrate: what GPU to rent, what it will really cost, and whether you got it.

``plan`` ranks rental plans for a workload, ``fit`` accounts for its memory on
one card, ``gpu`` gives the facts of cards. Each returns the document that the
command line prints with ``--json``. Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackrate.app.encode import to_json
    from rackrate.app.fitting import fit
    from rackrate.app.gpus import gpu
    from rackrate.app.planning import plan
    from rackrate.app.version import VERSION as __version__  # noqa: N811 - the standard name
    from rackrate.app.wire import FitDocument, GpuDocument, PlanDocument
    from rackrate.problems import Finding, Refused

_HOMES = {
    "plan": "rackrate.app.planning",
    "fit": "rackrate.app.fitting",
    "gpu": "rackrate.app.gpus",
    "to_json": "rackrate.app.encode",
    "PlanDocument": "rackrate.app.wire",
    "FitDocument": "rackrate.app.wire",
    "GpuDocument": "rackrate.app.wire",
    "Finding": "rackrate.problems",
    "Refused": "rackrate.problems",
}

__all__ = [
    "Finding",
    "FitDocument",
    "GpuDocument",
    "PlanDocument",
    "Refused",
    "__version__",
    "fit",
    "gpu",
    "plan",
    "to_json",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home."""
    import importlib

    if name == "__version__":
        return importlib.import_module("rackrate.app.version").VERSION
    if name not in _HOMES:
        raise AttributeError(f"module 'rackrate' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
