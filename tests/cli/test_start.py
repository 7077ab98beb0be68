"""What is imported when: a start stays fast because each verb imports only what it needs."""

import subprocess
import sys

import pytest
from tests.cli.ask import ROOT

LIBRARIES = ("numpy", "msgspec", "click", "rich")


def imported(code):
    """Which of the libraries, and which modules of ours, are loaded after ``code``."""
    shown = "import sys; print(*sorted(sys.modules), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{shown}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in run.stderr.split() if name in LIBRARIES or name.startswith("rackrate")}


def test_the_package_itself_imports_nothing():
    assert imported("import rackrate") == {"rackrate"}


def verb(*args):
    """Code that runs the command line and goes on afterwards."""
    return f"import contextlib\nfrom rackrate.cli.main import main\nwith contextlib.suppress(SystemExit): main({list(args)})"


@pytest.mark.parametrize("args", [("--help",), ("--version",)])
def test_help_needs_click_alone(args):
    found = imported(verb(*args))
    assert found & set(LIBRARIES) == {"click"}
    assert {name for name in found if name.startswith("rackrate.") and not name.startswith("rackrate.cli")} <= {
        "rackrate.app",
        "rackrate.app.version",
    }


def test_help_of_a_verb_loads_neither_facts_nor_numpy():
    for name in ("plan", "offers"):
        found = imported(verb(name, "--help"))
        assert not found & {"numpy", "rich", "rackrate.facts.bundled", "rackrate.offers.catalog"}


def test_a_bad_flag_loads_neither_facts_nor_numpy():
    found = imported(verb("plan", "--gpuz", "a40"))
    assert not found & {"numpy", "rich", "rackrate.facts.bundled", "rackrate.offers.catalog"}


def test_json_needs_no_screen():
    found = imported(verb("plan", "examples/lora-7b.toml", "--json"))
    assert not found & {"rich", "rackrate.cli.plan_screen", "rackrate.cli.layout"}


def test_facts_of_ones_own_are_not_looked_into_where_there_are_none():
    found = imported(verb("plan", "examples/lora-7b.toml"))
    assert not [name for name in found if "own" in name or "overlay" in name or "wire.facts" in name]


def test_a_list_of_offers_needs_no_planner():
    found = imported(verb("offers", "--gpu", "a40", "--json"))
    assert not found & {"rich", "rackrate.plan.search", "rackrate.plan.planner", "rackrate.app.long_lists"}


def test_a_verb_loads_only_its_own_screen():
    found = imported(verb("gpu", "a40"))
    assert "rackrate.cli.gpu_screen" in found
    assert not found & {"rackrate.cli.plan_screen", "rackrate.cli.fit_screen", "rackrate.plan.planner"}
