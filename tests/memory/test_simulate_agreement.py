"""The closed form and the simulation of transformers' own code agree within 3 %.

Every layer has its real size; models are cut to a few layers to take a second each. The whole models are held
together by ``make bench`` (docs/performance.md).
"""

import itertools

import pytest

pytest.importorskip("torch", reason="the extra `measure` is not installed")
pytest.importorskip("transformers", reason="the extra `measure` is not installed")

from bench.simulate import CHECKPOINTING, MODELS, TASKS, TOKENS, asked, estimated_bytes, question, simulated

from rackrate.app.simulated_jobs import job_of
from rackrate.values import replace

WITHIN = 0.03
CUT = 2
CASES = list(itertools.product(MODELS, TASKS, CHECKPOINTING, TOKENS))


def cut(workload, layers):
    """The workload with the first ``layers`` layers of its model."""
    model = workload.model
    one = (model.params_total - model.embedding_params - model.hidden_size) // model.layers
    short = replace(
        model,
        layers=layers,
        layers_full=layers if model.layers_full else 0,
        layers_windowed=layers if model.layers_windowed else 0,
        params_total=model.params_total - (model.layers - layers) * one,
        params_active=model.params_total - (model.layers - layers) * one,
    )
    return replace(workload, model=short)


def differ(workload, job):
    return estimated_bytes(workload) / simulated(job).peak_bytes - 1


@pytest.mark.parametrize(("model", "task", "checkpointing", "tokens"), CASES)
def test_closed_form_and_simulation_agree(model, task, checkpointing, tokens):
    from rackrate.app.context import context

    workload = cut(question(asked(model, task, checkpointing, tokens))[0], CUT)
    job = job_of(workload, context().book.engine(workload.engine_id), None)
    assert abs(differ(workload, job)) < WITHIN


@pytest.mark.parametrize(("task", "checkpointing", "tokens"), list(itertools.product(TASKS, CHECKPOINTING, TOKENS)))
def test_a_whole_model_agrees(task, checkpointing, tokens):
    assert abs(differ(*question(asked(MODELS[0], task, checkpointing, tokens)))) < WITHIN


def test_a_wrong_closed_form_would_be_seen():
    workload, job = question(asked(MODELS[1], "full_finetune", "none", 2048))
    plain = replace(workload, model=replace(workload.model, family="Llama 3.2"))  # without norms of queries and keys
    assert abs(differ(plain, job)) > WITHIN
