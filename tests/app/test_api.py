"""The Python API: the same documents as the command line, and refusals that carry their findings."""

import inspect
import json
import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.cli.ask import DAY, run

from rackrate import api

ROOT = Path(__file__).parents[2]
LORA = ROOT / "examples/lora-7b.toml"
AT = date.fromisoformat(DAY)


@pytest.mark.parametrize(
    "asked", [LORA, str(LORA), tomllib.loads(LORA.read_text("utf-8"))], ids=["path", "text", "table"]
)
def test_plan_is_what_the_command_line_prints(asked):
    printed = run("plan", LORA, "--json", "--as-of", DAY, "--gpus", "1").out
    assert api.to_json(api.plan(asked, {"limits.gpu_counts": ["1"]}, at=AT)) + "\n" == printed


def test_fit_is_what_the_command_line_prints():
    printed = run("fit", LORA, "--json", "--as-of", DAY, "--gpu", "a40").out
    assert api.to_json(api.fit(LORA, {"limits.gpus": ["a40"]}, at=AT)) + "\n" == printed


def test_speed_is_what_the_command_line_prints():
    printed = run("speed", LORA, "--json", "--as-of", DAY, "--gpu", "a40", "--gpus", "1,2").out
    assert api.to_json(api.speed(LORA, {"limits.gpus": ["a40"], "limits.gpu_counts": [1, 2]}, at=AT)) + "\n" == printed


def test_gpu_is_what_the_command_line_prints():
    printed = run("gpu", "a40", "A100 PCIe 80GB", "--currency", "eur", "--json", "--as-of", DAY).out
    assert api.to_json(api.gpu(["a40", "a100-pcie-80"], currency="EUR", at=AT)) + "\n" == printed


def test_model_is_what_the_command_line_prints():
    printed = run("model", "Qwen/Qwen3-8B", "gpt2", "--json", "--as-of", DAY).out
    assert api.to_json(api.model(["Qwen/Qwen3-8B", "GPT2"], at=AT)) + "\n" == printed


def test_a_card_is_shown_once():
    assert [card.id for card in api.gpu(["a40", "NVIDIA A40", "a40"]).gpus] == ["a40"]


REFUSED = {
    "nothing asked": api.plan,
    "unknown model": lambda: api.plan({"model": "no such model"}),
    "unknown key": lambda: api.plan({"nonsense": 1}),
    "no file": lambda: api.plan("no such file.toml"),
    "model is a number": lambda: api.plan(None, {"model": 3}),
    "two cards": lambda: api.fit({"model": "meta-llama/Llama-2-7b-hf", "limits": {"gpus": ["a40", "l40s"]}}),
    "four cards": lambda: api.gpu(["a100"]),
    "no such money": lambda: api.gpu(["a40"], currency="shells"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_that_makes_no_sense_is_refused_with_findings(what):
    with pytest.raises(api.Refused) as refused:
        REFUSED[what]()
    errors = [finding for finding in refused.value.findings if finding.severity == "error"]
    assert errors
    assert all(finding.subject and finding.action for finding in errors)
    assert str(refused.value)


def test_documents_cannot_be_changed():
    card = api.gpu(["a40"]).gpus[0]
    with pytest.raises(AttributeError):
        card.id = "a100-pcie-80"


def test_documents_are_plain_json():
    answer = api.plan(LORA, at=AT)
    table = json.loads(api.to_json(answer))
    assert table["plans"][0]["cost"]["likely"] == answer.plans[0].cost.likely
    assert table["schema"] == "rackrate.plan/1"


def test_the_verbs_take_the_same_question_the_same_way():
    parameters = {name: list(inspect.signature(getattr(api, name)).parameters) for name in ("plan", "fit", "speed")}
    assert parameters["plan"][:2] == parameters["fit"][:2] == parameters["speed"][:2] == ["asked", "flags"]
    assert all(
        "at" in inspect.signature(getattr(api, name)).parameters for name in ("plan", "fit", "speed", "gpu", "offers")
    )


def test_the_names_of_the_api_are_all_that_it_shows():
    shown = {name for name in dir(api) if not name.startswith("_")} - {"annotations"}
    assert shown == set(api.__all__)


def test_the_api_is_used_as_a_type_checker_is_told():
    """tests/typing/api.py has no errors for mypy --strict, and no ignore that is not needed."""
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "tests/typing/api.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_what_the_type_checker_is_told_is_so():
    code = "import sys; sys.path.insert(0, 'tests/typing'); import api as a; a.plan(), a.fit(), a.speed(), a.gpu(), a.model(), a.offers(), a.text(); assert a.refused()"
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True)


def test_a_card_can_be_given_by_itself():
    assert [card.id for card in api.gpu("a40").gpus] == ["a40"]


def test_a_day_in_words_is_refused_with_what_to_give():
    with pytest.raises(api.Refused, match=r"at: bad value; got '2026-11-30'; expected a date; next give"):
        api.gpu("a40", at="2026-11-30")


def test_a_moment_counts_as_its_day():
    assert api.gpu("a40", at=datetime(2026, 11, 30, 23, tzinfo=UTC)).as_of == "2026-11-30"
