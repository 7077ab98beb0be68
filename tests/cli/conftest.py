"""Commands are run at the root of the repository, where the examples are."""

import pytest
from tests.cli.ask import ROOT


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
