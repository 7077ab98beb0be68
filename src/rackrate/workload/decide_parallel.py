"""Deciding on the division that was asked for: what model, engine and batch allow, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.facts.engine import Engine
from rackrate.problems import Code
from rackrate.workload.draft import Draft
from rackrate.workload.layout import Parallel
from rackrate.workload.layouts import divides_tensors
from rackrate.workload.network import Network, network_of
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import Training

_WAYS = {
    "tensor": ("tensor",),
    "pipeline": ("pipeline", "layer_split"),
    "data": ("data",),
    "context": ("context",),
    "expert": ("expert",),
    "sequence": ("sequence",),
    "virtual_stages": ("interleaved",),
    "tensor_split": ("layer_split",),
}
"""What an engine must offer for a key, in any of the words of its file."""

_OF_MACHINES = ("parallel.nodes", "parallel.network")
_SERVING_ACROSS, _TRAINING_ACROSS = frozenset({"tensor", "pipeline"}), frozenset({"tensor", "pipeline", "data", "zero"})
"""Divisions that can reach over a network; copies of a service need none, and are machines of a plan."""

_SIZES = (1, 2, 4, 8, 16, 32, 64)
Problem = Callable[[str, str, str, str], None]


def decide_parallel(draft: Draft, chosen: Chosen, training: Training | None) -> Parallel | None:
    """The division in ``draft``; None for one that cannot be, which findings then say."""
    split = draft.said("parallel.tensor_split")
    shares = tuple(float(s) for s in split if isinstance(s, int | float)) if isinstance(split, tuple) else ()
    asked = Parallel(
        tensor=_number(draft, "tensor"),
        pipeline=len(shares) if shares and "parallel.pipeline" not in draft else _number(draft, "pipeline"),
        data=_number(draft, "data", 0),
        context=_number(draft, "context"),
        expert=_number(draft, "expert"),
        sequence=draft.said("parallel.sequence") is True,
        virtual_stages=_number(draft, "virtual_stages"),
        zero_stage=_number(draft, "zero_stage") if "parallel.zero_stage" in draft else None,
        tensor_split=shares,
        nodes=_number(draft, "nodes"),
        network=_network(draft),
        free=not any(path.startswith("parallel.") and path not in _OF_MACHINES for path in draft.values),
    )

    def problem(name: str, observed: str, expected: str, action: str) -> None:
        draft.problem(f"parallel.{name}", Code.CONFLICT, observed, expected, action)

    _check_engine(asked, chosen.engine, problem)
    _check_model(asked, chosen, problem)
    _check_together(asked, problem)
    _check_nodes(asked, chosen, problem, trains=training is not None)
    if training is not None:
        _check_batch(asked, training, problem)
    elif asked.expert > 1 and chosen.model.is_moe and asked.tensor * max(1, asked.data) % asked.expert:
        _indivisible("expert", asked.expert, f"{asked.tensor * max(1, asked.data)} cards of tensor and data", problem)
    _check_counts(draft, asked, problem)
    return None if draft.refused else asked


def _network(draft: Draft) -> Network | None:
    text = draft.said("parallel.network")
    return network_of(text) if isinstance(text, str) else None


def _number(draft: Draft, name: str, otherwise: int = 1) -> int:
    value = draft.number(f"parallel.{name}")
    return otherwise if value is None else int(value)


def offers(engine: Engine, asked: Parallel) -> bool:
    """Whether the engine divides in every way that is asked for."""
    found: list[str] = []
    _check_engine(asked, engine, lambda name, *_: found.append(name))
    return not found


def _check_engine(asked: Parallel, engine: Engine, problem: Problem) -> None:
    """Refuse what the engine does not offer."""
    offered = ", ".join(sorted(engine.parallel)).replace("_", " ") or "one card alone"
    for name, words in _WAYS.items():
        value = getattr(asked, name)
        if value in (0, 1, False, ()) or set(words) & engine.parallel:
            continue
        problem(name, f"{name.replace('_', ' ')} with {engine.id}", f"what {engine.id} offers: {offered}", _OTHER)
    stage, able = asked.zero_stage, engine.zero_stages_at(asked.pipeline)
    if stage and stage not in able:
        known = ", ".join(map(str, (0, *able)))
        where = f" in {asked.pipeline} pipeline stages" if asked.pipeline > 1 else ""
        problem("zero_stage", f"stage {stage} with {engine.id}{where}", f"one of {known}", _OTHER)


_OTHER = "leave it out, or choose another engine: docs/facts-engines.md says what each offers"


def _check_model(asked: Parallel, chosen: Chosen, problem: Problem) -> None:
    """Refuse what does not divide the model."""
    model = chosen.model
    if asked.tensor > 1 and not divides_tensors(model, asked.tensor):
        able = ", ".join(str(size) for size in _SIZES if divides_tensors(model, size))
        what = f"{model.attention_heads} heads, {model.kv_heads} KV heads, hidden {model.hidden_size}"
        problem("tensor", f"{asked.tensor} cards for {model.id} ({what})", f"one of {able}", "choose one of them")
    layers = model.layers or 0
    if asked.pipeline > layers:
        problem("pipeline", f"{asked.pipeline} stages of {layers} layers", f"at most {layers}", "choose fewer stages")
    parts = asked.pipeline * asked.virtual_stages
    if asked.virtual_stages > 1 and layers % parts:
        problem(
            "virtual_stages",
            f"{layers} layers over {asked.pipeline} stages of {asked.virtual_stages} chunks",
            "layers that divide evenly (Megatron-LM)",
            "choose numbers whose product divides the layers",
        )
    if asked.expert > 1 and not model.is_moe:
        problem("expert", f"{model.id}, which has no experts", "a mixture of experts", "leave it out")
    elif asked.expert > 1 and (model.experts or 0) % asked.expert:
        _indivisible("expert", asked.expert, f"{model.experts} experts", problem)


def _indivisible(name: str, cards: int, what: str, problem: Problem) -> None:
    problem(name, f"{cards} cards for {what}", "a divisor of it", "choose one")


def _check_together(asked: Parallel, problem: Problem) -> None:
    """Refuse keys that have no meaning without another."""
    if asked.sequence and asked.tensor == 1:
        problem(
            "sequence",
            "sequence parallel without tensor parallel",
            "parallel.tensor of 2 or more (arXiv 2205.05198)",
            "give --tensor-parallel too, or leave it out",
        )
    if asked.virtual_stages > 1 and asked.pipeline == 1:
        problem(
            "virtual_stages",
            f"{asked.virtual_stages} chunks of one stage",
            "parallel.pipeline of 2 or more",
            "give --pipeline-parallel too, or leave it out",
        )
    if asked.tensor_split and len(asked.tensor_split) != asked.pipeline:
        problem(
            "tensor_split",
            f"{len(asked.tensor_split)} shares for {asked.pipeline} cards",
            "one share for each card",
            "leave parallel.pipeline out",
        )


def _check_nodes(asked: Parallel, chosen: Chosen, problem: Problem, *, trains: bool) -> None:
    """Refuse machines that the work cannot be shared between."""
    if asked.nodes == 1:
        if asked.network is not None:
            problem("network", f"{asked.network.text} with one machine", "2 machines or more", "give --nodes too")
        return
    if chosen.pipeline is not None or chosen.model.is_encoder_decoder:
        what = "a pipeline for images" if chosen.pipeline is not None else f"{chosen.model.id}, of two models in a row"
        problem("nodes", f"{asked.nodes} machines for {what}", "one machine: others are not modelled", "leave it out")
    elif not (_TRAINING_ACROSS if trains else _SERVING_ACROSS) & chosen.engine.parallel:
        problem("nodes", f"{asked.nodes} machines with {chosen.engine.id}", "an engine that divides work", _OTHER)
    if asked.data and asked.replica * asked.data % asked.nodes:
        cards = asked.replica * asked.data
        problem("nodes", f"{cards} cards on {asked.nodes} machines", "as many in each", "choose a divisor of it")


def _check_batch(asked: Parallel, training: Training, problem: Problem) -> None:
    """Refuse replicas that a step does not fill, and cards that do not divide a sequence."""
    cards = training.micro_batch * asked.data
    if asked.data and training.global_batch % cards:
        problem(
            "data",
            f"{asked.data} replicas of micro-batches of {training.micro_batch} for a step of {training.global_batch}",
            "a global batch that is a multiple of both together",
            f"say --global-batch {-(-training.global_batch // cards) * cards}, or fewer replicas",
        )
    if asked.context > 1 and training.sequence_tokens % (2 * asked.context):
        problem(
            "context",
            f"{training.sequence_tokens} tokens over {asked.context} cards",
            "a multiple of twice the cards: each gets a piece from either end (Megatron-LM context parallelism)",
            f"say --context {-(-training.sequence_tokens // (2 * asked.context)) * 2 * asked.context}",
        )
    if asked.data and asked.expert > 1 and asked.data * asked.context % asked.expert:
        _indivisible("expert", asked.expert, f"{asked.data * asked.context} cards of data and context", problem)


def _check_counts(draft: Draft, asked: Parallel, problem: Problem) -> None:
    """Refuse fewer cards than the division needs."""
    counts, most = draft.said("limits.gpu_counts"), draft.number("limits.max_gpus")
    given = [n for n in counts if isinstance(n, int)] if isinstance(counts, tuple) else []
    room = max(given, default=most or asked.machine_gpus)
    if room < asked.machine_gpus:
        first = next((name for name in ("tensor", "pipeline", "context", "data") if getattr(asked, name) > 1), "data")
        problem(
            first,
            f"{asked.machine_gpus} cards needed{' in each machine' if asked.nodes > 1 else ''}, {room:g} allowed",
            "as many cards as tensor x pipeline x data x context",
            f"raise --gpus to {asked.machine_gpus}, or divide less",
        )
