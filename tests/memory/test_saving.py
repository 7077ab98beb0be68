"""The phase in which a checkpoint is written: what is put together of weights that cards share."""

import pytest
from tests.memory.build import card, measure, train

from rackrate.facts import bundled
from rackrate.memory.estimate_types import Phase
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings
from rackrate.workload.workload import Task

BOOK = bundled.load()
LLAMA, PARAMS = "meta-llama/Meta-Llama-3.1-8B", 8_030_261_248
EMBEDDING = 128_256 * 4096
EIGHT = Layout(data=8, zero_stage=3)


def run(engine, how, task=Task.FULL_FINETUNE, layout=EIGHT, **more):
    work = train(BOOK, LLAMA, task, saving=how, global_batch=8, **more)
    return measure(work, card(80_000), BOOK.engine(engine), layout)


def saved(found):
    """Likely bytes of what is put together; 0 where nothing is."""
    return sum(part.bytes.likely for part in found.components if part.name == "saved_weights")


def test_shards_are_written_as_they_are():
    found = run("fsdp", "shards")
    assert saved(found) == 0
    phases = dict(found.phases)
    assert phases[Phase.SAVE].likely < phases[Phase.BACKWARD].likely


@pytest.mark.parametrize(("engine", "size"), [("fsdp", 4), ("deepspeed", 2), ("torchtune", 2)])
def test_one_tensor_at_a_time_is_put_together_in_the_type_that_it_is_kept_in(engine, size):
    found, shards = run(engine, "gathered"), run(engine, "shards")
    assert saved(found) == size * EMBEDDING
    assert dict(found.phases)[Phase.SAVE].likely == pytest.approx(
        dict(shards.phases)[Phase.SAVE].likely + size * EMBEDDING
    )


def test_the_whole_model_on_the_card_that_writes_decides_the_peak():
    """FP32 weights and two FP32 moments of every parameter."""
    found = run("fsdp", "on_card")
    assert saved(found) == 12 * PARAMS
    assert found.peak_phase is Phase.SAVE
    assert found.peak == dict(found.phases)[Phase.SAVE]


def test_a_card_that_holds_all_puts_nothing_together():
    for layout in (Layout(), Layout(data=8, zero_stage=2)):
        assert saved(run("fsdp", "on_card", layout=layout)) == 0


def test_adapters_alone_where_the_base_is_left_out():
    said = {"lora_rank": 16, "lora_targets": ("all",)}
    whole, alone = (run(engine, "gathered", Task.LORA, **said) for engine in ("peft-trl", "deepspeed"))
    assert saved(whole) == 2 * EMBEDDING
    assert saved(alone) == 0


def test_engines_have_their_usual_way():
    assert saved(run("torchtune", "")) == 2 * EMBEDDING
    assert saved(run("deepspeed", "")) == 0


def asked(engine, how):
    said = {"model": LLAMA, "task": "full_finetune", "engine": engine, "training.saving": how}
    return parse(request_from_flags(said), BOOK)


def test_ways_that_an_engine_does_not_have_are_refused():
    (finding,) = asked("deepspeed", "on_card")
    assert "shards, gathered" in finding.expected
    (finding,) = asked("transformers", "gathered")
    assert "divides none" in finding.expected


def test_other_words_and_reading_back():
    parsed = asked("fsdp", "FULL_STATE_DICT")
    assert isinstance(parsed, Parsed)
    assert parsed.workload.training.saving == "gathered"
    again = parse(request_from_flags(settings(parsed.workload)), BOOK)
    assert again.workload.training == parsed.workload.training
