"""The house keeps its rules: contracts in pyproject.toml, and here what import-linter cannot see.

A rule that cannot fail is no rule, so each one is also shown a breach that it must report.
"""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "rackrate"
CONTRACTS = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
}
DOORS = CONTRACTS["doors"]["protected_modules"]
PURE = CONTRACTS["pure"]["source_modules"]
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"

FORBIDDEN_CALLS = {"open", "print", "input", "eval", "exec", "compile", "breakpoint", "__import__"}
CLOCK_CALLS = {"now", "today", "utcnow"}


# ---------------------------------------------------------------- what import-linter cannot see


def impure_calls(source: str) -> list[str]:
    """The calls in ``source`` that read a file, the clock or chance, or that print."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        last = name.rpartition(".")[2]
        if name in FORBIDDEN_CALLS or ("." in name and last in CLOCK_CALLS) or ".random." in f".{name}":
            found.append(f"line {node.lineno}: {name}()")
    return found


def modules_of(dotted: str) -> Iterator[Path]:
    path = ROOT / "src" / Path(*dotted.split("."))
    yield from sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def door_files() -> set[Path]:
    return {path for door in DOORS for path in modules_of(door)}


@pytest.mark.parametrize("room", PURE)
def test_pure_room_reads_no_file_clock_or_chance_and_prints_nothing(room: str) -> None:
    files = [path for path in modules_of(room) if path not in door_files()]
    assert files
    breaches = {path.name: calls for path in files if (calls := impure_calls(path.read_text("utf-8")))}
    assert not breaches


@pytest.mark.parametrize(
    "breach",
    [
        "open('x')",
        "print(1)",
        "datetime.now()",
        "datetime.datetime.now(UTC)",
        "datetime.utcnow()",
        "date.today()",
        "np.random.default_rng(1)",
        "numpy.random.normal()",
        "random.random()",
    ],
)
def test_an_impure_call_is_seen(breach: str) -> None:
    assert impure_calls(f"def f():\n    return {breach}\n") == [f"line 2: {breach.partition('(')[0]}()"]


@pytest.mark.parametrize(
    "fine", ["def f(now): return now", "rng.random(3)", "table.open", "x.reopen()", "as_of(today)"]
)
def test_a_pure_call_is_not_taken_for_an_impure_one(fine: str) -> None:
    assert impure_calls(fine) == []


def statements(source: str) -> list[ast.stmt]:
    body = ast.parse(source).body
    return body[1:] if body and ast.get_docstring(ast.parse(source)) is not None else body


ROOMS = [
    "app",
    *(room.removeprefix("rackrate.") for room in PURE if (PACKAGE / room.removeprefix("rackrate.")).is_dir()),
]


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_init_is_empty_so_that_a_part_never_imports_the_whole(room: str) -> None:
    assert not statements((PACKAGE / room / "__init__.py").read_text("utf-8"))


def test_an_import_in_an_init_is_seen() -> None:
    assert statements('"""Docs."""\nimport os\n')
    assert not statements('"""Docs."""\n')


def test_importing_rackrate_loads_none_of_its_rooms_nor_what_they_stand_on() -> None:
    code = (
        "import sys, rackrate\n"
        "heavy = {'numpy', 'msgspec', 'click', 'rich', 'torch'}\n"
        "print([m for m in sys.modules if m.startswith('rackrate.') or m in heavy])\n"
    )
    assert python("-c", code).stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    code = "from rackrate import api; [getattr(api, name) for name in api.__all__]"
    assert python("-c", code).returncode == 0


# ---------------------------------------------------------------- the contracts


def python(*arguments: str, cwd: Path = ROOT, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_the_house_keeps_its_contracts() -> None:
    result = python("-c", LINT_IMPORTS, "--no-cache")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture
def model_house(tmp_path: Path) -> Path:
    """A tiny package with the real rooms and doors, under the real contracts, in which nothing is wrong."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name in (name for layer in CONTRACTS["layers"]["layers"] for name in layer.split(" | ")):
        if not name.startswith("(") and name != "values":
            plant(tmp_path, f"{name}.__init__", "")
    for door in DOORS:
        plant(tmp_path, door.removeprefix("rackrate."), "import csv")
    plant(tmp_path, "__init__", "")
    plant(tmp_path, "values", "import msgspec")
    plant(tmp_path, "app.planning", "".join(f"import {door}\n" for door in DOORS))
    plant(tmp_path, "cli.main", "import rackrate.app.planning\nimport os")
    return tmp_path


def plant(house: Path, module: str, source: str) -> None:
    path = (house / "rackrate" / Path(*module.split("."))).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, "utf-8")


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return python("-c", LINT_IMPORTS, "--no-cache", cwd=house, path=house)


def test_the_model_house_is_sound(model_house: Path) -> None:
    result = lint(model_house)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("contract", "module", "imports"),
    [
        ("layers", "memory.bad", "rackrate.speed"),
        ("layers", "facts.bad", "rackrate.app"),
        ("layers", "units.bad", "rackrate.money"),
        ("layers", "web.bad", "rackrate.cli"),
        ("faces", "cli.bad", "rackrate.plan"),
        ("faces", "web.bad", "rackrate.memory"),
        ("pure", "plan.bad", "os"),
        ("pure", "memory.bad", "pathlib"),
        ("pure", "cost.bad", "random"),
        ("pure", "facts.bad", "json"),
        ("pure", "offers.bad", "importlib.resources"),
        ("pure", "workload.bad", "msgspec"),
        ("pure", "units.bad", "logging"),
        ("pure", "memory.bad", "torch"),
        ("doors", "plan.bad", "rackrate.memory.simulation"),
        ("doors", "plan.bad", "rackrate.facts.bundled"),
        ("doors", "cli.bad", "rackrate.offers.catalog"),
    ],
)
def test_a_planted_breach_is_reported(model_house: Path, contract: str, module: str, imports: str) -> None:
    plant(model_house, f"{module.partition('.')[0]}.__init__", "")
    plant(model_house, module, f"import {imports}")
    result = lint(model_house)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{CONTRACTS[contract]['name']} BROKEN" in result.stdout
    reported = imports if imports.startswith("rackrate.") else imports.partition(".")[0]
    assert f"rackrate.{module} -> {reported}" in result.stdout


def test_a_room_that_the_layers_do_not_name_is_reported(model_house: Path) -> None:
    plant(model_house, "attic.__init__", "")
    result = lint(model_house)
    assert result.returncode == 1
    assert "rackrate.attic" in result.stdout
