"""What stands between a renter and a machine: only what a public source states, and nothing for the rest."""

import pytest

from rackrate.facts import bundled
from rackrate.facts.access import KEYS, SEVERAL
from rackrate.facts.validate import validate
from rackrate.problems import Code

FACTS = bundled.access()


def of(provider, key):
    return [fact for fact in FACTS if (fact.provider, fact.key) == (provider, key)]


def test_every_row_is_a_record_with_a_source_and_a_day(book):
    described = {provider.id for provider in bundled.providers()}
    assert len(FACTS) >= 25
    for fact in FACTS:
        assert fact.key in KEYS
        assert fact.provider in described
        assert fact.source.strip()
        assert fact.seen_at <= book.seen_at
        words = KEYS[fact.key]
        said = set(fact.value.split("|")) if fact.key in SEVERAL else {fact.value}
        assert words is None or said <= words or fact.key == "quota"


def test_what_sources_state():
    assert {fact.value for fact in of("huawei", "real_name_verification")} == {"required"}
    assert [fact.value for fact in of("vast", "payment_methods")] == ["card|crypto"]
    assert [(fact.value, fact.unit) for fact in of("vast", "minimum_balance")] == [("5", "USD")]
    assert {fact.value for fact in of("verda", "stock_signal")} == {"api"}
    assert [(fact.value, fact.unit) for fact in of("runpod", "quota")] == [("80", "USD/h")]
    assert of("aws", "quota")[0].value == "by_request"


def test_what_no_source_states_is_absent():
    assert of("aws", "payment_methods") == []
    assert of("verda", "real_name_verification") == []
    assert not [fact for fact in FACTS if fact.key == "waitlist"]


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("provider", "awss", Code.UNKNOWN_NAME),
        ("key", "qouta", Code.UNKNOWN_NAME),
        ("value", "on request", Code.BAD_VALUE),
        ("value", "-1", Code.OUT_OF_BOUNDS),
        ("seen_at", "yesterday", Code.BAD_VALUE),
        ("confidence", "sure", Code.UNKNOWN_NAME),
        ("source", "", Code.NO_SOURCE),
    ],
)
def test_a_planted_fault_is_seen(tables, engines, column, value, code):
    first = tables["access.csv"][0]
    assert first["key"] == "quota"
    planted = {**tables, "access.csv": [{**first, column: value}, *tables["access.csv"][1:]]}
    (fault,) = validate(planted, engines)
    assert (fault.code, fault.subject) == (code, f"access.csv:2 {column}")


def test_a_word_that_is_not_known_among_several_is_seen(tables, engines):
    rows = [{**row, "value": "card|gold"} if row["key"] == "payment_methods" else row for row in tables["access.csv"]]
    faults = validate({**tables, "access.csv": rows}, engines)
    assert {(fault.code, fault.observed) for fault in faults if fault.code is Code.UNKNOWN_NAME} == {
        (Code.UNKNOWN_NAME, "gold")
    }
