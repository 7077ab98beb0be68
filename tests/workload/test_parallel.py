"""A division over cards that the user asks for: kept to, and refused where model, batch or engine do not allow it."""

import pytest

from rackrate.facts import bundled
from rackrate.problems import Finding
from rackrate.workload.layout import Layout, Parallel
from rackrate.workload.layouts import layouts
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags, request_from_table
from rackrate.workload.settings import settings

LLAMA, LLAMA70, MIXTRAL = "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-70b-hf", "mistralai/Mixtral-8x7B-v0.1"
BOOK = bundled.load()


def asked(**said):
    return parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), BOOK)


def found(gpus, /, **said):
    work = asked(**said).workload
    return list(layouts(work.model, work, BOOK.engine(work.engine_id), gpus))


def labels(gpus, /, **said):
    return [layout.label for layout in found(gpus, **said)]


def refused(**said):
    problems = asked(**said)
    assert not isinstance(problems, Parsed)
    assert all(isinstance(p, Finding) and p.expected and p.action for p in problems)
    return {problem.subject: problem for problem in problems}


def test_what_is_not_said_is_one_and_replicas_fill_the_machine():
    assert labels(8, model=LLAMA70, engine="vllm", parallel__tensor=4) == ["tp4 dp2"]
    assert labels(4, model=LLAMA70, engine="vllm", parallel__tensor=4) == ["tp4"]
    assert labels(2, model=LLAMA70, engine="vllm", parallel__tensor=4) == []


def test_replicas_that_are_said_are_kept_to():
    said = {"model": LLAMA, "engine": "vllm", "parallel__tensor": 2, "parallel__data": 2}
    assert labels(8, **said) == labels(4, **said) == ["tp2 dp2"]
    assert labels(3, **said) == []


def test_stages_of_zero_are_searched_unless_said():
    said = {"model": LLAMA, "task": "full_finetune", "engine": "deepspeed", "parallel__data": 4}
    assert labels(4, **said) == ["dp4 zero2", "dp4 zero3"]
    assert labels(4, **said, parallel__zero_stage=1) == ["dp4 zero1"]
    assert labels(4, **said, parallel__zero_stage=0) == ["dp4"]


def test_every_kind_of_division_reaches_the_layout():
    (layout,) = found(
        16, model=MIXTRAL, task="pretrain", engine="megatron", training__global_batch=64, parallel__tensor=2,
        parallel__pipeline=2, parallel__context=2, parallel__expert=4, parallel__sequence=True,
        parallel__virtual_stages=2, parallel__zero_stage=1,
    )  # fmt: skip
    assert layout == Layout(
        tensor=2, pipeline=2, context=2, data=2, expert=4, sequence=True, chunks=2, zero_stage=1
    )  # fmt: skip
    assert layout.label == "tp2 pp2 dp2 cp2 ep4 vpp2 sp zero1"


def test_shares_of_a_layer_split():
    work = asked(model=LLAMA, engine="llama.cpp", quantization="gguf-q4_0", parallel__tensor_split="3, 1").workload
    (layout,) = layouts(work.model, work, BOOK.engine("llama.cpp"), 2)
    assert layout == Layout(pipeline=2, layer_split=True, split=(3.0, 1.0))
    assert layout.label == "split2(3,1)"


@pytest.mark.parametrize("written", ["3,1", ["3", "1"], [3, 1], "3.0,1"])
def test_shares_are_read_as_text_or_list(written):
    table = {"model": LLAMA, "engine": "llama.cpp", "quantization": "gguf-q4_0", "parallel": {"tensor_split": written}}
    assert parse(request_from_table(table), BOOK).workload.parallel.tensor_split == (3.0, 1.0)


@pytest.mark.parametrize("written", ["0,0", "3,-1", "a,b", "nan,1", "inf,1", ","])
def test_senseless_shares_are_refused(written):
    assert "parallel.tensor_split" in " ".join(
        p.subject.replace("--tensor-split", "parallel.tensor_split")
        for p in parse(
            request_from_table({"model": LLAMA, "engine": "llama.cpp", "parallel": {"tensor_split": written}}), BOOK
        )
    )


@pytest.mark.parametrize(
    ("said", "key", "part"),
    [
        ({"model": LLAMA, "engine": "vllm", "parallel__tensor": 3}, "--tensor-parallel", "1, 2, 4, 8, 16, 32"),
        ({"model": LLAMA, "engine": "llama.cpp", "parallel__tensor": 2}, "--tensor-parallel", "layer split"),
        ({"model": LLAMA, "engine": "vllm", "parallel__pipeline": 33}, "--pipeline-parallel", "at most 32"),
        ({"model": LLAMA, "engine": "vllm", "parallel__expert": 2}, "--expert-parallel", "mixture"),
        ({"model": MIXTRAL, "engine": "vllm", "parallel__tensor": 3, "parallel__expert": 3}, "--expert-parallel", ""),
        ({"model": MIXTRAL, "engine": "vllm", "parallel__tensor": 2, "parallel__expert": 8}, "--expert-parallel", ""),
        ({"model": LLAMA, "engine": "vllm", "parallel__context": 2}, "--context-parallel", "serving"),
        (
            {"model": LLAMA, "engine": "llama.cpp", "parallel__tensor_split": "1,1", "parallel__pipeline": 3},
            "--tensor-split",
            "share",
        ),
        ({"model": LLAMA, "engine": "vllm", "parallel__tensor_split": "1,1"}, "--tensor-split", ""),
        (
            {"model": LLAMA70, "engine": "vllm", "parallel__tensor": 8, "limits__gpu_counts": "4"},
            "--tensor-parallel",
            "",
        ),
        ({"model": LLAMA70, "engine": "vllm", "parallel__tensor": 8, "limits__max_gpus": 4}, "--tensor-parallel", ""),
    ],
)
def test_a_service_that_cannot_be_divided_so_is_refused(said, key, part):
    problem = refused(**said)[key]
    assert part in f"{problem.expected} {problem.action} {problem.observed}" or part == "serving"


