"""Records that few questions need: slices of a card, providers by name, the claims that started rackrate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction

from rackrate.units import parse_day
from rackrate.values import Value


class MigProfile(Value, frozen=True, kw_only=True):
    """One kind of slice of the cards ``accelerators``.

    ``sm_fraction`` of the multiprocessors, ``memory_label_gb`` as in the
    profile's name (the slice has less), at most ``max_instances`` on one card.
    """

    accelerators: tuple[str, ...]
    profile: str
    sm_fraction: Fraction
    memory_label_gb: float
    max_instances: int
    source: str
    seen_at: date
    notes: str = ""


class Provider(Value, frozen=True, kw_only=True):
    """Someone who rents machines out; ``resells`` names the clouds behind a broker."""

    id: str
    title: str
    aliases: tuple[str, ...]
    country: str
    currency: str
    resells: tuple[str, ...]
    source: str


class Claim(Value, frozen=True, kw_only=True):
    """A claim of the articles, its verdict (right, wrong, conditional, unsupported) and the right answer."""

    id: str
    article: str
    claim: str
    verdict: str
    right_answer: str
    condition_or_source: str
    shown_by: str


def mig_profile(row: Mapping[str, str]) -> MigProfile:
    """One row of mig_profiles.csv."""
    return MigProfile(
        accelerators=tuple(row["accelerators"].split("|")),
        profile=row["profile"],
        sm_fraction=Fraction(row["sm_fraction"]),
        memory_label_gb=float(row["memory_label_gb"]),
        max_instances=int(row["max_instances"]),
        source=row["source"],
        seen_at=parse_day(row["seen_at"]),
        notes=row["notes"],
    )


def provider(row: Mapping[str, str]) -> Provider:
    """One row of providers.csv."""
    return Provider(
        id=row["id"],
        title=row["title"],
        aliases=tuple(filter(None, row["aliases"].split("|"))),
        country=row["country"],
        currency=row["currency"],
        resells=tuple(filter(None, row["resells"].split("|"))),
        source=row["source"],
    )


def claim(row: Mapping[str, str]) -> Claim:
    """One row of claims.csv."""
    return Claim(**row)
