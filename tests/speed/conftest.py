import pytest

from rackrate.facts import bundled


@pytest.fixture(scope="session")
def book():
    return bundled.load()
