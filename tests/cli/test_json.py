"""The JSON documents: valid against their schemas, with the keys that readers count on and what they mean."""

import json
from datetime import date
from decimal import Decimal

import pytest
from jsonschema import Draft202012Validator
from tests.cli.ask import (
    CARDS,
    DAY,
    FACTS,
    FITS,
    MODELS,
    NO_FITS,
    NO_OFFERS,
    NO_PLANS,
    NO_SPEEDS,
    OFFERS,
    PLANS,
    REFUSED,
    ROOT,
    SPEEDS,
    answer,
    name_of,
    run,
)

SCHEMAS = {
    path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "src/rackrate/app/schemas").glob("*.json")
}

# The keys that readers count on; a document may hold more.
PROMISED = {
    "plan": {
        "schema": str,
        "rackrate_version": str,
        "facts_digest": str,
        "as_of": str,
        "plans": [
            {
                "accelerator": str,
                "gpus": int,
                "provider": str,
                "offer": str,
                "region": str,
                "market": str,
                "stock": str,
                "fit": {"verdict": str, "headroom_bytes": float},
                "hours": {"low": float, "likely": float, "high": float},
                "billed_hours": float,
                "cost": {
                    "low": Decimal,
                    "likely": Decimal,
                    "high": Decimal,
                    "currency": str,
                    "lines": [{"name": str, "quantity": Decimal, "unit_price": Decimal, "amount": Decimal}],
                },
                "price_observed_at": date,
                "price_source": str,
                "warnings": [{"code": str, "severity": str, "subject": str, "observed": str, "action": str}],
            }
        ],
        "frontier": [{"offer_id": str, "hours": float, "cost": Decimal}],
        "rejected": [{"reason": str, "count": int}],
        "assumptions": [{"key": str, "value": str, "why": str}],
    },
    "fit": {
        "schema": str,
        "rackrate_version": str,
        "facts_digest": str,
        "as_of": str,
        "verdict": str,
        "peak_bytes": {"low": float, "likely": float, "high": float},
        "usable_bytes": float,
        "components": [{"name": str, "phase": str, "bytes": {"low": float, "likely": float, "high": float}}],
        "changes": [{"knob": str, "before": str, "after": str}],
        "counts": [{"gpus": int, "verdict": str, "peak_bytes": {"likely": float}, "usable_bytes": float}],
        "largest": [{"knob": str, "now": int, "value": int, "capped": bool}],
        "slices": [{"profile": str, "at_most": int, "verdict": str, "source": str}],
        "cheapest": [{"accelerator": str, "gpus": int, "price_per_hour": Decimal, "price_observed_at": date}],
    },
    "speed": {
        "workload": {"task": str, "model": str},
        "cards": [
            {
                "accelerator": str,
                "product": str,
                "roofs": [{"quantity": str, "value": float, "unit": str, "kind": str, "source": str}],
                "measured": [{"quantity": str, "kind": str, "low": float, "high": float, "source": str}],
                "machines": [
                    {
                        "gpus": int,
                        "interconnect": str,
                        "parts": [
                            {
                                "part": str,
                                "tokens_per_s": {"low": float, "likely": float, "high": float},
                                "share_of_ceiling": float,
                                "limited_by": str,
                                "busy": [{"resource": str, "share": float}],
                            }
                        ],
                        "missed": [{"target": str, "observed": float, "limit": float, "unit": str}],
                        "detail": str,
                        "changes": [{"knob": str, "before": str, "after": str}],
                    }
                ],
            }
        ],
        "assumptions": [{"key": str, "value": str, "why": str}],
    },
    "gpu": {
        "schema": str,
        "rackrate_version": str,
        "facts_digest": str,
        "as_of": str,
        "gpus": [
            {
                "id": str,
                "product": str,
                "memory_sold_gb": float,
                "facts": [{"quantity": str, "value": float, "unit": str, "kind": str, "source": str}],
                "prices": [{"per_gpu_hour": Decimal, "per_gb_hour_as_sold": Decimal, "currency": str, "gpus": int}],
                "measured": [{"quantity": str, "kind": str, "low": float, "high": float, "source": str}],
                "slices": [{"profile": str, "compute_share": float, "at_most": int, "memory_unused": float}],
                "suits": [{"work": str, "verdict": str, "because": str}],
                "sizes": [{"task": str, "weight_format": str, "tokens": int}],
                "results": [{"result": str, "per_tokens": float, "currency": str}],
                "ratios": [{"quantity": str, "ratio": float}],
            }
        ],
        "reference": [{"result": str, "model": str, "engine": str}],
    },
    "model": {
        "models": [
            {
                "id": str,
                "family": str,
                "origin": str,
                "params_total": int,
                "params_active": int,
                "params": [{"group": str, "params": int}],
                "attention": str,
                "native_format": str,
                "weights": [{"format": str, "bits_per_weight": float, "bytes": float, "native": bool, "exact": bool}],
                "cache": [
                    {
                        "engines": [str],
                        "bits": int,
                        "bytes_per_token": float,
                        "contexts": [{"context_tokens": int, "bytes": {"low": float, "likely": float, "high": float}}],
                    }
                ],
                "cache_unknown": str,
                "source": str,
                "notes": str,
            }
        ],
        "warnings": [{"code": str, "severity": str, "subject": str, "observed": str, "action": str}],
    },
    "offers": {
        "currency": str,
        "considered": int,
        "found": int,
        "more": int,
        "sort": [str],
        "offers": [
            {
                "accelerator": str,
                "cards": [str],
                "gpus": int,
                "form_factor": str,
                "provider": str,
                "offer": str,
                "offer_id": str,
                "region": str,
                "market": str,
                "price_per_hour": Decimal,
                "price_currency": str,
                "term": str,
                "billing": {"stop": str},
                "stock": str,
                "stock_signal": str,
                "price_observed_at": date,
                "price_source": str,
                "access": [{"key": str, "value": str, "condition": str, "source": str}],
                "warnings": [{"code": str, "severity": str}],
            }
        ],
        "groups": [{"name": str, "offers": int}],
        "left_out": [{"reason": str, "count": int, "alone": int}],
        "warnings": [{"code": str, "severity": str, "subject": str, "observed": str, "action": str}],
    },
    "facts_show": {
        "kind": str,
        "id": str,
        "facts": [
            {
                "quantity": str,
                "value": str,
                "unit": str,
                "condition": str,
                "kind": str,
                "used": bool,
                "step": str,
                "own": bool,
                "source": str,
                "seen_at": str,
            }
        ],
    },
    "facts_list": {
        "kinds": [{"kind": str, "known": int, "own": int}],
        "items": [{"kind": str, "id": str, "title": str, "own": bool}],
    },
    "facts_check": {
        "folders": [str],
        "good": bool,
        "files": [{"file": str, "bundled": int, "own": int, "left_out": int}],
        "problems": [{"code": str, "subject": str, "observed": str, "expected": str, "action": str}],
        "prices": [{"place": str, "standing": str, "replaces": [str], "filled": [{"column": str, "value": str}]}],
    },
    "facts_path": {"folders": [{"folder": str, "named_by": str, "exists": bool, "read": bool, "files": [str]}]},
}
HEADER = {"schema": str, "rackrate_version": str, "facts_digest": str, "as_of": str}


