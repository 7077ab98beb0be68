"""Embedding and head trained beside adapters: copies as PEFT makes them."""

import pytest
from tests.memory.build import card, likely, measure, train

from rackrate.facts import bundled
from rackrate.problems import Code
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings
from rackrate.workload.workload import Checkpointing, Task

BOOK = bundled.load()
LLAMA, TIED = "meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-0.5B-Instruct"
TABLE = 32_000 * 4096
BOTH = ("embedding", "head")
HUGE = card(1_000_000)


def run(saved, engine="peft-trl", task=Task.LORA, layout=Layout(), model=LLAMA, **settings):  # noqa: B008 - frozen
    form = "nf4-dq" if task is Task.QLORA else "bf16"
    sizes = {"lora_rank": 8, "lora_targets": ("q", "v"), "checkpointing": Checkpointing.FULL, "tokens": 512}
    work = train(BOOK, model, task, form=form, modules_to_save=saved, **(sizes | settings))
    return measure(work, HUGE, BOOK.engine(engine), layout)


def more(name, saved, **how):
    """What training these modules adds to a part."""
    before = [p.bytes.likely for p in run((), **how).components if p.name == name]
    return sum(p.bytes.likely for p in run(saved, **how).components if p.name == name) - sum(before)


@pytest.mark.parametrize(("saved", "tables"), [(("embedding",), 1), (("head",), 1), (BOTH, 2)])
def test_copies_in_16_bits_beside_a_16_bit_base(saved, tables):
    """peft 0.21: modules_to_save.default.weight is bfloat16 beside a bfloat16 base, original_module stays."""
    params = tables * TABLE
    assert likely(run(saved), "saved_modules") == 2 * params
    assert more("weights", saved) == 0
    assert more("gradients", saved) == pytest.approx(2 * params)
    assert more("optimizer_states", saved) == pytest.approx(4 * params)
    assert likely(run(saved), "optimizer_temporary") == 2 * params


def test_copies_in_fp32_beside_a_base_prepared_for_4_bits():
    """prepare_model_for_kbit_training widens embedding and head, and the copies are of these."""
    params = 2 * TABLE
    found = run(BOTH, task=Task.QLORA)
    assert likely(found, "saved_modules") == 4 * params
    assert more("optimizer_states", BOTH, task=Task.QLORA) == pytest.approx(8 * params)


def test_deepspeed_keeps_masters_of_the_copies():
    """16 bytes a parameter: 2 + 2 + 4 + 8 (ZeRO, arXiv 1910.02054), which stage 2 divides but for the weights."""
    how = {"engine": "deepspeed", "layout": Layout(data=4, zero_stage=2), "global_batch": 4}
    found = run(BOTH, **how)
    assert likely(found, "saved_modules") == 2 * 2 * TABLE
    assert likely(found, "saved_masters") == 4 * 2 * TABLE / 4
    assert more("optimizer_states", BOTH, **how) == pytest.approx(8 * 2 * TABLE / 4)
    assert more("gradients", BOTH, **how) == pytest.approx(2 * 2 * TABLE / 4)


def test_a_tied_model_gets_two_copies():
    model = BOOK.model(TIED)
    assert model.tie_embeddings
    assert likely(run(BOTH, model=TIED), "saved_modules") == 2 * 2 * model.vocab_size * model.hidden_size


def test_zero_3_divides_the_copies_and_gathers_them():
    how = {"layout": Layout(data=4, zero_stage=3), "global_batch": 4}
    assert likely(run(BOTH, **how), "saved_modules") == 2 * 2 * TABLE / 4
    assert more("gathered_layers", BOTH, **how) == pytest.approx(2 * 2 * TABLE)


def asked(**said):
    return parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), BOOK)


def test_the_key_takes_the_names_of_modules():
    parsed = asked(model=LLAMA, task="lora", training__modules_to_save="embed_tokens,lm_head")
    assert parsed.workload.training.modules_to_save == BOTH
    assert parse(request_from_flags(settings(parsed.workload)), BOOK).workload.training == parsed.workload.training


@pytest.mark.parametrize("engine", ["torchtune", "litgpt", "fsdp", "megatron"])
def test_engines_that_train_none_are_refused(engine):
    (finding,) = asked(model=LLAMA, task="lora", engine=engine, training__modules_to_save="head")
    assert finding.subject == "--modules-to-save"
    assert "peft-trl" in finding.expected


def test_full_training_has_no_modules_beside_adapters():
    parsed = asked(model=LLAMA, task="full_finetune", training__modules_to_save="head")
    assert not isinstance(parsed, Parsed)
    assert parsed[0].code is Code.CONFLICT


def test_a_module_more_needs_more():
    assert run(()).peak.likely < run(("head",)).peak.likely < run(BOTH).peak.likely