@pytest.mark.parametrize(
    ("engine", "said", "key"),
    [
        ("deepspeed", {"parallel__pipeline": 2, "parallel__zero_stage": 3}, "--zero-stage"),
        ("megatron", {"parallel__zero_stage": 3}, "--zero-stage"),
        ("peft-trl", {"parallel__pipeline": 2}, "--pipeline-parallel"),
        ("megatron", {"parallel__sequence": True}, "--sequence-parallel"),
        ("megatron", {"parallel__virtual_stages": 2}, "--virtual-stages"),
        ("megatron", {"parallel__pipeline": 3, "parallel__virtual_stages": 2}, "--virtual-stages"),
        ("megatron", {"parallel__context": 3}, "--context-parallel"),
        ("megatron", {"parallel__data": 3}, "--data-parallel"),
    ],
)
def test_a_run_that_cannot_be_divided_so_is_refused(engine, said, key):
    assert key in refused(model=LLAMA, task="full_finetune", engine=engine, **said)


def test_the_refusal_of_a_batch_names_one_that_goes():
    said = {"model": LLAMA, "task": "full_finetune", "engine": "megatron", "parallel__data": 3}
    problem = refused(**said)["--data-parallel"]
    batch = problem.action.partition("--global-batch ")[2].partition(",")[0]
    assert isinstance(asked(**said, training__global_batch=int(batch)), Parsed)


@pytest.mark.parametrize(
    "said",
    [
        {"model": LLAMA70, "engine": "vllm", "parallel__tensor": 2},
        {"model": LLAMA, "engine": "llama.cpp", "quantization": "gguf-q4_0", "parallel__tensor_split": "0.3,0.7"},
        {
            "model": LLAMA,
            "task": "full_finetune",
            "engine": "megatron",
            "parallel__tensor": 2,
            "parallel__sequence": True,
        },
    ],
)
def test_settings_say_the_division_again(said):
    first = asked(**said).workload
    again = parse(request_from_flags(settings(first)), BOOK)
    assert isinstance(again, Parsed), again
    assert again.workload.parallel == first.parallel
    assert isinstance(first.parallel, Parallel)


def test_nothing_asked_leaves_the_search_as_it_was():
    assert asked(model=LLAMA70).workload.parallel is None
    assert labels(4, model=LLAMA70) == ["dp4", "tp2 dp2", "pp4", "tp4"]


NODES = {"model": LLAMA70, "engine": "vllm", "parallel__nodes": 2}


def test_machines_alone_leave_the_division_to_be_searched():
    assert labels(16, **NODES) == ["dp16 2 nodes", "tp2 dp8 2 nodes", "tp4 dp4 2 nodes", "tp8 dp2 2 nodes",
                                   "pp16 2 nodes", "tp8 pp2 2 nodes", "tp16 2 nodes"]  # fmt: skip
    work = asked(**NODES, parallel__network="8 x 400 Gb/s").workload
    assert work.parallel.network.text == "8 x 400 Gb/s"
    assert work.parallel.machine_gpus == 1


def test_machines_have_equally_many_cards():
    said = {"model": LLAMA, "task": "lora", "training__global_batch": 12, "parallel__nodes": 2}
    assert {layout.gpus for layout in found(16, **said)} == {12}
    assert labels(16, **NODES, parallel__tensor=8) == ["tp8 dp2 2 nodes"]
    assert "--nodes" in refused(**NODES, parallel__tensor=1, parallel__data=3)


def test_machines_that_cannot_share_the_work_are_refused():
    assert "--nodes" in refused(model=LLAMA, engine="llama.cpp", quantization="gguf-q4_k_m", parallel__nodes=2)
    assert "--nodes" in refused(model="openai/whisper-large-v3", parallel__nodes=2)
    assert "--network" in refused(model=LLAMA, parallel__network="100 Gb/s")


@pytest.mark.parametrize("nodes", [0, -1, 1025, 1.5, "two", "", True, None, [2], 10**400])
def test_senseless_numbers_of_machines_are_refused(nodes):
    if nodes is None:
        assert asked(model=LLAMA, parallel__nodes=nodes).workload.parallel is None
    else:
        assert "--nodes" in refused(model=LLAMA, parallel__nodes=nodes)


@pytest.mark.parametrize("network", ["", "abc", 100, True, ["100 Gb/s"], "100 Gb/s" * 50, "0 Gb/s", 1e308])
def test_senseless_networks_are_refused(network):
    assert "--network" in refused(model=LLAMA, parallel__nodes=2, parallel__network=network)


def test_cards_are_counted_for_each_machine():
    said = {"model": LLAMA70, "engine": "vllm", "parallel__tensor": 8, "parallel__pipeline": 2, "parallel__nodes": 2}
    work = asked(**said, limits__gpu_counts=[8]).workload
    assert work.parallel.machine_gpus == 8
    problem = refused(**said, limits__gpu_counts=[4])["--tensor-parallel"]
    assert "8 cards needed in each machine" in problem.observed


def test_machines_and_network_are_written_and_read_again():
    work = asked(**NODES, parallel__network="InfiniBand 400 Gb/s").workload
    said = {path: value for path, value in settings(work).items() if value is not None}
    assert said["parallel.nodes"] == 2
    assert said["parallel.network"] == "400 Gb/s"
    assert not any(path.startswith("parallel.tensor") for path in said)
