import pytest

from rackrate.facts import bundled
from rackrate.offers import catalog


@pytest.fixture(scope="session")
def book():
    return bundled.load()


@pytest.fixture(scope="session")
def table(book):
    return catalog.load(book).table


@pytest.fixture(scope="session")
def offers(table):
    return table.records()
