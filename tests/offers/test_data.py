"""The bundled price list keeps its own rules (data/README.md)."""

import csv
import re

import pytest

from rackrate.offers.catalog import DATA, Record
from rackrate.offers.gates import DOUBTS
from rackrate.offers.regions import GROUPS
from rackrate.offers.validate import EXCLUDES, FLAGS, HOW, TERMS


def records():
    for path in sorted(DATA.glob("offers-*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        assert tuple(header) == Record._fields
        yield from (Record(*line) for line in lines)


@pytest.fixture(scope="module")
def lines():
    return tuple(records())


@pytest.fixture(scope="module")
def places():
    with (DATA / "regions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def words(text):
    return set(text.split("|")) - {""}


def test_every_line_has_a_source_a_date_and_words_that_the_readme_names(lines):
    for line in lines:
        assert all((line.source, line.provider, line.name, line.card_label)), line
        assert re.fullmatch(r"[A-Z]{3}", line.currency), line
        assert line.term in TERMS, line
        assert line.observed_how in HOW, line
        assert words(line.excludes) <= EXCLUDES, line
        assert words(line.flags) <= FLAGS, line
        assert words(line.doubts) <= DOUBTS.keys(), line


def test_sources_are_public_places(lines):
    for line in lines:
        assert not re.search(r"shared/|research/|offers-(seed|cn|committed)", f"{line.source} {line.note}"), line


def test_terms_hold_the_hours_that_their_unit_can_hold(lines):
    allowed = {"hour": {"1"}, "day": {"24"}, "month": {"720", "730"}, "year": {"8760"}, "3year": {"26280"}}
    for line in lines:
        assert line.hours_in_term in allowed.get(line.term, {line.hours_in_term}), line
        assert line.prepaid == "true" or line.term == "hour", line


def test_credit_packs_hold_credits_over_the_rate_at_which_the_card_burns_them(lines):
    packs = [line for line in lines if line.term == "credit_pack"]
    assert len(packs) == 8
    for line in packs:
        credits_bought = int(re.search(r"(\d+) DCU", line.name)[1])
        rate = 1.28 if line.share == "1/2" else 2.56
        assert float(line.hours_in_term) == credits_bought / rate
        assert line.validity_days == "30"


def test_no_line_is_there_twice(lines):
    assert len(set(lines)) == len(lines)


def test_every_region_has_a_place_and_every_place_an_offer(lines, places):
    sold = {(line.provider, part) for line in lines if line.region for part in line.region.split("|")}
    known = {(place["provider"], place["region"]) for place in places}
    assert {pair for pair in sold if pair not in known and ("*", pair[1]) not in known} == set()
    assert {pair for pair in known if pair not in sold and pair[0] != "*"} == set()
    assert len(known) == len(places)


def test_places_have_country_codes_and_known_groups(places):
    by_country = {}
    for place in places:
        assert re.fullmatch(r"[A-Z]{2}|", place["country"]), place
        assert words(place["groups"]) <= GROUPS, place
        if place["country"]:
            assert by_country.setdefault(place["country"], place["groups"]) == place["groups"], place
    members = {country for country, groups in by_country.items() if "eu" in words(groups)}
    assert not members & {"GB", "NO", "CH", "RU", "UA"}
    assert all("europe" in words(by_country[country]) for country in members)


def test_the_readme_names_every_file_and_column():
    named = set(re.findall(r"[\w.-]+", (DATA / "README.md").read_text("utf-8")))
    assert {path.name for path in DATA.glob("offers-*.csv")} <= named
    assert set(Record._fields) <= named