def kind_of(args):
    """The kind of document that a command prints."""
    return "_".join(args[:2]) if args[0] == "facts" else args[0]


def keeps(value, promise, where="$"):
    """Whether ``value`` has the keys of ``promise``, of the right types."""
    if isinstance(promise, dict):
        assert promise.keys() <= value.keys(), where
        for key, inner in promise.items():
            keeps(value[key], inner, f"{where}.{key}")
    elif isinstance(promise, list):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            keeps(item, promise[0], f"{where}[{number}]")
    elif promise is Decimal:
        assert Decimal(value).is_finite(), where
        assert "E" not in value, where
    elif promise is date:
        assert date.fromisoformat(value) <= date.fromisoformat(DAY), where
    elif promise is float:
        assert isinstance(value, float | int), where
    else:
        assert isinstance(value, promise), where


def document(args):
    """The document of ``args``, valid against its schema."""
    found = answer(*args, "--json").document
    kind = found["schema"].removeprefix("rackrate.").removesuffix("/1")
    Draft202012Validator.check_schema(SCHEMAS[kind])
    Draft202012Validator(SCHEMAS[kind]).validate(found)
    return found


@pytest.mark.parametrize(
    "args",
    [*PLANS, *NO_PLANS, *FITS, *NO_FITS, *CARDS, *MODELS, *FACTS, *OFFERS, *NO_OFFERS, *SPEEDS, *NO_SPEEDS],
    ids=name_of,
)
def test_documents_are_valid_and_keep_the_promised_keys(args):
    found = document(args)
    keeps(found, HEADER | PROMISED[kind_of(args)])
    assert found["schema"] == f"rackrate.{kind_of(args)}/1"
    assert found["as_of"] == DAY
    assert len(found["facts_digest"]) == 64


