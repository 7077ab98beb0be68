"""A simulation allocates what PyTorch's own CPU allocator does when the same step really runs."""

import pytest

pytest.importorskip("torch", reason="the extra `measure` is not installed")
pytest.importorskip("transformers", reason="the extra `measure` is not installed")

from tests.memory.simulations import FAMILIES, allocated_on_cpu, job, simulated

CASES = [
    (family, checkpointing, rank, dtype)
    for family in FAMILIES
    for checkpointing in (False, True)
    for rank in (0, 8)
    for dtype in (("float32", "bfloat16") if family == "qwen3" else ("float32",))
    # Adding types of two widths makes a copy on the CPU that no card makes, and here it is at the peak.
    if not (rank and checkpointing and dtype == "bfloat16")
]


def really(what, *, autocast=False, optimizer=None):
    """Two steps with values, as the simulation makes them without."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from rackrate.memory.simulation.adapters import add_adapters

    values = dict(what.config)
    configuration = AutoConfig.for_model(values.pop("model_type"), **values)
    model = AutoModelForCausalLM.from_config(
        configuration, dtype=getattr(torch, what.dtype), attn_implementation="sdpa"
    )
    if what.adapters:
        add_adapters(model, what.adapters)
    if what.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if what.adapters:
            model.enable_input_require_grads()
    model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    made = optimizer(weights) if optimizer else torch.optim.AdamW(weights, foreach=True)
    ids = torch.zeros(what.batch, what.tokens, dtype=torch.long)
    mask = torch.ones_like(ids)
    for _ in range(2):
        for _ in range(what.accumulation):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(input_ids=ids, attention_mask=mask, labels=ids, use_cache=False).loss
            loss.backward()
        made.step()
        made.zero_grad()


@pytest.mark.parametrize(("family", "checkpointing", "rank", "dtype"), CASES)
def test_the_peak_is_what_a_real_step_allocates(family, checkpointing, rank, dtype):
    what = job(family, checkpointing=checkpointing, rank=rank, dtype=dtype)
    found = simulated(family, checkpointing=checkpointing, rank=rank, dtype=dtype)
    assert found.peak_bytes == pytest.approx(allocated_on_cpu(lambda: really(what)), rel=0.001)


def test_a_mixed_sum_is_what_a_card_saves_over_the_cpu():
    """The one case left out above: the CPU widens the 16-bit half of a sum first, 4 bytes a value of one layer."""
    what = job(rank=8, checkpointing=True)
    more = allocated_on_cpu(lambda: really(what)) - simulated(rank=8, checkpointing=True).peak_bytes
    assert more == pytest.approx(what.batch * what.tokens * 688 * 4, rel=0.03)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_that_accumulate(checkpointing):
    what = job(checkpointing=checkpointing, accumulation=2)
    found = simulated(checkpointing=checkpointing, accumulation=2)
    assert found.peak_bytes == pytest.approx(allocated_on_cpu(lambda: really(what)), rel=0.001)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_autocast_keeps_a_narrow_copy_of_each_weight(checkpointing):
    what = job("qwen2", dtype="float32", checkpointing=checkpointing)
    found = simulated("qwen2", dtype="float32", autocast="bfloat16", checkpointing=checkpointing)
    assert found.peak_bytes == pytest.approx(allocated_on_cpu(lambda: really(what, autocast=True)), rel=0.001)


def _optimizers():
    import torch

    return {
        "adamw-fused": lambda weights: torch.optim.AdamW(weights, fused=True),
        "adamw-loop": lambda weights: torch.optim.AdamW(weights, foreach=False),
        "sgd-foreach": lambda weights: torch.optim.SGD(weights, foreach=True),
        "sgd-momentum-fused": lambda weights: torch.optim.SGD(weights, momentum=0.9, fused=True),
        "adafactor-foreach": lambda weights: torch.optim.Adafactor(weights, foreach=True),
    }


@pytest.mark.parametrize(
    "name", ["adamw-fused", "adamw-loop", "sgd-foreach", "sgd-momentum-fused", "adafactor-foreach"]
)
def test_every_form_of_an_optimizer(name):
    sizes = {"tokens": 64, "batch": 1, "dtype": "float32"}
    what = job("qwen2", **sizes)
    measured = allocated_on_cpu(lambda: really(what, optimizer=_optimizers()[name]))
    assert simulated("qwen2", optimizer=name, **sizes).peak_bytes == pytest.approx(measured, rel=0.001)
