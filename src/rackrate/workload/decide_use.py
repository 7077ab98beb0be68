"""Deciding: when a machine runs, and what is kept and moved, where it was not given."""

from __future__ import annotations

import math

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.units import GB
from rackrate.workload.draft import Draft
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import Task, Use

_CHECKPOINT_BYTES_PER_PARAM = 14  # 16-bit weights, FP32 master weights and two FP32 moments


def decide_use(draft: Draft, task: Task, chosen: Chosen, *, online: bool) -> Use:
    """When the machine runs and what is kept and moved, with the defaults of the key table."""
    model, usual = chosen.model, Use()
    results, why = _result_bytes(model, task)
    return Use(
        hours_per_day=draft.constant("use.hours_per_day", float) if online else usual.hours_per_day,
        horizon_days=draft.constant("use.horizon_days", float) if online else usual.horizon_days,
        starts=usual.starts if online else draft.constant("use.starts", int),
        disk_bytes=_bytes(draft, "use.disk", default_disk_bytes(model, chosen.weights, task), "from_weights"),
        data_in_bytes=_bytes(draft, "use.data_in", 0, "no_data_given"),
        data_out_bytes=_bytes(draft, "use.data_out", results, why),
        keep_disk_days=draft.constant("use.keep_disk_days", float),
    )


def _bytes(draft: Draft, path: str, default: float, why: str) -> float:
    """Bytes as given, or the default in whole GB, as disks and traffic are sold."""
    given = draft.number(path)
    if given is not None:
        return given
    gigabytes = math.ceil(default / GB)
    draft.assume(path, f"{gigabytes} GB", why)
    return float(gigabytes * GB)


_QUANTISED_ON_LOAD = frozenset({"nf4", "nf4-dq", "int8"})
"""Formats that bitsandbytes makes while a 16-bit checkpoint loads."""


def download_bytes(model: Model, weights: WeightFormat, task: Task) -> float:
    """Bytes of the checkpoint as it is downloaded.

    16-bit parts (embedding, head) x 2 + the rest x bytes per weight. Where
    bitsandbytes quantises, 16 bits are downloaded and quantised while loading
    (huggingface.co/docs/transformers, bitsandbytes). Norms and scales that a
    format counts apart are left out: below 1 %. Where the files are at hand,
    their headers say.
    """
    quantised_on_load = task is Task.QLORA or weights.id in _QUANTISED_ON_LOAD
    if model.stored is not None and (quantised_on_load or model.stored.format == weights.id):
        return float(model.stored.loaded_bytes + model.stored.beyond_bytes)
    if quantised_on_load:
        return 2.0 * model.params_total
    table = (model.vocab_size or 0) * (model.hidden_size or 0)
    tied = bool(model.tie_embeddings)
    if weights.embedding_bits is None:
        kept = table * weights.embeddings_16bit + table * (weights.head_16bit and not tied)
        wide = max(2.0, weights.bytes_per_weight)
        return wide * kept + weights.bytes_per_weight * (model.params_total - kept)
    ends = table * (weights.embedding_bytes(tied=tied) + (0 if tied else weights.head_bytes))
    return ends + weights.bytes_per_weight * (model.params_total - table * (1 if tied else 2))


def default_disk_bytes(model: Model, weights: WeightFormat, task: Task) -> float:
    """Disk to plan for when none is asked for.

    50 GB (system image, CUDA and Python packages, data) + 2 x download (as
    published, and once more converted or cached) + for runs that train every
    parameter one checkpoint of 14 bytes a parameter: 2 (weights) + 4 (master
    weights) + 8 (two FP32 moments), as Megatron-LM and ZeRO keep them (Rajbhandari
    et al. 2020, arXiv 1910.02054, section 3.1). A rule of thumb: runs that keep
    several checkpoints need more.
    """
    checkpoint = _CHECKPOINT_BYTES_PER_PARAM * model.params_total if task.trains and not task.trains_adapters else 0
    return 50 * GB + 2 * download_bytes(model, weights, task) + checkpoint


def _result_bytes(model: Model, task: Task) -> tuple[float, str]:
    if task is Task.DIFFUSION:
        return 0.0, "images_not_counted"
    if task.trains_adapters:
        return 1.0 * GB, "results_uploaded"
    return (2.0 * model.params_total, "results_uploaded") if task.trains else (0.0, "text_is_small")
