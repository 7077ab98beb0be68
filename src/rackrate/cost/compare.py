"""Prices beside each other: where a package begins to pay, and what a GB of card memory costs."""

from __future__ import annotations

from decimal import Decimal

from rackrate.money import Money


def break_even_hours(hourly: Money, package: Money, hourly_with_package: Money | None = None) -> Decimal | None:
    """Hours of use from which ``package`` costs no more than ``hourly`` use without it.

    h = P / (p - q), with P the price of the package (a prepaid term, or the
    upfront fee of a reservation), p the price per hour without it and q the
    price per hour that is still due with it (0 for a prepaid term). None where
    q >= p: it never pays. A break-even beyond the hours of the term means that
    hourly use is always cheaper; that is for the caller to compare.

    Raises:
        ValueError: the prices are in different currencies.
    """
    saved = hourly if hourly_with_package is None else hourly - hourly_with_package
    if saved.amount <= 0:
        return None
    if package.currency != saved.currency:
        raise ValueError(f"cannot compare {package.currency} with {saved.currency}: convert one first")
    return package.amount / saved.amount


def price_per_gb_hour(price_per_hour: Money, memory_sold_gb: Decimal) -> Money:
    """Price per hour and GB of card memory "as sold" (the label on the box, neither 10^9 nor 2^30 bytes)."""
    return Money(price_per_hour.amount / memory_sold_gb, price_per_hour.currency)
