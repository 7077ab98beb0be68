"""The public names: few, documented, and their examples run."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from rackrate import api

SOURCE = Path(__file__).parents[2] / "src"
JOB = "{'model': 'meta-llama/Llama-2-7b-hf', 'task': 'lora'}"


def modules_with_examples():
    found = (path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text("utf-8"))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in found]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_docstrings_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert not failed


def test_the_verbs_have_examples():
    assert {
        "rackrate.api",
        "rackrate.app.planning",
        "rackrate.app.fitting",
        "rackrate.app.speeds",
        "rackrate.app.gpus",
    } <= set(modules_with_examples())


def test_there_are_at_most_twenty_public_names_and_all_are_there():
    assert len(api.__all__) <= 20
    assert sorted(api.__all__) == sorted({name for name in vars(api) if not name.startswith("_")} - {"annotations"})
    for name in api.__all__:
        assert getattr(api, name) is not None
        assert name == "VERSION" or getattr(api, name).__doc__


@pytest.mark.parametrize(
    "before", ["", "import rackrate.plan.answer", "from rackrate.plan import planner", "import rackrate.app.planning"]
)
def test_plan_is_the_function_whatever_was_imported_before(before):
    """The room of the same name must not take its place, neither on the first call nor on the second."""
    code = f"{before}\nfrom rackrate import api\nfor _ in range(2):\n    print(len(api.plan({JOB}, limit=1).plans))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("1\n1\n", "")