@pytest.mark.parametrize("args", PLANS, ids=name_of)
def test_the_plans_say_what_they_mean(args):
    found = document(args)
    assert found["plans"]
    for plan in found["plans"]:
        fit, peak, cost = plan["fit"], plan["fit"]["peak_bytes"], plan["cost"]
        assert fit["verdict"] == ("fits" if peak["high"] <= fit["usable_bytes"] else "tight")
        assert peak["likely"] <= fit["usable_bytes"]
        assert plan["hours"]["low"] <= plan["hours"]["likely"] <= plan["hours"]["high"]
        assert Decimal(cost["low"]) <= Decimal(cost["likely"]) <= Decimal(cost["high"])
        assert cost["currency"] == found["currency"]
        assert sum(Decimal(line["amount"]) for line in cost["lines"]) == Decimal(cost["billed"])
        age = date.fromisoformat(DAY) - date.fromisoformat(plan["price_observed_at"])
        assert plan["price_age_days"] == (None if plan["price_observed_how"] == "not_after" else age.days)
        assert plan["accelerator"].split("|") == plan["cards"]


@pytest.mark.parametrize("args", [*PLANS, *NO_PLANS], ids=name_of)
def test_every_offer_is_a_plan_or_left_out_for_one_reason(args):
    found = document(args)
    left_out = sum(group["count"] for group in found["rejected"])
    assert len(found["plans"]) + found["more_plans"] + left_out == found["considered"] > 600
    assert len({group["reason"] for group in found["rejected"]}) == len(found["rejected"])
    assert [g["count"] for g in found["rejected"]] == sorted((g["count"] for g in found["rejected"]), reverse=True)


NUMBERED = {"does_not_fit", "budget", "deadline", "latency", "load"}


@pytest.mark.parametrize("args", [*PLANS, *NO_PLANS], ids=name_of)
def test_a_group_of_rejections_names_the_number_that_failed(args):
    groups = {group["reason"]: group["nearest"] for group in document(args)["rejected"]}
    for reason in NUMBERED & groups.keys():
        for said in (groups[reason]["observed"], groups[reason]["limit"]):
            assert any(character.isdigit() for character in said), reason


@pytest.mark.parametrize(
    ("args", "reason", "knob"),
    [
        (NO_PLANS[0], "budget", "limits.budget"),
        (("plan", "examples/lora-7b.toml", "--budget", "1000 USD"), "deadline", "limits.deadline"),
        (("plan", "examples/lora-7b.toml"), "interruptible", "limits.interruptible"),
        (("plan", "examples/lora-7b.toml", "--gpus", "3"), "gpu_count", "limits.gpu_counts"),
    ],
)
def test_the_smallest_change_is_to_what_was_asked(args, reason, knob):
    nearest = next(group["nearest"] for group in document(args)["rejected"] if group["reason"] == reason)
    change = nearest["change"]
    assert change["knob"] == knob
    assert change["before"] != change["after"]


def test_the_smallest_change_of_the_budget_brings_a_plan_in():
    nearest = next(g["nearest"] for g in document(NO_PLANS[0])["rejected"] if g["reason"] == "budget")
    answered = answer("plan", "examples/lora-7b.toml", "--budget", nearest["change"]["after"], "--json")
    assert answered.code == 0
    assert nearest["offer_id"] in {plan["offer_id"] for plan in answered.document["plans"]}


