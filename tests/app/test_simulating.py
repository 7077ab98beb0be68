"""Simulations of workloads and of programs of one's own: the document, the screen, and what goes wrong."""

import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.cli.ask import DAY, run

from rackrate import api

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "src/rackrate/app/schemas/simulation.json").read_text("utf-8"))
TINY = str(ROOT / "tests/facts/samples/llama-tiny")
EXAMPLE = str(ROOT / "examples/own-step/train_step.py")
SMALL = ("--model", TINY, "--context", "64", "--batch", "1")
JOB = {"model": TINY, "task": "lora", "training": {"sequence_tokens": 64, "micro_batch": 1, "global_batch": 1}}


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="the extra `measure` is not installed")


def simulated(*args):
    found = run("fit", *args, "--json", "--as-of", DAY)
    document = found.document
    Draft202012Validator(SCHEMA).validate(document)
    return found.code, document


# ---------------------------------------------------------------- workloads


@pytest.mark.parametrize("task", ["lora", "full_finetune"])
def test_a_workload_is_simulated_beside_its_estimate(torch, task):
    code, found = simulated(*SMALL, "--task", task, "--gpu", "a40", "--simulate")
    assert code == 0
    assert found["schema"] == "rackrate.simulation/1"
    assert found["workload"]["task"] == task
    assert found["card"]["accelerator"] == "a40"
    assert found["card"]["verdict"] == "fits"
    assert found["card"]["peak_bytes"]["likely"] > found["peak_bytes"]
    assert found["fit"]["accelerator"] == "a40"
    assert found["estimated_bytes"] == found["fit"]["allocated_bytes"]["likely"]
    assert sum(part["bytes"] for part in found["parts"]) == found["peak_bytes"]
    assert {phase["phase"] for phase in found["phases"]} == {"load", "forward", "loss", "backward", "step"}
    assert found["libraries"]["torch"].startswith("2.13")


def test_a_simulation_needs_no_card(torch):
    code, found = simulated(*SMALL, "--task", "lora", "--simulate")
    assert code == 0
    assert found["card"] is found["fit"] is found["estimated_bytes"] is None


def test_inference_with_transformers(torch):
    args = ("--model", TINY, "--task", "inference", "--engine", "transformers", "--context", "64", "--simulate")
    assert {"load", "prefill", "decode"} == {phase["phase"] for phase in simulated(*args)[1]["phases"]}


def test_a_file_may_stand_behind_the_flag(torch, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(f'model = "{TINY}"\ntask = "lora"\n[training]\nsequence_tokens = 32\nglobal_batch = 4\n', "utf-8")
    for args in (("--simulate", str(file)), (str(file), "--simulate")):
        assert simulated(*args)[1]["workload"]["context_tokens"] == 32


def test_what_does_not_fit_ends_with_3(torch):
    args = ("--model", "meta-llama/Llama-2-7b-hf", "--task", "full_finetune", "--context", "64", "--gpu", "rtx4090")
    assert run("fit", *args, "--simulate").code == 3


@pytest.mark.parametrize("form", ["--csv", "--md", ""])
def test_every_form_shows_the_largest_tensors(torch, form):
    printed = run("fit", *SMALL, "--task", "lora", "--gpu", "a40", "--simulate", *([form] if form else []))
    assert printed.code == 0
    assert "weights" in printed.out
    assert "bfloat16" in printed.out
    if not form:
        assert "Reached by" in printed.out
        assert "Not seen:" in printed.out


def test_the_command_prints_what_the_api_answers(torch):
    printed = run("fit", *SMALL, "--task", "lora", "--simulate", "--json", "--as-of", DAY).out
    flags = {"model": TINY, "task": "lora", "context": "64", "batch": "1"}
    from datetime import date

    assert api.to_json(api.simulate(None, flags, at=date.fromisoformat(DAY))) + "\n" == printed


@pytest.mark.parametrize(
    ("change", "subject", "action"),
    [
        (("--task", "qlora"), "weights", "--task lora"),
        (("--task", "lora", "--gpus", "2"), "--gpus", "leave --gpus out"),
        (("--task", "lora", "--optimizer", "adamw-8bit"), "training.optimizer", "--optimizer adamw"),
        (("--task", "lora", "--checkpointing", "selective"), "training.checkpointing", "--checkpointing full"),
        (("--task", "lora", "--engine", "torchtune"), "engine", "--engine transformers"),
        (("--task", "inference", "--engine", "vllm"), "engine", "--engine transformers"),
    ],
)
def test_what_is_not_simulated_is_refused_with_what_would_be(change, subject, action):
    found = run("fit", "--model", TINY, "--context", "64", "--gpu", "a40", *change, "--simulate", "--json")
    assert found.code == 2
    problems = {problem["subject"]: problem for problem in found.document["problems"]}
    assert problems[subject]["code"] == "not_simulated"
    assert problems[subject]["action"].startswith(action)


def test_a_model_that_cannot_be_built_from_its_record_asks_for_its_configuration():
    found = run("fit", "--model", "deepseek-ai/DeepSeek-V3", "--task", "lora", "--simulate", "--json")
    assert found.code == 2
    assert "hub:org/name" in found.document["problems"][0]["action"]


# ---------------------------------------------------------------- programs


def test_the_example_program(torch):
    code, found = simulated("--simulate", f"{EXAMPLE}:build", "--gpu", "a40")
    assert code == 0
    assert found["workload"] is found["fit"] is None
    assert found["card"]["verdict"] == "fits"
    assert found["line"].startswith("train_step.py:")
    assert (found["peak_phase"], found["values_read"]) == ("loss", [])


def program(tmp_path, body, name="mine"):
    file = tmp_path / f"{name}.py"
    file.write_text(f"import torch\n\ndef build():\n{body}", "utf-8")
    return f"{file}:build"


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("    raise ValueError('no data')\n", "mine.py:4", "ValueError: no data"),
        (
            "    def step():\n        torch.ones(2, 3) @ torch.ones(2, 3)\n    return step\n",
            "mine.py:5",
            "RuntimeError",
        ),
        ("    return lambda: torch.ones(4, device='cuda').nonzero()\n", "mine.py:4", "NotImplementedError"),
        ("    raise SystemExit(7)\n", "mine.py:4", "SystemExit: 7"),
        ("    return 3\n", "--simulate", "returned int, not a step"),
    ],
)
def test_an_error_in_a_program_is_told_with_its_line(torch, tmp_path, body, line, said):
    found = run("fit", "--simulate", program(tmp_path, body), "--json")
    assert found.code == 2
    [problem] = found.document["problems"]
    assert (problem["code"], problem["subject"]) == ("program_failed", line)
    assert said in problem["observed"]
    assert problem["action"]


