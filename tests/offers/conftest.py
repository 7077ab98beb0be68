import pytest

from rackrate.facts import bundled
from rackrate.offers import catalog


@pytest.fixture(scope="session")
def book():
    return bundled.load()


@pytest.fixture(scope="session")
def loaded(book):
    return catalog.load(book)


@pytest.fixture(scope="session")
def table(loaded):
    return loaded.table


@pytest.fixture(scope="session")
def offers(table):
    return table.records()