@pytest.mark.parametrize("args", PLANS, ids=name_of)
def test_the_frontier_gets_faster_and_dearer(args):
    frontier = document(args)["frontier"]
    costs, rates = [Decimal(f["cost"]) for f in frontier], [f["tokens_per_s"] for f in frontier]
    assert costs == sorted(costs)
    assert rates == sorted(rates)


@pytest.mark.parametrize(
    ("rank", "order"),
    [
        ("cost", lambda plan: Decimal(plan["cost"]["likely"])),
        ("time", lambda plan: plan["hours"]["likely"]),
    ],
)
def test_plans_come_in_the_order_asked_for(rank, order):
    plans = document(("plan", "examples/lora-7b.toml", "--rank-by", rank, "--top", "40"))["plans"]
    surely = [plan for plan in plans if plan["fit"]["verdict"] == "fits"]
    assert len(surely) > 10
    assert list(map(order, surely)) == sorted(map(order, surely))


def test_the_runner_up_is_the_second_plan():
    found = document(("plan", "examples/lora-7b.toml"))
    assert found["runner_up"]["offer_id"] == found["plans"][1]["offer_id"]
    assert found["runner_up"]["decided_by"] in {"fit", "cost", "time", "both", "tie"}
    assert found["runner_up"]["cost_ratio"] >= 1


@pytest.mark.parametrize("args", [*FITS, *NO_FITS], ids=name_of)
def test_the_account_of_memory_adds_up_to_the_peak(args):
    found = document(args)
    peak = found["peak_bytes"]
    held = [
        part["bytes"]["likely"]
        for part in found["components"]
        if {"always", found["peak_phase"]} & set(part["phase"].split("+"))
    ]
    assert sum(held) == pytest.approx(peak["likely"], rel=1e-6)
    assert peak["low"] <= peak["likely"] <= peak["high"]
    assert max(phase["bytes"]["likely"] for phase in found["phases"]) == pytest.approx(peak["likely"])
    assert found["headroom_bytes"] == pytest.approx(found["usable_bytes"] - peak["likely"])
    assert found["usable_bytes"] <= found["memory_total_bytes"]
    verdict = "fits" if peak["high"] <= found["usable_bytes"] else "tight"
    assert found["verdict"] == (verdict if peak["likely"] <= found["usable_bytes"] else "does_not_fit")


@pytest.mark.parametrize("args", NO_FITS, ids=name_of)
def test_what_does_not_fit_says_what_would_make_it_fit(args):
    found = document(args)
    assert found["changes"]
    for change in found["changes"]:
        assert change["before"] != change["after"]
        assert change["peak_bytes"]["likely"] <= found["usable_bytes"]


@pytest.mark.parametrize("args", [*FITS, *NO_FITS], ids=name_of)
def test_every_number_of_cards_is_answered_and_the_best_leads(args):
    found = document(args)
    asked = [int(n) for n in args[args.index("--gpus") + 1].split(",")] if "--gpus" in args else None
    counts = {count["gpus"]: count for count in found["counts"]}
    if asked is not None:
        assert list(counts) == asked
    leading = counts[found["gpus"]]
    assert (leading["verdict"], leading["layout"]) == (found["verdict"], found["layout"])
    assert leading["components"] == found["components"]
    order = ["fits", "tight", "does_not_fit"]
    best = min(counts.values(), key=lambda count: (order.index(count["verdict"]), count["gpus"]))
    assert best["gpus"] == found["gpus"]


@pytest.mark.parametrize("args", [*FITS, *NO_FITS], ids=name_of)
def test_the_largest_sizes_are_where_the_verdict_turns(args):
    """Asked for again at the largest size it fits; a step further it does not, or waits, or the model ends."""
    flags = {
        "serving.context_tokens": "--context",
        "serving.concurrency": "--concurrency",
        "training.sequence_tokens": "--context",
        "training.micro_batch": "--batch",
    }
    found = document(args)
    for size in found["largest"]:
        assert (size["value"] >= size["now"]) == (found["verdict"] == "fits" and not _waits(found))
        if size["knob"] != "training.sequence_tokens" or not size["value"] or len(found["counts"]) > 1:
            continue
        assert answer(*args, flags[size["knob"]], str(size["value"]), "--json").document["verdict"] == "fits"
        if not size["capped"]:
            more = answer(*args, flags[size["knob"]], str(size["value"] + 1), "--json").document
            assert more["verdict"] != "fits" or _waits(more)


