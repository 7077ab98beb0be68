"""The Python API: the verbs as functions, and the documents that they return.

Each function answers what the verb of the same name prints with ``--json``.

>>> from rackrate import api
>>> job = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "limits": {"gpus": ["a40"]}}
>>> api.fit(job).verdict
'fits'
"""

from __future__ import annotations

from rackrate.app.encode import to_json
from rackrate.app.facts_checking import check_facts
from rackrate.app.facts_showing import show_facts
from rackrate.app.fitting import fit
from rackrate.app.gpus import gpu
from rackrate.app.listing import offers
from rackrate.app.models import model
from rackrate.app.planning import plan
from rackrate.app.simulating import simulate
from rackrate.app.speeds import speed
from rackrate.app.version import VERSION
from rackrate.app.wire.fit import FitDocument
from rackrate.app.wire.gpus import GpuDocument
from rackrate.app.wire.models import ModelDocument
from rackrate.app.wire.offers import OffersDocument
from rackrate.app.wire.plan import PlanDocument
from rackrate.app.wire.simulation import SimulationDocument
from rackrate.app.wire.speed import SpeedDocument
from rackrate.problems import Finding, Refused

__all__ = [
    "VERSION",
    "Finding",
    "FitDocument",
    "GpuDocument",
    "ModelDocument",
    "OffersDocument",
    "PlanDocument",
    "Refused",
    "SimulationDocument",
    "SpeedDocument",
    "check_facts",
    "fit",
    "gpu",
    "model",
    "offers",
    "plan",
    "show_facts",
    "simulate",
    "speed",
    "to_json",
]
