"""The bundled facts, loaded once for this room's tests."""

import csv
import tomllib

import pytest

from rackrate.facts import bundled
from rackrate.facts.book import FactBook


@pytest.fixture(scope="session")
def book() -> FactBook:
    return bundled.load()


@pytest.fixture(scope="session")
def tables() -> dict[str, list[dict[str, str]]]:
    return {
        path.name: list(csv.DictReader(path.read_text("utf-8").splitlines()))
        for path in sorted(bundled.DATA.glob("*.csv"))
    }


@pytest.fixture(scope="session")
def engines() -> dict[str, dict[str, object]]:
    return {
        f"engines/{path.name}": tomllib.loads(path.read_text("utf-8"))
        for path in sorted(bundled.DATA.glob("engines/*.toml"))
    }