def _waits(found):
    return any(warning["code"] == "short_of_concurrency" for warning in found["warnings"])


@pytest.mark.parametrize("args", FITS, ids=name_of)
def test_the_cheapest_cards_that_hold_it_fit_when_asked_for(args):
    found = document(args)
    prices = [Decimal(each["price_per_hour"]) for each in found["cheapest"]]
    assert prices == sorted(prices)
    shown = 0 if found["nodes"] > 1 else 3  # price lists do not say which machines are joined
    assert len({each["accelerator"] for each in found["cheapest"]}) == len(prices) == shown
    place = args.index("--gpu") if "--gpu" in args else len(args)
    for each in found["cheapest"]:
        other = (*args[:place], "--gpu", each["accelerator"], *args[place + 2 :])
        again = answer(*(*other, *(() if "--gpus" in args else ("--gpus", str(each["gpus"])))), "--json").document
        count = next(c for c in again["counts"] if c["gpus"] == each["gpus"])
        assert count["verdict"] == "fits"


@pytest.mark.parametrize("args", [*SPEEDS, *NO_SPEEDS], ids=name_of)
def test_speeds_say_what_they_mean(args):
    for card in document(args)["cards"]:
        able = [machine for machine in card["machines"] if machine["tokens_per_s"]]
        for machine in card["machines"]:
            assert (machine["reason"] is None) == (machine in able)
        for machine in able:
            rate = machine["tokens_per_s"]
            assert 0 < rate["low"] <= rate["likely"] <= rate["high"] <= machine["ceiling_tokens_per_s"] * (1 + 1e-9)
            assert machine["share_of_ceiling"] == pytest.approx(rate["likely"] / machine["ceiling_tokens_per_s"])
            assert machine["speedup"] / machine["gpus"] * able[0]["gpus"] == pytest.approx(machine["efficiency"])
            for part in machine["parts"]:
                shares = [part["arithmetic_share"], part["bandwidth_share"] or 0.0]
                assert part["share_of_ceiling"] == pytest.approx(max(shares))
                assert 0 < max(shares) <= 1
                peaks = {fact["unit"]: fact["value"] for fact in card["roofs"]}
                assert part["flop_per_s_per_card"] == pytest.approx(shares[0] * peaks["flop/s"])
        meeting = [machine["gpus"] for machine in able if not machine["missed"]]
        assert card["fewest_gpus"] == (min(meeting) if meeting else None)
        if able:
            best = max(machine["speedup"] for machine in able)
            assert next(m for m in able if m["gpus"] == card["fastest_gpus"])["speedup"] == best
            assert able[0]["speedup"] == 1


def test_the_speed_of_a_plan_is_the_speed_of_its_machine():
    best = document(("plan", "examples/lora-7b.toml"))["plans"][0]
    asked = ("speed", "examples/lora-7b.toml", "--gpu", best["cards"][0], "--gpus", str(best["gpus"]))
    (machine,) = document(asked)["cards"][0]["machines"]
    assert machine["tokens_per_s"] == best["speed"]["tokens_per_s"]
    assert machine["hours"] == best["hours"]


def test_prices_of_cards_are_per_gb_as_sold():
    for gpu in document(CARDS[2])["gpus"]:
        for price in gpu["prices"]:
            per_gb = Decimal(price["per_gpu_hour"]) / Decimal(repr(gpu["memory_sold_gb"]))
            assert abs(per_gb - Decimal(price["per_gb_hour_as_sold"])) < Decimal("0.00001")
            assert price["currency"] == "CNY"


@pytest.mark.parametrize("args", REFUSED, ids=name_of)
def test_refusals_are_documents_too(args):
    ended = run(*args, "--json")
    assert ended.code == 2
    Draft202012Validator(SCHEMAS["problems"]).validate(ended.document)
    assert ended.document["problems"]
    for problem in ended.document["problems"]:
        assert problem["severity"] == "error"
        assert all(problem[key] for key in ("code", "subject", "action"))
        assert problem["observed"] or problem["expected"]
    assert ended.err.count("next: ") == len(ended.document["problems"])
