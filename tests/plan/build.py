"""Workloads and offers for tests of planning."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from rackrate.money import Money
from rackrate.offers.offer import Offer, Term

AT = date(2026, 11, 30)
JOB = {
    "model": "meta-llama/Llama-2-7b-hf",
    "task": "lora",
    "training": {"tokens": "30M", "sequence_tokens": 1024, "micro_batch": 2, "global_batch": 16},
}
SERVICE = {
    "model": "meta-llama/Llama-2-13b-hf",
    "task": "inference",
    "precision": "fp16",
    "serving": {"mode": "online", "context_tokens": 4096, "prompt_tokens": 3000, "output_tokens": 300},
}


def offer(number: int, card: str, price: str, *, currency: str = "USD", **given: object) -> Offer:
    """An offer of one card by the hour."""
    values: dict[str, object] = {
        "id": f"o{number}",
        "provider": "somewhere",
        "name": f"offer {number}",
        "card_label": card,
        "cards": (card,),
        "gpus": 1,
        "share": 1.0,
        "form_factor": "PCIe",
        "region": "us-east",
        "market": "on_demand",
        "price": Money(Decimal(price), currency),
        "term": Term(unit="hour", hours=Decimal(1), prepaid=False),
        "observed_on": date(2026, 11, 1),
        "observed_how": "page_read",
        "source": "made for a test",
    }
    return Offer(**(values | given))  # type: ignore[arg-type]