def test_what_a_program_prints_is_talk_and_what_it_reads_is_listed(torch, tmp_path):
    body = (
        "    def step():\n        print('hello')\n        torch.ones(3, device='cuda').sum().item()\n    return step\n"
    )
    found = run("fit", "--simulate", program(tmp_path, body), "--json")
    assert found.document["values_read"] == ["mine.py:6"]
    assert found.document["warnings"][0]["code"] == "values_read"
    assert "hello" in found.err


def test_a_program_finds_what_lies_beside_it(torch, tmp_path):
    (tmp_path / "beside_it.py").write_text("import torch\nSIZE = 1024\n", "utf-8")
    body = "    import beside_it\n    return lambda: torch.ones(beside_it.SIZE, device='cuda')\n"
    try:
        assert run("fit", "--simulate", program(tmp_path, body), "--json").document["peak_bytes"] == 4096
    finally:
        sys.modules.pop("beside_it", None)
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no-such-file.py:build", "file_unreadable"),
        (EXAMPLE, "bad_value"),
        (f"{EXAMPLE}:biuld", "unknown_name"),
    ],
)
def test_a_program_that_is_not_there(text, code):
    if code == "unknown_name":
        pytest.importorskip("torch", reason="the extra `measure` is not installed")
    found = run("fit", "--simulate", text, "--json")
    assert found.code == 2
    assert found.document["problems"][0]["code"] == code
    assert "build" in found.document["problems"][0]["action"] or code == "file_unreadable"


def test_a_program_of_the_api(torch):
    def build():
        return lambda: torch.ones(1024, device="cuda")

    found = api.simulate(program=build, flags={"limits.gpus": ["a40"]})
    assert (found.subject, found.peak_bytes, found.card.verdict) == ("build", 4096, "fits")


@pytest.mark.parametrize("names", [["voodoo2"], ["a100"], ["a40", "l40"]])
def test_a_program_is_held_against_one_known_card(names):
    with pytest.raises(api.Refused) as refused:
        api.simulate(program=lambda: None, flags={"limits.gpus": names})
    assert refused.value.findings[0].action


# ---------------------------------------------------------------- without the extra


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_a_package_the_extra_is_named(monkeypatch, package):
    for name in [name for name in sys.modules if name.startswith("rackrate.memory.simulation.")]:
        if name.rpartition(".")[2] not in {"run", "records", "bundled", "on_card"}:
            monkeypatch.delitem(sys.modules, name)
    if package == "transformers":
        pytest.importorskip("torch", reason="the extra `measure` is not installed")
    monkeypatch.setitem(sys.modules, package, None)
    found = run("fit", *SMALL, "--task", "lora", "--gpu", "a40", "--simulate", "--json")
    assert found.code == 2
    [problem] = found.document["problems"]
    assert problem["code"] == "package_missing"
    assert problem["action"] == "pip install 'rackrate[measure]'"


def test_planning_and_fitting_load_neither_torch_nor_transformers():
    import subprocess

    code = (
        "import sys; from rackrate import api; api.fit({'model': 'gpt2', 'task': 'lora', 'limits': {'gpus': ['a40']}});"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
