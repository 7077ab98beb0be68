"""Regions: does an offer lie where someone asked."""

from __future__ import annotations

from collections.abc import Iterable

GROUPS = frozenset({"europe", "eu", "north-america", "asia", "africa", "oceania", "south-america"})
"""Words for groups of countries; ``eu`` is the European Union, ``europe`` the continent."""

COUNTRY_CODE_LETTERS = 2

ALIASES = {"na": "north-america", "sa": "south-america", "uk": "gb", "china": "cn", "中国": "cn", "usa": "us"}
"""Other words for groups and countries."""


def matches_region(query: str, region: str, country: str, groups: Iterable[str] = ()) -> bool:
    """Whether a place is what ``query`` asks for.

    ``query`` is a region, the start of one up to a separator or digit
    (``us-east`` for ``us-east-1``), an ISO 3166 alpha-2 country code, or one of
    ``GROUPS``. Two letters are a country and never a prefix: AWS calls London
    ``eu-west-2``. Unknown is no match: an offer without a region matches
    nothing. ``region`` and ``country`` may list several, separated by ``|``
    (one price for all of them): one that matches is enough.
    """
    wanted = query.strip().casefold()
    wanted = ALIASES.get(wanted, wanted)
    if not wanted:
        return False
    if wanted in GROUPS:
        return wanted in groups
    if wanted in country.casefold().split("|"):
        return True
    return any(_names(wanted, part) for part in region.casefold().split("|"))


def _names(wanted: str, region: str) -> bool:
    if region == wanted:
        return True
    if len(wanted) <= COUNTRY_CODE_LETTERS or not region.startswith(wanted):
        return False
    return not region[len(wanted)].isalpha()
