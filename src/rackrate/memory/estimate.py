"""Does it fit: peak memory of the fullest card, by phase and component."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.model import Model
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.memory.overhead import on_card
from rackrate.memory.pipeline import PipelineDemand, picture_on, pipeline_demand
from rackrate.memory.serving import ServingDemand, serve_on, serving_demand
from rackrate.memory.training import TrainingDemand, train_on, training_demand
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task, Workload

Demand = TrainingDemand | ServingDemand | PipelineDemand
"""What a workload needs of its cards in one layout, whatever they are."""


def demand(workload: Workload, layout: Layout, engine: Engine) -> Demand | Unknown:
    """What ``workload`` needs in ``layout``: computed once, held against many cards with ``fit_on``.

    Policies in which engines differ come from the engine's facts alone.
    """
    if workload.task is Task.DIFFUSION:
        return pipeline_demand(workload, layout, engine)
    if workload.training is not None and workload.training.pictured is not None:
        from rackrate.memory.pipeline_training import pictured_demand  # imported here: text needs none of it

        return pictured_demand(workload, layout, engine)
    missing = _missing(workload.model, workload.task) or _one_sided(workload, layout, engine)
    if missing is not None:
        return missing
    return (training_demand if workload.task.trains else serving_demand)(workload, layout, engine)


def fit_on(needed: Demand, accelerator: Accelerator) -> MemoryEstimate | Unknown:
    """Peak memory of the fullest card where all are ``accelerator``, or why it is not known.

    The peak is the maximum over phases of what is held in each, as the driver
    sees it (CUDA context included); ``usable_bytes`` is what programs can
    allocate, or the engine's share of it.
    """
    total = accelerator.memory_total_bytes
    if isinstance(total, Unknown):
        return total
    if isinstance(needed, PipelineDemand):
        return picture_on(needed, on_card(accelerator, total))
    card = on_card(accelerator, total, eager=needed.eager_context)
    return train_on(needed, card) if isinstance(needed, TrainingDemand) else serve_on(needed, card)


def estimate(workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine) -> MemoryEstimate | Unknown:
    """Peak memory of ``workload`` on the fullest card of ``layout``, or why it is not known (see ``fit_on``)."""
    needed = demand(workload, layout, engine)
    return needed if isinstance(needed, Unknown) else fit_on(needed, accelerator)


def _missing(model: Model, task: Task) -> Unknown | None:
    """What must be known of a model before its memory is, if it is not."""
    if task is Task.RENDER:
        return Unknown(f"memory of {task} is not modelled yet")
    if not model.hidden_size or not model.layers:
        return Unknown(f"layers and hidden size of {model.id} are not known")
    if model.is_moe and not model.moe_intermediate_size:
        return Unknown(f"expert size of {model.id} is not known")
    if not model.is_moe and not model.intermediate_size:
        return Unknown(f"intermediate size of {model.id} is not known")
    return None


_PLAIN_BITS = 16


def _one_sided(workload: Workload, layout: Layout, engine: Engine) -> Unknown | None:
    """What stands against counting both sides of an encoder-decoder, if it is one."""
    model = workload.model
    if not model.is_encoder_decoder:
        return None
    if not (model.encoder_layers and model.decoder_layers):
        return Unknown(f"{model.id}: the layers of its encoder and of its decoder are not known")
    if not engine.runs(model):
        return Unknown(f"how {engine.id} runs {model.id}, which has an encoder and a decoder, is not known")
    run = workload.training
    against = {
        "selective checkpointing is": run is not None and run.checkpointing is Checkpointing.SELECTIVE,
        "DoRA is": run is not None and run.dora,
        "attention that stores scores is": run is not None and run.attention == "eager",
        "training of whole modules beside adapters is": run is not None and bool(run.modules_to_save),
        "a split by layers is": layout.pipeline > 1,
        "a quantised cache is": workload.serving is not None and workload.serving.cache_bits < _PLAIN_BITS,
    }
    found = next((what for what, there in against.items() if there), "")
    return Unknown(f"{model.id} has an encoder and a decoder: {found} not counted") if found else None
